"""A slot of a stream: its engines, and what Spark must keep so that any process can go on with it.

What an update writes follows the events that it brought. Where engines can be made of the events of the open window
alone, segments are dropped as time leaves them behind; otherwise a snapshot of the engines takes their place whenever
there is more to replay than the last one held.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.engine import Engine
from kleene.engine.statistics import Alive
from kleene.frames.arrow import as_integers
from kleene.frames.numbers import to_arrow
from kleene.frames.type_names import types_among
from kleene.spark.slot import Made, Part, Work, asked, made_of, types_made_known
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.replayed import Replayed
from kleene.spark.streaming.segments import Kept, Page, Segment, read_segment, write_segment
from kleene.spark.worker import fitted

SEGMENT, SNAPSHOT = "segment", "snapshot"
# What is told of an update: what it did, and what the slot holds after it.
DONE = ("events", "late", "duplicates", "matches", "dropped", "plan_changes")
HELD = ("held", "runs", "state_bytes", "kept_bytes")
METRICS = pa.schema([(name, pa.int64()) for name in (*DONE, *HELD)])
# So much is replayed before it is worth a snapshot.
_LEAST_LOG = 1 << 18


@dataclass
class LiveSlot:
    """Engines that stand where a page says."""

    work: Work
    part: Part
    page: Page
    engines: dict[int, Engine]
    # The queries that no engine runs.
    replayed: Replayed | None = None
    segments: deque[Segment] = field(default_factory=deque)
    # How much the last snapshots took, by query, and how much came since.
    base: dict[int, int] = field(default_factory=dict)
    log: int = 0
    # The types of the events that came, as far as queries name them.
    types: set[str] = field(default_factory=set)

    @property
    def nbytes(self) -> int:
        replayed = 0 if self.replayed is None else self.replayed.nbytes
        return replayed + sum(engine.statistics.state_bytes for engine in self.engines.values())

    @property
    def _empty(self) -> pa.Table:
        return _columns(self.work, self.part).empty_table()

    @property
    def _horizon(self) -> int | None:
        """How long before the watermark events end that must be kept; None when snapshots are needed."""
        lengths = [run.horizon for run in self._runs]
        known = [length for length in lengths if length is not None]
        return max(known) if len(known) == len(lengths) else None

    @property
    def _runs(self) -> list[Engine | Replayed]:
        return [*self.engines.values(), *([] if self.replayed is None else [self.replayed])]

    # One update

    def update(self, rows: pa.Table | None, watermark: int | None, kept: Kept, pace: Pace) -> Iterator[Made]:
        """Let time pass, then take in what came; nothing before the watermark is taken in."""
        matches = dropped = changes = 0
        if watermark is not None and watermark != self.page.watermark:
            for number, engine in self.engines.items():
                batch = engine.process(self._empty, watermark)
                dropped += batch.statistics.dropped
                changes += batch.statistics.plan_changes
                for made in made_of(self.work, number, batch):
                    matches += made.number if made.kind == "matches" else 0
                    yield made
            for made in () if self.replayed is None else self.replayed.advance(watermark):
                matches += made.number if made.kind == "matches" else 0
                yield made
        arrived = self._empty if rows is None else rows
        yield from self._new_types(arrived)
        in_time, late = self._apart(arrived, watermark)
        fresh = self._without_duplicates(in_time)
        for engine in self.engines.values():
            engine.process(fresh)
        if self.replayed is not None:
            self.replayed.take(fresh)
        if late.num_rows:
            yield Made(self.part.queries[0], "late", late.num_rows, late)
        self._save(fresh, watermark, kept, pace)
        duplicates = in_time.num_rows - fresh.num_rows
        yield self._measured(arrived.num_rows, late.num_rows, duplicates, matches, dropped, changes)

    def _new_types(self, rows: pa.Table) -> Iterator[Made]:
        """Which types came for the first time since this slot was opened."""
        schema = self.work.schema
        if not rows.num_rows or schema.constant_type is not None or schema.type not in rows.column_names:
            return
        wanted = {name for number in self.part.queries for name in self.work.bound[number].types} - self.types
        if wanted:
            new = types_among(rows.column(schema.type), wanted) & wanted
            self.types |= new
            yield from types_made_known(self.work, self.part, new)

    def _apart(self, rows: pa.Table, watermark: int | None) -> tuple[pa.Table, pa.Table]:
        if watermark is None or not rows.num_rows:
            return rows, rows.slice(0, 0)
        in_time = pc.greater_equal(as_integers(rows.column(self.work.schema.time)), watermark)
        if pc.all(in_time).as_py():
            return rows, rows.slice(0, 0)
        return rows.filter(in_time), rows.filter(pc.invert(in_time))

    def _without_duplicates(self, rows: pa.Table) -> pa.Table:
        """An event that came again waits still, or is late by now."""
        tie = self.work.schema.tie_breaker
        if tie is None or not self.work.settings.stream.drop_duplicates or not rows.num_rows:
            return rows
        names = [self.work.schema.time, tie]
        waiting = self._runs[0].waiting
        known = [] if waiting is None else [waiting.select(names)]
        before = sum(table.num_rows for table in known)
        every = pa.concat_tables([*known, rows.select(names)])
        every = every.append_column("row", to_arrow(np.arange(every.num_rows)))
        first = every.group_by(names, use_threads=False).aggregate([("row", "min")]).column("row_min")
        fresh = pc.subtract(first.filter(pc.greater_equal(first, before)), before)
        return rows if len(fresh) == rows.num_rows else rows.take(fresh.combine_chunks().sort())

    def _measured(self, events: int, late: int, duplicates: int, matches: int, dropped: int, changes: int) -> Made:
        """What an update did, and what is alive after it, for whoever watches."""
        alive = [engine.alive for engine in self.engines.values()]
        if self.replayed is not None and self.replayed.held:
            alive.append(Alive(events=self.replayed.held, nbytes=self.replayed.nbytes))
        row = {
            "events": events,
            "late": late,
            "duplicates": duplicates,
            "matches": matches,
            "dropped": dropped,
            "plan_changes": changes,
            "held": sum(one.events for one in alive),
            "runs": sum(one.runs for one in alive),
            "state_bytes": sum(one.nbytes for one in alive),
            "kept_bytes": sum(self.base.values()) + sum(segment.size for segment in self.segments),
        }
        return Made(self.part.queries[0], "metrics", 1, pa.Table.from_pylist([row], METRICS))

    # What is kept

    def _save(self, rows: pa.Table, watermark: int | None, kept: Kept, pace: Pace) -> None:
        number = self.page.update + 1
        if rows.num_rows:
            data = write_segment(rows)
            kept.put(SEGMENT, number, data)
            latest = pc.max(as_integers(rows.column(self.work.schema.time))).as_py()
            self.segments.append(Segment(number, len(data), latest))
            self.log += len(data)
        horizon = self._horizon
        if horizon is None and self.log > max(sum(self.base.values()), _LEAST_LOG):
            self._snapshot(kept)
            self.page = replace(self.page, based=number)
        elif horizon is not None and watermark is not None:
            while self.segments and self.segments[0].latest < watermark - horizon:
                self._forget(self.segments.popleft(), kept)
        name = secrets.token_hex(8)
        self.page = replace(
            self.page,
            update=number,
            recent=self.page.recent_with(name),
            watermark=watermark if watermark is not None else self.page.watermark,
            timer=self._timer(watermark, kept, pace),
        )
        kept.set_page(self.page.to_bytes())

    def _snapshot(self, kept: Kept) -> None:
        while self.segments:
            self._forget(self.segments.popleft(), kept)
        self.log = 0
        for number, run in self._by_number():
            data = run.snapshot()
            kept.remove(SNAPSHOT, number, self.base.get(number, 0))
            kept.put(SNAPSHOT, number, data)
            self.base[number] = len(data)

    def _by_number(self) -> list[tuple[int, Engine | Replayed]]:
        return [*self.engines.items(), *([] if self.replayed is None else [(self.replayed.numbers[0], self.replayed)])]

    def _forget(self, segment: Segment, kept: Kept) -> None:
        kept.remove(SEGMENT, segment.number, segment.size)

    def _timer(self, watermark: int | None, kept: Kept, pace: Pace) -> int | None:
        deadlines = [deadline for run in self._runs if (deadline := run.deadline) is not None]
        # A slot to which nothing comes is woken once more: to forget what is of no use by then, and to say so.
        moment = min(deadlines) if deadlines else self._expiry(watermark)
        wanted, was = None if moment is None else pace.timer(moment), self.page.timer
        if wanted != was:
            if was is not None:
                kept.drop_timer(was)
            if wanted is not None:
                kept.set_timer(wanted)
        return wanted

    def _expiry(self, watermark: int | None) -> int | None:
        """The watermark at which nothing that is held or kept is of use any more; None: there is no such time."""
        horizon = self._horizon
        if horizon is None:
            moments = [moment for run in self._runs if (moment := run.expiry) is not None]
        else:
            moments = [segment.latest + horizon + 1 for segment in self.segments]
        latest = max(moments, default=None)
        return None if latest is None or watermark is None or latest <= watermark else latest

    # Coming back

    def catch_up(self, page: Page, kept: Kept) -> bool:
        """Take in what others have taken in since, if this slot is an earlier state of what is kept."""
        if page.name is not None and self.page.name == page.name:
            return True
        if self.page.name is None or not page.knows(self.page.update, self.page.name):
            return False
        if page.based > self.page.update:
            return False
        # An update without events has no segment; one that time has left behind is not missed.
        missed = ((number, kept.get(SEGMENT, number)) for number in range(self.page.update + 1, page.update + 1))
        rows = [self._remember(number, data) for number, data in missed if data is not None]
        self._replay(rows, page)
        return True

    def _remember(self, number: int, data: bytes) -> pa.Table:
        rows = fitted(read_segment(data), _columns(self.work, self.part))
        latest = pc.max(as_integers(rows.column(self.work.schema.time))).as_py()
        self.segments.append(Segment(number, len(data), latest))
        self.log += len(data)
        return rows

    def _replay(self, rows: list[pa.Table], page: Page) -> None:
        events = pa.concat_tables([self._empty, *rows])
        for run in self._runs:
            run.replay(events, page.watermark)
        self.page = page

    @staticmethod
    def opened(work: Work, part: Part, page: Page, kept: Kept) -> LiveSlot:
        """A slot made of what is kept."""
        made = LiveSlot(work, part, page, {})
        snapshots = dict(kept.all(SNAPSHOT))
        apart = [number for number in part.queries if number in work.replayed]
        if apart:
            made.replayed = Replayed(work, apart, _columns(work, part))
            if made.replayed.numbers[0] in snapshots:
                made.replayed.restore(snapshots[made.replayed.numbers[0]])
        for number in part.queries:
            if number in apart:
                continue
            query = asked(work, part, number)
            if number in snapshots:
                made.engines[number] = Engine.restore(query, snapshots[number], work.settings)
            else:
                made.engines[number] = Engine(query, work.settings)
        made.base = {number: len(data) for number, data in snapshots.items()}
        rows = [made._remember(number, data) for number, data in sorted(kept.all(SEGMENT))]
        if page.update:
            made._replay(rows, page)
        return made


def new_page(serves: Mapping[str, Any]) -> Page:
    return Page(secrets.token_hex(8), serves)


def _columns(work: Work, part: Part) -> pa.Schema:
    return pa.schema([work.columns.field(name) for name in part.columns])

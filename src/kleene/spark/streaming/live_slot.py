"""A slot of a stream: its engines, and what Spark must keep so that any process can go on with it.

What an update writes follows the events that it brought. Where engines can be made of the events of the open window
alone, segments are dropped as time leaves them behind; otherwise a snapshot of the engines takes their place whenever
there is more to replay than the last one held. Where a budget drops, what is dropped depends on what was there at each
watermark: then segments hold the watermarks, too, and updates are replayed one by one.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.composition.graph_run import GraphRun
from kleene.frames.arrow import as_integers, empty_table
from kleene.frames.numbers import to_arrow
from kleene.frames.type_names import types_among
from kleene.queries.meaning import meaning_of
from kleene.spark.slot import OutputChunk, SlotGroup, TaskContext, new_run, output_chunks, types_seen
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.segments import (
    Kept,
    Segment,
    SlotCheckpoint,
    check_meanings,
    kept_events,
    not_kept,
    write_meanings,
    write_segment,
)

SEGMENT, SNAPSHOT, MEANING = "segment", "snapshot", "meaning"
# The metrics of an update: what it did, and what the slot holds after it.
DONE = ("events", "late", "duplicates", "matches", "dropped", "plan_changes")
# How the slot came to the worker that made the update, where it was not there as it stood, and how long that took.
ARRIVAL = ("made_anew", "caught_up", "handed_over", "catching_up_ms")
HELD = ("held", "runs", "state_bytes", "kept_bytes")
METRICS = pa.schema([(name, pa.int64()) for name in (*DONE, *ARRIVAL, *HELD)])
# So much is replayed before it is worth a snapshot.
_LEAST_LOG = 1 << 18


@dataclass
class LiveSlot:
    """Queries that stand where a page says."""

    work: TaskContext
    part: SlotGroup
    page: SlotCheckpoint
    graph: GraphRun
    segments: deque[Segment] = field(default_factory=deque)
    # How much the last snapshots took, by query, and how much came since.
    base: dict[int, int] = field(default_factory=dict)
    log: int = 0
    # The types of the events that came, as far as queries name them.
    types: set[str] = field(default_factory=set)
    # Of the metrics named in ARRIVAL those that are not 0, until an update has told them.
    arrival: Mapping[str, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return self.graph.nbytes

    @property
    def _empty(self) -> pa.Table:
        return empty_table(_columns(self.work, self.part))

    # One update

    def update(self, rows: pa.Table | None, watermark: int | None, store: Kept, pace: Pace) -> Iterator[OutputChunk]:
        """Let time pass, then take in what came; nothing before the watermark is taken in."""
        matches = dropped = changes = 0
        if watermark is not None and watermark != self.page.watermark:
            for node, outputs in self.graph.process(self._empty, watermark):
                dropped += outputs.statistics.dropped
                changes += outputs.statistics.plan_changes
                for chunk in output_chunks(self.work, node, outputs):
                    matches += chunk.number if chunk.kind == "matches" else 0
                    yield chunk
        arrived = self._empty if rows is None else rows
        yield from self._new_types(arrived)
        in_time, late = self._apart(arrived, watermark)
        fresh = self._without_duplicates(in_time)
        for _ in self.graph.process(fresh):
            pass  # Time stands, so nothing is given.
        if late.num_rows:
            yield OutputChunk(self.part.queries[0], "late", late.num_rows, late)
        self._save(fresh, watermark, store, pace)
        duplicates = in_time.num_rows - fresh.num_rows
        yield self._measured(arrived.num_rows, late.num_rows, duplicates, matches, dropped, changes)

    def _new_types(self, rows: pa.Table) -> Iterator[OutputChunk]:
        """Which types came for the first time since this slot was opened."""
        schema = self.work.schema
        if not rows.num_rows or schema.constant_type is not None or schema.type not in rows.column_names:
            return
        wanted = {name for number in self.part.queries for name in self.work.bound[number].types} - self.types
        if wanted:
            new = types_among(rows.column(schema.type), wanted) & wanted
            self.types |= new
            yield from types_seen(self.work, self.part, new)

    def _apart(self, rows: pa.Table, watermark: int | None) -> tuple[pa.Table, pa.Table]:
        if watermark is None or not rows.num_rows:
            return rows, rows.slice(0, 0)
        in_time = pc.greater_equal(as_integers(rows.column(self.work.schema.time)), watermark)
        if pc.all(in_time).as_py():
            return rows, rows.slice(0, 0)
        return rows.filter(in_time), rows.filter(pc.invert(in_time))

    def _without_duplicates(self, rows: pa.Table) -> pa.Table:
        """The rows that are not waiting already: an event that came again still waits, or is late by now."""
        tie = self.work.schema.tie_breaker
        if tie is None or not self.work.settings.stream.drop_duplicates or not rows.num_rows:
            return rows
        names = [self.work.schema.time, tie]
        waiting = self.graph.waiting(self.page.watermark).select(names)
        before = waiting.num_rows
        every = pa.concat_tables([waiting, rows.select(names)])
        every = every.append_column("row", to_arrow(np.arange(every.num_rows)))
        first = every.group_by(names, use_threads=False).aggregate([("row", "min")]).column("row_min")
        fresh = pc.subtract(first.filter(pc.greater_equal(first, before)), before)
        return rows if len(fresh) == rows.num_rows else rows.take(fresh.combine_chunks().sort())

    def _measured(
        self, events: int, late: int, duplicates: int, matches: int, dropped: int, changes: int
    ) -> OutputChunk:
        """The metrics of an update, and of what is alive after it."""
        alive = self.graph.alive
        row = {
            "events": events,
            "late": late,
            "duplicates": duplicates,
            "matches": matches,
            "dropped": dropped,
            "plan_changes": changes,
            **dict.fromkeys(ARRIVAL, 0),
            **self.arrival,
            "held": alive.events,
            "runs": alive.runs,
            "state_bytes": alive.nbytes,
            "kept_bytes": sum(self.base.values()) + sum(segment.size for segment in self.segments),
        }
        self.arrival = {}
        return OutputChunk(self.part.queries[0], "metrics", 1, pa.Table.from_pylist([row], METRICS))

    # What is kept

    def _save(self, rows: pa.Table, watermark: int | None, store: Kept, pace: Pace) -> None:
        number = self.page.update + 1
        if number == 1:
            store.put(MEANING, 0, write_meanings(_meanings(self.work, self.part)))
        passed = watermark if self.graph.replays_by_update and watermark != self.page.watermark else None
        if rows.num_rows or passed is not None:
            data = write_segment(rows, passed)
            store.put(SEGMENT, number, data)
            self._remember(number, len(data), rows)
        horizon = self.graph.horizon
        if horizon is None and self.log > max(sum(self.base.values()), _LEAST_LOG):
            self._snapshot(store)
            self.page = replace(self.page, based=number)
        elif horizon is not None and watermark is not None:
            while self.segments and _is_past(self.segments[0], watermark - horizon):
                self._forget(self.segments.popleft(), store)
        name = secrets.token_hex(8)
        self.page = replace(
            self.page,
            update=number,
            recent=self.page.recent_with(name),
            watermark=watermark if watermark is not None else self.page.watermark,
            timer=self._timer(watermark, store, pace),
        )
        store.set_page(self.page.to_bytes())

    def _snapshot(self, store: Kept) -> None:
        while self.segments:
            self._forget(self.segments.popleft(), store)
        self.log = 0
        for number, data in self.graph.snapshots():
            store.remove(SNAPSHOT, number, self.base.get(number, 0))
            store.put(SNAPSHOT, number, data)
            self.base[number] = len(data)

    def _forget(self, segment: Segment, store: Kept) -> None:
        store.remove(SEGMENT, segment.number, segment.size)

    def _timer(self, watermark: int | None, store: Kept, pace: Pace) -> int | None:
        # A slot to which nothing comes is woken once more: to forget what is of no use by then, and to say so.
        deadline = self.graph.deadline
        moment = self._expiry(watermark) if deadline is None else deadline
        wanted, was = None if moment is None else pace.timer(moment), self.page.timer
        if wanted != was:
            if was is not None:
                store.drop_timer(was)
            if wanted is not None:
                store.set_timer(wanted)
        return wanted

    def _expiry(self, watermark: int | None) -> int | None:
        """The watermark at which nothing that is held or kept is of use any more; None: there is no such time."""
        horizon = self.graph.horizon
        latest = self.graph.expiry
        if horizon is not None:
            moments = [known.latest + horizon + 1 for known in self.segments if known.latest is not None]
            latest = max(moments, default=None)
        return None if latest is None or watermark is None or latest <= watermark else latest

    # Coming back

    def catch_up(self, page: SlotCheckpoint, store: Kept) -> bool:
        """Take in what others have taken in since, if this slot is an earlier state of what is kept."""
        if page.name is not None and self.page.name == page.name:
            return True
        if self.page.name is None or not page.knows(self.page.update, self.page.name):
            return False
        if page.based > self.page.update:
            return False
        # An update without events has no segment; one that time has left behind is not missed.
        missed = ((number, store.get(SEGMENT, number)) for number in range(self.page.update + 1, page.update + 1))
        self._replay([(number, data) for number, data in missed if data is not None], page)
        return True

    def _remember(self, number: int, size: int, rows: pa.Table) -> None:
        latest = pc.max(as_integers(rows.column(self.work.schema.time))).as_py()
        self.segments.append(Segment(number, size, latest))
        self.log += size

    def _replay(self, segments: Iterable[tuple[int, bytes]], page: SlotCheckpoint) -> None:
        """Take in the events of updates, at once where that gives the same."""
        events = [self._empty]
        for number, data in segments:
            if not page.based < number <= page.update:
                raise not_kept(f"it has events of update {number}, and its page says {page.based} to {page.update}")
            rows, watermark = kept_events(data, _columns(self.work, self.part), self.work.schema)
            if not rows.num_rows and not self.graph.replays_by_update:
                raise not_kept(f"update {number} kept no events")
            if watermark is not None and (page.watermark is None or watermark > page.watermark):
                raise not_kept(f"update {number} is of a time that has not come")
            self._remember(number, len(data), rows)
            if not self.graph.replays_by_update:
                events.append(rows)
                continue
            self.graph.replay(self._empty, watermark)
            self.graph.replay(rows, None)
        self.graph.replay(pa.concat_tables(events), page.watermark)
        self.page = page

    @staticmethod
    def opened(work: TaskContext, part: SlotGroup, page: SlotCheckpoint, store: Kept) -> LiveSlot:
        """The slot, restored from the state that Spark keeps."""
        meanings = store.get(MEANING, 0) if page.update else None
        if meanings is not None:  # otherwise an older Kleene kept it, which did not say
            check_meanings(meanings, _meanings(work, part))
        snapshots = dict(store.all(SNAPSHOT))
        if page.based and not set(part.queries) <= snapshots.keys():
            raise not_kept("a query has no snapshot, and its page says that one was taken")
        slot = LiveSlot(work, part, page, new_run(work, part, snapshots))
        slot.base = {number: len(data) for number, data in snapshots.items()}
        if page.update:
            slot._replay(sorted(store.all(SEGMENT)), page)
        return slot


def _is_past(segment: Segment, moment: int) -> bool:
    return segment.latest is None or segment.latest < moment


def new_page(serves: Mapping[str, Any]) -> SlotCheckpoint:
    return SlotCheckpoint(secrets.token_hex(8), serves)


def _meanings(work: TaskContext, part: SlotGroup) -> dict[str, Any]:
    return {query.name: meaning_of(query) for query in (work.bound[number] for number in part.queries)}


def _columns(work: TaskContext, part: SlotGroup) -> pa.Schema:
    return pa.schema([work.columns.field(name) for name in part.columns])

"""A slot of a stream as Spark drives it, without Spark: workers that come, fail and go, batch by batch.

`Store` is what Spark keeps of the slot, in dicts: what an attempt wrote is lost when it fails. Everything else is the
code that Spark calls.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import ceil
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.agreement import SETTINGS, STRATA, case_of, content, eager_rebuilding
from tests.engine.batches import events, words

from kleene.engine.compiling import why_not_compiled
from kleene.engine.engine import Engine
from kleene.engine.timeline import bad_rows, integers
from kleene.engine.windows import has_negated_end
from kleene.errors import BadSnapshot, KleeneError, NotOnStreams, UnboundedState
from kleene.evaluation import evaluate
from kleene.frames.numbers import to_arrow
from kleene.frames.streams import to_table
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Settings, Stream
from kleene.spark.packing import from_bytes, to_bytes
from kleene.spark.slot import Part, Work
from kleene.spark.streaming import live_slot, processor
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.live_slot import LiveSlot
from kleene.spark.streaming.preparing import _check_runs
from kleene.spark.streaming.processor import SlotProcessor
from kleene.spark.streaming.segments import Page
from kleene.spark.streaming.spreading import places
from kleene.spark.worker import errand, work_from
from kleene.testing.generators import schema_of

# What Spark calls the first of two slots.
KEY = (places(2)[0],)
OUTPUTS = ("matches", "timeouts", "compressed")
# Time after everything, in steps.
FAR = 1_000_000


# What Spark keeps --------------------------------------------------------------------------------------------------


class Gone(Exception):
    """The task is no more."""


class Store:
    """The state of one slot in Spark's store, and the handle by which a processor knows it."""

    def __init__(self) -> None:
        self.page: bytes | None = None
        self.parts: dict[tuple[str, int, int], bytes] = {}
        self.timers: set[int] = set()
        self._before: tuple[bytes | None, dict[tuple[str, int, int], bytes], set[int]] = None, {}, set()
        # Bytes that the attempt wrote, without the page; and after how many calls the task dies.
        self.wrote = 0
        self.lives: int | None = None

    # Transactions

    def begin(self, lives: int | None = None) -> None:
        self._before = self.page, dict(self.parts), set(self.timers)
        self.wrote, self.lives = 0, lives

    def commit(self) -> None:
        self._before = self.page, dict(self.parts), set(self.timers)

    def rollback(self) -> None:
        self.page, self.parts, self.timers = self._before

    # As Spark shows it

    def called(self) -> None:
        if self.lives is not None:
            self.lives -= 1
            if self.lives < 0:
                raise Gone

    def getValueState(self, name: str, schema: object) -> _Value:  # noqa: N802
        return _Value(self)

    def getMapState(self, name: str, key: object, value: object) -> _Map:  # noqa: N802
        return _Map(self)

    def registerTimer(self, milliseconds: int) -> None:  # noqa: N802
        self.called()
        self.timers.add(milliseconds)

    def deleteTimer(self, milliseconds: int) -> None:  # noqa: N802
        self.called()
        assert milliseconds in self.timers, "a slot knows its timers"
        self.timers.discard(milliseconds)

    @property
    def nbytes(self) -> int:
        return sum(map(len, self.parts.values()))

    @property
    def segments(self) -> list[int]:
        return sorted({number for kind, number, _ in self.parts if kind == live_slot.SEGMENT})


class _Value:
    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self) -> tuple[bytes] | None:
        self._store.called()
        return None if self._store.page is None else (self._store.page,)

    def update(self, value: tuple[bytes]) -> None:
        self._store.called()
        self._store.page = value[0]


class _Map:
    def __init__(self, store: Store) -> None:
        self._store = store

    def getValue(self, key: tuple[str, int, int]) -> tuple[bytes] | None:  # noqa: N802
        self._store.called()
        return (self._store.parts[key],) if key in self._store.parts else None

    def updateValue(self, key: tuple[str, int, int], value: tuple[bytes]) -> None:  # noqa: N802
        self._store.called()
        assert key not in self._store.parts, "nothing is written twice"
        self._store.parts[key] = value[0]
        self._store.wrote += len(value[0])

    def removeKey(self, key: tuple[str, int, int]) -> None:  # noqa: N802
        """What is not there may be removed: a live slot does not know what others have removed."""
        self._store.called()
        self._store.parts.pop(key, None)

    def keys(self) -> Iterator[tuple[str, int, int]]:
        # In an order of Spark's own.
        for key in sorted(self._store.parts, key=lambda key: (key[2], -key[1])):
            self._store.called()
            yield key


@dataclass(frozen=True)
class Watermark:
    milliseconds: int

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802
        return self.milliseconds

    def getExpiryTimeInMs(self) -> int:  # noqa: N802
        return self.milliseconds


# Workers -----------------------------------------------------------------------------------------------------------


class Worker(processor._Live):
    """A worker process: what it remembers of the slot, and how it came to it."""

    def __init__(self, counted: Counter[str]) -> None:
        super().__init__()
        self._counted = counted

    def slot(self, work: Work, part: Part, slot: int, kept: Any) -> LiveSlot:
        before = {id(live): live.page.update for live in self._slots.values()}
        live = super().slot(work, part, slot, kept)
        if live.page.update:
            known = before.get(id(live))
            how = "made anew" if known is None else "as it stood" if known == live.page.update else "caught up"
            self._counted[how] += 1
        return live

    def last(self) -> LiveSlot:
        return next(reversed(self._slots.values()))

    def forget_all(self) -> None:
        self._slots.clear()


@dataclass
class Slot:
    """A slot with its workers.

    failing    how likely an attempt is to fail
    """

    queries: Sequence[Query]
    schema: Schema
    columns: pa.Schema
    settings: Settings = field(default_factory=Settings)
    pace: Pace = field(default_factory=Pace)
    several: bool = False
    workers: int = 1
    failing: float = 0.0
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    counted: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        part = Part(tuple(range(len(self.queries))), tuple(self.columns.names), 0, 1)
        told = errand(self.queries, self.schema, self.columns, [part], several=self.several, settings=self.settings)
        self.told = {**told, "bad_slot": 1, "pace": (self.pace.steps, self.pace.milliseconds)}
        self.serves = processor.serves_of(work_from(told), part)
        self.store = Store()
        self.at = [Worker(self.counted) for _ in range(self.workers)]
        # Rows by kind, of all attempts that counted.
        self.given: dict[str, list[pa.Table]] = {}

    @property
    def page(self) -> Page:
        assert self.store.page is not None
        return Page.from_bytes(self.store.page, self.serves)

    def rows(self, kind: str) -> list[str]:
        return sorted(text for table in self.given.get(kind, ()) for text in content(table))

    def number(self, kind: str) -> int:
        return sum(table.num_rows for table in self.given.get(kind, ()))

    # A micro-batch

    def batch(self, rows: pa.Table | None, milliseconds: int) -> list[tuple[str, pa.Table]]:
        """What a micro-batch gives, by the attempt that counted."""
        while True:
            worker = self.draw.choice(self.at)
            self._something_happens()
            ending = self.draw.choice(["dies", "stops", "is lost"]) if self.draw.random() < self.failing else None
            self.store.begin(lives=self.draw.randint(0, 12) if ending == "dies" else None)
            try:
                made = list(self._attempt(worker, rows, milliseconds, stops=ending == "stops"))
            except Gone:
                ending = ending or "dies"
            if ending is None:
                break
            self.counted[ending] += 1
            self.store.rollback()
        self.store.commit()
        for kind, table in made:
            self.given.setdefault(kind, []).append(table)
        if made:
            self._check(milliseconds, worker.last())
        return made

    def _something_happens(self) -> None:
        if self.failing and self.draw.random() < 0.1:
            # Spark starts again, from its checkpoint.
            for worker in self.at:
                worker.forget_all()
            processor._work.cache_clear()
            self.counted["restart"] += 1
        elif self.failing and self.draw.random() < 0.1:
            self.draw.choice(self.at).forget_all()

    def _attempt(
        self, worker: Worker, rows: pa.Table | None, milliseconds: int, *, stops: bool
    ) -> Iterator[tuple[str, pa.Table]]:
        """Input, then the timers that are due: Spark drops each when the slot has been told."""
        with mock.patch.object(processor, "_LIVE", worker):
            task: Any = SlotProcessor(self.told)
            now = Watermark(milliseconds)
            task.init(self.store)
            if rows is not None and rows.num_rows:
                yield from self._taken(task.handleInputRows(KEY, iter([self._frame(rows)]), now), stops)
            for timer in sorted(timer for timer in self.store.timers if timer <= milliseconds):
                yield from self._taken(task.handleExpiredTimer(KEY, now, Watermark(timer)), stops)
                self.store.timers.discard(timer)

    def _taken(self, frames: Iterator[Any], stops: bool) -> Iterator[tuple[str, pa.Table]]:
        for frame in frames:
            if stops:
                raise Gone
            for kind, rows in zip(frame["kind"], frame["rows"], strict=True):
                yield kind, from_bytes(pa.py_buffer(rows))
        self.counted["updates"] += 1

    def _frame(self, rows: pa.Table) -> Any:
        numbered = rows.rename_columns([f"c{place}" for place in range(rows.num_columns)])
        cut = self.draw.randint(0, rows.num_rows)
        blobs = [to_bytes(part) for part in (numbered.slice(0, cut), numbered.slice(cut)) if part.num_rows]
        return pd.DataFrame({"slot": 0, "begin": 0, "events": blobs})

    def _check(self, milliseconds: int, live: LiveSlot) -> None:
        """What must hold after every batch that concerned the slot."""
        timer, watermark = self.page.timer, self.pace.watermark(milliseconds)
        assert self.store.timers == (set() if timer is None else {timer}), "Spark wakes the slot when it says"
        assert timer is None or timer > milliseconds, "a timer is not of the past"
        for run in live._runs:
            assert run.deadline is None or watermark is None or run.deadline > watermark
        assert self.metrics()["kept_bytes"] == self.store.nbytes, "a slot knows what is kept of it"

    def metrics(self) -> dict[str, int]:
        """What the last update told of itself."""
        row: dict[str, int] = self.given["metrics"][-1].to_pylist()[0]
        return row

    def every_metrics(self) -> list[dict[str, int]]:
        return [row for table in self.given.get("metrics", ()) for row in table.to_pylist()]


# Random queries and streams ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A query that runs on a stream, and its events."""

    query: Query
    schema: Schema
    table: pa.Table
    # Whether something waits for events, and not for time, to be certain.
    waits_for_events: bool

    @property
    def times(self) -> list[int]:
        found: list[int] = integers(self.table.column(self.schema.time)).tolist()
        return found

    def expected(self, table: pa.Table, settings: Settings) -> dict[str, list[str]]:
        """What the query gives in a batch; without ends of windows that only more events would close."""
        made: Any = evaluate(table, [self.query], schema=self.schema, settings=settings)
        if self.waits_for_events:
            whole = {kind: content(getattr(made, kind)) for kind in OUTPUTS}
            made = Engine(work_of(self, settings).bound[0], settings).process(table, FAR)
            assert all(set(content(getattr(made, kind))) <= set(whole[kind]) for kind in OUTPUTS)
        return {kind: sorted(content(getattr(made, kind))) for kind in OUTPUTS}


def work_of(drawn: Drawn, settings: Settings) -> Work:
    return Work([drawn.query], drawn.schema, drawn.table.schema, [], settings=settings)


def drawn_from(draw: random.Random, stratum: str, settings: Settings, counted: Counter[str]) -> Drawn | None:
    """None when a stream cannot run the query, or has no events; rows that are none go to another slot."""
    case = case_of(draw, stratum)
    schema = Schema(**schema_of(case))
    query = Query(case.query_text, params=dict(case.params or {}))
    try:
        table, given = to_table(case.events, schema.declaring(query.tree.declarations))
        good = bad_rows(table, given, 0)[1]
        table = table if good is None else table.filter(to_arrow(good))
        drawn = Drawn(query, given, table, waits_for_events=False)
        bound = work_of(drawn, settings).bound[0]
        _check_runs([bound], table.schema, settings)
    except (UnboundedState, NotOnStreams):
        counted["refused"] += 1
        return None
    except KleeneError:
        return None
    if not table.num_rows:
        return None
    runs = why_not_compiled(bound, table.schema, settings) is None
    counted["on engines" if runs else "replayed"] += 1
    table = again_and_again(draw, table, given, most=2 if runs else 1)
    waits = runs and bound.counts_events and (bound.timeouts is not None or ends_late(bound, settings))
    return replace(drawn, table=table, waits_for_events=waits)


def ends_late(bound: BoundQuery, settings: Settings) -> bool:
    return any(map(has_negated_end, Engine(bound, settings).plan.alternatives))


def again_and_again(draw: random.Random, table: pa.Table, schema: Schema, most: int) -> pa.Table:
    """The same events later again, so that time leaves some behind.

    Near the beginning of Spark's time little is known of it, and before it nothing.
    """
    times = integers(table.column(schema.time)).tolist()
    length = max(times, default=0) - min(times, default=0)
    first = draw.choice([0, 100, 100, -7])
    later = [draw.randint(length, 2 * length + 5) for _ in range(draw.choice([0, 1, most]))]
    return pa.concat_tables([moved(table, schema, by) for by in accumulate([first, *later])])


def moved(table: pa.Table, schema: Schema, by: int) -> pa.Table:
    for name in {schema.time, schema.start} - {None}:
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(place), pc.add(table.column(place), by))
    return table


@dataclass(frozen=True)
class MicroBatch:
    """Which rows it brings to the slot, and Spark's watermark."""

    rows: list[int]
    milliseconds: int


def micro_batches(
    draw: random.Random, times: Sequence[int], pace: Pace, *, disorder: int, delay: int
) -> list[MicroBatch]:
    """Events out of order by so many steps at most; among them those of other slots, which only move time."""

    def of_spark(time: int) -> int:
        return time // pace.steps * pace.milliseconds

    strangers = [draw.randint(min(times) - 3, max(times) + 9) for _ in range(draw.randint(0, 5))]
    arriving: list[tuple[int, int | None]] = [(time, row) for row, time in enumerate(times)]
    arriving += [(time, None) for time in strangers]
    arriving.sort(key=lambda event: event[0] + draw.uniform(0, disorder))
    made: list[MicroBatch] = []
    watermark = 0
    most = draw.choice([1, 3, 6])
    while arriving:
        size = draw.randint(1, most)
        now, arriving = arriving[:size], arriving[size:]
        made.append(MicroBatch([row for _, row in now if row is not None], watermark))
        latest = max(of_spark(time) for time, _ in now)
        before, watermark = watermark, max(watermark, latest - ceil(delay * pace.milliseconds / pace.steps))
        # Nothing else has come when time has moved.
        if watermark > before and draw.random() < 0.5:
            made.append(MicroBatch([], watermark))
    return [*made, MicroBatch([], watermark), MicroBatch([], of_spark(FAR))]


def late_rows(batches: Sequence[MicroBatch], times: Sequence[int], pace: Pace) -> list[int]:
    found = []
    for batch in batches:
        watermark = pace.watermark(batch.milliseconds)
        found += [row for row in batch.rows if watermark is not None and times[row] < watermark]
    return found


PACES = [Pace(), Pace(), Pace(steps=3), Pace(milliseconds=7)]


def run(
    drawn: Drawn,
    batches: Sequence[MicroBatch],
    draw: random.Random,
    settings: Settings,
    pace: Pace,
    counted: Counter[str],
) -> Slot:
    """A slot whose workers come, fail and go."""
    slot = Slot(
        [drawn.query],
        drawn.schema,
        drawn.table.schema,
        settings,
        pace,
        workers=draw.randint(1, 3),
        failing=draw.choice([0, 0.25]),
        draw=draw,
        counted=counted,
    )
    with (
        mock.patch.object(live_slot, "_LEAST_LOG", draw.choice([0, 1 << 18])),
        mock.patch.object(processor, "_PIECE", draw.choice([300, 8 << 20])),
        eager_rebuilding() if draw.random() < 0.5 else nullcontext(),
    ):
        for batch in batches:
            slot.batch(drawn.table.take(pa.array(batch.rows, pa.int64())), batch.milliseconds)
    return slot


# By how many steps events are out of order at most, and how long they are waited for.
IN_TIME = [(0, 0), (4, 4), (9, 9)]
TOO_LATE = [(4, 0), (9, 2), (15, 4)]


def check_agrees(stratum: str, seed: int, counted: Counter[str], orders: Sequence[tuple[int, int]]) -> None:
    """What a slot gives of a random stream is what a batch gives of the events that were not too late."""
    draw = random.Random(f"slot {stratum} {seed}")
    settings = SETTINGS[seed % len(SETTINGS)]
    drawn = drawn_from(draw, stratum, settings, counted)
    if drawn is None:
        return
    pace, (disorder, delay) = draw.choice(PACES), draw.choice(orders)
    batches = micro_batches(draw, drawn.times, pace, disorder=disorder, delay=delay)
    late = late_rows(batches, drawn.times, pace)
    assert delay < disorder or not late
    in_time = sorted(set(range(drawn.table.num_rows)).difference(late))
    expected = drawn.expected(drawn.table.take(pa.array(in_time, pa.int64())), settings)
    slot = run(drawn, batches, draw, settings, pace, counted)
    for kind in OUTPUTS:
        assert slot.rows(kind) == expected[kind], f"{kind} of {stratum} {seed}: {drawn.query.text}"
    assert slot.rows("late") == sorted(content(drawn.table.take(pa.array(late, pa.int64()))))
    assert slot.number("late") == sum(row["late"] for row in slot.every_metrics())
    assert not slot.store.timers, "nothing waits for time any more"
    counted["pairs"] += 1
    counted["with outputs"] += any(expected.values())
    counted["with late events"] += bool(late)
    counted["waiting for events"] += drawn.waits_for_events


# Those of which an engine runs some, and those that are evaluated again and again; no stream runs `durations_counted`.
STREAMED = [stratum for stratum in (*STRATA, "conjunction", "nested", "closure") if stratum != "durations_counted"]


@pytest.mark.slow
@pytest.mark.parametrize("stratum", STREAMED)
def test_a_slot_gives_what_a_batch_gives(stratum: str, record_property: Callable[[str, object], None]) -> None:
    counted = compare(stratum, range(10))
    said = ", ".join(f"{counted[name]} {name}" for name in COUNTED)
    record_property("counted", f"slot = batch: {stratum:22} {said}")
    assert counted["pairs"] >= 4
    assert counted["with outputs"] >= 1
    assert min(counted["made anew"], counted["as it stood"]) >= 5


@pytest.mark.parametrize("stratum", STREAMED)
def test_a_slot_gives_what_a_batch_gives_at_a_glance(stratum: str) -> None:
    """Other pairs than the many, so that these too are worth their time."""
    assert compare(stratum, range(10_000, 10_003))["pairs"]


COUNTED = ("pairs", "with outputs", "with late events", "replayed", "refused", "made anew", "as it stood", "caught up")


def compare(stratum: str, seeds: range, orders: Sequence[tuple[int, int]] = (*IN_TIME, *TOO_LATE)) -> Counter[str]:
    counted: Counter[str] = Counter()
    for seed in seeds:
        check_agrees(stratum, seed, counted, orders)
    return counted


def test_events_that_come_too_late_are_given_back(record_property: Callable[[str, object], None]) -> None:
    strata = ("sequence", "strict_contiguity", "mixed_ends", "non_overlap", "timeouts", "count_window", "closure")
    counted = sum((compare(stratum, range(20_000, 20_003), TOO_LATE) for stratum in strata), Counter())
    said = ", ".join(f"{counted[name]} {name}" for name in ("pairs", "with outputs", "with late events"))
    record_property("counted", f"events that come too late: {said}")
    assert counted["with late events"] >= 6


def test_what_no_stream_runs_is_refused() -> None:
    counted = compare("durations_counted", range(20))
    assert counted["pairs"] == 0
    assert counted["refused"] >= 15


def test_events_that_come_again_change_nothing(record_property: Callable[[str, object], None]) -> None:
    """With a tie-breaker they can be told: of those with the same time and tie-breaker only the first is taken."""
    settings = Settings(stream=Stream(drop_duplicates=True))
    counted: Counter[str] = Counter()
    for seed in range(16):
        draw = random.Random(f"again {seed}")
        drawn = drawn_from(draw, "tie_breaker", settings, counted)
        if drawn is None:
            continue
        names = [drawn.schema.time, drawn.schema.tie_breaker]
        keys = [tuple(row.values()) for row in drawn.table.select(names).to_pylist()]
        once = drawn.table.take(pa.array([row for row, key in enumerate(keys) if keys.index(key) == row], pa.int64()))
        again = [row for row in range(once.num_rows) for _ in range(draw.choice([0, 0, 1, 2]))]
        given = replace(drawn, table=pa.concat_tables([once, once.take(pa.array(again, pa.int64()))]))
        disorder = draw.choice([0, 4, 9])
        batches = micro_batches(draw, given.times, Pace(), disorder=disorder, delay=disorder)
        slot = run(given, batches, draw, settings, Pace(), counted)
        expected = drawn.expected(once, settings)
        for kind in OUTPUTS:
            assert slot.rows(kind) == expected[kind], drawn.query.text
        assert sum(row["duplicates"] for row in slot.every_metrics()) == len(again)
        counted["pairs"] += 1
        counted["with outputs"] += any(expected.values())
        counted["events again"] += len(again)
    said = ", ".join(f"{counted[name]} {name}" for name in ("pairs", "with outputs", "events again"))
    record_property("counted", f"events that come again: {said}")
    assert counted["pairs"] >= 10
    assert counted["with outputs"] >= 4
    assert counted["events again"] >= 50


# Time ---------------------------------------------------------------------------------------------------------------


def slot_of(*texts: str, **options: Any) -> Slot:
    return Slot([Query(text) for text in texts], Schema(), events("").schema, **options)


def given_at(slot: Slot, kind: str, moments: Iterable[int]) -> list[int]:
    """The moments of Spark's at which time alone makes the slot give something."""
    return [now for now in moments if any(made == kind for made, _ in slot.batch(None, now))]


@pytest.mark.parametrize(
    ("pace", "moment"), [(Pace(), 16), (Pace(steps=3), 6), (Pace(milliseconds=7), 15 * 7 + 1)], ids=str
)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("PATTERN SEQ(A a, !(N n)) WITHIN 5", "matches"),
        ("PATTERN SEQ(A a, !(N n)) WITHIN 5 INCLUSIVE", "matches"),
        ("PATTERN SEQ(A+ a[], !(N n)) WITHIN 5", "matches"),
        ("PATTERN SEQ(A a, !(N n)) WITHIN 5 OUTPUT NON_OVERLAP", "matches"),
        ("PATTERN SEQ(A a, !(N n)) WITHIN 5 OUTPUT COMPRESSED", "matches"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 TIMEOUTS INTO unmet", "timeouts"),
        ("PATTERN (A a & B b) ; !(N n) WITHIN 5", "matches"),
    ],
)
def test_a_window_closes_when_time_has_passed_its_end_and_nothing_comes(
    text: str, kind: str, pace: Pace, moment: int
) -> None:
    """At start + size something may still come that lies in it; Spark wakes the slot one step later."""
    slot = slot_of(text, pace=pace)
    slot.batch(events("a10 b10"), 0)
    assert given_at(slot, kind, range(1, 40 * pace.milliseconds)) == [moment]
    assert not slot.store.timers


def test_a_slot_is_woken_only_when_something_may_have_become_certain() -> None:
    slot = slot_of("PATTERN SEQ(A a, !(N n)) WITHIN 5")
    slot.batch(events("a10"), 0)
    assert given_at(slot, "metrics", range(1, 40)) == [11, 16]


def test_a_match_that_nothing_can_forbid_is_given_when_time_has_passed_its_end() -> None:
    slot = slot_of("PATTERN SEQ(A a, B b) WITHIN 5")
    slot.batch(events("b12 a10"), 0)
    assert given_at(slot, "matches", range(1, 40)) == [13]


def test_events_from_before_the_beginning_of_time_are_not_forgotten() -> None:
    """Spark's watermark begins with 0, at which nothing is known: a timer must not fire there, and be gone."""
    early = events("a0 b1").set_column(1, "ts", pa.array([-9, -7], pa.int64()))
    slot = slot_of("PATTERN SEQ(A a, B b) WITHIN 5")
    slot.batch(early, 0)
    assert slot.store.timers == {1}
    assert given_at(slot, "matches", range(3)) == [1]


def test_while_nothing_is_known_of_time_nothing_is_late() -> None:
    slot = slot_of("PATTERN SEQ(A a, B b) WITHIN 5")
    slot.batch(events("b3"), 0)
    slot.batch(events("a2 a0"), 0)
    assert slot.page.watermark is None
    slot.batch(events("a4 b9"), 5)
    assert [words(table) for table in slot.given["matches"]] == [["a2 b3", "a0 b3"]]
    assert [table.to_pylist() for table in slot.given["late"]] == [[{"type": "A", "ts": 4, "id": "0"}]]


# What is kept -------------------------------------------------------------------------------------------------------

KEYED = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [id] } WITHIN 40"


def fed(slot: Slot, batches: int, each: int, jitter: int = 5) -> Iterator[pa.Table]:
    """A long stream: so many events in each batch, ten steps on."""
    for number in range(batches):
        times = [10 * number + slot.draw.randint(0, 9 + jitter) for _ in range(each)]
        rows = events(" ".join(f"{slot.draw.choice('abc')}{time}/{slot.draw.randint(0, 3)}" for time in times))
        slot.batch(rows, max(0, 10 * (number - 1)))
        yield rows


@pytest.mark.parametrize("text", [KEYED, "PATTERN A a & C c WHERE [id] WITHIN 40"], ids=["engine", "replayed"])
def test_what_an_update_writes_follows_what_it_brought(text: str) -> None:
    slot = slot_of(text, workers=2)
    segments = []
    for rows in fed(slot, batches=40, each=8):
        assert slot.store.wrote <= 2 * len(to_bytes(rows))
        assert len(slot.store.page or b"") < 1024
        segments.append(len(slot.store.segments))
    # As many as lie in the window, twice where it could forbid, and in the delay.
    length = 40 if text == KEYED else 80
    assert max(segments) <= length // 10 + 4
    assert segments[-1] == segments[20]


@pytest.mark.parametrize("text", [f"{KEYED} OUTPUT NON_OVERLAP", KEYED.replace("40", "9 EVENTS")])
def test_snapshots_take_no_more_than_what_they_stand_for(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of them at least as much came as the first one took."""
    monkeypatch.setattr(live_slot, "_LEAST_LOG", 0)
    slot = slot_of(text, workers=2)
    wrote = brought = 0
    kept = []
    for rows in fed(slot, batches=40, each=10):
        brought += len(to_bytes(rows))
        wrote += slot.store.wrote
        kept.append(slot.store.nbytes)
    assert slot.page.based > 20
    assert slot.counted["caught up"] > 0
    assert wrote <= 3 * brought
    assert max(kept[20:]) <= 1.5 * max(kept[:20])


def test_there_is_no_snapshot_before_there_is_much_to_replay() -> None:
    slot = slot_of(f"{KEYED} OUTPUT NON_OVERLAP")
    for _ in fed(slot, batches=10, each=5):
        pass
    assert slot.page.based == 0
    assert len(slot.store.segments) == 10


def test_values_are_kept_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_PIECE", 100)
    monkeypatch.setattr(live_slot, "_LEAST_LOG", 3000)
    slot = slot_of(f"{KEYED} OUTPUT NON_OVERLAP", workers=2)
    rows = list(fed(slot, batches=20, each=5))
    assert slot.page.based > 0
    assert max(map(len, slot.store.parts.values())) == 100
    expected = evaluate(pa.concat_tables(rows), slot.queries)
    slot.batch(None, FAR)
    assert slot.rows("matches") == sorted(content(expected.matches)) != []


# Workers ------------------------------------------------------------------------------------------------------------

PAIRS = "PATTERN SEQ(A a, B b) WITHIN 50"


def at(slot: Slot, worker: int) -> Slot:
    """The slot, whose next batch this worker has."""
    slot.draw = mock.Mock(wraps=random.Random(0), choice=lambda among: among[worker] if among is slot.at else among[0])
    return slot


def found(slot: Slot) -> list[str]:
    return sorted(word for table in slot.given.get("matches", ()) for word in words(table))


def test_a_worker_takes_in_what_others_have_taken_in() -> None:
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    at(slot, 1).batch(events("a2"), 0)
    at(slot, 1).batch(None, 2)
    at(slot, 0).batch(events("b5"), 3)
    at(slot, 1).batch(None, 9)
    assert found(slot) == ["a1 b5", "a2 b5"]
    assert slot.counted == {"updates": 5, "made anew": 1, "as it stood": 1, "caught up": 2}


def test_a_worker_that_has_missed_much_makes_the_slot_anew() -> None:
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    for number in range(20):
        at(slot, 1).batch(events(f"b{number + 2}"), 0)
    at(slot, 0).batch(events("x30"), 29)
    assert slot.counted["made anew"] == 2
    assert len(found(slot)) == 20


def test_an_attempt_that_failed_after_it_had_worked_left_nothing() -> None:
    """Neither in the worker that had it, nor when another one has done the batch since."""
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    slot.store.begin()
    assert len(list(slot._attempt(slot.at[0], events("a2"), 0, stops=False))) == 1
    slot.store.rollback()
    at(slot, 1).batch(events("a2"), 0)
    at(slot, 0).batch(events("b5"), 0)
    at(slot, 0).batch(None, 9)
    assert found(slot) == ["a1 b5", "a2 b5"]


def test_an_attempt_that_failed_half_way_left_nothing() -> None:
    """It had let time pass, and given the first match, when it failed."""
    slot = slot_of(PAIRS)
    slot.batch(events("a1 b2"), 0)
    slot.store.begin()
    with pytest.raises(Gone):
        list(slot._attempt(slot.at[0], events("b5"), 3, stops=True))
    slot.store.rollback()
    slot.batch(events("b5"), 3)
    slot.batch(None, 9)
    assert found(slot) == ["a1 b2", "a1 b5"]
    assert slot.counted["made anew"] == 1


@pytest.mark.parametrize("lives", range(6))
def test_a_worker_that_died_catching_up_left_nothing(lives: int) -> None:
    """After any number of calls of Spark's."""
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    for time in (2, 3, 4):
        at(slot, 1).batch(events(f"a{time}"), 0)
    slot.store.begin(lives)
    with pytest.raises(Gone):
        list(slot._attempt(slot.at[0], events("b5"), 0, stops=False))
    slot.store.rollback()
    at(slot, 0).batch(events("b5"), 0)
    at(slot, 0).batch(None, 9)
    assert found(slot) == ["a1 b5", "a2 b5", "a3 b5", "a4 b5"]


def test_a_worker_that_failed_while_it_replayed_left_nothing() -> None:
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    at(slot, 1).batch(events("a2"), 0)
    replay = Engine.replay

    def failing(engine: Engine, rows: pa.Table, watermark: int | None) -> None:
        replay(engine, rows, watermark)
        raise Gone

    slot.store.begin()
    with mock.patch.object(Engine, "replay", failing), pytest.raises(Gone):
        list(slot._attempt(slot.at[0], events("b5"), 0, stops=False))
    slot.store.rollback()
    at(slot, 0).batch(events("b5"), 0)
    at(slot, 0).batch(None, 9)
    assert found(slot) == ["a1 b5", "a2 b5"]


def test_two_streams_have_slots_of_the_same_number() -> None:
    one, two = slot_of(PAIRS), slot_of(PAIRS)
    two.at = one.at
    one.batch(events("a1"), 0)
    two.batch(events("a2"), 0)
    two.batch(events("b4"), 0)
    one.batch(events("b3"), 0)
    one.batch(None, 9)
    two.batch(None, 9)
    assert (found(one), found(two)) == (["a1 b3"], ["a2 b4"])
    assert one.counted["as it stood"] == 4


def test_a_worker_holds_only_so_much() -> None:
    small = Settings(stream=Stream(cache_bytes=1))
    one, two = slot_of(PAIRS, settings=small), slot_of(PAIRS, settings=small)
    two.at = one.at
    one.batch(events("a1"), 0)
    two.batch(events("a2"), 0)
    assert one.at[0].last().page == two.at[0].last().page
    assert len(one.at[0]._slots) == 1
    one.batch(events("b3"), 0)
    one.batch(None, 9)
    assert found(one) == ["a1 b3"]


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WITHIN 10 INCLUSIVE",
        "PATTERN SEQ(!(N n), A a, B b) WITHIN 10",
        "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10",
        "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10 OUTPUT NON_OVERLAP",
        # The first of two matches that end with the same event has left the window when the second is certain.
        "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10 OUTPUT COMPRESSED",
        "PATTERN SEQ(A a, B b, C c) WITHIN 10 TIMEOUTS INTO unmet",
        "PATTERN SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 10 OUTPUT NON_OVERLAP",
    ],
)
@pytest.mark.parametrize("log", [0, 1 << 18], ids=["snapshots", "segments"])
def test_a_slot_that_every_batch_makes_anew_misses_nothing(
    text: str, log: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One event a batch, and time one step on."""
    monkeypatch.setattr(live_slot, "_LEAST_LOG", log)
    rows = events("n0 a1 a9 b10 a12 b13 n14 a17 b18 c19 b22 a30 b31 a45")
    slot = slot_of(text)
    for now in range(60):
        slot.at[0].forget_all()
        slot.batch(rows.filter(pc.equal(rows.column("ts"), now)), now)
    expected = evaluate(rows, slot.queries)
    assert slot.rows("matches") == sorted(content(expected.matches)) != []
    assert slot.rows("timeouts") == sorted(content(expected.timeouts))
    assert slot.counted["as it stood"] == slot.counted["caught up"] == 0


def test_an_event_completes_one_row_though_others_complete_theirs_at_the_same_time() -> None:
    """Runs of 123 are decided before those of 125, and released with them."""
    slot = slot_of("PATTERN SEQ(A+ a[], !(N n)) WITHIN 14 OUTPUT COMPRESSED")
    rows = events("a123 a125/1 a125/2")
    slot.batch(rows, 0)
    assert given_at(slot, "matches", range(1, 200)) == [138, 140]
    assert slot.rows("matches") == sorted(content(evaluate(rows, slot.queries).matches))


def test_a_group_at_the_end_is_whole_when_its_window_has_closed() -> None:
    slot = slot_of("PATTERN B b ; A+ a WITHIN 14")
    for word, now in (("b1", 0), ("a2", 1), ("a3", 2)):
        slot.batch(events(word), now)
    assert given_at(slot, "matches", range(2, 40)) == [16]
    assert found(slot) == ["b1 a2 a3"]


@pytest.mark.parametrize(
    ("maker", "reader"),
    [
        ("SEQ(A a, B b)", "SEQ(S s, C c)"),
        ("SEQ(A a, !(B b))", "SEQ(C c, S s)"),
        ("SEQ(A a, B b)", "SEQ(C c, !(S s))"),
        ("SEQ(A a, B b)", "SEQ(!(S s), C c)"),
    ],
)
def test_queries_that_feed_each_other_share_a_slot(maker: str, reader: str) -> None:
    made = Query(f"PATTERN {maker} WHERE [id] WITHIN 10 RETURN a.id AS id INTO S", name="made")
    read = Query(f"PATTERN {reader} WHERE [id] WITHIN 20", name="read")
    slot = Slot([made, read], Schema(), events("").schema, several=True, workers=3, failing=0.2)
    rows = pa.concat_tables(list(fed(slot, batches=8, each=6)))
    slot.batch(None, FAR)
    expected = evaluate(rows, [made, read], several=True).matches
    assert slot.rows("matches") == sorted(content(expected))
    assert set(expected.column("query").to_pylist()) == {"made", "read"}


def test_several_queries_share_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of which need snapshots, and some none; one that no engine runs is evaluated again and again."""
    monkeypatch.setattr(live_slot, "_LEAST_LOG", 0)
    texts = [
        KEYED,
        f"{KEYED} OUTPUT NON_OVERLAP",
        "PATTERN A a & C c WHERE [id] WITHIN 10",
        "PATTERN B b WITHIN 3 EVENTS",
    ]
    queries = [Query(text, name=f"q{number}") for number, text in enumerate(texts)]
    slot = Slot(queries, Schema(), events("").schema, several=True, workers=3, failing=0.2)
    rows = pa.concat_tables(list(fed(slot, batches=20, each=6)))
    slot.batch(None, FAR)
    expected = evaluate(rows, queries, several=True)
    assert slot.rows("matches") == sorted(content(expected.matches))
    assert set(expected.matches.column("query").to_pylist()) == {"q0", "q1", "q2", "q3"}
    assert slot.page.based > 0


def test_state_of_another_query_is_refused() -> None:
    slot, other = slot_of(PAIRS), slot_of(PAIRS.replace("50", "51"))
    slot.batch(events("a1"), 0)
    other.store = slot.store
    with pytest.raises(BadSnapshot, match="kept for other queries"):
        other.batch(events("b3"), 0)

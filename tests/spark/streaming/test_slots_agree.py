"""Random queries and streams in a slot of a stream: what it gives is what a batch gives, whatever fails meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.agreement import SETTINGS, STRATA, case_of, content, eager_rebuilding
from tests.soaking import least, rounds, some_of
from tests.spark.streaming.driving import FAR, OUTPUTS, Slot

from kleene.composition.query_graph import QueryGraph
from kleene.engine.any_engine import engine_for
from kleene.engine.compiling import why_not_compiled
from kleene.engine.engine import Engine
from kleene.engine.intake.timeline import bad_rows, integers
from kleene.errors import KleeneError, NotOnStreams, UnboundedState
from kleene.evaluation import evaluate
from kleene.frames.numbers import to_arrow
from kleene.frames.streams import to_table
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Settings, Stream
from kleene.spark.slot import TaskContext
from kleene.spark.streaming import live_slot, processor
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.preparing import check_runs
from kleene.testing.generators import schema_of


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
            made = engine_for(work_of(self, settings).bound[0], settings).process(table, FAR)
            assert all(set(content(getattr(made, kind))) <= set(whole[kind]) for kind in OUTPUTS)
        return {kind: sorted(content(getattr(made, kind))) for kind in OUTPUTS}


def work_of(drawn: Drawn, settings: Settings) -> TaskContext:
    return TaskContext([drawn.query], drawn.schema, drawn.table.schema, [], settings=settings)


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
        assert isinstance(bound, BoundQuery)
        check_runs(QueryGraph.of([(0, bound)], table.schema), settings)
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
    return Engine(bound, settings).plan.has_negated_end


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
EVALUATED = ("conjunction", "nested", "closure", "closures")
STREAMED = [stratum for stratum in (*STRATA, *EVALUATED) if stratum != "durations_counted"]


@pytest.mark.soak
@pytest.mark.parametrize("stratum", STREAMED)
def test_a_slot_gives_what_a_batch_gives(stratum: str, record_property: Callable[[str, object], None]) -> None:
    counted = compare(stratum, range(rounds(20)))
    said = ", ".join(f"{counted[name]} {name}" for name in COUNTED)
    record_property("counted", f"slot = batch: {stratum:22} {said}")
    assert counted["pairs"] >= least(8)
    assert counted["with outputs"] >= least(2)
    assert min(counted["made anew"], counted["as it stood"]) >= least(10)


@pytest.mark.slow
@pytest.mark.parametrize("stratum", some_of(STREAMED, 3))
def test_a_slot_gives_what_a_batch_gives_at_a_glance(stratum: str) -> None:
    """Other pairs than the many, so that these too are worth their time."""
    assert compare(stratum, range(10_000, 10_003))["pairs"]


COUNTED = ("pairs", "with outputs", "with late events", "replayed", "refused", "made anew", "as it stood", "caught up")


def compare(stratum: str, seeds: range, orders: Sequence[tuple[int, int]] = (*IN_TIME, *TOO_LATE)) -> Counter[str]:
    counted: Counter[str] = Counter()
    for seed in seeds:
        check_agrees(stratum, seed, counted, orders)
    return counted


@pytest.mark.slow
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


@pytest.mark.slow
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

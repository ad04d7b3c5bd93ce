"""Events that last: contiguity, positions, and a tie-breaker among those that do not."""

from __future__ import annotations

import random
import re

import numpy as np
import pyarrow as pa
import pytest

from kleene.engine.engine import Engine
from kleene.engine.intake.keys import KeyCoder
from kleene.engine.intake.past import Past
from kleene.engine.intake.strings import StringPool
from kleene.errors import UnboundedState
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Budget, Policy, Settings
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline

ENDLESS = Settings(budget=Budget(state_bytes=1 << 30))


def events(text: str) -> pa.Table:
    """`a1..5/7#2` is an A from 1 to 5 with id 7 and tie-breaker 2; by default it does not last, and both are 0."""
    found = [re.fullmatch(r"([a-z])(\d+)(?:\.\.(\d+))?(?:/(\d+))?(?:#(\d+))?", word) for word in text.split()]
    words = [word for word in found if word is not None]
    assert len(words) == len(found), text
    return pa.table(
        {
            "type": pa.array([word[1].upper() for word in words], pa.string()),
            "began": pa.array([int(word[2]) for word in words], pa.int64()),
            "ts": pa.array([int(word[3] or word[2]) for word in words], pa.int64()),
            "id": pa.array([int(word[4] or 0) for word in words], pa.int64()),
            "seq": pa.array([int(word[5] or 0) for word in words], pa.int64()),
        }
    )


def bound(text: str, *, tied: bool = False) -> BoundQuery:
    schema = Schema(start="began", tie_breaker="seq" if tied else None)
    return Query(text).bind(schema_on(events("").schema, schema))


def words(table: pa.Table | None) -> list[str]:
    """Matches as the types and ends of their events, and their tie-breakers where they have one."""
    common = ("match_id", "query", "start", "end", "key")
    said = []
    for row in [] if table is None else table.to_pylist():
        listed = [value if isinstance(value, list) else [value] for name, value in row.items() if name not in common]
        chosen = [event for part in listed for event in part if event is not None]
        ties = [f"#{event['seq']}" if event["seq"] else "" for event in chosen]
        said.append(" ".join(f"{e['type'].lower()}{e['ts']}{tie}" for e, tie in zip(chosen, ties, strict=True)))
    return said


def run(query: BoundQuery, batches: list[tuple[str, int]], *, restoring: bool) -> list[str]:
    engine = Engine(query, ENDLESS)
    found: list[str] = []
    for batch, watermark in batches:
        found += words(engine.process(events(batch), watermark).matches)
        if restoring:
            engine = Engine.restore(query, engine.snapshot(), ENDLESS)
    return found + words(engine.finish().matches)


@pytest.mark.parametrize("restoring", [False, True], ids=["", "restored"])
@pytest.mark.parametrize(
    ("text", "batches", "expected"),
    [
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 20",
            [("a1..3 x2..4", 5), ("b5 b6", 7)],
            ["a3 b5"],
            id="what overlaps the last event is not between",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 20",
            [("a1..3", 4), ("x4..6 b3..7", 8), ("b9", 10)],
            [],
            id="what began after it is, even if it is passed by the time",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [id] } WITHIN 20",
            [("a1..3 a1..3/1", 4), ("x4/1 x3..5", 6), ("b7 b7/1", 8)],
            ["a3 b7"],
            id="and in its partition",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS",
            [("a1", 2), ("x2 x3 x4 x5 x6", 7), ("b8 b3..9", 10)],
            ["a1 b9"],
            id="an event has the position of its start",
        ),
        pytest.param(
            "PATTERN SEQ(A+ a[], B b) WITHIN 3 EVENTS",
            [("a1", 2), ("x2 x3 x4 x5 x6", 7), ("b8 b3..9", 10)],
            ["a1 b9"],
            id="so that no run dies of an event outside its window",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3 EVENTS",
            [("x1 x2 x3 x4 x5", 6), ("a2..7 a6..8", 9), ("b9", 10)],
            ["a8 b9"],
            id="also where nothing was held when it began",
        ),
        pytest.param(
            "PATTERN SEQ(A a, !(N n)) WITHIN 3 EVENTS",
            [("a1", 2), ("x2 x3 x4 x5 a6", 7), ("n3..8", 9)],
            ["a6"],
            id="a negated end is certain when time ends",
        ),
    ],
)
def test_on_a_stream(text: str, batches: list[tuple[str, int]], expected: list[str], restoring: bool) -> None:
    assert run(bound(text), batches, restoring=restoring) == expected


@pytest.mark.parametrize("restoring", [False, True], ids=["", "restored"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("SEQ(A a, B b) WITHIN 9", ["a5#1 b5#2", "a5#1 b6"], id="sequence"),
        pytest.param("SEQ(A+ a[], B b) WITHIN 9", ["a5#1 b5#2", "a5#1 b6"], id="closure"),
        pytest.param(
            "SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 9 OUTPUT NON_OVERLAP", ["a5#1 b5#2"], id="one"
        ),
        pytest.param("SEQ(A a, !(N n), B b) WITHIN 9", ["a5#1 b5#2"], id="negated"),
        pytest.param("SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 9", ["a5#1 b5#2"], id="contiguous"),
    ],
)
def test_a_tie_breaker_orders_what_does_not_last(text: str, expected: list[str], restoring: bool) -> None:
    """And not what ends or starts at the same time."""
    batches = [("a5#1 b5#2 b4..5#3 b5#0 n5#4", 6), ("b6", 7)]
    assert run(bound(f"PATTERN {text}", tied=True), batches, restoring=restoring) == expected
    lasting = [("a2..5#0 b5#2 n5#3", 6), ("b6", 7)]
    found = run(bound("PATTERN SEQ(A a, !(N n), B b) WITHIN 9", tied=True), lasting, restoring=restoring)
    assert found == ["a5 b6"]


# Positions ---------------------------------------------------------------------------------------------------------


def drawn(draw: random.Random, number: int) -> list[ReferenceEvent]:
    """Events in order, of three partitions and none; half of them last, some of them very long."""
    made, now = [], 0
    for index in range(number):
        now += draw.choice((0, 0, 1, 2))
        start = now - draw.choice((0, 0, 0, 1, 3, 40, number))
        made.append(ReferenceEvent(index, "A", start, now, draw.randint(0, 2), {"id": draw.choice((1, 1, 2, 3, None))}))
    return sorted(made, key=lambda event: (event.end, event.tie))


@pytest.mark.parametrize("seed", range(4))
def test_positions_are_counted_as_defined(seed: int) -> None:
    """Beside the reference's count, in batches that no end spans, saved and restored between them."""
    draw = random.Random(seed)
    made = drawn(draw, 300)
    timeline = ReferenceTimeline.of(made, Schema(start="began", tie_breaker="seq"), ("id",), ("id",))
    past = Past(KeyCoder(("id",), StringPool()))
    coder, step, at = past._partitions, 0, 0
    held: list[tuple[int, int]] = []
    while at < len(made):
        end = at + 1
        while end < len(made) and (made[end].end == made[end - 1].end or draw.random() < 0.9):
            end += 1
        batch, at = made[at:end], end
        keys = pa.table({"id": pa.array([event.values["id"] for event in batch], pa.int64())})
        partition = coder.codes(keys)
        ranks = sorted({(event.end, event.tie) for event in batch})
        steps = np.array([step + ranks.index((event.end, event.tie)) for event in batch], np.int64)
        step += len(ranks)
        starts, ends = (np.array([getattr(event, name) for event in batch], np.int64) for name in ("start", "end"))
        position, place = past.count(keys, partition, steps, starts, ends)
        keyed = [event for event in batch if timeline.key(event) is not None]
        assert position[partition >= 0].tolist() == [timeline.position(event) for event in keyed]
        assert np.all(position <= place)
        held += zip(partition.tolist(), ends.tolist(), strict=True)
        if draw.random() < 0.5:
            codes, times = (np.array(column, np.int64) for column in zip(*held, strict=True))
            saved = past.saved(codes, times, 3)
            past = Past(coder)
            past.restore(saved)


def test_of_a_past_from_which_nothing_is_held_a_window_is_kept() -> None:
    past = Past(KeyCoder((), StringPool()))
    times = np.arange(1000)
    past.count(pa.table({"ts": times}), np.zeros(1000, np.int64), times, times, times)
    assert past.saved(times[:0], times[:0], 5).column("end").to_pylist() == [*range(994, 1000)]
    assert past.saved(times[:1] * 0, times[900:901], 5).num_rows == 100


def test_a_past_of_nothing_is_restored() -> None:
    query = bound("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3 EVENTS")
    assert run(query, [("", 1), ("x2", 3), ("a3", 4), ("b5", 6)], restoring=True) == ["a3 b5"]


def test_a_window_of_positions_over_events_that_last_needs_a_budget_on_a_stream() -> None:
    query = bound("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS")
    with pytest.raises(UnboundedState, match="never closes") as raised:
        Engine(query).process(events("a1"), watermark=2)
    assert "state_bytes" in str(raised.value.hint)
    engine = Engine(query)
    engine.process(events("a1 b2"))
    assert words(engine.finish().matches) == ["a1 b2"]


def test_what_passed_counts_as_state() -> None:
    query = bound("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3 EVENTS")
    engine = Engine(query, Settings(budget=Budget(state_bytes=1 << 20, policy=Policy.DROP_OLDEST)))
    sizes = []
    for first in range(0, 40_000, 1_000):
        batch = " ".join(f"{'a' if at % 100 == 0 else 'x'}{at}/{at % 3}" for at in range(first, first + 1_000))
        engine.process(events(batch), first + 1_000)
        sizes.append(engine.nbytes)
    assert sizes[9] > 2 * sizes[0]
    assert max(sizes) <= 1 << 20
    assert words(engine.process(events("a39998..40000/1 b40001/1 b2..40001/1"), 40_002).matches) == ["a40000 b40001"]


@pytest.mark.parametrize("start", [None, "began"])
@pytest.mark.parametrize("text", ["SEQ(A a, B b) WHERE [id]", "SEQ(A+ a[], B b) WHERE [id]"], ids=["stacks", "runs"])
def test_positions_in_different_partitions_are_not_compared(text: str, start: str | None) -> None:
    """Where the rules that keep partitions apart are off, an event of another one ends no window."""
    query = Query(f"PATTERN {text} WITHIN 3 EVENTS").bind(schema_on(events("").schema, Schema(start=start)))
    engine = Engine(query, Settings(without=frozenset({"push_equivalence"})))
    engine.process(events("x1/1 x2/1 x3/1 x4/1 a5/1 a6/2 b7/1 x8/1 x9/1 x10/1 b11/1 b12/2"))
    assert words(engine.finish().matches) == ["a5 b7", "a6 b12"]

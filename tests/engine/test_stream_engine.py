"""The engine of streams: what it holds and for how long, what a budget does, and what it refuses to go on from."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.algebra.query import BoundStreamQuery, StreamQuery
from kleene.engine.streams import engine as module
from kleene.engine.streams.engine import StreamEngine
from kleene.engine.streams.snapshots import instance_tables
from kleene.errors import BadSnapshot, BudgetExceeded, UnboundedState
from kleene.frames.arrow import schema_on
from kleene.pattern.schema import Schema
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Budget, Policy, Settings
from kleene.testing import reference_stream

PAIRS = "A a ;{a.k = b.k AND DUR <= 10} B b"


def events(*rows: tuple[str, int, int]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table(dict(zip(("type", "ts", "k"), map(list, columns), strict=True)))


def bound(text: str, table: pa.Table, **roles: Any) -> BoundStreamQuery:
    return StreamQuery(text).bind(schema_on(table.schema, Schema(**roles)))


def engine(text: str, table: pa.Table, settings: Settings | None = None) -> StreamEngine:
    return StreamEngine(bound(text, table), settings)


def spans(matches: pa.Table | None) -> list[tuple[int, int]]:
    assert matches is not None
    return list(zip(matches["start"].to_pylist(), matches["end"].to_pylist(), strict=True))


# What waits, and for how long ----------------------------------------------------------------------------------------


def test_an_instance_is_freed_when_no_later_event_can_serve_it() -> None:
    table = events(("A", 1, 7), ("A", 5, 8))
    run = engine(PAIRS, table)
    run.process(table, 6)
    assert run.alive.runs == 2
    # From 1 to 10 are ten ticks: an event at 10 could still serve it, one at 11 could not.
    run.process(events(), 10)
    assert run.alive.runs == 2
    run.process(events(), 11)
    assert run.alive.runs == 1
    assert run.expiry == 15
    run.process(events(), 15)
    assert run.alive.runs == 0
    assert run.expiry is None


def test_events_of_the_horizon_build_an_equal_engine() -> None:
    draw = random.Random(4)
    rows = [(draw.choice("AB"), ts, draw.randint(0, 3)) for ts in range(200)]
    table = events(*rows)
    steady = engine(PAIRS, table)
    assert steady.horizon == 10
    steady.process(table, 200)
    anew = engine(PAIRS, table)
    anew.replay(events(*[row for row in rows if row[1] >= 200 - 10]), 200)
    more = events(*[(draw.choice("AB"), ts, draw.randint(0, 3)) for ts in range(200, 230)])
    for run in (steady, anew):
        run.process(more)
    assert spans(steady.finish().matches) == spans(anew.finish().matches) != []


def test_an_expression_that_takes_any_next_event_is_bounded_and_saved_as_itself() -> None:
    table = events(*[("A", ts, ts % 3) for ts in range(50)])
    text = "A a ; A b ; A c"
    run = engine(text, table)
    assert run.horizon is None
    found = spans(run.process(table.slice(0, 30), 30).matches)
    assert run.alive.runs == 2
    run = StreamEngine.restore(run.query, run.snapshot())
    found += spans(run.process(table.slice(30), 50).matches)
    assert found == [(ts, ts + 2) for ts in range(48)]


@pytest.mark.parametrize(
    "text", ["A a ; B b", "A a ;{a.k = b.k} A b", "A a ; σ{k > 1}(A b)", "μ{ID, b.k > 1}(A a, A b)"]
)
def test_what_may_wait_for_ever_needs_a_budget(text: str) -> None:
    table = events(("A", 1, 1), ("B", 2, 1))
    with pytest.raises(UnboundedState) as problem:
        engine(text, table).process(table, 5)
    assert problem.value.line == 1
    bounded = Settings(budget=Budget(state_bytes=1 << 20))
    assert engine(text, table, bounded).process(table, 5).matches is not None


def test_a_step_may_make_more_than_there_was_room_for() -> None:
    """Two hundred simultaneous events at each of five steps, under a fold that takes them all."""
    table = events(*[("A", ts, k) for ts in range(5) for k in range(200)])
    text = "π{b.k}(μ{ID, a.k = b.k}(A a, A b))"
    rows = kleene.match(table, text)
    # Of each key every pair of steps is a result.
    assert rows.num_rows == 200 * 10


@pytest.mark.parametrize(
    ("text", "most"), [("μ{ID, TRUE}(A a, A b)", 158), ("μ{π{b.k}, TRUE}(σ{k = 0}(A b), A b)", 79)]
)
def test_ties_under_a_fold_do_not_multiply(
    text: str, most: int, record_property: Callable[[str, object], None]
) -> None:
    """Two simultaneous events at each of 40 steps: equal instances are one, where paths would make 2^40."""
    table = events(*[("A", ts, k) for ts in range(40) for k in range(2)])
    run = engine(text, table, Settings(budget=Budget(state_bytes=1 << 20)))
    waiting = []
    for ts in range(40):
        run.process(table.slice(2 * ts, 2), ts + 1)
        waiting.append(run.alive.runs)
    record_property(
        "counted", f"2 ties at each of 40 steps under {text}: {max(waiting)} instances at most, of 2^40 paths"
    )
    assert max(waiting) == most


# Values -------------------------------------------------------------------------------------------------------------


def test_values_that_no_array_holds_are_carried() -> None:
    rows = [
        {"type": "A", "ts": ts, "d": Decimal(ts) / 4, "l": [ts, None], "s": f"text {ts % 2}", "b": b"\x00\x01"}
        for ts in range(4)
    ]
    table = pa.Table.from_pylist(rows)
    found = kleene.match(table, "A a ; A b").to_pylist()
    assert [{name: row[name] for name in ("start", "end", "a", "b")} for row in found] == reference_stream(
        table, "A a ; A b"
    )
    run = engine("A a ; A b", table)
    run.process(table.slice(0, 2), 2)
    again = StreamEngine.restore(run.query, run.snapshot())
    again.process(table.slice(2))
    matches = again.finish().matches
    assert matches is not None
    assert matches["a"].to_pylist()[0] == {name: rows[1][name] for name in ("d", "l", "s", "b")}


def test_strings_that_nothing_holds_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORTH_IT", 64)
    columns = {"type": pa.array(["A"] * 100), "s": pa.array([f"s{number}" for number in range(100)])}
    table = pa.table({**columns, "ts": list(range(100))})
    run = engine("A a ;{DUR <= 3} A b", table)
    found = []
    for number in range(20):
        texts = pa.array([f"{number} {place}" for place in range(100)])
        batch = pa.table({"type": columns["type"], "s": texts, "ts": list(range(100 * number, 100 * number + 100))})
        matches = run.process(batch, 100 * number + 100).matches
        assert matches is not None
        found += matches["b"].to_pylist()
    assert [row["s"] for row in found] == [f"{number} {place}" for number in range(20) for place in range(100)][1:]
    assert run._pool is not None
    assert run._pool.values.strings.size < 300


def test_a_tie_breaker_of_reals_orders_what_is_simultaneous() -> None:
    rows = [{"type": "A", "ts": 1, "seq": seq, "x": x} for x, seq in enumerate((0.5, -2.0, -1.0))]
    table = pa.Table.from_pylist(rows)
    found = kleene.match(table, "A a ; A b", schema=Schema(tie_breaker="seq"))
    assert [(row["a"]["x"], row["b"]["x"]) for row in found.to_pylist()] == [(1, 2), (2, 0)]


def test_a_tie_breaker_of_strings_goes_to_the_reference() -> None:
    table = pa.table({"type": ["A", "A"], "ts": [1, 1], "seq": ["b", "a"], "x": [1, 2]})
    run = StreamEngine(bound("A a ; A b", table, tie_breaker="seq"))
    run.process(table)
    with pytest.raises(NotCompilable):
        run.finish()
    found = kleene.match(table, "A a ; A b", schema=Schema(tie_breaker="seq"))
    assert [(row["a"]["x"], row["b"]["x"]) for row in found.to_pylist()] == [(2, 1)]


# Budgets ------------------------------------------------------------------------------------------------------------


def test_too_many_results_at_one_event() -> None:
    table = events(*[("A", ts, 1) for ts in range(20)], ("B", 30, 1))
    with pytest.raises(BudgetExceeded, match="more than 5 results end with one event, at 30: 20"):
        kleene.match(table, "A a ; B b", settings=Settings(budget=Budget(matches_per_event=5)))
    dropping = Settings(budget=Budget(matches_per_event=5, policy=Policy.DROP_OLDEST))
    found = kleene.match(table, "A a ; B b", settings=dropping)
    assert found["start"].to_pylist() == [15, 16, 17, 18, 19]


def test_state_over_the_budget() -> None:
    table = events(*[("A", ts, ts) for ts in range(1000)])
    with pytest.raises(BudgetExceeded, match="bytes, more than its budget"):
        engine("A a ; B b", table, Settings(budget=Budget(state_bytes=20_000))).process(table, 1000)
    dropping = Settings(budget=Budget(state_bytes=20_000, policy=Policy.DROP_OLDEST))
    run = engine("A a ; B b", table, dropping)
    counted = run.process(table, 1000).statistics
    assert run.state_bytes <= 20_000
    assert counted.dropped == 1000 - run.alive.runs > 0
    matches = run.process(events(("B", 1001, 1)), 1002).matches
    assert spans(matches)[-1] == (999, 1001), "the oldest were dropped"


# Snapshots ----------------------------------------------------------------------------------------------------------


def test_a_snapshot_of_another_query_or_of_damaged_bytes_is_refused() -> None:
    table = events(("A", 1, 7), ("A", 5, 8))
    run = engine(PAIRS, table)
    run.process(table, 6)
    data = run.snapshot()
    other = bound("A a ;{a.k = b.k AND DUR <= 11} B b", table)
    with pytest.raises(BadSnapshot, match="another query"):
        StreamEngine.restore(other, data)
    draw = random.Random(1)
    for _ in range(300):
        place = draw.randrange(len(data))
        changed = data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]
        with pytest.raises(BadSnapshot):
            StreamEngine.restore(run.query, changed)


def test_instances_that_no_engine_can_have_held_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = events(("A", 1, 7), ("A", 5, 8))
    run = engine(PAIRS, table)
    run.process(table, 6)
    assert run._pool is not None
    (kept,) = instance_tables(run._pool)
    forged = {
        "ends before it starts": kept.set_column(0, "start", pa.array([9, 9])),
        "of a time to come": kept.set_column(1, "end", pa.array([50, 60])),
        "another column": kept.append_column("more", pa.array([1, 2])),
        "another type": kept.set_column(4, "0", pa.array(["x", "y"])),
        "no time": kept.set_column(0, "start", pa.array([None, 1], pa.int64())),
    }
    for rows in forged.values():
        monkeypatch.setattr(module, "instance_tables", lambda pool, rows=rows: [rows])
        with pytest.raises(BadSnapshot):
            StreamEngine.restore(run.query, run.snapshot())

"""The engine of EQL: what it holds and for how long, timers, ties, budgets, and what it refuses to go on from."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.detections.by_hand import CASES, check_by_hand, events_of
from tests.detections.by_hand import words as words_of

import kleene
from kleene.algebra.eql_query import BoundEqlQuery, EqlQuery
from kleene.engine.detections import engine as engine_module
from kleene.engine.detections import network as network_module
from kleene.engine.detections.engine import DetectionEngine
from kleene.engine.detections.snapshots import DetectionSnapshot, to_bytes
from kleene.errors import BadSnapshot, BudgetExceeded, UnboundedState
from kleene.frames.arrow import schema_on
from kleene.kernels.detections import DetectionArrays
from kleene.optimize.detections.planning import plan_detections
from kleene.pattern.schema import Schema
from kleene.plan.settings import Budget, Policy, Settings
from kleene.testing import reference_match

PAIRS = "A a ; B b WHERE FILTER(a.k = b.k), (a, b) OCCURS WITHIN 10"
UNBOUNDED = Settings(budget=Budget(state_bytes=1 << 30))
_COLUMNS = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64())])


def events(stream: str = "") -> pa.Table:
    return events_of(stream)


def query(text: str, table: pa.Table | None = None, **roles: Any) -> BoundEqlQuery:
    columns = _COLUMNS if table is None else table.schema
    return EqlQuery(f"SELECT * FROM {text}", spelling="next").bind(schema_on(columns, Schema(**roles)))


def engine(text: str, settings: Settings | None = None, table: pa.Table | None = None, **roles: Any) -> DetectionEngine:
    return DetectionEngine(query(text, table, **roles), settings)


def again(run: DetectionEngine) -> DetectionEngine:
    """Another engine, from a snapshot."""
    return DetectionEngine.restore(run.query, run.snapshot(), run.settings)


def words(matches: pa.Table | None) -> list[str]:
    """`a1 a2 b3`: the events of each match, by alias; matches in the order of these words."""
    assert matches is not None
    return words_of(matches)


def matched(text: str, table: pa.Table, **roles: Any) -> list[str]:
    """What the engine finds, and the definitions as well."""
    written = EqlQuery(f"SELECT * FROM {text}", spelling="next")
    found: pa.Table = kleene.match(table, written, schema=Schema(**roles))
    assert found["match_id"].to_pylist() == list(reference_match(table, written, schema=Schema(**roles)).ids)
    return words(found)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_matches_found_by_hand(number: int) -> None:
    check_by_hand(number)


# What may wait for ever ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        # Any next event of the same type takes what waits, whether θ likes it or not.
        "A a ; A b",
        "A a ; A b WHERE a.k = b.k",
        "A a ; A b WHERE b.k > 1",
        "A a ; (A b | B c)",
        "(A a | B c) ; (A b | B d)",
        "(A a @ 5) ; A b",
        # A run expires, also by an OCCURS WITHIN further on.
        "A a ; B b WHERE (a, b) OCCURS WITHIN 5",
        "A a ; B b WHERE FILTER((a, b) OCCURS WITHIN 5)",
        "A a ; (B b @ 3) WHERE (a, b) OCCURS WITHIN 5",
        "A a ; B b ; C c WHERE (a, c) OCCURS WITHIN 5",
        "A a+ WHERE (a, a) OCCURS WITHIN 5",
        "A a+ ; B b WHERE (a, b) OCCURS WITHIN 5",
        "(A a+ @ 3) ; B b WHERE (a, b) OCCURS WITHIN 5",
        # Only the last exception matters, unless it is compared with what it is an exception to.
        "A a \\ B b",
        "A a @ 5",
        "(A a ; B b) \\ C c WHERE (a, b) OCCURS WITHIN 5",
        "(A a ; B b) \\ C c WHERE (a, b) OCCURS WITHIN 5, c.k = a.k",
        "A a \\ B b WHERE a.k = b.k",
        "A a ; (B b \\ C c) WHERE a.k = c.k, (a, b) OCCURS WITHIN 5",
    ],
)
def test_a_bounded_query_runs_on_a_stream(text: str) -> None:
    run = engine(text)
    assert run.plan.unbounded is None
    run.process(events("a1 b2"), 3)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("A a ; B b", "A a ; B b"),
        ("(A a | C c) ; A b", "A a | C c ; A b"),
        ("A a ; A b WHERE FILTER(a.k = b.k)", "A a ; A b"),
        ("A a ; A b WHERE FILTER(b.k > 1)", "A a ; A b"),
        ("A a ; (A b @ 5)", "A a ; A b @ 5"),
        ("A a ; (A b \\ C c)", "A a ; (A b \\ C c)"),
        ("A a ; B b WHERE NOT (a, b) OCCURS WITHIN 5", "A a ; B b"),
        ("A a ; B b WHERE ((a, b) OCCURS WITHIN 5 OR a.k = 1)", "A a ; B b"),
        ("A a ; B b ; C c WHERE (b, c) OCCURS WITHIN 5", "A a ; B b"),
        ("A a ; B b ; C c WHERE (a, b) OCCURS WITHIN 5", "A a ; B b ; C c"),
        ("A a+", "A a+"),
        ("(A a ; A c) \\ B b WHERE a.k = b.k", "(A a ; A c) \\ B b"),
        ("A a ; (B b ; C c)+ WHERE (a, c) OCCURS WITHIN 5", "B b ; C c"),
    ],
)
def test_what_may_wait_for_ever_needs_a_budget(text: str, place: str) -> None:
    with pytest.raises(UnboundedState) as problem:
        engine(text).process(events("a1 b2"), 3)
    assert f"what waits at `{place}` may wait for ever" in str(problem.value)
    assert "OCCURS WITHIN" in str(problem.value.hint)
    assert engine(text, UNBOUNDED).process(events("a1 b2"), 3).matches is not None
    # Bounded input ends time.
    engine(text).finish(events("a1 b2"))


def test_as_many_events_wait_as_overlap() -> None:
    """As in CESAR (semantics §4, Ends): what lasts is taken by the next one that starts after it."""
    table = pa.table({"type": ["A"] * 500, "began": [0] * 500, "ts": list(range(1, 501)), "k": [0] * 500})
    run = engine("A a ; A b", table=table, start="began")
    assert run.plan.unbounded is None
    run.process(table, 501)
    assert run.alive.runs == 500
    later = pa.table({"type": ["A"], "began": [501], "ts": [502], "k": [0]})
    assert len(words(run.process(later, 503).matches)) == 500
    assert run.alive.runs == 1


def test_an_exception_is_held_as_long_as_what_it_may_cancel() -> None:
    """One that is not the last is of use, too: it is the one of its key."""
    run = engine("(A a ; B b) \\ C c WHERE c.k = a.k, (a, b) OCCURS WITHIN 10")
    run.process(events("a1:1 a2:3"), 3)
    run.process(events("c3:1 c4:2"), 5)
    assert words(run.process(events("b6"), 7).matches) == ["a2 b6"]
    run.process(events(), 14)
    assert run.alive.runs == 1, "c4 could cancel what began at 4"
    run.process(events(), 15)
    assert run.alive.runs == 0


# What is held --------------------------------------------------------------------------------------------------------


def test_a_run_is_freed_when_no_later_event_can_be_in_time() -> None:
    run = engine(PAIRS)
    run.process(events("a1:7 a5:8"), 6)
    assert run.alive.runs == 2
    # From 1 to 11 are ten steps: an event at 11 is in time, one at 12 is not.
    run.process(events(), 11)
    assert run.alive.runs == 2
    run.process(events(), 12)
    assert run.alive.runs == 1
    assert run.expiry == 16
    run.process(events(), 16)
    assert run.alive.runs == 0


def test_what_comes_in_the_last_moment_of_a_run_is_in_time() -> None:
    assert matched("A a ; B b WHERE (a, b) OCCURS WITHIN 10", events("a1 b11")) == ["a1 b11"]
    assert matched("A a ; B b WHERE (a, b) OCCURS WITHIN 10", events("a1 b12")) == []
    run = engine("A a ; B b WHERE (a, b) OCCURS WITHIN 10")
    run.process(events("a1"), 11)
    assert words(again(run).process(events("b11"), 12).matches) == ["a1 b11"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        PAIRS,
        "A a+ ; B b WHERE FILTER(PREV(a.k) = b.k), (a, b) OCCURS WITHIN 10",
        "A a ; (B b \\ C c) WHERE a.k = c.k, (a, b) OCCURS WITHIN 10",
        "(A a ; B b) \\ (C c @ 3) WHERE (a, b) OCCURS WITHIN 10",
        "A a ; ((B b ; C c) | (C d @ 4)) WHERE (a, c) OCCURS WITHIN 10, (b, c) OCCURS WITHIN 10",
    ],
)
def test_state_stays_flat_over_thirty_windows(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "_WORTH_IT", 64)
    draw = random.Random(text)
    run = engine(text)
    held, sizes, waiting = [], [], []
    for ts in range(0, 300, 2):
        batch = events(" ".join(f"{draw.choice('abc')}{ts + step}:{draw.randint(0, 3)}" for step in range(2)))
        run.process(batch, ts + 2)
        assert run.network is not None
        held.append(run.network.events.size)
        sizes.append(run.state_bytes)
        waiting.append(run.alive.runs)
    assert 0 < max(waiting[75:]) <= 1.5 * max(waiting[:75])
    assert max(sizes[75:]) <= 1.5 * max(sizes[:75])
    assert max(held) <= 2 * max(waiting) + 66


def test_events_that_nothing_refers_to_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "_WORTH_IT", 10)
    run = engine(PAIRS)
    found = []
    for ts in range(0, 200, 4):
        given = run.process(events(f"a{ts}:{ts} a{ts + 1}:7 b{ts + 3}:{ts} c{ts + 3}"), ts + 4)
        found += words(given.matches)
    assert run.network is not None
    assert run.network.events.size < 20
    # Keys of events that are gone went with them, and those of the others are still found.
    assert found == [f"a{ts} b{ts + 3}" for ts in range(0, 200, 4)]
    assert words(run.process(events("b200:7"), 201).matches) == ["a193 b200", "a197 b200"]


def test_a_network_without_much_to_drop_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "_WORTH_IT", 4)
    run = engine("A a ; B b", UNBOUNDED)
    run.process(events("a1 a2 a3 a4 a5 a6"), 7)
    first = run.network
    run.process(events("a8"), 9)
    assert run.network is first


# Events -------------------------------------------------------------------------------------------------------------


def test_late_events_and_bad_rows_are_told_and_not_matched() -> None:
    table = pa.Table.from_pylist(
        [
            {"type": "A", "ts": 1, "k": 1},
            {"type": "A", "ts": None, "k": 1},
            {"type": "B", "ts": 4, "k": 1},
        ],
        schema=_COLUMNS,
    )
    run = engine("A a ; B b WHERE (a, b) OCCURS WITHIN 10")
    given = run.process(table, 5)
    assert words(given.matches) == ["a1 b4"]
    assert [bad.index for bad in given.bad] == [1]
    given = run.process(events("b3 a6 b7"), 8)
    assert given.late is not None
    assert given.late.to_pylist() == [{"type": "B", "ts": 3, "k": 0}]
    assert words(given.matches) == ["a6 b7"]
    assert (run.statistics.rows, run.statistics.bad, run.statistics.late, run.statistics.matches) == (6, 1, 1, 2)


def test_events_wait_for_the_watermark() -> None:
    run = engine(PAIRS)
    assert run.process(events("b5:1 a3:1"), None).matches is None
    assert run.waiting is not None
    assert run.waiting.num_rows == 2
    run = again(run)
    assert words(run.process(events("a4:1"), 5).matches) == []
    # The B at 5 is not certain to be the first before time has passed 5.
    assert words(run.process(events(), 6).matches) == ["a3 b5", "a4 b5"]


# Timers -------------------------------------------------------------------------------------------------------------


def test_a_timer_answers_when_the_watermark_has_passed_it_though_no_event_comes() -> None:
    run = engine("(A a @ 10) \\ B b")
    assert words(run.process(events("a1 a5"), 6).matches) == []
    assert run.deadline == 12
    # Time stands at 11: another event could still end then.
    assert words(run.process(events(), 11).matches) == []
    assert words(run.process(events(), 12).matches) == ["a1"]
    run = again(run)
    assert run.deadline == 16
    assert words(run.process(events("b13"), 16).matches) == []
    assert run.deadline is None


def test_a_timer_ends_the_wait_of_a_run() -> None:
    """No B within 5 of an A: the timer of the A is the exception."""
    text = "A a ; (B b \\ (A c @ 5))"
    assert matched(text, events("a1 b5")) == ["a1 b5"]
    # What ends at the moment of the exception survives it.
    assert matched(text, events("a1 b6")) == ["a1 b6"]
    assert matched(text, events("a1 b7")) == []
    run = again(_after(text, "a1", 4))
    assert run.deadline == 7
    run.process(events(), 6)
    assert run.alive.runs == 2, "the run, and its timer"
    run = again(run)
    run.process(events(), 7)
    assert words(run.process(events("b8"), 9).matches) == []


def _after(text: str, stream: str, watermark: int) -> DetectionEngine:
    run = engine(text, UNBOUNDED)
    run.process(events(stream), watermark)
    return run


def test_a_timer_of_a_timer_adds_up() -> None:
    found = kleene.match(events("a1"), EqlQuery("SELECT * FROM (A a @ 3) @ 4", spelling="next"))
    assert found["end"].to_pylist() == [8]
    run = again(_after("(A a @ 3) @ 4", "a1", 3))
    run.process(events(), 6)
    run = again(run)
    matches = run.process(events(), 9).matches
    assert matches is not None
    assert matches["end"].to_pylist() == [8]


# Histories ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stream", "expected"),
    [
        # b2 c3 and c3 end together; c3 is a suffix of the other, and the longer history is the first one.
        ("A a ; ((B b ; C c) | C d)", "a1 b2 c3", ["a1 b2 c3"]),
        # The end decides before the length does.
        ("A a ; ((B b ; C c) | C d)", "a1 c2 b3 c4", ["a1 d2"]),
        # Identical histories are all taken.
        ("A a ; (B b | C c)", "a1 b2 c2", ["a1 b2", "a1 c2"]),
        ("A a ; ((B b ; C c) | (A d ; C e))", "a1 b3 a3 c4", ["a1 b3 c4", "a1 d3 e4"]),
        # Of histories of one length, the one whose earlier points are earlier.
        ("A a ; ((B b ; C c) | (A d ; C e))", "a1 b2 a3 c4", ["a1 b2 c4"]),
        # a timer's end is part of the history: 2 + 2 and 4 end together, and one of them starts earlier.
        ("A a ; ((B b @ 2) | C c)", "a1 b2 c4", ["a1 b2"]),
        # Prefixes of an iteration: the one that ends first.
        ("A a ; (B b+ | C c)", "a1 b2 b3", ["a1 b2"]),
    ],
)
def test_the_first_one_goes_by_complete_history(text: str, stream: str, expected: list[str]) -> None:
    assert matched(text, events(stream)) == expected


def test_a_longer_history_is_first_across_batches() -> None:
    run = engine("A a ; ((B b ; C c) | C d)", UNBOUNDED)
    run.process(events("a1"), 2)
    run = again(run)
    run.process(events("b2"), 3)
    run = again(run)
    assert words(run.process(events("c3"), 4).matches) == ["a1 b2 c3"]


def test_simultaneous_events_are_not_one_after_another_without_a_tie_breaker() -> None:
    rows = [("A", 1, 0), ("B", 1, 1), ("B", 1, 2)]
    table = pa.table({"type": [row[0] for row in rows], "ts": [1, 1, 1], "k": [0, 1, 2], "seq": [0, 1, 2]})
    assert matched("A a ; B b", table) == []
    found = kleene.match(table, "SELECT * FROM A a ; B b", schema=Schema(tie_breaker="seq"))
    assert [row["b"]["seq"] for row in found.to_pylist()] == [1]


# Keys ---------------------------------------------------------------------------------------------------------------


def test_strings_and_pairs_of_fields_are_keys() -> None:
    columns = {"s": ["p", "q", None, "p", "q", None], "k": [1, 1, 1, 1, 2, 1]}
    table = pa.table({"type": list("AAABBB"), "ts": [1, 2, 3, 4, 5, 6], **columns})
    one = "A a ; B b WHERE FILTER(a.s = b.s)"
    both = "A a ; B b WHERE FILTER(a.s = b.s and a.k = b.k)"
    assert [len(each.keys) for each in plan_detections(query(one, table)).nexts] == [1]
    assert [len(each.keys) for each in plan_detections(query(both, table)).nexts] == [2]
    # NULL is equal to nothing.
    assert matched(one, table) == ["a1 b4", "a2 b5"]
    assert matched(both, table) == ["a1 b4"]


def test_strings_are_keys_of_events_that_a_snapshot_held() -> None:
    text = "A a ; B b WHERE FILTER(a.s = b.s), (a, b) OCCURS WITHIN 100"
    columns = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("s", pa.string())])

    def rows(*given: tuple[str, int, str | None]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(columns.names, row, strict=True)) for row in given], schema=columns)

    run = engine(text, table=columns.empty_table())
    run.process(rows(("A", 1, "one"), ("A", 2, "two"), ("A", 3, None)), 4)
    assert run.alive.runs == 2, "without a key nothing is ever next"
    run = again(run)
    given = run.process(rows(("B", 5, "two"), ("B", 6, "three"), ("B", 7, "one")), 8)
    assert words(given.matches) == ["a1 b7", "a2 b5"]


def test_an_int_beside_a_float_is_no_key() -> None:
    table = pa.table({"type": list("AABB"), "ts": [1, 2, 3, 4], "i": [1, 2, 9, 9], "f": [0.5, 0.5, 2.0, 1.0]})
    text = "A a ; B b WHERE FILTER(a.i = b.f)"
    (plan,) = plan_detections(query(text, table)).nexts
    assert not plan.keys
    assert len(plan.residual) == 1
    assert matched(text, table) == ["a1 b4", "a2 b3"]
    (plan,) = plan_detections(query("A a ; B b WHERE FILTER(a.f = b.f)", table)).nexts
    assert not plan.keys, "-0.0 is 0.0, and their bits differ"


# 64 bits ------------------------------------------------------------------------------------------------------------

_FIRST, _LAST = -(2**63), 2**63 - 1


def _at(*rows: tuple[str, int]) -> pa.Table:
    return pa.table({"type": [row[0] for row in rows], "ts": [row[1] for row in rows], "k": [0] * len(rows)})


def test_timers_end_with_time_itself() -> None:
    table = _at(("A", _LAST - 3), ("B", _LAST - 2))
    found = kleene.match(table, EqlQuery("SELECT * FROM (A a @ 100) ; B b", spelling="next"))
    assert found.num_rows == 0
    found = kleene.match(table, EqlQuery("SELECT * FROM A a @ 100", spelling="next"))
    assert found["end"].to_pylist() == [_LAST]
    assert matched("(A a @ 100) \\ B b", table) == []


@pytest.mark.parametrize("most", [1, 10**18, _LAST])
def test_occurs_within_does_not_overflow(most: int) -> None:
    text = f"A a ; B b WHERE (a, b) OCCURS WITHIN {most}"
    assert matched(text, _at(("A", _FIRST + 1), ("B", _LAST - 1))) == []
    assert matched(text, _at(("A", _LAST - 2), ("B", _LAST - 1))) == [f"a{_LAST - 2} b{_LAST - 1}"]
    run = engine(text)
    run.process(_at(("A", _LAST - 2)), _LAST - 1)
    assert run.alive.runs == 1
    assert words(again(run).process(_at(("B", _LAST - 1)), _LAST).matches) == [f"a{_LAST - 2} b{_LAST - 1}"]


def test_a_snapshot_holds_timers_that_add_up_to_more_than_64_bits() -> None:
    run = engine("(A a @ 9000000000000000000) @ 9000000000000000000")
    run.process(_at(("A", -9 * 10**18)), -8 * 10**18)
    run.process(events(), 1)
    matches = again(run).finish().matches
    assert matches is not None
    assert matches["end"].to_pylist() == [9 * 10**18]


# Budgets ------------------------------------------------------------------------------------------------------------


def test_too_many_matches_at_one_event() -> None:
    table = events(" ".join(f"a{ts}" for ts in range(20)) + " b30")
    with pytest.raises(BudgetExceeded, match="more than 5 results end with one event, at 30: 20"):
        kleene.match(table, "SELECT * FROM A a ; B b", settings=Settings(budget=Budget(matches_per_event=5)))
    dropping = Settings(budget=Budget(matches_per_event=5, policy=Policy.DROP_OLDEST))
    given = engine("A a ; B b", dropping).finish(table)
    assert (len(words(given.matches)), given.statistics.dropped) == (5, 15)
    enough = Settings(budget=Budget(matches_per_event=20))
    assert engine("A a ; B b", enough).finish(table).statistics.dropped == 0


def test_of_too_many_matches_the_oldest_are_dropped() -> None:
    dropping = Settings(budget=Budget(matches_per_event=5, policy=Policy.DROP_OLDEST))
    given = engine("A a ; B b", dropping).finish(events(" ".join(f"a{ts}" for ts in range(20)) + " b30"))
    assert words(given.matches) == [f"a{ts} b30" for ts in range(15, 20)]


def test_too_many_runs() -> None:
    table = events(" ".join(f"a{ts}" for ts in range(8)))
    text = "A a ; B b WHERE (a, b) OCCURS WITHIN 100"
    engine(text, Settings(budget=Budget(runs_per_partition=8))).process(table, 9)
    with pytest.raises(BudgetExceeded, match="more than 5 detections wait for the same events"):
        engine(text, Settings(budget=Budget(runs_per_partition=5))).process(table, 9)
    run = engine(text, Settings(budget=Budget(runs_per_partition=5, policy=Policy.DROP_OLDEST)))
    assert run.process(table, 9).statistics.dropped == 3
    assert run.replays_by_update
    assert words(run.process(events("b9"), 10).matches) == [f"a{ts} b9" for ts in range(3, 8)]


def test_runs_of_many_keys_are_within_the_budget_of_each() -> None:
    table = events(" ".join(f"a{ts}:{ts}" for ts in range(50)))
    run = engine(PAIRS.replace("10", "100"), Settings(budget=Budget(runs_per_partition=1)))
    run.process(table, 60)
    assert run.alive.runs == 50


def test_runs_are_dropped_of_the_key_that_has_too_many() -> None:
    alone, many = [f"a{ts}:{ts}" for ts in range(20)], [f"a{ts}:77" for ts in range(50, 60)]
    settings = Settings(budget=Budget(runs_per_partition=5, policy=Policy.DROP_OLDEST))
    run = engine(PAIRS.replace("10", "1000"), settings)
    given = run.process(events(" ".join([*alone, *many])), 100)
    assert given.statistics.dropped == 5
    assert run.network is not None
    assert run.network.most_under_a_key == 5
    assert run.alive.runs == 25


def test_state_over_the_budget() -> None:
    table = events(" ".join(f"a{ts}" for ts in range(1000)))
    with pytest.raises(BudgetExceeded, match="bytes, more than its budget"):
        engine("A a ; B b", Settings(budget=Budget(state_bytes=20_000))).process(table, 1000)
    run = engine("A a ; B b", Settings(budget=Budget(state_bytes=20_000, policy=Policy.DROP_OLDEST)))
    counted = run.process(table, 1000).statistics
    assert run.state_bytes <= 20_000
    assert counted.dropped == 1000 - run.alive.runs > 0
    matches = run.process(events("b1001"), 1002).matches
    assert words(matches)[-1] == "a999 b1001", "the oldest were dropped"


# Snapshots ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("A a+ ; B b", "a1 a2 a3 b4 a5 b6"),
        ("A a+ WHERE FILTER(PREV(a.k) < 5), ALL(a.k) > 0", "a1:1 a2:5 a3:3 a4:4 a5:9"),
        ("(A a ; B b)+", "a1 b2 a3 a4 b5 a6 b7"),
        ("(A a @ 3) ; B b", "a1 b2 b5 a6 b9"),
        ("A a ; (B b \\ C c) WHERE a.k = c.k", "a1:1 a2:2 c3:1 b4 a5 b6"),
        ("A a ; ((B b ; (C c \\ A d)) | C e) WHERE a.k = d.k", "a1:1 b2 a3:1 c4 b5 c6 a7 c8"),
        ("(A a ; B b) \\ (C c @ 2)", "a1 c2 b3 a5 c6 b9 a10 b11"),
        ("A a ; (B b+ | (C c ; B d))", "a1 c2 b3 a4 b5 b6 c7 b8"),
    ],
)
def test_an_engine_goes_on_from_a_snapshot_after_every_event(text: str, stream: str) -> None:
    run = engine(text, UNBOUNDED)
    found = []
    for word in stream.split():
        given = run.process(events(word), int(word[1:].partition(":")[0]))
        found += words(given.matches)
        run = again(run)
        run = again(run)
    found += words(run.finish().matches)
    assert sorted(found) == sorted(matched(text, events(stream)))
    assert found


def test_a_snapshot_without_events_is_none() -> None:
    run = again(engine(PAIRS))
    assert words(run.finish(events("a1:1 b2:1")).matches) == ["a1 b2"]


def test_a_snapshot_of_another_query_or_of_damaged_bytes_is_refused() -> None:
    run = engine(PAIRS)
    run.process(events("a1:7 a5:8"), 6)
    data = run.snapshot()
    with pytest.raises(BadSnapshot, match="another query"):
        DetectionEngine.restore(query(PAIRS.replace("10", "11")), data)
    draw = random.Random(1)
    for _ in range(100):
        place = draw.randrange(len(data))
        changed = data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]
        with pytest.raises(BadSnapshot):
            DetectionEngine.restore(run.query, changed)


Forge = Callable[[DetectionSnapshot], dict[str, Any]]


def _held(state: DetectionSnapshot, **changed: Any) -> dict[str, Any]:
    """A snapshot whose first detections are changed."""
    first, *others = state.held
    arrays = {name: np.array(value, np.int64) for name, value in changed.items()}
    return {"held": [first._replace(**arrays), *others]}


FORGED: dict[str, Forge] = {
    "an event that is not there": lambda state: _held(state, rows=[0, 2]),
    "an event before the first": lambda state: _held(state, rows=[-1, 1]),
    "an alias that is not there": lambda state: _held(state, aliases=[0, 2]),
    "a negative alias": lambda state: _held(state, aliases=[-1, 0]),
    "a detection without events": lambda state: _held(state, offsets=[0, 0, 2]),
    "one that ends before its events": lambda state: _held(state, later=[-1, 0]),
    "an operator less": lambda state: {"held": []},
    "an operator more": lambda state: {"held": [*state.held, *state.held]},
    "detections without events at all": lambda state: {"events": None},
    "a step too few": lambda state: {"steps": np.array([3, 1])},
    "events that are none": lambda state: {"events": _without_time(state.events)},
    "other columns": lambda state: {"events": _renamed(state.events)},
}


def _without_time(table: pa.Table | None) -> pa.Table:
    assert table is not None
    return table.set_column(table.column_names.index("ts"), "ts", pa.array([None, 5], pa.int64()))


def _renamed(table: pa.Table | None) -> pa.Table:
    assert table is not None
    return table.rename_columns(["type", "ts", "z"])


def _forged(run: DetectionEngine, forge: Forge, monkeypatch: pytest.MonkeyPatch) -> bytes:
    def written(state: DetectionSnapshot) -> bytes:
        return to_bytes(replace(state, **forge(state)))

    with monkeypatch.context() as patched:
        patched.setattr(engine_module, "to_bytes", written)
        return run.snapshot()


@pytest.mark.parametrize("name", FORGED)
def test_what_no_engine_can_have_held_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = engine(PAIRS)
    run.process(events("a1:7 a5:8"), 6)
    assert DetectionEngine.restore(run.query, _forged(run, lambda state: {}, monkeypatch)).alive.runs == 2
    with pytest.raises(BadSnapshot):
        DetectionEngine.restore(run.query, _forged(run, FORGED[name], monkeypatch))


@pytest.mark.parametrize(
    "forge",
    [
        lambda state: _held(state, aliases=[1, 0]),
        lambda state: _held(state, ends=[-5, 5]),
        lambda state: _held(state, starts=[500, 5]),
    ],
)
def test_a_detection_is_of_the_operator_that_holds_it(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    run = engine(PAIRS)
    run.process(events("a1:7 a5:8"), 6)
    with pytest.raises(BadSnapshot):
        DetectionEngine.restore(run.query, _forged(run, forge, monkeypatch))


def test_arrays_of_detections_are_what_their_layout_says() -> None:
    run = engine("A a+ ; B b", UNBOUNDED)
    run.process(events("a1 a2"), 3)
    assert run.network is not None
    held: list[DetectionArrays] = [each.waiting for each in run.network.operators if each.waiting is not None]
    runs = held[-1]
    assert runs.ends.tolist() == [1, 2, 2]
    assert [runs.rows[begin:end].tolist() for begin, end in zip(runs.offsets[:-1], runs.offsets[1:], strict=True)] == [
        [0],
        [1],
        [0, 1],
    ]


# Work ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["A a ; B b", "A a ; B b WHERE a.k = b.k"])
def test_each_detection_that_waits_is_looked_at_once(text: str) -> None:
    run = engine(text, UNBOUNDED)
    for begin in range(0, 1000, 100):
        stream = " ".join(f"a{ts}:{ts % 3}" for ts in range(begin, begin + 99))
        run.process(events(f"{stream} b{begin + 99}:1"), begin + 100)
    assert run.network is not None
    assert run.network.looks == 990


def test_a_key_is_looked_at_alone() -> None:
    run = engine("A a ; B b WHERE FILTER(a.k = b.k)", UNBOUNDED)
    stream = " ".join(f"a{ts}:{ts}" for ts in range(500)) + " " + " ".join(f"b{500 + key}:{key}" for key in range(500))
    run.process(events(stream), 2000)
    assert run.network is not None
    assert run.network.looks == 500


def test_what_an_exception_has_ended_is_not_looked_at_again() -> None:
    run = engine("A a ; (B b \\ C c)", UNBOUNDED)
    run.process(events(" ".join(f"a{ts} c{ts + 1}" for ts in range(0, 2000, 2))), 3000)
    assert run.network is not None
    assert run.network.looks < 4 * 2000


def test_looks_are_counted_on_when_events_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "_WORTH_IT", 10)
    run = engine("A a ; B b", UNBOUNDED)
    for begin in range(0, 100, 10):
        run.process(events(" ".join(f"a{ts}" for ts in range(begin, begin + 9)) + f" b{begin + 9}"), begin + 10)
    assert run.network is not None
    assert run.network.looks == 90

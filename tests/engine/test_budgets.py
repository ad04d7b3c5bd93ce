"""Limits (the semantics page §6): matches per event, runs per partition, state bytes, each under its policy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.batches import bound, events, words
from tests.timing import quickest

import kleene
from kleene.engine.engine import Engine
from kleene.engine.output.outputs import EngineOutputs
from kleene.errors import BudgetExceeded
from kleene.optimize.planner import plan_query
from kleene.plan.physical import AutomatonPlan, SequencePlan
from kleene.plan.settings import Budget, Policy, Settings

LINE = "PATTERN SEQ(A a, B b) WITHIN 100"
CLOSURE = "PATTERN SEQ(A+ a[], B b) WITHIN 100"
NEXT = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 100"
# One start, so that starts alone cannot make the matches fewer.
ONE_START = "PATTERN SEQ(X x, A+ a[], B b) WITHIN 100"
SIX = "x0 a1 a2 a3 a4 a5 a6 b9"


def run(text: str, stream: str, **budget: Any) -> tuple[Engine, EngineOutputs]:
    engine = Engine(bound(text), Settings(budget=Budget(**budget)))
    engine.process(events(stream))
    return engine, engine.finish()


def every(text: str, stream: str = SIX) -> list[str]:
    return words(run(text, stream)[1].matches)


# Matches per event -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "count"), [(LINE, 6), (NEXT, 6), (CLOSURE, 63), (ONE_START, 63)])
def test_as_many_matches_as_the_budget_allows_are_no_error(text: str, count: int) -> None:
    for policy in Policy:
        engine, made = run(text, SIX, matches_per_event=count, policy=policy)
        assert words(made.matches) == every(text)
        assert len(every(text)) == count
        assert engine.statistics.dropped == 0
        assert made.compressed is None


@pytest.mark.parametrize(("text", "count"), [(LINE, 6), (NEXT, 6), (CLOSURE, 63), (ONE_START, 63)])
def test_one_match_more_fails_and_says_where_and_what_to_do(text: str, count: int) -> None:
    with pytest.raises(BudgetExceeded) as raised:
        run(text, SIX, matches_per_event=count - 1)
    assert f"more than {count - 1} matches end with one event, at 9" in str(raised.value)
    assert "OUTPUT COMPRESSED" in str(raised.value.hint)
    assert raised.value.code == "KL601"


def test_matches_outside_the_window_do_not_count() -> None:
    """63 runs come to b9, and 7 of them begin in its window."""
    text = CLOSURE.replace("100", "6")
    assert len(every(text)) == 7
    assert words(run(text, SIX, matches_per_event=7)[1].matches) == every(text)
    with pytest.raises(BudgetExceeded, match="at 9: 7"):
        run(text, SIX, matches_per_event=6)


@pytest.mark.parametrize("settings", [(), ("merge_runs",)])
def test_matches_of_one_event_count_together_however_its_runs_are_shared(settings: tuple[str, ...]) -> None:
    """Sums of different lists differ, so the runs that a16 completes have no node in common."""
    text = "PATTERN SEQ(B b, A+ a[]) WHERE sum(a.ts) > 1 WITHIN 100"
    chosen = Settings(without=frozenset(settings), budget=Budget(matches_per_event=15))
    engine = Engine(bound(text), chosen)
    engine.process(events("b0 a1 a2 a4 a8 a16"))
    with pytest.raises(BudgetExceeded, match="more than 15 matches"):
        engine.finish()


@pytest.mark.parametrize(("text", "most", "kept"), [(LINE, 4, 4), (NEXT, 4, 4), (CLOSURE, 20, 15), (ONE_START, 20, 20)])
def test_drop_oldest_keeps_the_matches_of_the_latest_starts(text: str, most: int, kept: int) -> None:
    """Those of as many starts as fit; of one start alone, as many as fit."""
    engine, made = run(text, SIX, matches_per_event=most, policy=Policy.DROP_OLDEST)
    found, all_of_them = words(made.matches), every(text)
    assert len(found) == kept
    assert len(set(found)) == kept
    assert set(found) <= set(all_of_them)
    if text != ONE_START:
        # Results stand by start, the latest first.
        assert found == all_of_them[:kept]
    assert engine.statistics.dropped == len(all_of_them) - kept
    assert made.statistics.dropped == len(all_of_them) - kept


def test_drops_are_counted_batch_by_batch_and_in_total() -> None:
    engine = Engine(bound(LINE), Settings(budget=Budget(matches_per_event=2, policy=Policy.DROP_OLDEST)))
    first = engine.process(events("a1 a2 a3 b4"), watermark=5).statistics
    second = engine.process(events("b6"), watermark=7).statistics
    third = engine.process(events("a7"), watermark=8).statistics
    assert [first.dropped, second.dropped, third.dropped] == [1, 1, 0]
    assert engine.statistics.dropped == 2
    assert engine.statistics.matches == 4


@pytest.mark.parametrize("text", [LINE, NEXT, CLOSURE, ONE_START])
def test_emit_compressed_counts_exactly_what_it_does_not_write_out(text: str) -> None:
    engine, made = run(text, f"{SIX} x10 a11 a12 b13", matches_per_event=5, policy=Policy.EMIT_COMPRESSED)
    assert made.compressed is not None
    rows = made.compressed.to_pylist()
    expected: dict[int, list[str]] = {9: [], 13: []}
    for match in every(text, f"{SIX} x10 a11 a12 b13"):
        expected[int(match.rpartition("b")[2])].append(match)
    many = {end: found for end, found in expected.items() if len(found) > 5}
    assert {row["end"]: int(row["count"]) for row in rows} == {end: len(found) for end, found in many.items()}
    assert words(made.matches) == [match for end, found in expected.items() if end not in many for match in found]
    assert engine.statistics.dropped == 0


@pytest.mark.parametrize("text", [LINE, CLOSURE, ONE_START])
def test_what_is_emitted_compressed_unfolds_to_the_same_matches_with_the_same_ids(text: str) -> None:
    _, made = run(text, SIX, matches_per_event=5, policy=Policy.EMIT_COMPRESSED)
    _, whole = run(text, SIX)
    assert whole.matches is not None
    assert [match["match_id"] for match in kleene.decompress(made.compressed)] == whole.matches.column(
        "match_id"
    ).to_pylist()


def test_few_matches_in_the_window_are_not_emitted_compressed() -> None:
    """63 runs come to b9, and 7 of them begin in its window."""
    text = CLOSURE.replace("100", "6")
    _, made = run(text, SIX, matches_per_event=20, policy=Policy.EMIT_COMPRESSED)
    assert words(made.matches) == every(text)
    assert made.compressed is None


def test_policies_that_drop_or_compress_go_to_runs() -> None:
    kinds = {
        policy: type(plan_query(bound(LINE), Settings(budget=Budget(policy=policy))).alternatives[0])
        for policy in Policy
    }
    assert kinds == {
        Policy.FAIL: SequencePlan,
        Policy.DROP_OLDEST: AutomatonPlan,
        Policy.EMIT_COMPRESSED: AutomatonPlan,
    }


# Runs per partition ------------------------------------------------------------------------------------------------


# Every start is a run of its own.
APART = "PATTERN SEQ(A+ a[], B b) WHERE [id] AND a[i].ts > a[1].ts WITHIN 100"


@pytest.mark.parametrize("policy", [Policy.FAIL, Policy.EMIT_COMPRESSED])
def test_too_many_runs_fail_and_of_runs_there_is_nothing_to_emit(policy: Policy) -> None:
    with pytest.raises(BudgetExceeded, match="more than 8 partial matches are open in one partition, at 5") as raised:
        run(APART, "a1 a2 a3 a4 a5 b9", runs_per_partition=8, policy=policy)
    assert "narrow the window" in str(raised.value.hint)


def test_runs_are_counted_by_partition() -> None:
    keys = " ".join(f"a{ts}/{key}" for ts in (1, 2, 3) for key in range(10))
    engine, made = run(APART, f"{keys} b9/3", runs_per_partition=8)
    assert len(words(made.matches)) == 7
    assert engine.statistics.runs > 8


def test_runs_that_their_window_has_left_behind_do_not_count() -> None:
    text = APART.replace("100", "3")
    stream = " ".join(f"a{ts}" for ts in range(1, 200))
    engine, _ = run(text, stream, runs_per_partition=8)
    assert engine.statistics.dropped == 0


def test_drop_oldest_drops_the_runs_of_the_oldest_starts_and_counts_them() -> None:
    engine, made = run(APART, "a1 a2 a3 a4 a5 a6 b9", runs_per_partition=8, policy=Policy.DROP_OLDEST)
    found, all_of_them = words(made.matches), every(APART, "a1 a2 a3 a4 a5 a6 b9")
    assert set(found) < set(all_of_them)
    assert found == all_of_them[: len(found)]
    assert "a6 b9" in found
    assert engine.statistics.dropped > 0
    assert 0 < engine.statistics.runs <= 8 + 8


def test_under_drop_oldest_runs_stay_within_the_budget_on_a_long_stream() -> None:
    engine = Engine(bound(APART), Settings(budget=Budget(runs_per_partition=50, policy=Policy.DROP_OLDEST)))
    for number in range(100):
        engine.process(events(f"a{2 * number} a{2 * number + 1} b{2 * number + 1}"), watermark=2 * number + 2)
        assert engine.statistics.runs <= 2 * 50
    assert engine.statistics.dropped > 100
    assert engine.statistics.matches > 100


# State bytes -------------------------------------------------------------------------------------------------------


def stream_of(batches: int, size: int = 200) -> Iterator[tuple[pa.Table, int]]:
    for number in range(batches):
        first = size * number
        yield events(" ".join(f"a{first + n}/{n % 7}" for n in range(size))), first + size


@pytest.mark.parametrize("text", ["PATTERN SEQ(A a, B b) WHERE [id]", "PATTERN SEQ(A+ a[], B b) WHERE [id]"])
@pytest.mark.parametrize("policy", [Policy.FAIL, Policy.EMIT_COMPRESSED])
def test_more_state_than_the_budget_fails_and_says_how_much_there_is(text: str, policy: Policy) -> None:
    engine = Engine(bound(text), Settings(budget=Budget(state_bytes=400_000, policy=policy)))

    held = [0]

    def stream() -> None:
        for batch, watermark in stream_of(100):
            engine.process(batch, watermark)
            held.append(engine.nbytes)

    with pytest.raises(BudgetExceeded, match=r"holds [\d,]+ bytes, more than its budget of 400,000"):
        stream()
    assert 0 < held[-1] <= 400_000


@pytest.mark.slow
@pytest.mark.parametrize("text", ["PATTERN SEQ(A a, B b) WHERE [id]", "PATTERN SEQ(A+ a[], B b) WHERE [id]"])
def test_drop_oldest_forgets_the_oldest_events_and_counts_them(text: str) -> None:
    budget = Budget(state_bytes=1_000_000, policy=Policy.DROP_OLDEST)
    engine = Engine(bound(text), Settings(budget=budget))
    for batch, watermark in stream_of(100):
        engine.process(batch, watermark)
        assert engine.nbytes <= budget.state_bytes  # type: ignore[operator]
    dropped = engine.statistics.dropped
    assert 0 < dropped < 100 * 200
    assert engine.statistics.events == 100 * 200 - dropped
    matched = engine.process(events("b50000/3"), watermark=50_001)
    if text.startswith("PATTERN SEQ(A a,"):
        found = words(matched.matches)
        kept = [n for n in range(dropped, 20_000) if n % 200 % 7 == 3]
        assert [int(match.split()[0][1:]) for match in found] == kept[::-1]


def test_state_that_the_window_has_left_behind_does_not_count() -> None:
    engine = Engine(bound("PATTERN SEQ(A a, B b) WITHIN 50"), Settings(budget=Budget(state_bytes=400_000)))
    for batch, watermark in stream_of(200):
        engine.process(batch, watermark)
    assert engine.statistics.rows == 40_000


# Exponentially many ------------------------------------------------------------------------------------------------


SIXTY = pa.table(
    {
        "type": pa.array(["A"] * 60 + ["B"]),
        "ts": pa.array(range(61), pa.int64()),
        "id": pa.array(["0"] * 61),
    }
)
EXPONENTIAL = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { }"


def test_two_to_the_sixty_matches_are_counted_exactly_and_soon() -> None:
    text = f"{EXPONENTIAL} OUTPUT COMPRESSED"
    (row,) = kleene.match(SIXTY, text).to_pylist()
    assert row["count"] == str(2**60 - 1)
    seconds = quickest(lambda: kleene.match(SIXTY, text))
    print(f"2**60 - 1 matches compressed in {1000 * seconds:.1f} ms")
    assert seconds < 0.1


def test_the_first_of_two_to_the_sixty_matches_is_found_without_the_others() -> None:
    compressed = kleene.match(SIXTY, f"{EXPONENTIAL} OUTPUT COMPRESSED")
    first, second = islice(kleene.decompress(compressed), 2)
    assert [event["ts"] for event in first["a"]] == [59]
    assert [event["ts"] for event in second["a"]] == [58]
    assert quickest(lambda: next(kleene.decompress(compressed))) < 0.1


def test_two_to_the_sixty_matches_one_by_one_are_refused_soon() -> None:
    def refused() -> None:
        with pytest.raises(BudgetExceeded, match=r"more than 1,000,000 matches .*: 1,152,921,504,606,846,975"):
            kleene.match(SIXTY, EXPONENTIAL)

    seconds = quickest(refused)
    print(f"2**60 - 1 matches refused in {1000 * seconds:.1f} ms")
    assert seconds < 0.1


def test_more_matches_than_sixty_four_bits_hold_are_counted_exactly() -> None:
    table = pa.table({"type": ["A"] * 300 + ["B"], "ts": list(range(301)), "id": ["0"] * 301})
    (row,) = kleene.match(table, f"{EXPONENTIAL} OUTPUT COMPRESSED").to_pylist()
    assert int(row["count"]) == 2**300 - 1
    with pytest.raises(BudgetExceeded, match=f"{2**300 - 1:,}"):
        kleene.match(table, EXPONENTIAL)
    budget = Budget(matches_per_event=1_000, policy=Policy.EMIT_COMPRESSED)
    engine = Engine(bound(EXPONENTIAL, table), Settings(budget=budget))
    engine.process(table)
    made = engine.finish()
    assert made.compressed is not None
    assert made.compressed.column("count").to_pylist() == [str(2**300 - 1)]
    engine = Engine(bound(EXPONENTIAL, table), Settings(budget=Budget(matches_per_event=10, policy=Policy.DROP_OLDEST)))
    engine.process(table)
    assert words(engine.finish().matches)[0] == "a299 b300"
    assert engine.statistics.dropped == 2**300 - 1 - engine.statistics.matches


def test_more_sequences_than_64_bits_count_are_too_many() -> None:
    """Sixteen events at each of sixteen places before the last one: 2 ** 64 sequences, whose number would be 0."""
    types = [f"T{place}" for place in range(17)]
    kinds = [kind for kind in types[:-1] for _ in range(16)] + types[-1:]
    table = pa.table({"type": kinds, "ts": list(range(len(kinds)))})
    text = f"PATTERN SEQ({', '.join(f'{kind} v{kind}' for kind in types)}) WITHIN 1000"
    with pytest.raises(BudgetExceeded, match="more than 1,000,000 matches end with one event, at 256"):
        kleene.match(table, text)

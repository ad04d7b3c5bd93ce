"""What the stream algebra means (semantics §4 CESAR): each rule with events on which the neighbouring reading differs.

Both readings of the algebra are asked: the sets of CESAR §2, and Algorithm 1. Cases for every executor are in
`tests/cases`.
"""

from __future__ import annotations

from typing import Any

import pytest

from kleene import Schema
from kleene.algebra.query import StreamQuery
from kleene.testing import reference_stream

Rows = list[dict[str, Any]]


def quotes(*listed: tuple[str, float, int]) -> Rows:
    """(name, price, time) as events of type S."""
    return [{"type": "S", "name": name, "price": price, "ts": time} for name, price, time in listed]


def numbers(**listed: str) -> Rows:
    """`A="3@1 6@2"`: events of a type with p = 3 at 1 and p = 6 at 2; `6@2-4` lasts from 2 to 4."""
    rows: Rows = []
    for kind, events in listed.items():
        for event in events.split():
            value, _, times = event.partition("@")
            start, _, end = times.partition("-")
            rows.append({"type": kind, "p": int(value), "began": int(start), "ts": int(end or start)})
    return rows


def found(query: str, rows: Rows, **schema: Any) -> list[Any]:
    """The results, checked to be those of Algorithm 1 too."""
    known = Schema(**schema)
    if rows and "began" in rows[0] and "start" not in schema:
        known = Schema(start="began", **schema)
    results = reference_stream(rows, query, schema=known)
    assert reference_stream(rows, query, schema=known, by_automaton=True) == results
    return results


def spans(query: str, rows: Rows, **schema: Any) -> list[tuple[int, int]]:
    return [(row["start"], row["end"]) for row in found(query, rows, **schema)]


# Sets --------------------------------------------------------------------------------------------------------------


def test_rows_equal_in_all_attributes_and_interval_are_one_event() -> None:
    rows = numbers(A="3@1 3@1 4@1 3@2")
    assert [(row["A"]["p"], row["end"]) for row in found("A", rows)] == [(3, 1), (4, 1), (3, 2)]


def test_projection_and_union_leave_each_event_once() -> None:
    rows = [{"type": "A", "ts": 1, "k": 1, "p": 1}, {"type": "A", "ts": 1, "k": 1, "p": 2}]
    assert found("π{k}(A)", rows) == [{"start": 1, "end": 1, "A": {"k": 1}}]
    assert len(found("A ∪ A", rows)) == 2
    assert len(found("π{k}(A) ∪ π{k} ∘ σ{p > 1}(A)", rows)) == 1


def test_type_and_times_are_no_attributes() -> None:
    assert found("A", numbers(A="3@1-4")) == [{"start": 1, "end": 4, "A": {"p": 3}}]


def test_a_nan_equals_itself_and_null_is_a_value() -> None:
    rows = [{"type": "A", "ts": 1, "p": float("nan")}, {"type": "A", "ts": 1, "p": float("nan")}]
    assert len(reference_stream(rows, "A")) == 1
    rows = [{"type": "A", "ts": 1, "p": None}, {"type": "A", "ts": 1, "p": None}, {"type": "A", "ts": 1, "p": 0}]
    assert [row["A"]["p"] for row in found("A", rows)] == [0, None]


# Next --------------------------------------------------------------------------------------------------------------


def test_figure_1() -> None:
    """e2 overlaps e1; e4 starts after e3 but ends first, and so is the one."""
    rows = numbers(A="1@1-4", B="2@3-6 3@6-11 4@7-9 5@12-13")
    assert [row["B"]["p"] for row in found("A ; B", rows)] == [4]


def test_next_takes_the_smallest_end_and_all_ties() -> None:
    rows = numbers(A="1@1", B="2@2-5 3@3-5 4@2-6")
    assert [row["B"]["p"] for row in found("A ; B", rows)] == [2, 3]


def test_what_does_not_satisfy_the_condition_is_skipped() -> None:
    rows = numbers(A="5@1", B="4@2 6@3 7@4")
    assert [row["B"]["p"] for row in found("A ;{B.p > A.p} B", rows)] == [6]
    # Above the operator a condition refuses what was taken, and nothing else is tried.
    assert found("σ{B.p > A.p}(A ; B)", rows) == []


def test_an_event_that_starts_when_the_other_ends_is_not_after_it() -> None:
    assert spans("A ; B", numbers(A="1@1-3", B="1@3-4 1@4-5")) == [(1, 5)]


def test_simultaneous_events_are_not_after_each_other() -> None:
    assert spans("A a ; A b", numbers(A="1@1 2@1 3@2")) == [(1, 2), (1, 2)]


def test_one_of_several_simultaneous_events_is_enough_and_none_may_satisfy_to_wait() -> None:
    """∃ and ∀ (CESAR §3.1): with 6 and 1 at one moment the left event is used up by 6, whatever 1 says."""
    rows = numbers(A="5@1", B="1@2 6@2 7@3")
    assert [row["B"]["p"] for row in found("A ;{B.p > A.p} B", rows)] == [6]


def test_right_values_overwrite_left_namesakes() -> None:
    rows = numbers(A="3@1 4@2")
    assert found("A ; A", rows) == [{"start": 1, "end": 2, "A": {"p": 4}}]
    assert found("A x ; A y", rows) == [{"start": 1, "end": 2, "x": {"p": 3}, "y": {"p": 4}}]


def test_dur_counts_ticks_of_the_whole_composite() -> None:
    rows = numbers(A="1@1 2@2 3@3 4@7")
    assert spans("σ{DUR = 3}((A ; A) ; A)", rows) == [(1, 3)]
    assert spans("σ{DUR <= 5}((A ; A) ; A)", rows) == [(1, 3)]
    assert spans("σ{DUR = 6}((A ; A) ; A)", rows) == [(2, 7)]


def test_dur_on_timestamps_adds_the_declared_tick() -> None:
    text = "DECLARE STREAM (tick 1 second) σ{DUR >= 10 seconds}(A x ; A y)"
    rows: Rows = [{"type": "A", "ts": f"2026-01-01T00:00:{second:02d}"} for second in (0, 9, 17)]
    import pandas as pd

    for unit in ("s", "us", "ns"):
        frame = pd.DataFrame(rows)
        frame["ts"] = pd.to_datetime(frame["ts"]).astype(f"datetime64[{unit}]")
        frame["p"] = [1, 2, 3]
        # Nine seconds and one tick are ten; eight and one are not.
        assert [row["x"]["p"] for row in reference_stream(frame, text)] == [1]


def test_points_are_times_with_tie_breakers() -> None:
    rows = [
        {"type": "A", "ts": 1, "seq": 1, "p": 1},
        {"type": "A", "ts": 1, "seq": 2, "p": 2},
        {"type": "A", "ts": 1, "seq": 2, "p": 3},
    ]
    assert [(row["x"]["p"], row["y"]["p"]) for row in found("A x ; A y", rows, tie_breaker="seq")] == [(1, 2), (1, 3)]
    assert found("A x ; A y", rows) == []


# Fold --------------------------------------------------------------------------------------------------------------


def test_the_first_event_satisfies_the_conjuncts_without_last() -> None:
    assert spans("μ{ID, p > 5}(A, A)", numbers(A="3@1 6@2 7@3")) == [(2, 3)]
    assert spans("μ{ID, p > p.last}(A, A)", numbers(A="10@1 9@2 12@3")) == [(1, 3), (2, 3)]


def test_every_round_is_a_result_and_the_first_event_alone_is_none() -> None:
    assert spans("μ(A, A)", numbers(A="1@1 2@2 3@3")) == [(1, 2), (1, 3), (2, 3)]


RISING = "μ{σ{S2.price > S2.price.last}, S1.name = S2.name}(S S1, S S2)"


def test_the_streams_of_section_2_3() -> None:
    rows = quotes(("IBM", 10, 1), ("Dell", 22, 2), ("IBM", 19, 3), ("Dell", 24, 4), ("IBM", 22, 5), ("Dell", 22, 6))
    shown = [(row["S1"]["name"], row["S1"]["price"], row["S2"]["price"], row["end"]) for row in found(RISING, rows)]
    # S[1] and S[2] of the paper; the Dell that falls back ends its run.
    assert shown == [("IBM", 10, 19, 3), ("Dell", 22, 24, 4), ("IBM", 10, 22, 5), ("IBM", 19, 22, 5)]


def test_a_step_that_refuses_ends_the_run_where_a_condition_would_skip() -> None:
    rows = quotes(("IBM", 10, 1), ("IBM", 9, 2), ("IBM", 12, 3))
    assert [(row["start"], row["end"]) for row in found(RISING, rows)] == [(2, 3)]
    skipping = "μ{ID, S1.name = S2.name and S2.price > S2.price.last}(S S1, S S2)"
    assert [(row["start"], row["end"]) for row in found(skipping, rows)] == [(1, 3), (2, 3)]


def test_a_fold_computes_in_parallel_and_as_it_goes() -> None:
    rows = numbers(A="1@1 2@2 4@3")
    sums = "μ{α{total ↦ total + A.p}}(α{total ↦ A.p}(A), A)"
    assert [row["total"] for row in found(sums, rows)] == [3, 7, 6]
    swapped = "α{x ↦ y, y ↦ x}(ρ{x.p ↦ x, y.p ↦ y}(A x ; A y))"
    assert [(row["x"], row["y"]) for row in found(swapped, rows)] == [(2, 1), (4, 2)]


def test_what_began_as_an_integer_is_a_real_where_the_step_computes_reals() -> None:
    halves = "μ{α{mean ↦ (mean + A.p) / 2}}(α{mean ↦ A.p}(A), A)"
    results = found(halves, numbers(A="1@1 2@2 4@3"))
    assert [row["mean"] for row in results] == [1.5, 2.75, 3.0]


def test_undefined_arithmetic_gives_null() -> None:
    assert [row["q"] for row in found("α{q ↦ 1 / p}(A)", numbers(A="0@1 2@2"))] == [None, 0.5]


def test_equal_instances_of_a_fold_are_one() -> None:
    """Two simultaneous events at each of 40 steps: what is carried stays two instances a step, not 2^40."""
    rows = numbers(A=" ".join(f"1@{step} 2@{step}" for step in range(40)))
    results = found("μ{ID, DUR <= 3}(A, A)", rows)
    assert len(results) == 2 * (39 + 38)


# Query 7 and Table 1 -----------------------------------------------------------------------------------------------

FALLING = """
μ{σ{minP < minP.last}, company = company.last, init minP ↦ maxP}(
    ρ{(name, price) ↦ (company, maxP)} ∘ π{name, price} ∘ σ{vol > 10000}(S),
    ρ{(name, price) ↦ (company, minP)} ∘ π{name, price}(S))
"""
QUERY_7 = f"""
DECLARE STREAM (tick 1 minute)
σ{{finalP > 1.05 * minP}}(
    σ{{DUR >= 10 minutes}}({FALLING})
    ;{{company = company.last}} ρ{{(name, price) ↦ (company, finalP)}} ∘ π{{name, price}}(S))
"""
TABLE_1: Rows = [
    {"type": "S", "name": name, "price": price, "vol": vol, "ts": 9 * 60 + minute}
    for name, price, vol, minute in (
        ("IBM", 90, 15000, 10),
        ("IBM", 85, 7000, 15),
        ("Dell", 40, 11000, 17),
        ("IBM", 81, 8000, 21),
        ("MSFT", 25, 6000, 23),
        ("IBM", 91, 9000, 24),
    )
]


def test_table_1_row_by_row() -> None:
    """What has been found after each row; only the last one completes the pattern."""
    counts = [len(found(QUERY_7, TABLE_1[: number + 1])) for number in range(len(TABLE_1))]
    assert counts == [0, 0, 0, 0, 0, 1]
    (result,) = found(QUERY_7, TABLE_1)
    assert (result["start"] - 540, result["end"] - 540) == (10, 24)
    assert [result[name] for name in ("company", "maxP", "minP", "finalP")] == ["IBM", 90, 81, 91]


def test_an_event_beside_the_last_row_changes_nothing() -> None:
    """§3.1: e6′ fails θ5 at the same moment as e6, which still completes the pattern."""
    beside = {"type": "S", "name": "IBM", "price": 80, "vol": 8000, "ts": 9 * 60 + 24}
    assert len(found(QUERY_7, [*TABLE_1, beside])) == 1


def test_an_event_beside_the_third_row_ends_the_run() -> None:
    """§3.1: e3′ is no lower price of IBM, so that the run of e1 and e2 ends beside Dell's quote."""
    beside = {"type": "S", "name": "IBM", "price": 99, "vol": 8000, "ts": 9 * 60 + 17}
    assert found(QUERY_7, [*TABLE_1, beside]) == []


# Resubscription ----------------------------------------------------------------------------------------------------

NESTED = "S S1 ;{S3.price > S1.price} (S S2 ; S S3)"


def shown(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple((row[name]["name"], row[name]["price"]) for name in ("S1", "S2", "S3"))


def test_the_first_stream_of_section_3_5() -> None:
    """The automaton of Fig. 7 misses this one."""
    rows = quotes(("IBM", 10, 1), ("Dell", 22, 2), ("IBM", 9, 3), ("Dell", 24, 4), ("IBM", 11, 5))
    assert (("IBM", 10), ("IBM", 9), ("Dell", 24)) in [shown(row) for row in found(NESTED, rows)]


def test_the_second_stream_of_section_3_5() -> None:
    """The automaton of Fig. 8 gives this one, which is none: Dell's 22 and 23 came first."""
    rows = quotes(("IBM", 10, 1), ("Dell", 22, 2), ("IBM", 9, 3), ("Dell", 23, 3), ("Dell", 24, 4), ("IBM", 11, 5))
    results = [shown(row) for row in found(NESTED, rows)]
    assert (("IBM", 10), ("Dell", 23), ("Dell", 24)) not in results
    assert (("IBM", 10), ("Dell", 22), ("Dell", 23)) in results


def test_filter_is_contained_in_nondeterministic() -> None:
    """The templates of CESAR §5.1 with the same formulas."""
    rows = numbers(A="1@1 2@2 3@3 1@4 2@5 4@6 3@7 2@8 5@9")
    filtering = "σ{c.p = 3}(σ{b.p = 2}(σ{a.p = 1}(A a) ;{DUR <= 5 and b.p > 0} A b) ;{DUR <= 8 and c.p > 0} A c)"
    folding = (
        "σ{c.p = 3}(μ{ID, DUR <= 8 and c.p > 0, init c.p ↦ b.p}("
        "σ{b.p = 2}(μ{ID, DUR <= 5 and b.p > 0}(σ{a.p = 1}(A a), A b)), A c))"
    )
    fewer = [(row["start"], row["end"]) for row in found(filtering, rows)]
    more = [(row["start"], row["end"]) for row in found(folding, rows)]
    assert set(fewer) < set(more)


@pytest.mark.parametrize("text", [RISING, QUERY_7, NESTED])
def test_the_printed_text_means_the_same(text: str) -> None:
    printed = StreamQuery(text).format()
    assert StreamQuery(printed).tree == StreamQuery(text).tree

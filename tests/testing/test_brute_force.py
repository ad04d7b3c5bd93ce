"""The brute force on examples derived by hand from the semantics page and the papers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kleene.testing.brute import brute_force_counts, brute_force_match

_EVENT = re.compile(r"(?P<label>[a-z]+\d+'*)(?:@(?P<time>[\d.]+))?(?:\((?P<attributes>[^)]*)\))?")


def rows(text: str) -> tuple[list[str], list[dict[str, Any]]]:
    """`a1(x=3) b2 c2' d@3..5`: the type is the label's letter, the time its number or what follows the @."""
    labels, events = [], []
    for found in _EVENT.finditer(text):
        began, _, ended = (found["time"] or re.sub(r"\D", "", found["label"])).partition("..")
        row: dict[str, Any] = {"type": found["label"][0].upper(), "ts": int(ended or began), "began": int(began)}
        for item in filter(None, (found["attributes"] or "").split(",")):
            name, value = item.strip().split("=")
            row[name] = {"null": None, "true": True, "false": False}.get(value, value)
            if isinstance(row[name], str):
                row[name] = row[name].strip("'") if "'" in value else float(value) if "." in value else int(value)
        labels.append(found["label"])
        events.append(row)
    return labels, events


def matches(text: str, query: str, **schema: Any) -> set[str]:
    """Matches as `a1 b2`, a list as `[a1 a3]`, an absent variable as `-`."""
    labels, events = rows(text)

    def shown(indices: tuple[int, ...] | None) -> str:
        names = [labels[i] for i in indices or ()]
        return "-" if not names else names[0] if len(names) == 1 else f"[{' '.join(names)}]"

    return {" ".join(shown(indices) for _, indices in match) for match in brute_force_match(events, query, **schema)}


def check(text: str, query: str, *expected: str, **schema: Any) -> None:
    assert matches(text, query, **schema) == set(expected)


# §1 Events, streams, order -----------------------------------------------------------------------------------------


def test_a_sequence_pairs_every_earlier_event_with_every_later_one() -> None:
    check("a1 b2 a3 b4", "PATTERN SEQ(A a, B b)", "a1 b2", "a1 b4", "a3 b4")


def test_no_sequence_pairs_simultaneous_events_but_a_conjunction_may() -> None:
    check("a1 b1", "PATTERN A a ; B b")
    check("a1 b1", "PATTERN A a & B b", "a1 b1")


def test_the_order_of_arrival_changes_nothing() -> None:
    check("b2 a1", "PATTERN A a ; B b", "a1 b2")


def test_an_event_fills_one_place_per_match() -> None:
    check("a1 a2", "PATTERN A x & A y", "a1 a2", "a2 a1")


def test_a_tie_breaker_orders_primitive_events_of_equal_time() -> None:
    check("a1(seq=1) b1(seq=2) b1'(seq=1)", "PATTERN A a ; B b", "a1 b1", tie_breaker="seq")


def test_the_canonical_order_of_simultaneous_events_goes_by_tie_breaker_then_values() -> None:
    stream = "a1(seq=0) b5@3..5(seq=2) b5'@4..5(seq=1) c6(seq=0)"
    check(stream, "PATTERN A a ; B+ ; C c", "a1 [b5' b5] c6", tie_breaker="seq", start="began")
    check("a1 b2(x=3) b2'(x=1) c3", "PATTERN A a ; B+ ; C c WHERE first(B.x) = 1", "a1 [b2' b2] c3")


def test_an_event_class_is_a_type_test_and_a_predicate() -> None:
    query = "DECLARE CLASS Hot IS ANY(A, B) WHERE x > :limit PATTERN Hot h ; C c"
    check("a1(x=1) a2(x=2) b3(x=3) d4(x=9) c5", query, "a2 c5", "b3 c5", params={"limit": 1})


def test_an_event_that_lasts_is_before_another_that_starts_after_its_end() -> None:
    check("a1@1..4 b4 b5@5..6 b6@3..6", "PATTERN A a ; B b", "a1 b5", start="began")


def test_an_event_that_is_not_after_the_last_one_is_invisible() -> None:
    check("a5@1..5 c6@4..6 b7", "PATTERN A a ; B b WHERE strict_contiguity {}", "a5 b7", start="began")
    check("a5@1..5 c6@6..6 b7", "PATTERN A a ; B b WHERE strict_contiguity {}", start="began")


def test_each_simultaneous_event_is_taken_by_a_run_of_its_own() -> None:
    check("a1 b2 b2' c3", "PATTERN A a ; B b ; C c WHERE strict_contiguity {}", "a1 b2 c3", "a1 b2' c3")
    check("a1 a1' b2", "PATTERN A+ a[] ; B b WHERE skip_till_next_match {}", "a1 b2", "a1' b2")


def test_a_run_stays_only_when_all_simultaneous_events_let_it() -> None:
    # b2 begins the second component, so no run of a1 is left for b3, whatever c2 allows.
    check("a1 b2 c2 b3", "PATTERN A a ; B b WHERE skip_till_next_match {}", "a1 b2")
    check("a1(id=1) b2(id=2) c2(id=1) b3(id=1)", "PATTERN A a ; B b WHERE partition_contiguity { [id] }")
    check("a1(id=1) b2(id=2) c2(id=2) b3(id=1)", "PATTERN A a ; B b WHERE partition_contiguity { [id] }", "a1 b3")


# §2 Values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    ["a.x > 1", "a.x <= 1", "NOT a.x > 1", "a.x != a.x", "a.x IN (1, 2)", "a.x NOT IN (1, 2)", "1 / a.y > 0"],
)
def test_null_and_undefined_make_a_comparison_untrue_and_its_negation_too(condition: str) -> None:
    check("a1(x=null, y=0)", f"PATTERN A a WHERE {condition}")


@pytest.mark.parametrize(
    "condition", ["1 / a.y > 0", "NOT 1 / a.y > 0", "a.z + 1 > 0", "a.y % 0 = 0", "NOT a.y % 0 = 0"]
)
def test_undefined_arithmetic_makes_its_comparison_false(condition: str) -> None:
    check("a1(y=0, z=9223372036854775807)", f"PATTERN A a WHERE {condition}")


@pytest.mark.parametrize(
    "condition", ["a.x > 1", "NOT a.x > 1", "a.x = 5 AND a.x = 6", "NOT a.x IN (1)", "1 / a.x > 7"]
)
def test_a_comparison_that_touches_a_missing_attribute_is_true(condition: str) -> None:
    check("b1", f"PATTERN ANY(A, B) a WHERE {condition}", "b1", types={"A": {"x"}, "B": set()})


def test_is_null_sees_a_missing_attribute_as_null() -> None:
    types: dict[str, set[str]] = {"A": {"x"}, "B": set()}
    check("a1(x=1) b2 a3(x=null)", "PATTERN ANY(A, B) v WHERE v.x IS NULL", "b2", "a3", types=types)
    check("a1(x=1) b2 a3(x=null)", "PATTERN ANY(A, B) v WHERE v.x IS NOT NULL", "a1", types=types)


@pytest.mark.parametrize(
    "condition",
    [
        "a.n % 2 = -1",
        "a.n / 2 = -1.5",
        "50% * a.n = -1.5",
        "a.n BETWEEN -3 AND 0",
        "NOT a.n BETWEEN -2 AND 0",
        "a.n IN (1, -3)",
        "a.s CONTAINS 'b'",
        "NOT a.s CONTAINS 'x'",
        "a.s < 'b'",
        "a.f AND NOT a.g",
        "-3 = a.n = -3.0",
        "a.n = 4 OR a.s = 'abc'",
        "n < 0 AND s <> ''",
    ],
)
def test_operators(condition: str) -> None:
    check("a1(n=-3, s='abc', f=true, g=false)", f"PATTERN A a WHERE {condition}", "a1")


# §3 Conditions and partition ---------------------------------------------------------------------------------------


def test_an_equivalence_test_covers_every_component() -> None:
    stream = "a1(id=1) a2(id=2) b3(id=2) c4(id=2)"
    check(stream, "PATTERN A a ; B b ; C c WHERE [id]", "a2 b3 c4")
    check(stream, "PATTERN A a ; B b ; C c WHERE a.id = b.id = c.id", "a2 b3 c4")
    check(stream, "PATTERN A a ; B b WHERE [id = 1]")


def test_a_null_key_matches_nothing_even_alone() -> None:
    check("a1(id=null) a2(id=1)", "PATTERN A a WHERE [id]", "a2")


def test_an_attribute_that_a_component_lacks_is_pairwise_equality_only() -> None:
    types: dict[str, set[str]] = {"A": {"id"}, "B": set(), "C": {"id"}}
    check("a1(id=1) a2(id=null) b3 c4(id=1)", "PATTERN A a ; B b ; C c WHERE [id]", "a1 b3 c4", types=types)
    check("a1(id=null) b2", "PATTERN A a ; B b WHERE [id]", "a1 b2", types=types)


def test_references_into_a_kleene_variable() -> None:
    stream = "a1(x=1) a2(x=2) a3(x=1) b4(x=2)"
    check(stream, "PATTERN A+ a[] ; B b WHERE a[i].x > a[i-1].x AND a.LEN > 1", "[a1 a2] b4")
    check(stream, "PATTERN A+ a[] ; B b WHERE a[1].x = 2 AND b.x > a[a.LEN].x", "[a2 a3] b4")
    check(stream, "PATTERN A+ a[] ; B b WHERE sum(a.x) = 4", "[a1 a2 a3] b4")
    check(stream, "PATTERN A+ a[] ; B b WHERE a[i].x < avg(a[..i-1].x) AND count(a) > 1", "[a2 a3] b4")


# §3 Selection strategies -------------------------------------------------------------------------------------------


def test_ignore_proceed_forking_stays() -> None:
    check("a1 b2 b3", "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) {}", "a1 b2", "a1 b3")


def test_skip_till_next_takes_what_it_can() -> None:
    stream = "a1 a2 b3"
    check(stream, "PATTERN A+ a[] ; B b WHERE skip_till_next_match {}", "[a1 a2] b3", "a2 b3")
    check(stream, "PATTERN A+ a[] ; B b WHERE skip_till_any_match {}", "[a1 a2] b3", "a1 b3", "a2 b3")


def test_skip_till_next_ignores_what_its_own_edge_does_not_take() -> None:
    stream = "a1(x=1) b2(x=1) b3(x=2) b4(x=2)"
    check(stream, "PATTERN A a ; B b WHERE skip_till_next_match { b.x > a.x }", "a1 b3")
    # The conjunct's last identifier is c, so b2 already begins b and the run from a1 knows no other b.
    check("a1 b2(x=1) b3(x=2) c4(x=2)", "PATTERN A a ; B b ; C c WHERE skip_till_next_match { c.x = b.x }")


def test_an_aggregate_over_the_whole_list_sits_on_proceed_and_a_first_reference_on_begin() -> None:
    stream = "b1 a2(x=1) a3(x=5)"
    check(stream, "PATTERN B b ; A+ a[] WHERE skip_till_next_match { a[1].x > 3 }", "b1 a3")
    check(stream, "PATTERN B b ; A+ a[] WHERE skip_till_next_match { first(a.x) > 3 }")


def test_counts_sit_on_take_and_proceed() -> None:
    check("a1 a2 a3 b4", "PATTERN A{1,2} a[] ; B b WHERE skip_till_next_match {}", "[a1 a2] b4", "[a2 a3] b4", "a3 b4")
    check("a1 a2 a3 b4", "PATTERN A{1,2} a[] ; B b WHERE strict_contiguity {}", "[a2 a3] b4", "a3 b4")
    check("a1 a2 a3 b4", "PATTERN A^3 a[] ; B b", "[a1 a2 a3] b4")


def test_a_trailing_kleene_component_reports_every_prefix() -> None:
    check("b1 a2 a3", "PATTERN B b ; A+ a[] WHERE skip_till_next_match {}", "b1 a2", "b1 [a2 a3]")


def test_contiguity_is_judged_against_all_events() -> None:
    check("a1 x2 b3", "PATTERN A a ; B b WHERE strict_contiguity {}")
    check("a1(id=1) x2(id=2) b3(id=1)", "PATTERN A a ; B b WHERE partition_contiguity { [id] }", "a1 b3")
    check("a1(id=1) x2(id=1) b3(id=1)", "PATTERN A a ; B b WHERE partition_contiguity { [id] }")


def test_an_event_of_a_type_without_the_key_breaks_no_contiguity() -> None:
    types: dict[str, set[str]] = {"A": {"id"}, "B": {"id"}, "X": set()}
    check("a1(id=1) x2 b3(id=1)", "PATTERN A a ; B b WHERE partition_contiguity { [id] }", "a1 b3", types=types)
    check("a1(id=1) x2 b3(id=1)", "PATTERN A a ; B b WHERE strict_contiguity { [id] }", types=types)


def test_sase_plus_query_2_follows_the_contamination() -> None:
    stream = "a1(kind='contaminated',site=1) s2(from=1,to=2) s3(from=1,to=3) s4(from=2,to=4)"
    query = """PATTERN SEQ(A a, S+ b[]) WHERE skip_till_any_match(a, b[]) {
        a.kind = 'contaminated' and b[1].from = a.site and b[i].from = b[i-1].to } WITHIN 10"""
    check(stream, query, "a1 s2", "a1 s3", "a1 [s2 s4]")


def test_sase_plus_query_3_splits_on_take_and_proceed() -> None:
    # Figure 3 in small: the last event both extends a[] (price above average) and ends it (volume drops).
    stream = "s1(p=100,v=1010) s2(p=120,v=990) s3(p=120,v=1005) s4(p=121,v=999) s5(p=120,v=999) s6(p=125,v=750)"
    query = """PATTERN SEQ(S+ a[], S b) WHERE skip_till_next_match(a[], b) {
        a[1].v > 1000 and a[i].p > avg(a[..i-1].p) and b.v < 80% * a[a.LEN].v } WITHIN 60"""
    check(stream, query, "[s1 s2 s3 s4 s5] s6", "[s3 s4] s6")


# §3 Negation -------------------------------------------------------------------------------------------------------


def test_a_negated_middle_lies_wholly_between_its_neighbours() -> None:
    check("a1 b2 c3 a4 c5", "PATTERN SEQ(A a, !(B b), C c)", "a4 c5")
    check("a1 b1 c3 b3", "PATTERN SEQ(A a, !(B b), C c)", "a1 c3")
    check("a1 b3@1..2 c4", "PATTERN SEQ(A a, !(B b), C c)", "a1 c4", start="began")


def test_a_negated_start_reaches_back_to_t_last_minus_t() -> None:
    check("b1 a4 c6", "PATTERN !(B b) ; A a ; C c WITHIN 5", "a4 c6")
    check("b1 a4 c6", "PATTERN !(B b) ; A a ; C c WITHIN 5 INCLUSIVE")
    check("b2 a4 c6", "PATTERN !(B b) ; A a ; C c WITHIN 5")


def test_a_negated_end_reaches_to_t_first_plus_t() -> None:
    check("a1 c2 b6", "PATTERN A a ; C c ; !(B b) WITHIN 5", "a1 c2")
    check("a1 c2 b6", "PATTERN A a ; C c ; !(B b) WITHIN 5 INCLUSIVE")
    check("a1 c2 b2 b5", "PATTERN A a ; C c ; !(B b) WITHIN 5")


def test_far_bounds_are_positions_under_events() -> None:
    check("a1 x2 b9", "PATTERN A a ; !(B b) WITHIN 3 EVENTS")
    check("a1 x2 x3 b9", "PATTERN A a ; !(B b) WITHIN 3 EVENTS", "a1")


@pytest.mark.parametrize("negation", ["!(B b | D d)", "!(B b) & !(D d)", "!(ANY(B, D) v)"])
def test_neither(negation: str) -> None:
    check("a1 b2 c3 a4 d5 c6 a7 c8", f"PATTERN A a ; {negation} ; C c", "a7 c8")


def test_only_events_that_satisfy_the_negated_conditions_kill() -> None:
    stream = "a1(id=1) b2(id=2) c3(id=1) a4(id=2) b5(id=2) c6(id=2)"
    check(stream, "PATTERN A a ; !(B b) ; C c WHERE [id]", "a1 c3")
    check("a1(x=1) b2(x=2) c3", "PATTERN A a ; !(B b) ; C c WHERE b.x > a.x")
    check("a1(x=2) b2(x=2) c3", "PATTERN A a ; !(B b) ; C c WHERE b.x > a.x", "a1 c3")


def test_positives_match_first_under_the_strategy() -> None:
    # SASE+ Query 1: the exit that comes next is the one, and the register reading before it kills the pair.
    query = "PATTERN SEQ(A a, ~(B b), C c) WHERE skip_till_next_match(a, b, c) { [id] } WITHIN 12"
    check("a1(id=7) b2(id=7) c3(id=7) c4(id=7)", query)
    check("a1(id=7) b2(id=8) c3(id=7) c4(id=7)", query, "a1 c3")


def test_neighbours_of_a_negation_are_the_nearest_that_are_present() -> None:
    check("a1 b2 c3 b4 d5", "PATTERN A+ a[] ; !(B b) ; C* c[] ; D d WITHIN 9")
    check("a1 c2 b3 d4", "PATTERN A a ; !(B b) ; C* c[] ; D d WITHIN 9", "a1 c2 d4")


# §3 Not lines ------------------------------------------------------------------------------------------------------


def test_an_optional_component_is_a_union() -> None:
    check("a1 b2 c3", "PATTERN A a ; B? b ; C c", "a1 b2 c3", "a1 - c3")
    check("a1 b2 c3", "PATTERN A a ; B? b ; C c WHERE strict_contiguity {}", "a1 b2 c3")
    check("a1 c2", "PATTERN A a ; B* b[] ; C c WHERE b[1].x > 5 AND sum(b.x) > 5", "a1 - c2")
    check("a1 c2", "PATTERN A a ; B* b[] ; C c WHERE count(b) > 0")


def test_disjunction_and_nesting() -> None:
    check("a1 b2 c3", "PATTERN (A a | B b) ; C c", "a1 - c3", "- b2 c3")
    check("c1 a2 b3 d4", "PATTERN ((A a ; B b) & C c) ; D d", "a2 b3 c1 d4")
    check("a1 c2 b3", "PATTERN (A a ; B b) & C c", "a1 b3 c2")
    check("a1 c2 b3", "PATTERN (A a & B b) ; C c")


def test_a_match_spans_from_its_smallest_start_to_its_largest_end() -> None:
    check("b1 a3 c5", "PATTERN (A a & B b) ; C c WITHIN 4")
    check("b1 a3 c5", "PATTERN (A a & B b) ; C c WITHIN 4 INCLUSIVE", "a3 b1 c5")


# §3 ZStream's closure ----------------------------------------------------------------------------------------------

FIGURE_6 = "a1 b2 b3 a4 b5 c6"


def test_figure_6() -> None:
    check(FIGURE_6, "PATTERN A ; B^2 ; C", "a1 [b2 b3] c6", "a1 [b3 b5] c6")
    check(FIGURE_6, "PATTERN A ; B* ; C", "a1 [b2 b3 b5] c6", "a4 b5 c6")


def test_a_star_may_take_nothing_and_a_plus_may_not() -> None:
    check("a1 c2", "PATTERN A a ; B* ; C c", "a1 - c2")
    check("a1 c2", "PATTERN A a ; B+ ; C c")
    check("a1 b2 c3", "PATTERN A a ; B* ; C c", "a1 b2 c3")


def test_conditions_choose_the_members_and_aggregates_test_the_group() -> None:
    stream = "a1(x=2) b2(x=1) b3(x=2) b4(x=3) c5"
    check(stream, "PATTERN A a ; B+ ; C c WHERE B.x >= a.x AND sum(B.x) > 4", "a1 [b3 b4] c5")
    check(stream, "PATTERN A a ; B+ ; C c WHERE B.x >= a.x AND sum(B.x) > 5")
    check(stream, "PATTERN A a ; B^2 ; C c WHERE B.x != 2", "a1 [b2 b4] c5")


def test_at_an_end_the_window_is_the_bound() -> None:
    check("b1 b2 b3 c6", "PATTERN B+ ; C c WITHIN 4", "b3 c6")
    check("b1 b2 b3 c6", "PATTERN B+ ; C c WITHIN 4 INCLUSIVE", "[b2 b3] c6")
    check("a1 b2 b3 b5", "PATTERN A a ; B+ WITHIN 4", "a1 [b2 b3]")
    check("a1 b2 b3 b5", "PATTERN A a ; B^1 WITHIN 4 INCLUSIVE", "a1 b2", "a1 b3", "a1 b5")


# §3 Window ---------------------------------------------------------------------------------------------------------


def test_the_window_is_less_than_t_and_at_most_t_when_inclusive() -> None:
    check("a1 b6", "PATTERN A a ; B b WITHIN 5")
    check("a1 b6", "PATTERN A a ; B b WITHIN 5 INCLUSIVE", "a1 b6")
    check("a3@1..3 b5@4..6", "PATTERN A a ; B b WITHIN 5", start="began")


def test_a_count_window_counts_the_partition() -> None:
    check("a1 x2 b3", "PATTERN A a ; B b WITHIN 2 EVENTS")
    check("a1(id=1) x2(id=2) b3(id=1)", "PATTERN A a ; B b WHERE [id] WITHIN 2 EVENTS", "a1 b3")
    check("a1 x2 x2' b3", "PATTERN A a ; B b WITHIN 3 EVENTS INCLUSIVE", "a1 b3")
    check("a1 x2 b2 c2", "PATTERN A a ; B b WITHIN 2 EVENTS", "a1 b2")


# §3 Output ---------------------------------------------------------------------------------------------------------


def test_non_overlap_takes_the_earliest_end_and_then_the_latest_start() -> None:
    check("a1 a2 b3 a4 b5", "PATTERN A a ; B b OUTPUT NON_OVERLAP", "a2 b3", "a4 b5")
    check("a1(id=1) a2(id=2) b3(id=1) b4(id=2)", "PATTERN A a ; B b WHERE [id] OUTPUT NON_OVERLAP", "a1 b3", "a2 b4")
    check("a1 b2 b3", "PATTERN A+ a[] ; B b WHERE skip_till_next_match {} OUTPUT NON_OVERLAP", "a1 b2")


def test_non_overlap_compares_events_one_by_one_before_lengths() -> None:
    query = "PATTERN A a ; B+ b[] ; C c WHERE sum(b.x) = 3 OUTPUT NON_OVERLAP"
    check("a1 b2(x=1) b3(x=2) b4(x=3) c5", query, "a1 [b2 b3] c5")


def test_non_overlap_under_strict_contiguity_knows_no_partitions() -> None:
    stream = "a1(id=1) a1'(id=2) b2(id=1) b2'(id=2)"
    check(stream, "PATTERN A a ; B b WHERE strict_contiguity { [id] } OUTPUT NON_OVERLAP", "a1 b2")
    check(stream, "PATTERN A a ; B b WHERE skip_till_any_match { [id] } OUTPUT NON_OVERLAP", "a1 b2", "a1' b2'")


def test_compressed_counts_matches_by_completing_event() -> None:
    labels, events = rows("a1 a2 b3 a4 b5")
    counts = brute_force_counts(events, "PATTERN A+ a[] ; B b OUTPUT COMPRESSED")
    assert {labels[index]: count for index, count in counts.items()} == {"b3": 3, "b5": 7}


def test_rows_without_a_time_are_kept_aside_and_those_without_a_type_still_count() -> None:
    events: list[dict[str, Any]] = [
        {"type": "A", "ts": 1},
        {"type": "B", "ts": None},
        {"type": None, "ts": 2},
        {"type": "B", "ts": 3},
    ]
    assert brute_force_match(events, "PATTERN A a ; B b") == {(("a", (0,)), ("b", (3,)))}
    assert brute_force_match(events, "PATTERN A a ; B b WHERE strict_contiguity {}") == set()

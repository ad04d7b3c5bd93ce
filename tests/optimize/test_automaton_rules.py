"""Each rule of the optimiser on the automaton, before and after; and automata that are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kleene.optimize.look_up_runs import look_up_runs
from kleene.optimize.merge_runs import merge_runs
from kleene.optimize.planner import basic_plan, plan_query
from kleene.optimize.push_equivalence import push_equivalence, push_other_equivalences
from kleene.optimize.push_negation import push_negation
from kleene.optimize.push_simple_predicates import push_simple_predicates
from kleene.optimize.push_to_construction import push_to_construction
from kleene.optimize.push_to_edges import push_to_edges
from kleene.optimize.push_window import push_window
from kleene.optimize.rules import LINE_RULES, LinePlan, LineRule
from kleene.pattern import Query
from kleene.pattern.expressions import Clause
from kleene.pattern.printing import print_clause
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check
from kleene.plan.physical import AutomatonPlan, Edge, IllFormedPlan, Plan, StatePlan

# SASE+'s Query 2 (§2), with an aggregate and a condition that reaches back.
STOCK = """
PATTERN SEQ(A+ a[], B b, C c)
WHERE skip_till_any_match {
  [id, kind] AND a[1].x > 5 AND a[i].x > 6 AND a[i].x > a[i-1].x AND sum(a[..].x) > 20 AND b.y = 3 AND b.x < a[a.LEN].x
}
WITHIN 10
"""
Shown = dict[str, list[str]]


def made(text: str, *rules: LineRule) -> tuple[AutomatonPlan, BoundQuery]:
    """The basic plan of a query with one alternative, after these rules."""
    query = Query(text).bind()
    plan: LinePlan = basic_plan(query, query.alternatives[0])
    for rule in rules:
        plan = rule(plan, query)
    assert isinstance(plan, AutomatonPlan)
    check(Plan(query, (plan,)))
    return plan, query


def shown(plan: AutomatonPlan) -> Shown:
    """What is tested where, in the words of the query; edges without a test are left out."""
    said: Shown = {}
    for state in plan.states:
        name = state.component.variable
        said[f"begin {name} alone"] = printed(state.begin.mask)
        said[f"begin {name}"] = printed(state.begin.tests)
        said[f"take {name} alone"] = printed(state.take.mask)
        said[f"take {name}"] = printed(state.take.tests)
        said[f"leave {name}"] = printed(state.proceed)
    return {edge: tests for edge, tests in said.items() if tests}


def printed(clauses: tuple[Clause, ...]) -> list[str]:
    return [print_clause(clause) for clause in clauses]


# Where conditions are tested (SASE+ §3.2) --------------------------------------------------------------------------


def test_under_any_match_the_basic_plan_tests_what_can_wait_on_the_last_edge() -> None:
    plan, _ = made(STOCK)
    assert shown(plan) == {
        "take a": ["a[i].id = a[1].id", "a[i].kind = a[1].kind", "a[i].x > 6", "a[i].x > a[i-1].x"],
        "begin c": [
            "a[1].x > 5",
            "sum(a.x) > 20",
            "b.id = a[1].id",
            "b.kind = a[1].kind",
            "b.y = 3",
            "b.x < a[a.LEN].x",
            "c.id = a[1].id",
            "c.kind = a[1].kind",
        ],
    }


def test_under_any_match_a_trailing_kleene_component_is_left_with_every_test() -> None:
    plan, _ = made("PATTERN SEQ(B b, A+ a[]) WHERE b.y = 3 AND a[1].x > b.x AND a[i].x > 6")
    assert shown(plan) == {"take a": ["a[i].x > 6"], "leave a": ["b.y = 3", "a[1].x > b.x"]}


@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity", "skip_till_next_match"])
def test_under_other_strategies_edges_decide_what_is_ignored_so_tests_stay_on_them(strategy: str) -> None:
    plan, _ = made(f"PATTERN SEQ(A a, B b, C c) WHERE {strategy} {{ a.x = 1 AND b.x > a.x AND c.x = 2 }}")
    assert shown(plan) == {"begin a": ["a.x = 1"], "begin b": ["b.x > a.x"], "begin c": ["c.x = 2"]}


def test_with_timeouts_prefixes_are_results_so_tests_stay_on_their_edges() -> None:
    plan, _ = made("PATTERN SEQ(A a, B b) WHERE a.x = 1 AND b.x > a.x WITHIN 5 TIMEOUTS INTO late")
    assert shown(plan) == {"begin a": ["a.x = 1"], "begin b": ["b.x > a.x"]}


def test_push_simple_predicates_puts_the_first_event_on_begin_and_each_other_one_on_take() -> None:
    plan, _ = made(STOCK, push_simple_predicates)
    edges = shown(plan)
    assert edges["begin a alone"] == ["a[1].x > 5"]
    assert edges["take a alone"] == ["a[i].x > 6"]
    assert edges["begin b alone"] == ["b.y = 3"]
    assert edges["take a"] == ["a[i].id = a[1].id", "a[i].kind = a[1].kind", "a[i].x > a[i-1].x"]
    assert not {"a[1].x > 5", "b.y = 3"} & set(edges["begin c"])


def test_push_simple_predicates_leaves_aggregates_and_last_events_where_they_are() -> None:
    plan, _ = made("PATTERN SEQ(A+ a[], B b) WHERE count(a) > 2 AND a[a.LEN].x = 4", push_simple_predicates)
    assert shown(plan) == {"begin b": ["count(a) > 2", "a[a.LEN].x = 4"]}


def test_push_to_edges_tests_where_the_last_event_named_is_taken() -> None:
    plan, _ = made(STOCK, push_simple_predicates, push_to_edges)
    edges = shown(plan)
    assert edges["leave a"] == ["sum(a.x) > 20"]
    assert edges["begin b"] == ["b.id = a[1].id", "b.kind = a[1].kind", "b.x < a[a.LEN].x"]
    assert edges["begin c"] == ["c.id = a[1].id", "c.kind = a[1].kind"]
    assert edges["begin a alone"] == ["a[1].x > 5"]


def test_push_to_edges_alone_gives_the_edges_of_the_paper() -> None:
    """SASE+ Figure 2: without masks, each conjunct on the edge that takes its last event."""
    plan, _ = made("PATTERN SEQ(A+ a[], B b) WHERE a[1].x = 1 AND a[i].x > a[i-1].x AND b.x < a[1].x", push_to_edges)
    assert shown(plan) == {"begin a": ["a[1].x = 1"], "take a": ["a[i].x > a[i-1].x"], "begin b": ["b.x < a[1].x"]}


def test_push_to_construction_is_for_stacks() -> None:
    plan, query = made(STOCK)
    assert push_to_construction(plan, query) == plan


# Keys --------------------------------------------------------------------------------------------------------------


def test_push_equivalence_keeps_runs_apart_by_the_first_attribute() -> None:
    plan, _ = made(STOCK, push_equivalence)
    assert plan.key == ("id",)
    assert not any(".id" in test for tests in shown(plan).values() for test in tests)
    assert shown(plan)["take a"][0] == "a[i].kind = a[1].kind"


def test_push_other_equivalences_adds_the_other_attributes() -> None:
    plan, _ = made(STOCK, push_equivalence, push_other_equivalences)
    assert plan.key == ("id", "kind")
    assert shown(plan) == {
        "take a": ["a[i].x > 6", "a[i].x > a[i-1].x"],
        "begin c": ["a[1].x > 5", "sum(a.x) > 20", "b.y = 3", "b.x < a[a.LEN].x"],
    }
    alone, _ = made(STOCK, push_other_equivalences)
    assert alone.key == ()


def test_an_equality_of_other_attributes_is_no_key() -> None:
    plan, _ = made("PATTERN SEQ(A+ a[], B b) WHERE b.x = a[1].y AND b.x = a[1].x", push_equivalence)
    assert plan.key == ()
    assert shown(plan)["begin b"] == ["b.x = a[1].y", "b.x = a[1].x"]


def test_contiguity_is_judged_in_a_partition_so_there_the_key_is_in_the_basic_plan() -> None:
    text = "PATTERN SEQ(A a, !(C c), B b) WHERE partition_contiguity { [id, kind] } WITHIN 5"
    plan, _ = made(text)
    assert plan.key == ("id", "kind")
    assert [absence.keyed for absence in plan.absences] == [True]
    again, _ = made(text, push_equivalence, push_other_equivalences)
    assert again.key == plan.key
    assert shown(again) == {}


def test_a_key_sorts_negated_events_too() -> None:
    plan, query = made("PATTERN SEQ(A+ a[], !(C c), B b) WHERE [id] WITHIN 5")
    assert [absence.keyed for absence in plan.absences] == [False]
    assert [absence.keyed for absence in push_equivalence(plan, query).absences] == [True]


# Negation ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at"),
    [
        # In the middle: where the right neighbour is taken.
        ("PATTERN SEQ(A+ a[], !(N n), B b, C c) WITHIN 9", 1),
        ("PATTERN SEQ(A+ a[], B b, !(N n), C c) WITHIN 9", 2),
        # Or where a condition's last event is.
        ("PATTERN SEQ(A+ a[], !(N n), B b, C c) WHERE n.x = c.x WITHIN 9", 2),
        ("PATTERN SEQ(A a, !(N n), B+ b[], C c) WHERE n.x = b[1].x WITHIN 9", 1),
        # The last event of a list and what is over all of it are known when it is left.
        ("PATTERN SEQ(A a, !(N n), B+ b[], C c) WHERE n.x = b[b.LEN].x WITHIN 9", 2),
        ("PATTERN SEQ(A a, !(N n), B+ b[], C c) WHERE n.x < sum(b.x) WITHIN 9", 2),
        # Beyond the last state: on complete matches.
        ("PATTERN SEQ(A a, !(N n), B+ b[]) WHERE n.x < sum(b.x) WITHIN 9", None),
        # The window's start and end are known with the complete match, or later.
        ("PATTERN SEQ(!(N n), A+ a[], B b) WITHIN 9", None),
        ("PATTERN SEQ(A+ a[], B b, !(N n)) WITHIN 9", None),
        # A timeout names the positive prefix.
        ("PATTERN SEQ(A a, !(N n), B b) WITHIN 9 TIMEOUTS INTO late", None),
    ],
)
def test_push_negation_decides_at_the_right_neighbour_or_where_its_conditions_are_known(
    text: str, at: int | None
) -> None:
    before, query = made(text)
    assert [absence.at for absence in before.absences] == [None]
    pushed = push_negation(before, query)
    assert [absence.at for absence in pushed.absences] == [at]
    check(Plan(query, (pushed,)))


# Window and merging ------------------------------------------------------------------------------------------------


def test_push_window_lets_runs_die_early() -> None:
    plan, query = made(STOCK)
    assert not plan.window_early
    pushed = push_window(plan, query)
    assert pushed == replace(plan, window_early=True)


def test_merge_runs_makes_runs_with_the_same_future_one() -> None:
    plan, query = made(STOCK)
    assert not plan.merges
    assert merge_runs(plan, query) == replace(plan, merges=True)


def test_merge_runs_leaves_runs_apart_whose_prefixes_are_reported() -> None:
    plan, query = made("PATTERN SEQ(A+ a[], B b) WITHIN 5 TIMEOUTS INTO late")
    assert merge_runs(plan, query) == plan


def test_all_rules_together() -> None:
    plan = plan_query(Query(STOCK).bind()).alternatives[0]
    assert isinstance(plan, AutomatonPlan)
    assert shown(plan) == {
        "begin a alone": ["a[1].x > 5"],
        "take a alone": ["a[i].x > 6"],
        "take a": ["a[i].x > a[i-1].x"],
        "leave a": ["sum(a.x) > 20"],
        "begin b alone": ["b.y = 3"],
        "begin b": ["b.x < a[a.LEN].x"],
    }
    assert (plan.key, plan.window_early, plan.merges) == (("id", "kind"), True, True)


def test_every_rule_leaves_a_plan_that_is_checked() -> None:
    query = Query(STOCK).bind()
    plan: LinePlan = basic_plan(query, query.alternatives[0])
    for _, rule in LINE_RULES:
        plan = rule(plan, query)
        check(Plan(query, (plan,)))


# Automata that are refused -----------------------------------------------------------------------------------------


def changed(plan: AutomatonPlan, number: int, change: Callable[[StatePlan], StatePlan]) -> AutomatonPlan:
    states = list(plan.states)
    states[number] = change(states[number])
    return replace(plan, states=tuple(states))


def test_an_automaton_that_forgets_a_condition_is_refused() -> None:
    plan, query = made(STOCK, push_to_edges)
    with pytest.raises(IllFormedPlan, match="nothing tests"):
        check(Plan(query, (changed(plan, 2, lambda state: replace(state, begin=Edge())),)))


def test_a_mask_of_two_variables_is_refused() -> None:
    plan, query = made(STOCK, push_to_edges)
    with pytest.raises(IllFormedPlan, match="a mask of `b` names another variable"):
        check(Plan(query, (changed(plan, 1, lambda state: replace(state, begin=Edge(mask=state.begin.tests))),)))


def test_a_test_before_its_event_is_taken_is_refused() -> None:
    plan, query = made(STOCK, push_to_edges)
    late = plan.states[2].begin.tests
    moved = changed(plan, 2, lambda state: replace(state, begin=Edge()))
    moved = changed(moved, 1, lambda state: replace(state, begin=Edge(tests=(*state.begin.tests, *late))))
    with pytest.raises(IllFormedPlan, match="not taken yet"):
        check(Plan(query, (moved,)))


def test_what_is_tested_of_each_event_cannot_wait() -> None:
    plan, query = made(STOCK, push_to_edges)
    each = plan.states[0].take.tests
    moved = changed(plan, 0, lambda state: replace(state, take=Edge(), proceed=(*state.proceed, *each)))
    with pytest.raises(IllFormedPlan, match="tested where it is taken"):
        check(Plan(query, (moved,)))


LINKED = """
DECLARE TYPE A (x int, y int) DECLARE TYPE B (x int, y int)
PATTERN SEQ(A a, A+ b[], B c)
WHERE skip_till_next_match { b[1].x = a.y AND b[i].x = b[i-1].y AND c.x = a.y AND c.y > a.x } WITHIN 10
"""


def test_look_up_runs_takes_the_equalities_of_a_run_and_an_event() -> None:
    plan, _ = made(LINKED, push_to_edges, look_up_runs)
    found = [(printed(state.begin.equalities), printed(state.take.equalities)) for state in plan.states]
    assert found == [([], []), (["b[1].x = a.y"], ["b[i].x = b[i-1].y"]), (["c.x = a.y"], [])]
    # What is found is tested as well.
    assert shown(plan)["begin c"] == ["c.x = a.y", "c.y > a.x"]


@pytest.mark.parametrize(
    ("number", "change", "why"),
    [
        (2, lambda state: replace(state.begin, equalities=state.begin.tests), "no test of a run's value and its own"),
        (2, lambda state: replace(state.begin, tests=state.begin.tests[1:]), "nothing tests"),
        (1, lambda state: replace(state.begin, equalities=state.take.tests), "no test of a run's value and its own"),
    ],
)
def test_runs_are_found_by_what_is_tested(number: int, change: Callable[[StatePlan], Edge], why: str) -> None:
    plan, query = made(LINKED, push_to_edges, look_up_runs)
    wrong = changed(plan, number, lambda state: replace(state, begin=change(state)))
    with pytest.raises(IllFormedPlan, match=why):
        check(Plan(query, (wrong,)))


def test_contiguity_that_finds_runs_by_value_is_refused() -> None:
    plan, _ = made(LINKED, push_to_edges, look_up_runs)
    _, other = made(LINKED.replace("skip_till_next_match", "strict_contiguity"), push_to_edges)
    with pytest.raises(IllFormedPlan, match="finds no runs by value"):
        check(Plan(other, (plan,)))


@pytest.mark.parametrize(("after", "at"), [(0, 0), (0, 3), (1, 1), (-1, -1)])
def test_a_negated_component_is_not_decided_before_its_right_neighbour(after: int, at: int) -> None:
    plan, query = made("PATTERN SEQ(A+ a[], !(N n), B b, C c) WITHIN 9")
    early = replace(plan.absences[0], after=after, at=at)
    with pytest.raises(IllFormedPlan, match="right neighbour"):
        check(Plan(query, (replace(plan, absences=(early,)),)))


def test_a_negated_component_is_no_state_and_stands_between_two() -> None:
    plan, query = made("PATTERN SEQ(A+ a[], !(N n), B b, C c) WITHIN 9")
    with pytest.raises(IllFormedPlan, match="between two states"):
        check(Plan(query, (replace(plan, absences=(replace(plan.absences[0], after=3),)),)))
    negated = plan.absences[0].scan.component
    with pytest.raises(IllFormedPlan, match="no place of a sequence"):
        check(Plan(query, (changed(plan, 0, lambda state: replace(state, component=negated)),)))
    with pytest.raises(IllFormedPlan, match="one place a variable"):
        check(Plan(query, (replace(plan, states=plan.states[:1] * 2),)))
    with pytest.raises(IllFormedPlan, match="one place a variable"):
        check(Plan(query, (replace(plan, states=()),)))

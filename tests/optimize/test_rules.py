"""Each rule of the optimiser on stacks, before and after, on SASE's Q3 (§3.1, Figure 6); and plans that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kleene.optimize.planner import basic_plan, plan_query
from kleene.optimize.push_equivalence import push_equivalence, push_other_equivalences
from kleene.optimize.push_simple_predicates import push_simple_predicates
from kleene.optimize.push_to_construction import push_to_construction
from kleene.optimize.push_window import push_window
from kleene.optimize.rules import LINE_RULES
from kleene.pattern import Query
from kleene.pattern.expressions import Clause
from kleene.pattern.printing import print_clause
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check
from kleene.plan.physical import AutomatonPlan, IllFormedPlan, Plan, ReferencePlan, SequencePlan
from kleene.plan.settings import Settings

Q3 = """
PATTERN SEQ(A x1, B x2, !(C x3), D x4)
WHERE [attr1, attr2] AND x1.attr3 = '1' AND x1.attr4 < x4.attr4 AND x2.attr4 < x4.attr4
WITHIN 6
"""


@pytest.fixture
def query() -> BoundQuery:
    return Query(Q3).bind()


@pytest.fixture
def basic(query: BoundQuery) -> SequencePlan:
    return on_stacks(basic_plan(query, query.alternatives[0]))


def on_stacks(plan: SequencePlan | AutomatonPlan) -> SequencePlan:
    assert isinstance(plan, SequencePlan)
    return plan


def shown(clauses: tuple[Clause, ...]) -> list[str]:
    return [print_clause(clause) for clause in clauses]


def test_the_basic_plan_tests_everything_after_construction(query: BoundQuery, basic: SequencePlan) -> None:
    assert [scan.component.variable for scan in basic.scans] == ["x1", "x2", "x4"]
    assert basic.after == query.conditions.positive
    assert basic.key == ()
    assert [(a.scan.component.variable, a.after, a.keyed) for a in basic.absences] == [("x3", 1, False)]


def test_push_simple_predicates(query: BoundQuery, basic: SequencePlan) -> None:
    pushed = on_stacks(push_simple_predicates(basic, query))
    assert [shown(scan.mask) for scan in pushed.scans] == [["x1.attr3 = '1'"], [], []]
    assert len(pushed.after) == len(basic.after) - 1


def test_push_equivalence_takes_the_first_attribute_and_the_tests_that_it_implies(
    query: BoundQuery, basic: SequencePlan
) -> None:
    pushed = on_stacks(push_equivalence(basic, query))
    assert pushed.key == ("attr1",)
    assert pushed.absences[0].keyed
    left = shown(pushed.after)
    assert not any("attr1" in test for test in left)
    assert sum("attr2" in test for test in left) == sum("attr1" in test for test in shown(basic.after)) > 0


def test_push_other_equivalences_makes_the_key_longer(query: BoundQuery, basic: SequencePlan) -> None:
    pushed = on_stacks(push_other_equivalences(push_equivalence(basic, query), query))
    assert pushed.key == ("attr1", "attr2")
    assert shown(pushed.after) == ["x1.attr3 = '1'", "x1.attr4 < x4.attr4", "x2.attr4 < x4.attr4"]


def test_push_other_equivalences_needs_the_first(query: BoundQuery, basic: SequencePlan) -> None:
    assert push_other_equivalences(basic, query) == basic


def test_push_to_construction_tests_at_the_earliest_place_that_a_clause_names(
    query: BoundQuery, basic: SequencePlan
) -> None:
    alone = push_equivalence(push_simple_predicates(basic, query), query)
    pushed = on_stacks(push_to_construction(push_other_equivalences(alone, query), query))
    assert pushed.after == ()
    assert [shown(tests) for tests in pushed.during] == [["x1.attr4 < x4.attr4"], ["x2.attr4 < x4.attr4"], []]


def test_push_window(query: BoundQuery, basic: SequencePlan) -> None:
    assert not basic.window_in_scan
    assert not basic.window_in_construction
    pushed = on_stacks(push_window(basic, query))
    assert pushed.window_in_scan
    assert pushed.window_in_construction


@pytest.mark.parametrize("name", ["push_to_edges", "push_negation", "merge_runs", "look_up_runs"])
def test_rules_of_the_automaton_leave_stacks_alone(name: str, query: BoundQuery, basic: SequencePlan) -> None:
    assert dict(LINE_RULES)[name](basic, query) == basic


@pytest.mark.parametrize("name", [name for name, _ in LINE_RULES])
def test_any_rule_can_be_switched_off(name: str, query: BoundQuery) -> None:
    plan = plan_query(query, Settings(without=frozenset({name})))
    assert plan.rules == tuple(other for other, _ in LINE_RULES if other != name)


def test_a_plan_without_a_rule_lacks_what_the_rule_does(query: BoundQuery) -> None:
    without = plan_query(query, Settings(without=frozenset({"push_equivalence"}))).alternatives[0]
    assert without.key == ()
    assert plan_query(query).alternatives[0].key == ("attr1", "attr2")


# Which executor ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "executor"),
    [
        ("PATTERN SEQ(A a, B b)", SequencePlan),
        ("PATTERN SEQ(A a, !(C c), B b) WITHIN 5", SequencePlan),
        # A single component ignores the strategy.
        ("PATTERN A a WHERE strict_contiguity { a.x = 1 }", SequencePlan),
        ("PATTERN SEQ(A+ a[], B b)", AutomatonPlan),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { }", AutomatonPlan),
        ("PATTERN A a OUTPUT NON_OVERLAP", AutomatonPlan),
        ("PATTERN SEQ(A a, B b) OUTPUT COMPRESSED", AutomatonPlan),
        ("PATTERN SEQ(A a, B b) WITHIN 5 TIMEOUTS INTO late", AutomatonPlan),
    ],
)
def test_sequences_of_which_every_combination_counts_go_to_stacks(text: str, executor: type) -> None:
    plan = plan_query(Query(text).bind())
    assert plan.why_on_reference is None
    assert [type(alternative) for alternative in plan.alternatives] == [executor]


def test_each_alternative_has_its_own_executor() -> None:
    plan = plan_query(Query("PATTERN SEQ(A a, B* b[], C c)").bind())
    assert {type(alternative) for alternative in plan.alternatives} == {SequencePlan, AutomatonPlan}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"PATTERN {' & '.join(f'A a{n}' for n in range(61))}", "more than 60"),
        (f"PATTERN SEQ({', '.join(f'A a{n}' for n in range(61))})", "more than 60"),
    ],
)
def test_what_stays_on_the_reference_says_why(text: str, reason: str) -> None:
    assert reason in str(plan_query(Query(text).bind()).why_on_reference)


# Plans that are refused --------------------------------------------------------------------------------------------


def test_a_plan_that_forgets_a_condition_is_refused(query: BoundQuery, basic: SequencePlan) -> None:
    good = on_stacks(push_to_construction(basic, query))
    with pytest.raises(IllFormedPlan, match="nothing tests"):
        check(Plan(query, (replace(good, during=((), *good.during[1:])),)))


def test_a_key_that_is_not_the_partition_implies_nothing(query: BoundQuery, basic: SequencePlan) -> None:
    keyed = on_stacks(push_equivalence(basic, query))
    with pytest.raises(IllFormedPlan, match="nothing tests"):
        check(Plan(query, (replace(keyed, key=("attr2",)),)))


def test_a_test_before_its_events_are_bound_is_refused(query: BoundQuery, basic: SequencePlan) -> None:
    good = on_stacks(push_to_construction(basic, query))
    too_early = replace(good, during=((), (), tuple(clause for clauses in good.during for clause in clauses)))
    with pytest.raises(IllFormedPlan, match="not bound yet"):
        check(Plan(query, (too_early,)))


def test_a_mask_of_another_variable_is_refused(query: BoundQuery, basic: SequencePlan) -> None:
    pushed = on_stacks(push_simple_predicates(basic, query))
    first, *others = pushed.scans
    moved = (replace(first, mask=()), replace(others[0], mask=first.mask), *others[1:])
    with pytest.raises(IllFormedPlan, match="names another variable"):
        check(Plan(query, (replace(pushed, scans=moved),)))


def test_a_plan_has_a_list_of_tests_a_place_and_a_variable_a_place(query: BoundQuery, basic: SequencePlan) -> None:
    with pytest.raises(IllFormedPlan, match="one list of tests"):
        check(Plan(query, (replace(basic, during=()),)))
    with pytest.raises(IllFormedPlan, match="one place a variable"):
        check(Plan(query, (replace(basic, scans=basic.scans[:1] * 3),)))
    with pytest.raises(IllFormedPlan, match="negated component is no place"):
        check(Plan(query, (replace(basic, scans=(basic.absences[0].scan, *basic.scans[1:])),)))


def test_a_negated_component_stands_between_two_places(query: BoundQuery, basic: SequencePlan) -> None:
    beyond = replace(basic.absences[0], after=3)
    with pytest.raises(IllFormedPlan, match="between two places"):
        check(Plan(query, (replace(basic, absences=(beyond,)),)))


def test_a_plan_runs_something_and_the_reference_runs_whole_queries(query: BoundQuery, basic: SequencePlan) -> None:
    with pytest.raises(IllFormedPlan, match="runs something"):
        check(Plan(query))
    with pytest.raises(IllFormedPlan, match="whole queries"):
        check(Plan(query, (basic, ReferencePlan("why not"))))

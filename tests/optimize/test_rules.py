"""Each rule of the optimiser, before and after, on SASE's Q3 (§3.1 and Figure 6); and plans that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kleene.optimize.planner import basic_plan, plan_query
from kleene.optimize.push_equivalence import push_equivalence
from kleene.optimize.push_simple_predicates import push_simple_predicates
from kleene.optimize.push_to_construction import push_to_construction
from kleene.optimize.push_window import push_window
from kleene.pattern import Query
from kleene.pattern.expressions import variables
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check
from kleene.plan.physical import IllFormedPlan, Plan, SequencePlan
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
    return basic_plan(query, query.alternatives[0])


def named(plan: SequencePlan) -> list[list[set[str]]]:
    return [[variables(clause) for clause in clauses] for clauses in plan.during]


def test_the_basic_plan_tests_everything_after_construction(query: BoundQuery, basic: SequencePlan) -> None:
    assert [scan.component.variable for scan in basic.scans] == ["x1", "x2", "x4"]
    assert basic.after == query.conditions.positive
    assert basic.key == ()
    assert [(a.scan.component.variable, a.after, a.keyed) for a in basic.absences] == [("x3", 1, False)]


def test_push_simple_predicates(basic: SequencePlan) -> None:
    pushed = push_simple_predicates(basic)
    assert [len(scan.mask) for scan in pushed.scans] == [1, 0, 0]
    assert len(pushed.after) == len(basic.after) - 1


def test_push_equivalence(query: BoundQuery, basic: SequencePlan) -> None:
    pushed = push_equivalence(basic, query.partition)
    assert pushed.key == ("attr1", "attr2")
    assert pushed.absences[0].keyed
    assert [variables(clause) for clause in pushed.after] == [{"x1"}, {"x1", "x4"}, {"x2", "x4"}]


def test_push_to_construction_tests_at_the_earliest_place_that_a_clause_names(basic: SequencePlan) -> None:
    pushed = push_to_construction(push_simple_predicates(basic))
    assert pushed.after == ()
    assert {"x2", "x4"} in named(pushed)[1]
    assert {"x1", "x4"} in named(pushed)[0]
    assert named(pushed)[2] == []


def test_push_window(basic: SequencePlan) -> None:
    assert not basic.window_in_scan
    assert push_window(basic).window_in_scan
    assert push_window(basic).window_in_construction


def test_rules_can_be_switched_off(query: BoundQuery) -> None:
    plan = plan_query(query, Settings(without=frozenset({"push_equivalence"})))
    assert "push_equivalence" not in plan.rules
    assert plan.alternatives[0].key == ()
    assert plan_query(query).alternatives[0].key == ("attr1", "attr2")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PATTERN SEQ(A+ a[], B b)", "Kleene"),
        ("PATTERN A & B", "not a sequence"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { }", "skip_till_next_match"),
        ("PATTERN A a OUTPUT NON_OVERLAP", "OUTPUT ALL"),
    ],
)
def test_what_stays_on_the_reference_says_why(text: str, reason: str) -> None:
    fallback = plan_query(Query(text).bind()).fallback
    assert fallback is not None
    assert reason in fallback.reason


def test_a_single_component_ignores_the_strategy() -> None:
    assert plan_query(Query("PATTERN A a WHERE strict_contiguity { a.x = 1 }").bind()).fallback is None


def test_ill_formed_plans_are_refused(query: BoundQuery, basic: SequencePlan) -> None:
    good = push_to_construction(basic)
    forgotten = replace(good, during=((), *good.during[1:]))
    with pytest.raises(IllFormedPlan, match="nothing tests"):
        check(Plan(query, (forgotten,)))
    too_early = replace(good, during=((), (), tuple(clause for clauses in good.during for clause in clauses)))
    with pytest.raises(IllFormedPlan, match="not bound yet"):
        check(Plan(query, (too_early,)))
    with pytest.raises(IllFormedPlan, match="one list of tests"):
        check(Plan(query, (replace(good, during=()),)))
    with pytest.raises(IllFormedPlan, match="runs something"):
        check(Plan(query))

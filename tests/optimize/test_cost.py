"""The cost model: counts that it predicts against events that come at random, and the figures of ZStream §6."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from math import exp

import pytest
from tests.optimize.trees.printed import tree

from kleene.optimize import fingerprints
from kleene.optimize.cost import Weights, cost_of
from kleene.optimize.cost_lines import LineWeights, cost_of_line
from kleene.optimize.planner import plan_query
from kleene.optimize.statistics import Statistics
from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.options import options
from kleene.pattern import Query
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Costed
from kleene.plan.explain_trees import print_tree
from kleene.plan.physical import AutomatonPlan, Scan, SequencePlan
from kleene.plan.trees import JoinNode, NegNode, walk

RATES = {"A": 6.0, "B": 4.0, "C": 3.0, "D": 2.0}


def bound(text: str) -> BoundQuery:
    return Query(text).bind()


def rates(query: BoundQuery, given: Mapping[str, float]) -> dict[str, float]:
    return {fingerprints.of_scan(Scan(c)): given[c.types[0]] for c in query.components if c.types[0] in given}


def measured(query: BoundQuery, given: Mapping[str, float], *shares: float) -> Statistics:
    """Rates by type; selectivities of the positive clauses, in their order."""
    known = {component.variable: component for component in query.components}
    clauses = query.conditions.positive[: len(shares)]
    by_name = {fingerprints.of_clause(c, known): share for c, share in zip(clauses, shares, strict=True)}
    return Statistics(rates(query, given), by_name)


def made(cost: Costed) -> float:
    return cost.nodes[-1].records


# Counts ------------------------------------------------------------------------------------------------------------

WINDOWS = 4000


@pytest.fixture(scope="module")
def arrivals() -> dict[str, list[float]]:
    """Times of events that come evenly; a window is 1 long."""
    chance = random.Random(7)
    return {
        name: sorted(chance.uniform(0, WINDOWS) for _ in range(int(rate * WINDOWS))) for name, rate in RATES.items()
    }


def between(times: list[float], after: float, before: float) -> list[float]:
    return times[bisect_right(times, after) : bisect_left(times, before)]


def test_a_sequence_makes_as_many_records_as_random_events_do(arrivals: dict[str, list[float]]) -> None:
    query = bound("PATTERN A a ; B b ; C c WITHIN 1")
    statistics = measured(query, RATES)
    expected = RATES["A"] * RATES["B"] * RATES["C"] / 2
    count = sum(len(between(arrivals["A"], c - 1, b)) for c in arrivals["C"] for b in between(arrivals["B"], c - 1, c))
    assert count / WINDOWS == pytest.approx(expected, rel=0.03)
    for text in ("SEQ(SEQ(a, b), c)", "SEQ(a, SEQ(b, c))"):
        assert made(cost_of(query, tree(query, text), statistics)) == pytest.approx(expected)


def test_a_join_tries_the_left_records_that_lie_before_the_right_one(arrivals: dict[str, list[float]]) -> None:
    query = bound("PATTERN A a ; B b ; C c WITHIN 1")
    tried = cost_of(query, tree(query, "SEQ(a, SEQ(b, c))"), measured(query, RATES)).nodes[-1].tried
    count = sum(len(between(arrivals["A"], c - 1, b)) for c in arrivals["C"] for b in between(arrivals["B"], c - 1, c))
    assert count / WINDOWS == pytest.approx(tried, rel=0.03)


def test_a_conjunction_makes_records_in_every_order(arrivals: dict[str, list[float]]) -> None:
    query = bound("PATTERN A a & B b & C c WITHIN 1")
    # Each of the 3! orders is a sequence of its own.
    expected = 6 * RATES["A"] * RATES["B"] * RATES["C"] / 2
    [logical] = options(query)
    for plan in all_trees(query, logical):
        assert made(cost_of(query, plan, measured(query, RATES))) == pytest.approx(expected)
    pairs = sum(len(between(arrivals["A"], b - 1, b + 1)) for b in arrivals["B"])
    two = bound("PATTERN A a & B b WITHIN 1")
    assert made(cost_of(two, tree(two, "CONJ(a, b)"), measured(two, RATES))) == pytest.approx(pairs / WINDOWS, rel=0.03)


def test_a_sequence_in_a_conjunction(arrivals: dict[str, list[float]]) -> None:
    query = bound("PATTERN (A a ; B b) & C c WITHIN 1")
    count = 0
    for b in arrivals["B"]:
        for a in between(arrivals["A"], b - 1, b):
            count += len(between(arrivals["C"], b - 1, a + 1))
    found = cost_of(query, tree(query, "CONJ(SEQ(a, b), c)"), measured(query, RATES))
    assert made(found) == pytest.approx(count / WINDOWS, rel=0.03)


def test_negation_lets_those_pass_in_whose_gap_nothing_fell(arrivals: dict[str, list[float]]) -> None:
    query = bound("PATTERN A a ; !(D d) ; C c WITHIN 1")
    count = 0
    for c in arrivals["C"]:
        last = ([c - 1, *between(arrivals["D"], c - 1, c)])[-1]
        count += len(between(arrivals["A"], last, c))
    found = made(cost_of(query, tree(query, "SEQ(a, NSEQ(!d, c))"), measured(query, RATES)))
    assert found == pytest.approx(RATES["A"] * RATES["C"] * (1 - exp(-RATES["D"])) / RATES["D"])
    assert found == pytest.approx(count / WINDOWS, rel=0.03)


def test_a_closure_goes_through_the_members_in_its_gap(arrivals: dict[str, list[float]]) -> None:
    query = bound("PATTERN A a ; B+ ; C c WITHIN 1")
    count = sum(len(between(arrivals["B"], a, c)) for c in arrivals["C"] for a in between(arrivals["A"], c - 1, c))
    group = cost_of(query, tree(query, "KSEQ(SEQ(a, c), B)"), measured(query, RATES)).nodes[-1]
    assert group.tried == pytest.approx(count / WINDOWS, rel=0.03)
    assert group.records == pytest.approx(RATES["A"] * RATES["C"])


def test_lists_of_a_kleene_component_are_all_counted() -> None:
    query = bound("PATTERN A{1,3} a[] WITHIN 1")
    # Of each length, prod(CARD) / (n - 1)!.
    assert made(cost_of(query, tree(query, "a[]"), measured(query, {"A": 4.0}))) == pytest.approx(4 + 16 + 64 / 2)
    endless = bound("PATTERN A+ a[] WITHIN 1")
    assert made(cost_of(endless, tree(endless, "a[]"), measured(endless, {"A": 4.0}))) == pytest.approx(4 * exp(4))
    assert made(cost_of(endless, tree(endless, "a[]"), measured(endless, {"A": 1e9}))) <= 1e100


def test_a_key_divides_what_is_tried_and_made_at_every_join() -> None:
    plain, keyed = bound("PATTERN A a ; B b ; C c WITHIN 1"), bound("PATTERN A a ; B b ; C c WHERE [id] WITHIN 1")
    without = cost_of(plain, tree(plain, "SEQ(SEQ(a, b), c)"), measured(plain, RATES)).nodes
    by_key = Statistics(rates(keyed, RATES), keys=5.0)
    within = cost_of(keyed, tree(keyed, "SEQ(SEQ(a, b), c)"), by_key).nodes
    for before, after, factor in zip(without, within, (1, 1, 5, 1, 25), strict=True):
        assert after.tried == pytest.approx(before.tried / factor)
        assert after.records == pytest.approx(before.records / factor)


# Formula 1 ---------------------------------------------------------------------------------------------------------


def test_the_cost_of_a_join_is_formula_1() -> None:
    query = bound("PATTERN A a ; B b WHERE a.x < b.x AND a.y != b.y WITHIN 1")
    weights = Weights(input=2.0, predicate=0.5, output=3.0, event=4.0)
    found = cost_of(query, tree(query, "SEQ(a, b)"), measured(query, {"A": 10.0, "B": 5.0}, 0.5, 0.1), weights)
    tried, out = 10 * 5, 10 * 5 * 0.5 * 0.1
    assert found.nodes[-1].cost == pytest.approx(2 * tried + 2 * 0.5 * 2 * tried + 3 * out)
    assert found.total == pytest.approx(found.nodes[-1].cost + 4 * 10 + 4 * 5)


def test_inner_records_are_kept_and_those_of_the_root_are_not() -> None:
    query = bound("PATTERN A a ; B b ; C c WITHIN 1")
    plan, statistics = tree(query, "SEQ(SEQ(a, b), c)"), measured(query, RATES)
    kept, not_kept = (cost_of(query, plan, statistics, Weights(record=cost)).total for cost in (1.0, 0.0))
    extra = kept - not_kept
    assert extra == pytest.approx(RATES["A"] * RATES["B"])


def test_nseq_stops_the_join_early_and_neg_looks_at_what_it_made() -> None:
    query = bound("PATTERN A a ; !(D d) ; C c WITHIN 1")
    [logical] = options(query)
    statistics = measured(query, RATES)
    survive = (1 - exp(-RATES["D"])) / RATES["D"]
    pairs = RATES["A"] * RATES["C"]
    costs = {}
    for plan in all_trees(query, logical):
        found = cost_of(query, plan, statistics, Weights(lookup=3.0)).nodes
        above = [
            node for node, each in zip(found, walk(plan.root), strict=True) if isinstance(each, JoinNode | NegNode)
        ]
        costs[print_tree(plan.root)] = sum(node.cost for node in above)
        assert found[-1].records == pytest.approx(pairs * survive)
    assert costs["SEQ(a, NSEQ(!d, c))"] == pytest.approx(3 * RATES["C"] + 2 * pairs * survive)
    # A bound beside the left side forbids pairs, but stops no loop.
    assert costs["SEQ(NSEQ(a, !d), c)"] == pytest.approx(3 * RATES["A"] + pairs + pairs * survive)
    assert costs["NEG(SEQ(a, c), !d)"] == pytest.approx(2 * pairs + 3 * pairs + pairs * survive)


def test_records_that_were_counted_go_before_the_estimate() -> None:
    query = bound("PATTERN A a ; B b ; C c WITHIN 1")
    plan = tree(query, "SEQ(SEQ(a, b), c)")
    known = {component.variable: component for component in query.components}
    assert isinstance(plan.root, JoinNode)
    counted = {fingerprints.of_node(plan.root.left, known): 240.0}
    estimate = cost_of(query, plan, measured(query, RATES))
    believed = cost_of(query, plan, Statistics(rates(query, RATES), cardinalities=counted))
    assert believed.nodes[2].records == 240.0
    assert made(believed) == pytest.approx(10 * made(estimate))
    # The other tree has no such node.
    other = tree(query, "SEQ(a, SEQ(b, c))")
    assert made(cost_of(query, other, Statistics(rates(query, RATES), cardinalities=counted))) == made(
        cost_of(query, other, measured(query, RATES))
    )


# ZStream §6 --------------------------------------------------------------------------------------------------------

LEFT_DEEP = "SEQ(SEQ(SEQ(a, b), c), d)"
RIGHT_DEEP = "SEQ(a, SEQ(b, SEQ(c, d)))"
BUSHY = "SEQ(SEQ(a, b), SEQ(c, d))"
INNER = "SEQ(a, SEQ(SEQ(b, c), d))"
QUERY_6 = "PATTERN A a; B b; C c; D d WHERE c.price > b.price AND c.price > d.price WITHIN 100"


def query_6(given: tuple[float, ...], *shares: float) -> dict[str, float]:
    query = bound(QUERY_6)
    statistics = measured(query, dict(zip("ABCD", given, strict=True)), *shares)
    plans = (LEFT_DEEP, RIGHT_DEEP, BUSHY, INNER)
    return {text: cost_of(query, tree(query, text), statistics).total for text in plans}


def test_figure_12_a_rare_first_class_is_joined_first() -> None:
    found = query_6((0.3, 33.0, 33.0, 33.0), 1.0, 1.0)
    assert max(found[LEFT_DEEP], found[BUSHY]) < min(found[RIGHT_DEEP], found[INNER])


def test_figure_12_the_plan_that_tests_the_selective_predicate_first_does_best() -> None:
    inner = query_6((25.0, 25.0, 25.0, 25.0), 1 / 50, 1.0)
    assert min(inner, key=inner.__getitem__) == INNER
    assert max(inner, key=inner.__getitem__) == BUSHY
    right = query_6((25.0, 25.0, 25.0, 25.0), 1.0, 1 / 50)
    assert min(right, key=right.__getitem__) == RIGHT_DEEP
    assert max(right, key=right.__getitem__) == LEFT_DEEP


def test_figure_8_the_gap_grows_with_the_selectivity_of_the_first_join() -> None:
    query = bound("PATTERN A a; B b; C c WHERE a.price > b.price WITHIN 200")
    gaps = []
    for share in (1 / 2, 1 / 8, 1 / 32):
        statistics = measured(query, {"A": 66.0, "B": 66.0, "C": 66.0}, share)
        plans = (tree(query, text) for text in ("SEQ(SEQ(a, b), c)", "SEQ(a, SEQ(b, c))"))
        left, right = (cost_of(query, plan, statistics).total for plan in plans)
        gaps.append(right / left)
    assert gaps == sorted(gaps)
    assert gaps[-1] > 5


# Lines -------------------------------------------------------------------------------------------------------------


def line(text: str, kind: type[SequencePlan | AutomatonPlan]) -> tuple[BoundQuery, SequencePlan | AutomatonPlan]:
    query = bound(text)
    plan = plan_query(query).alternatives[0]
    assert isinstance(plan, kind)
    return query, plan


def test_stacks_cost_what_a_right_deep_tree_costs_without_its_records() -> None:
    """§6.1.1: the NFA evaluates in the order of the right-deep plan."""
    query, plan = line("PATTERN A a; B b; C c; D d WHERE a.x < b.x AND c.x < d.x WITHIN 9", SequencePlan)
    statistics = measured(query, RATES, 0.5, 0.25)
    right_deep = cost_of(query, tree(query, RIGHT_DEEP), statistics, Weights(output=0.0)).total
    visits = cost_of_line(query, plan, statistics, LineWeights(output=0.0))
    # An event of the last place is visited once more than it is scanned.
    assert visits == pytest.approx(right_deep + RATES["D"])


def test_conditions_that_wait_until_the_end_cost_more() -> None:
    query, plan = line("PATTERN A a; B b; C c WHERE b.x < c.x WITHIN 9", SequencePlan)
    assert isinstance(plan, SequencePlan)
    late = SequencePlan(plan.scans, during=((), (), ()), after=query.conditions.positive)
    statistics = measured(query, RATES, 0.1)
    assert cost_of_line(query, late, statistics) > cost_of_line(query, plan, statistics)


def test_runs_are_offered_every_event() -> None:
    query, plan = line("PATTERN A+ a[] ; B b WITHIN 9", AutomatonPlan)
    assert isinstance(plan, AutomatonPlan)
    low, high = (cost_of_line(query, plan, measured(query, {"A": rate, "B": 2.0})) for rate in (2.0, 4.0))
    # Twice the events of a list are many more lists.
    assert high > 4 * low


def test_a_run_that_skips_to_the_next_match_does_not_fork() -> None:
    costs = []
    for strategy in ("skip_till_next_match", "skip_till_any_match"):
        query, plan = line(
            f"PATTERN SEQ(A+ a[], B b) WHERE {strategy}(a[], b) {{ a[1].x > 1 }} WITHIN 9", AutomatonPlan
        )
        costs.append(cost_of_line(query, plan, measured(query, {"A": 10.0, "B": 2.0})))
    assert costs[0] < costs[1] / 10


def test_a_key_keeps_runs_apart() -> None:
    query, plan = line("PATTERN A+ a[] ; B b WHERE [id] WITHIN 9", AutomatonPlan)
    one, many = (cost_of_line(query, plan, Statistics(rates(query, RATES), keys=keys)) for keys in (1.0, 10.0))
    assert many < one / 10


def test_a_tree_without_joins_has_a_cost() -> None:
    query = bound("PATTERN A a WITHIN 9")
    found = cost_of(query, tree(query, "a"), measured(query, RATES), Weights(event=3.0))
    assert found.total == pytest.approx(3 * RATES["A"])


def test_a_disjunction_costs_its_parts_and_a_merge() -> None:
    query = bound("PATTERN A a ; (B b | C c) WITHIN 9")
    found = cost_of(query, tree(query, "SEQ(a, DISJ(b, c))"), measured(query, RATES), Weights())
    union = found.nodes[3]
    assert (union.tried, union.records, union.cost) == (7.0, 7.0, 14.0)
    assert made(found) == pytest.approx(6 * 7)

"""The search for an order against every tree that can be built, costed one by one; and how long it takes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from math import inf

import pytest
from tests.optimize.trees.printed import tree
from tests.timing import quickest

from kleene.errors import QueryError
from kleene.optimize import fingerprints
from kleene.optimize.cost import Weights, cost_of
from kleene.optimize.order import best
from kleene.optimize.planner import plan_query
from kleene.optimize.statistics import Statistics
from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.options import options
from kleene.pattern import Query
from kleene.pattern.nodes import components
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import Schema
from kleene.plan.explain import way
from kleene.plan.explain_trees import print_tree
from kleene.plan.physical import Scan
from kleene.plan.settings import ExecutorKind, Settings
from kleene.plan.trees import Alternative, JoinNode, TreePlan, walk
from kleene.testing.generators import random_case, schema_of

SCHEMA = Schema(
    types={
        name: {"x": "int", "y": "int", "id": "int"} for name in [*"ABCDEFGH", *(f"T{number}" for number in range(20))]
    }
)
WEIGHTS = Weights(record=0.5)

PATTERNS = {
    "sequence": "A a ; B b ; C c ; D d ; E e WHERE a.x = c.x AND b.y < d.y AND a.x = e.x AND c.y != d.y",
    "own conditions": "A a ; B b ; C c ; D d WHERE a.x = 3 AND b.y > 4 AND b.y < d.y AND b.x + c.x = d.x",
    "key": "A a ; B b ; C c ; D d WHERE [id] AND a.x = d.x AND b.y < c.y",
    "six": "A a; B b; C c; D d; E e; F f WHERE a.x = f.x AND b.x < c.x AND c.y = d.y AND d.x < e.x",
    "conjunction": "A a & B b & C c & D d WHERE a.x = c.x AND b.y < d.y AND a.y + b.y = c.y",
    "nested conjunction": "A a ; (B b & C c & D d) ; E e WHERE a.x = c.x AND b.y < d.y AND c.x = e.x",
    "disjunction": "A a ; (B b | C c ; D d) ; E e WHERE a.x = b.x AND c.y < d.y AND b.x = e.x AND a.y < e.y",
    "disjunction alone": "A a ; (B b | C c) WHERE b.x < c.x AND c.y IS NOT NULL AND b.x = 1",
    "negation": "A a ; !(B b) ; C c ; D d WHERE b.x = c.x AND a.y < d.y",
    "negations": "A a ; !(B b) ; C c ; !(D d) ; E e WHERE b.x = a.x AND d.y < a.y AND c.x = e.x",
    "two in a gap": "A a ; !(B b) ; !(C c) ; D d ; E e WHERE b.x = a.x AND c.y = e.y",
    "negated ends": "!(A a) ; B b ; C c ; D d ; !(E e) WHERE a.x = c.x AND e.y < b.y AND b.x = d.x",
    "closure": "A a ; B+ ; C c ; D d WHERE B.x = a.x AND sum(B.y) < c.y AND a.y = d.y",
    "counted closure": "A a ; B^3 ; C c ; D d WHERE B.x = c.x AND sum(B.y) < d.y",
    "late closure": "A a ; B^2 ; C c ; D d WHERE B.x = d.x AND a.y = d.y",
    "closure and negation": "A a ; B^2 ; C c ; !(D d) ; E e WHERE B.x = a.x AND d.y = c.y AND sum(B.y) < e.y",
    "two closures": "A a ; B+ ; C c ; D^2 ; E e WHERE sum(B.x) < sum(D.x) AND D.y < e.y",
    "closure at the end": "A a ; C c ; B+ WHERE B.x = a.x AND sum(B.y) < c.y",
    "list": "A a ; B+ b[] ; C c ; D d WHERE b[1].x = a.x AND b[i].y > b[i-1].y AND c.y = d.y",
    "negation in a conjunction": "(A a ; !(B b) ; C c) & D d & E e WHERE b.x = d.x AND a.y = e.y",
    "pushed in a conjunction": "(A a ; !(B b) ; C c ; F f) & D d WHERE b.x = f.x AND a.y = d.y",
    "closure in a conjunction": "(A a ; B+ ; C c) & D d & E e WHERE B.x = a.x AND a.y = e.y",
    "alone": "A a WHERE a.x = 3",
    "alone with negation": "A a ; !(B b) WHERE a.x = b.x",
    "constant": "A a ; B b ; C c WHERE 1 = 2 AND a.x = c.x",
}


def bound(text: str) -> BoundQuery:
    return Query(text).bind(SCHEMA)


def random_statistics(
    query: BoundQuery, logical: Logical, chance: random.Random, *, counted: bool = False
) -> Statistics:
    """What one might have measured: rates and selectivities that differ by orders of magnitude."""
    every = {component.variable: component for component in components(logical.pattern)}
    rates = {fingerprints.of_scan(Scan(c)): 10 ** chance.uniform(-1, 2) for c in every.values()}
    clauses = [
        *logical.positive,
        *(c for listed in logical.negative.values() for c in listed),
        *(c for listed in logical.members.values() for c in listed),
    ]
    selectivities = {fingerprints.of_clause(c, every): 10 ** chance.uniform(-3, 0) for c in clauses}
    cardinalities = {}
    if counted:
        for plan in islice(all_trees(query, logical), 5):
            for node in walk(plan.root):
                if chance.random() < 0.3:
                    cardinalities[fingerprints.of_node(node, every, plan.key)] = 10 ** chance.uniform(-1, 4)
    return Statistics(rates, selectivities, cardinalities, keys=chance.choice([1.0, 7.0]))


def cost(query: BoundQuery, plan: TreePlan, statistics: Statistics) -> float:
    return cost_of(query, plan, statistics, WEIGHTS).total


@pytest.mark.parametrize("name", PATTERNS)
def test_no_tree_is_cheaper_than_the_one_that_is_found(name: str) -> None:
    query = bound(f"PATTERN {PATTERNS[name]} WITHIN 9")
    chance = random.Random(name)
    for logical in options(query):
        plans = list(all_trees(query, logical))
        for _ in range(5):
            statistics = random_statistics(query, logical, chance)
            found = best(query, logical, statistics, WEIGHTS)
            cheapest = min(cost(query, plan, statistics) for plan in plans)
            assert found.cost == pytest.approx(cheapest, rel=1e-9)
            assert found.plan in plans
            assert cost(query, found.plan, statistics) == pytest.approx(found.cost, rel=1e-9)


@pytest.mark.parametrize("name", PATTERNS)
def test_the_runner_up_is_another_tree_that_costs_what_it_says(name: str) -> None:
    query = bound(f"PATTERN {PATTERNS[name]} WITHIN 9")
    chance = random.Random(name)
    for logical in options(query):
        plans = list(all_trees(query, logical))
        statistics = random_statistics(query, logical, chance)
        found = best(query, logical, statistics, WEIGHTS)
        assert (found.runner_up_cost == inf) == (found.runner_up is None) == (len(plans) == 1)
        if found.runner_up is not None:
            assert found.runner_up in plans
            assert found.runner_up != found.plan
            assert found.runner_up_cost >= found.cost
            again = cost(query, found.runner_up, statistics)
            assert again == pytest.approx(found.runner_up_cost, rel=1e-9)


@pytest.mark.parametrize("name", PATTERNS)
def test_counted_records_are_believed_by_the_search_as_by_the_cost(name: str) -> None:
    query = bound(f"PATTERN {PATTERNS[name]} WITHIN 9")
    chance = random.Random(name)
    for logical in options(query):
        for _ in range(5):
            statistics = random_statistics(query, logical, chance, counted=True)
            found = best(query, logical, statistics, WEIGHTS)
            assert cost(query, found.plan, statistics) == pytest.approx(found.cost, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("stratum", ["sequence", "conjunction", "disjunction", "nested", "closure", "negation"])
def test_no_tree_of_a_random_pattern_is_cheaper(stratum: str) -> None:
    compared = 0
    for number in range(60):
        chance = random.Random(f"order {stratum} {number}")
        case = random_case(chance, stratum)
        try:
            query = Query(case.query_text, params=case.params).bind(Schema(**schema_of(case)))
        except QueryError:
            continue
        for logical in options(query):
            plans = list(islice(all_trees(query, logical), 201))
            if len(plans) > 200:
                continue
            statistics = random_statistics(query, logical, chance)
            found = best(query, logical, statistics, WEIGHTS)
            cheapest = min(cost(query, plan, statistics) for plan in plans)
            assert found.cost == pytest.approx(cheapest, rel=1e-9)
            counted = random_statistics(query, logical, chance, counted=True)
            found = best(query, logical, counted, WEIGHTS)
            assert cost(query, found.plan, counted) == pytest.approx(found.cost, rel=1e-9)
            compared += len(plans) > 1
    assert compared > 5


def test_a_statistic_that_changes_changes_the_plan() -> None:
    """ZStream §6.2, Query 6: the predicate that is selective is tested first."""
    query = bound("PATTERN A a; B b; C c; D d WHERE c.x > b.x AND c.x > d.x WITHIN 100")
    [logical] = options(query)
    known = {component.variable: component for component in query.components}
    first, second = (fingerprints.of_clause(clause, known) for clause in query.conditions.positive)
    rare = {fingerprints.of_scan(Scan(query.components[0])): 1.0}

    def found(statistics: Statistics) -> str:
        return print_tree(best(query, logical, statistics).plan.root)

    assert found(Statistics(selectivities={first: 0.02, second: 1.0})) == "SEQ(a, SEQ(SEQ(b, c), d))"
    assert found(Statistics(selectivities={first: 1.0, second: 0.02})) == "SEQ(a, SEQ(b, SEQ(c, d)))"
    likely = ("SEQ(SEQ(SEQ(a, b), c), d)", "SEQ(SEQ(a, b), SEQ(c, d))")
    assert found(Statistics(rare, {first: 1.0, second: 1.0})) in likely


def test_negation_goes_to_the_cheaper_side() -> None:
    query = bound("PATTERN A a ; !(B b) ; C c WITHIN 9")
    [logical] = options(query)
    a, b, c = (fingerprints.of_scan(Scan(component)) for component in query.components)
    right, left = "SEQ(a, NSEQ(!b, c))", "SEQ(NSEQ(a, !b), c)"
    for rates, text in (({a: 100.0, b: 50.0, c: 2.0}, right), ({a: 2.0, b: 50.0, c: 100.0}, left)):
        found = best(query, logical, Statistics(rates))
        assert found.plan == tree(query, text)
        # The same join with the negation elsewhere.
        assert found.runner_up is not None
        assert print_tree(found.runner_up.root) != text


def test_with_many_negations_each_still_goes_where_it_is_cheaper() -> None:
    """More than can be tried in every combination: as good as the best that differs in one of them."""
    names = "PATTERN A a; !(B b); C c; !(B d); D e; !(B f); E g; !(B h); F i; !(B j); G k WITHIN 9"
    query = bound(names)
    [logical] = options(query)
    found = best(query, logical, Statistics(), WEIGHTS)
    assert cost(query, found.plan, Statistics()) == pytest.approx(found.cost, rel=1e-9)
    on_top = next(plan for plan in all_trees(query, logical) if print_tree(plan.root).startswith("NEG(" * 5))
    assert found.cost < cost(query, on_top, Statistics())
    pushed = [absence for node in walk(found.plan.root) if isinstance(node, JoinNode) for _, absence in node.pushed]
    assert {absence.scan.component.variable for absence in pushed} >= {*"dfhj"}


def test_a_long_conjunction_is_joined_in_the_order_of_its_text() -> None:
    query = bound("PATTERN " + " & ".join(f"T{number} v{number}" for number in range(12)) + " WITHIN 9")
    [logical] = options(query)
    statistics = random_statistics(query, logical, random.Random(5))
    found = best(query, logical, statistics, WEIGHTS)
    assert cost(query, found.plan, statistics) == pytest.approx(found.cost, rel=1e-9)


def test_lists_of_all_kinds_do_not_break_the_search() -> None:
    query = bound("PATTERN A+ a[] ; B+ b[] ; C+ c[] ; D d WITHIN 9")
    [logical] = options(query)
    found = best(query, logical, Statistics({fingerprints.of_scan(Scan(c)): 1e6 for c in query.components}))
    assert found.cost < inf


def test_twenty_classes_and_thirty_conditions_take_less_than_ten_milliseconds() -> None:
    """§5.2.3 says so of 20 classes; three times that on a machine which does other things as well."""
    chance = random.Random(3)
    said = []
    for _ in range(30):
        one, other = sorted(chance.sample(range(20), 2))
        said.append(f"v{one}.x {chance.choice(['=', '<', '!='])} v{other}.{chance.choice('xy')}")
    parts = " ; ".join(f"T{number} v{number}" for number in range(20))
    query = bound(f"PATTERN {parts} WHERE {' AND '.join(said)} WITHIN 9")
    [logical] = options(query)
    # Where nothing was measured all classes are alike, and no side of a join is much cheaper than another.
    for name, statistics in (("random", random_statistics(query, logical, chance)), ("no", Statistics())):
        seconds = quickest(partial(best, query, logical, statistics))
        print(f"20 classes, 30 conditions, {name} statistics: {seconds * 1000:.1f} ms")
        assert seconds < 0.030


# What is shown beside the chosen one ---------------------------------------------------------------------------------


def next_best(query: BoundQuery, settings: Settings) -> Iterator[tuple[Alternative, Alternative | None]]:
    """Each alternative of the plan that is chosen, and the next best way to run it."""
    plan = plan_query(query, settings, Statistics())
    return zip(plan.alternatives, (costed.runner_up for costed in plan.costs), strict=False)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        # On top of its only join a group stands where it stands in it: there is no other tree.
        ("(A a & (B b ; C c)) ; D+ f ; (C d | B e) WHERE a.x = f.LEN", None),
        # One of two shapes in which `c` stands on top is the chosen tree.
        (
            "A a ; (!(C d) & !(B c)) ; B b WHERE (c.y <= c.x OR c.y < a.y) AND b.x >= a.x",
            "SEQ(NSEQ(a, !c), NSEQ(!d, b))",
        ),
    ],
)
def test_the_next_best_tree_is_another_one(text: str, other: str | None) -> None:
    query = bound(f"PATTERN {text} WITHIN 9")
    ((chosen, runner_up),) = next_best(query, Settings(executor=ExecutorKind.TREES))
    assert chosen != runner_up
    assert (None if runner_up is None else way(runner_up)) == other


@pytest.mark.parametrize("executor", [None, ExecutorKind.TREES])
def test_no_plan_is_its_own_runner_up(executor: ExecutorKind | None) -> None:
    """As a reader sees it: two plans that are told apart only by their conditions would look the same."""
    compared = 0
    for stratum in ("sequence", "negation", "conjunction", "nested", "closure", "optional"):
        for number in range(25):
            case = random_case(random.Random(f"next best {number}"), stratum)
            try:
                query = Query(case.query_text, params=case.params).bind(Schema(**schema_of(case)))
            except QueryError:
                continue
            for chosen, runner_up in next_best(query, Settings(executor=executor)):
                if runner_up is not None:
                    compared += 1
                    assert way(chosen) != way(runner_up), case.query_text
    assert compared > 50

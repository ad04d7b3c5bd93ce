"""The cheapest way to run a query (ZStream §5): a tree for each part of its union, or the executors of lines."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from kleene.optimize.cost import cost_of
from kleene.optimize.cost_lines import cost_of_line
from kleene.optimize.order import best
from kleene.optimize.rewriting import rewrite
from kleene.optimize.rules import ORDER_BY_COST, PUSH_EQUIVALENCE
from kleene.optimize.statistics import Statistics
from kleene.optimize.trees.all_trees import default_tree
from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.options import options
from kleene.pattern.links import key_of
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Costed
from kleene.plan.physical import AutomatonPlan, Plan, SequencePlan
from kleene.plan.settings import Settings
from kleene.plan.trees import Alternative, TreePlan


@dataclass(frozen=True, slots=True)
class Chosen:
    """The tree plan chosen for one part of a query's union, with its costs."""

    plan: TreePlan
    costs: Costed


def logicals(query: BoundQuery, without: Collection[str] = frozenset()) -> tuple[tuple[Logical, ...], tuple[str, ...]]:
    """The parts of a query's union after rewriting, and the names of the rewrites that changed something."""
    parts: list[Logical] = []
    used: dict[str, None] = {}
    for option in options(query):
        logical, names = rewrite(option, query, without)
        parts.append(logical)
        used.update(dict.fromkeys(names))
    return tuple(parts), tuple(used)


def chosen_tree(query: BoundQuery, logical: Logical, statistics: Statistics, settings: Settings) -> Chosen:
    """The tree that costs least (Algorithm 5); the default tree, if the rule is off."""
    key = key_of(query) if settings.uses(PUSH_EQUIVALENCE) else ()
    if not settings.uses(ORDER_BY_COST):
        plan = default_tree(query, logical, key)
        return Chosen(plan, cost_of(query, plan, statistics))
    search_result = best(query, logical, statistics, key=key)
    costs = cost_of(query, search_result.plan, statistics)
    if search_result.runner_up is not None:
        costs = replace(costs, runner_up=search_result.runner_up, runner_up_cost=search_result.runner_up_cost)
    return Chosen(search_result.plan, costs)


def trees(query: BoundQuery, settings: Settings, statistics: Statistics) -> Plan:
    """The plan that runs every part of a query's union as a tree."""
    parts, rewrites = logicals(query, settings.without)
    chosen_trees = [chosen_tree(query, logical, statistics, settings) for logical in parts]
    keyed = any(each.plan.key for each in chosen_trees)
    rules = [
        *rewrites,
        *([PUSH_EQUIVALENCE] if keyed else []),
        *([ORDER_BY_COST] if settings.uses(ORDER_BY_COST) else []),
    ]
    return Plan(
        query,
        tuple(each.plan for each in chosen_trees),
        rules=tuple(rules),
        costs=tuple(each.costs for each in chosen_trees),
    )


def cheapest(lines: list[Plan], as_trees: Plan | None, statistics: Statistics) -> Plan:
    """The plan that costs least, with the cost of the next best; of plans that cost the same, the first."""
    costed_lines = [(plan, [_cost(plan.query, each, statistics) for each in plan.alternatives]) for plan in lines]
    ranked = [(sum(costs), plan, [Costed(cost) for cost in costs]) for plan, costs in costed_lines]
    if as_trees is not None:
        ranked.append((sum(cost.total for cost in as_trees.costs), as_trees, list(as_trees.costs)))
    ranked.sort(key=lambda each: each[0])
    _, plan, costs = ranked[0]
    # A line may be listed twice with the same plan: where stacks cannot run it, its usual plan is the automaton.
    others = [(total, other) for total, other, _ in ranked if other.alternatives != plan.alternatives]
    if others and len(plan.alternatives) == 1 and len(others[0][1].alternatives) == 1:
        total, other = others[0]
        own = costs[0]
        if own.runner_up_cost is None or total < own.runner_up_cost:
            costs = [replace(own, runner_up=other.alternatives[0], runner_up_cost=total)]
    return replace(plan, costs=tuple(costs))


def total_cost(plan: Plan, statistics: Statistics) -> float:
    """The cost of one window of events, whatever runs the alternatives of a plan."""
    return sum(_cost(plan.query, alternative, statistics) for alternative in plan.alternatives)


def _cost(query: BoundQuery, alternative: Alternative, statistics: Statistics) -> float:
    if isinstance(alternative, TreePlan):
        return cost_of(query, alternative, statistics).total
    assert isinstance(alternative, SequencePlan | AutomatonPlan), "the reference evaluator has no costs"
    return cost_of_line(query, alternative, statistics)

"""Algorithm 5 of ZStream (§5.2.3): the cheapest tree of a pattern, bushy ones included.

Nested patterns come first, each then a part of what is around it. The best tree of every set of parts is kept, under
its bit mask, as the plan's own node with its records and its cost. A sequence joins neighbours only, a conjunction of
few parts any two sets. A negation or a closure between two parts is tried in each place that the node below it allows,
and on top of the whole tree. Which of them stand on top decides how many records every node below has, so an outer loop
chooses that: it tries every combination while there are few, else it moves down one after the other where that is
cheaper. For a fixed choice the records of a set do not depend on its tree, so Theorem 5.1 holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import inf
from operator import itemgetter

from kleene.optimize.cost import Weights
from kleene.optimize.statistics import Statistics
from kleene.optimize.trees.building import Subtree, TreeBuilder
from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.parts import Parts, splits
from kleene.pattern.nodes import Disjunction, Leaf, Pattern
from kleene.pattern.query import BoundQuery
from kleene.plan.trees import Join, TreePlan

# With more negations and closures that can stand low or on top, not every combination is tried.
MOST_CHOICES = 4
# A conjunction of more parts is joined in the order of its text: 3ⁿ splits are too many.
MOST_IN_ANY_ORDER = 10
# Costs that differ by less than this factor count as equal, and the first tree wins, so that rounding decides nothing.
_ROUNDING = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The cheapest tree, and the next best of those that the search built.

    The runner-up has another last join, or a negation or a closure in another place.
    """

    plan: TreePlan
    cost: float
    runner_up: TreePlan | None = None
    runner_up_cost: float = inf


def best(
    query: BoundQuery,
    logical: Logical,
    statistics: Statistics,
    weights: Weights | None = None,
    key: tuple[str, ...] | None = None,
) -> SearchResult:
    """The cheapest tree of one part of a query's union; `key` is as in `TreeBuilder`."""
    builder = TreeBuilder(query, logical, key, statistics, weights)
    ranked = sorted(_whole_trees(builder), key=lambda ranked: ranked[1])
    plan, cost = ranked[0]
    for other, more in ranked:
        if other != plan:
            return SearchResult(plan, cost, other, more)
    return SearchResult(plan, cost)


def _whole_trees(builder: TreeBuilder) -> list[tuple[TreePlan, float]]:
    """Trees of the whole pattern with their costs, for each choice of the negations and closures that stand low."""
    movable = [between.component.variable for between in builder.between if between.movable]

    def plans_with(low: frozenset[str]) -> list[tuple[TreePlan, float]]:
        trees = _Search(builder, low).trees(builder.logical.pattern)
        return [builder.plan(builder.topped(tree)) for tree in trees]

    if len(movable) <= MOST_CHOICES:
        choices = (frozenset(low) for size in range(len(movable) + 1) for low in combinations(movable, size))
        return [each for low in choices for each in plans_with(low)]
    low: frozenset[str] = frozenset()
    plans = plans_with(low)
    for name in movable:
        lower = plans_with(low | {name})
        if lower and lower[0][1] < min(cost for _, cost in plans):
            low |= {name}
        plans += lower
    return plans


@dataclass(frozen=True, slots=True)
class _Search:
    builder: TreeBuilder
    # The variables of the negations and closures that do not stand on top.
    low: frozenset[str]

    def trees(self, pattern: Pattern) -> list[Subtree]:
        """The best tree, then another one, if any; no tree, if something in `low` cannot stand low."""
        if isinstance(pattern, Leaf):
            return [self.builder.leaf(pattern.component)]
        parts = None if isinstance(pattern, Disjunction) else self.builder.parts[pattern]
        part_trees = [self.trees(part) for part in (pattern.parts if parts is None else parts.joined)]
        if not all(part_trees):
            return []
        firsts = [trees[0] for trees in part_trees]
        combined = self._combined(parts, firsts)
        losses = [(trees[1].cost - trees[0].cost, number) for number, trees in enumerate(part_trees) if len(trees) > 1]
        if len(combined) == 1 and losses:
            # The runner-up has the second best tree of one part: of the part for which that costs least.
            _, number = min(losses)
            firsts[number] = part_trees[number][1]
            combined += self._combined(parts, firsts)
        return combined

    def _combined(self, parts: Parts | None, below: list[Subtree]) -> list[Subtree]:
        """The trees over these subtrees; a disjunction (`parts` is None) has no order of joins, so it has one tree."""
        return [self.builder.union(tuple(below))] if parts is None else self._joined(parts, below)

    def _joined(self, parts: Parts, below: list[Subtree]) -> list[Subtree]:
        """Algorithm 5: the best tree of all parts and the next best."""
        if len(below) == 1:
            return list(below)
        table = {1 << number: part for number, part in enumerate(below)}
        any_order = len(below) <= MOST_IN_ANY_ORDER
        for own in _sets(parts, any_order=any_order):
            trees = self._cheapest(1, parts, splits(parts, own, any_order=any_order), table)
            if trees:
                table[own] = trees[0]
        return self._cheapest(2, parts, splits(parts, parts.every, any_order=any_order), table)

    def _cheapest(
        self, count: int, parts: Parts, sides: Iterable[tuple[int, int]], table: Mapping[int, Subtree]
    ) -> list[Subtree]:
        """The cheapest trees that join two sides, so many at most, the best first.

        Most sides need not be joined. The first join tells how many records all of them make, and with that what the
        others cost at least; they are joined from the least on, until none can be cheaper than what was found.
        """
        floors = [
            (left.cost + right.cost, left, right, other)
            for one, other in sides
            if (left := table.get(one)) is not None and (right := table.get(other)) is not None
        ]
        cheapest, model, kind, gaps = _Cheapest(count), self.builder.model, parts.kind, parts.gaps
        if not floors:
            return cheapest.trees
        start = min(floors, key=_LEAST)
        cheapest.add(self._joins(parts, *start[1:]))
        # Records that were counted may differ with the tree.
        records = 0.0 if model.counted or not cheapest.trees else cheapest.trees[0].flow.card
        limit, bounds = cheapest.limit, []
        for each in floors:
            bound, left, right, other = each
            if bound < limit and each is not start:
                # A group between these sides makes its records of those of the join.
                if not gaps or _first(other) not in gaps:
                    bound += model.least(kind, left.flow, right.flow, records)
                bounds.append((bound, left, right, other))
        for bound, left, right, other in sorted(bounds, key=_LEAST):
            if bound >= cheapest.limit:
                break
            cheapest.add(self._joins(parts, left, right, other))
        return cheapest.trees

    def _joins(self, parts: Parts, left: Subtree, right: Subtree, right_set: int) -> list[Subtree]:
        return self.builder.joins(parts, left, right, _first(right_set), self.low)


def _first(own: int) -> int:
    """The first part of a set."""
    return (own & -own).bit_length() - 1


_LEAST = itemgetter(0)


class _Cheapest:
    """The cheapest trees, so many at most, the best first; of equal ones the first."""

    def __init__(self, count: int) -> None:
        self.trees: list[Subtree] = []
        # What a tree must cost less than.
        self.limit = inf
        self._count = count

    def add(self, trees: Iterable[Subtree]) -> None:
        for tree in trees:
            if tree.cost < self.limit:
                cheaper = (n for n, each in enumerate(self.trees) if tree.cost < each.cost * _ROUNDING)
                self.trees.insert(next(cheaper, len(self.trees)), tree)
                del self.trees[self._count :]
                if len(self.trees) == self._count:
                    self.limit = self.trees[-1].cost * _ROUNDING


def _sets(parts: Parts, *, any_order: bool) -> Iterator[int]:
    """Each set of at least two parts, but not of all, that can be a side of a join; after all its subsets."""
    count = len(parts.joined)
    if parts.kind is Join.CONJ and any_order:
        yield from (own for own in range(3, parts.every) if own & (own - 1))
        return
    for size in range(2, count):
        for first in range(count - size + 1):
            yield ((1 << size) - 1) << first

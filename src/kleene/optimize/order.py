"""Algorithm 5 of ZStream (§5.2.3): the cheapest tree of a pattern, bushy ones included.

Nested patterns come first, each then a part of what is around it. The best tree of every set of parts is kept, under
its bit mask, as the plan's own node with its records and its cost. A sequence joins neighbours only, a conjunction of
few parts any two sets. What is negated or grouped between two parts is looked at in each place that the node below it
allows, or on top of the whole tree. Which of them stand on top decides how many records every node below makes, so
that is chosen around the search: each choice is tried while there are few, else one after the other is moved down
where that is cheaper. With that choice made the records of a set do not depend on its tree, and Theorem 5.1 holds.
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

# With more that could stand low or on top, not every combination is tried.
MOST_CHOICES = 4
# A conjunction of more parts is joined in the order of its text: 3ⁿ splits are too many.
MOST_IN_ANY_ORDER = 10
# Costs that differ by less are the same; of these the first is taken, so that rounding decides nothing.
_ROUNDING = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The cheapest tree, and the next best of those that the search came by.

    That one ends with another join, or has a negation or a closure elsewhere.
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
    """The tree of one part of a query's union that costs least; the key is as in `TreeBuilder`."""
    builder = TreeBuilder(query, logical, key, statistics, weights)
    ranked = sorted(_whole_trees(builder), key=lambda ranked: ranked[1])
    plan, cost = ranked[0]
    for other, more in ranked:
        if other != plan:
            return SearchResult(plan, cost, other, more)
    return SearchResult(plan, cost)


def _whole_trees(builder: TreeBuilder) -> list[tuple[TreePlan, float]]:
    """Trees of the whole pattern, for each choice of what does not stand on top."""
    movable = [between.component.variable for between in builder.between if between.movable]

    def found(low: frozenset[str]) -> list[tuple[TreePlan, float]]:
        trees = _Search(builder, low).trees(builder.logical.pattern)
        return [builder.plan(builder.topped(tree)) for tree in trees]

    if len(movable) <= MOST_CHOICES:
        choices = (frozenset(low) for size in range(len(movable) + 1) for low in combinations(movable, size))
        return [each for low in choices for each in found(low)]
    low: frozenset[str] = frozenset()
    plans = found(low)
    for name in movable:
        lower = found(low | {name})
        if lower and lower[0][1] < min(cost for _, cost in plans):
            low |= {name}
        plans += lower
    return plans


@dataclass(frozen=True, slots=True)
class _Search:
    builder: TreeBuilder
    # What is negated or grouped and does not stand on top.
    low: frozenset[str]

    def trees(self, pattern: Pattern) -> list[Subtree]:
        """The best tree first, then another one, if any; none, where something cannot stand low."""
        if isinstance(pattern, Leaf):
            return [self.builder.leaf(pattern.component)]
        parts = None if isinstance(pattern, Disjunction) else self.builder.parts[pattern]
        found = [self.trees(part) for part in (pattern.parts if parts is None else parts.joined)]
        if not all(found):
            return []
        firsts = [trees[0] for trees in found]
        combined = self._combined(parts, firsts)
        losses = [(trees[1].cost - trees[0].cost, number) for number, trees in enumerate(found) if len(trees) > 1]
        if len(combined) == 1 and losses:
            # The part that loses least by it has its second best tree.
            _, number = min(losses)
            firsts[number] = found[number][1]
            combined += self._combined(parts, firsts)
        return combined

    def _combined(self, parts: Parts | None, below: list[Subtree]) -> list[Subtree]:
        """Of a disjunction, which has no order, the only tree."""
        return [self.builder.union(tuple(below))] if parts is None else self._joined(parts, below)

    def _joined(self, parts: Parts, below: list[Subtree]) -> list[Subtree]:
        """Algorithm 5; of all parts, the best tree and the next."""
        if len(below) == 1:
            return below
        table = {1 << number: part for number, part in enumerate(below)}
        any_order = len(below) <= MOST_IN_ANY_ORDER
        for own in _sets(parts, any_order=any_order):
            found = self._cheapest(1, parts, splits(parts, own, any_order=any_order), table)
            if found:
                table[own] = found[0]
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
    """Each set of two parts or more that is not all of them, after all its subsets."""
    count = len(parts.joined)
    if parts.kind is Join.CONJ and any_order:
        yield from (own for own in range(3, parts.every) if own & (own - 1))
        return
    for size in range(2, count):
        for first in range(count - size + 1):
            yield ((1 << size) - 1) << first

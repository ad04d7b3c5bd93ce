"""Builds the nodes of a tree from the leaves up (ZStream §4): each tests the clauses that no node below can.

NSEQ looks for a negated event beside one neighbour, so that side must bind the variables that it compares (§4.4.2). If
neither side does, NEG stands above the join of the neighbours, or on top of the whole tree, as KSEQ does. Between the
neighbours of a group (`A ; (B & !C) ; D`) the group itself stands, so that neither is beside the other: NEG it is. A
negation that the window bounds stands on top, where whole records tell their first and last event. A negation or
a closure of one branch that stands on top leaves the records of other branches alone: they bind no variable of its gap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from itertools import product
from typing import NamedTuple

from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.optimize.cost import CostModel, Flow, Weights
from kleene.optimize.statistics import Known, Statistics
from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.options import options
from kleene.optimize.trees.parts import BetweenParts, Parts, all_parts
from kleene.optimize.trees.placing import ClausePlaces
from kleene.pattern.nodes import Component, ComponentKind, components
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import Scan
from kleene.plan.trees import (
    GroupNode,
    Join,
    JoinNode,
    LeafNode,
    NegNode,
    Node,
    Side,
    TreePlan,
    UnionNode,
    absences,
)
from kleene.plan.trees import bound as bound_by

# An event's places are bits of one integer.
MOST_COMPONENTS = 60


def why_not_trees(query: BoundQuery) -> str | None:
    """Why no tree can run a query; None when one can."""
    if query.strategy is not SelectionStrategy.SKIP_TILL_ANY_MATCH:
        return f"trees find every match, and {query.strategy.value} does not ask for that"
    if query.timeouts is not None:
        return "TIMEOUTS asks for runs, and trees have none"
    if query.output is OutputMode.COMPRESSED:
        return "COMPRESSED asks for the graph of runs, and trees have none"
    if max(len(tuple(components(option.pattern))) for option in options(query)) > MOST_COMPONENTS:
        return f"a pattern of more than {MOST_COMPONENTS} components"
    return None


class Where(Enum):
    """The places where a tree can test a negated class or group a closure."""

    # NSEQ beside the right or the left neighbour; for negated classes only.
    RIGHT = "NSEQ, before its right neighbour"
    LEFT = "NSEQ, after its left neighbour"
    # Right above the join of its two neighbours: NEG, or KSEQ.
    JOIN = "above the join of its neighbours"
    # On whole records.
    TOP = "on top"


_SIDES = {Where.LEFT: Side.LEFT, Where.RIGHT: Side.RIGHT}


class Subtree(NamedTuple):
    """A node with all below it: its records, its cost, and what decides which clauses the nodes above it test."""

    node: Node
    # Its records in one window; its cost, including that of all nodes below it.
    flow: Flow
    cost: float
    # Bits: the variables that some record binds; those that every record binds, so none of a disjunction's branches.
    bound: int
    always: int
    # Bits: the clauses that it or a node below it tests.
    tested: int


class TreeBuilder:
    """Builds the trees of one part of a query's union; the key is the query's partition unless another is given."""

    def __init__(
        self,
        query: BoundQuery,
        logical: Logical,
        key: tuple[str, ...] | None = None,
        statistics: Statistics | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.logical = logical
        self.key = query.partition if key is None else key
        known = Known(statistics or Statistics(), (*query.components, *components(logical.pattern)), self.key)
        self.model = CostModel(known, weights)
        self.parts = all_parts(logical, self.key, query.schema)
        self._clauses = ClausePlaces(logical, self.key, query.schema)
        places = {component: place for place, component in enumerate(components(logical.pattern))}
        every = (between for parts in self.parts.values() for between in parts.between)
        # The negated classes and closures, in the order of the text.
        self.between = tuple(sorted(every, key=lambda between: places[between.component]))
        # The negations of groups that stand between two parts further out, each with the bits of what it needs.
        self._of_groups = tuple(
            (self._clauses.bits((*each.site.gap.before, *each.site.gap.after, *each.named)), each)
            for each in self.between
            if each.movable and each.after is None
        )

    # Nodes -----------------------------------------------------------------------------------------------------------

    def leaf(self, component: Component) -> Subtree:
        bit, tested = self._clauses.bits((component.variable,)), self._clauses.at_leaf(component)
        clauses = self._clauses.listed(tested)
        single = component.kind is ComponentKind.SINGLE
        node = LeafNode(Scan(component, clauses)) if single else LeafNode(Scan(component), clauses)
        return self._over((), node, bit, bit, tested)

    def join(
        self, kind: Join, left: Subtree, right: Subtree, negated: Iterable[tuple[Side, BetweenParts]] = ()
    ) -> Subtree:
        clauses, bound, always = self._clauses, left.bound | right.bound, left.always | right.always
        tested = clauses.known_with(bound)
        here = tested & ~(left.tested | right.tested)
        looked_up = clauses.looked_up(here, left.bound, right.bound)
        if looked_up and always != bound:
            looked_up &= clauses.known_with(always)
        equalities, tests = clauses.listed(looked_up), clauses.listed(here ^ looked_up)
        pushed = tuple([(side, between.site) for side, between in negated])
        node = JoinNode(kind, left.node, right.node, equalities, tests, pushed)
        _, flow, cost = self.model.estimate(node, left.flow, right.flow)
        return Subtree(node, flow, left.cost + right.cost + cost, bound, always, tested)

    def union(self, parts: tuple[Subtree, ...]) -> Subtree:
        bound = below = 0
        for part in parts:
            bound, below = bound | part.bound, below | part.tested
        tested = self._clauses.known_with(bound)
        node = UnionNode(tuple(part.node for part in parts), self._clauses.listed(tested & ~below))
        return self._over(parts, node, bound, 0, tested)

    def group(self, child: Subtree, closure: BetweenParts) -> Subtree:
        bound = child.bound | self._clauses.bits((closure.component.variable,))
        tested = self._clauses.known_with(bound)
        site, tests = closure.site, self._clauses.listed(tested & ~child.tested)
        node = GroupNode(child.node, site.scan, site.gap, site.conditions, tests, closure.leaves, site.equalities)
        return self._over((child,), node, bound, child.always, tested)

    def negate(self, child: Subtree, negation: BetweenParts) -> Subtree:
        return self._over((child,), NegNode(child.node, negation.site), child.bound, child.always, child.tested)

    def _over(self, below: tuple[Subtree, ...], node: Node, bound: int, always: int, tested: int) -> Subtree:
        _, flow, cost = self.model.estimate(node, *(child.flow for child in below))
        return Subtree(node, flow, sum(child.cost for child in below) + cost, bound, always, tested)

    # Sequences -------------------------------------------------------------------------------------------------------

    def joins(
        self, parts: Parts, left: Subtree, right: Subtree, first: int, low: Collection[str] | None = None
    ) -> list[Subtree]:
        """Every way to join two sides; `first` is the number of the first part on the right.

        low   the variables of the negations and closures that do not stand on top; None: each that stands between the
              sides is tried in every place that it can have, the lowest first
        """
        between = (*parts.gaps.get(first, ()), *self._spanning(left, right))
        if not between:
            return [self.join(parts.kind, left, right)]
        trees = []
        for chosen in product(*(self._places(each, left, right, low) for each in between)):
            placed = tuple(zip(chosen, between, strict=True))
            tree = self.join(parts.kind, left, right, [(_SIDES[where], n) for where, n in placed if where in _SIDES])
            trees.append(self._above(tree, [each for where, each in placed if where is Where.JOIN]))
        return trees

    def _spanning(self, left: Subtree, right: Subtree) -> list[BetweenParts]:
        """The negations of groups whose neighbours, and what their conditions name, are bound by this join first."""
        bound = left.bound | right.bound
        return [
            each
            for needed, each in self._of_groups
            if not needed & ~bound and needed & ~left.bound and needed & ~right.bound
        ]

    def _places(
        self, between: BetweenParts, left: Subtree, right: Subtree, low: Collection[str] | None
    ) -> tuple[Where, ...]:
        if not between.movable or (low is not None and between.component.variable not in low):
            return (Where.TOP,)
        needed = self._clauses.bits(between.named)
        single = between.component.negated and between.component.preceded_by is None
        beside = single and between.after is not None
        sides = [(Where.RIGHT, right.bound), (Where.LEFT, left.bound)] if beside else []
        sides.append((Where.JOIN, left.bound | right.bound))
        places = tuple(where for where, bound in sides if not needed & ~bound)
        return places if low is not None else (*places, Where.TOP)

    def topped(self, tree: Subtree) -> Subtree:
        """A tree with the negations and closures that it does not have yet on top, where they see whole records."""
        standing = {absence.scan.component for absence in absences(tree.node)}
        grouped = {component for component in bound_by(tree.node) if component.kind is ComponentKind.CLOSURE}
        return self._above(tree, [each for each in self.between if each.component not in standing | grouped])

    def _above(self, tree: Subtree, above: list[BetweenParts]) -> Subtree:
        """A tree with these above it: closures first, since a group may be the neighbour of a negation.

        Records that wait for their window to close must have passed the same tests under every plan, since a plan may
        change meanwhile: what another plan may have lower comes before what waits, and a waiting negation last.
        """
        closures = [each for each in above if not each.component.negated]
        negated = [each for each in above if each.component.negated]
        first = []
        if any(not each.site.gap.after for each in closures):
            first = [each for each in negated if each.movable and not self._clauses.bits(each.named) & ~tree.bound]
        last = sorted((each for each in negated if each not in first), key=lambda each: not each.site.gap.after)
        for between in (*first, *closures, *last):
            tree = self.negate(tree, between) if between.component.negated else self.group(tree, between)
        return tree

    def plan(self, tree: Subtree) -> tuple[TreePlan, float]:
        """The plan of a whole tree with its cost; the clauses that no node could test are tested after the root."""
        after = self._clauses.listed(self._clauses.every & ~tree.tested)
        plan = TreePlan(self.logical.pattern, tree.node, self.key, after, self.logical.aliases)
        return plan, tree.cost + self.model.after(tree.flow, plan)

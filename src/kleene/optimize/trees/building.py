"""From a pattern and a shape to a tree plan (ZStream §4): the nodes, and at each the conditions that it can test first.

A test stands at the lowest node that binds its variables. Within a disjunction that is right only for what holds where
the variables are absent; what does not is tested above it, on the records of all its branches. A negation or a closure
of a branch that stands on top finds no variable of its gap in the records of the others, which it leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.options import options
from kleene.optimize.trees.placing import fits_leaf, is_lookup, unless_implied
from kleene.optimize.trees.shape import Order, Shape, Where
from kleene.optimize.trees.shapes import GapSite, SequenceParts, default_shape, numbers, sequence_parts
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.nodes import Component, ComponentKind, Conjunction, Disjunction, Leaf, Pattern, Sequence, components
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import Schema
from kleene.plan.check_trees import holds_when_absent
from kleene.plan.physical import Scan
from kleene.plan.trees import (
    GroupNode,
    Join,
    JoinNode,
    LeafNode,
    NegNode,
    Node,
    Side,
    Site,
    TreePlan,
    UnionNode,
    bound,
    variables_bound,
)

_SIDES = {Where.LEFT: Side.LEFT, Where.RIGHT: Side.RIGHT}

# An event's places are bits of one integer.
MOST_COMPONENTS = 60


def basic(query: BoundQuery) -> tuple[TreePlan, ...]:
    """One plan an option, in the shape that needs no statistics."""
    return tuple(build(query, option, default_shape(option, query.partition)) for option in options(query))


def build(query: BoundQuery, logical: Logical, shape: Shape | None, key: tuple[str, ...] | None = None) -> TreePlan:
    """The plan of one option in a shape that it can have; the key is the query's partition unless another is given."""
    by = query.partition if key is None else key
    skeleton = _Skeleton(logical, by)
    root = skeleton.topped(skeleton.node(logical.pattern, shape), shape)
    present = frozenset(variables_bound(root))
    clauses = unless_implied(logical.positive, by)
    rooted = [clause for clause in clauses if variables(clause) & present and _can_test(root, clause)]
    after = tuple(clause for clause in clauses if clause not in rooted)
    return TreePlan(logical.pattern, _Placing(present, query.schema).settled(root, rooted), by, after, logical.aliases)


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


# Nodes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """The tree before anything is tested in it."""

    logical: Logical
    key: tuple[str, ...]

    def node(self, pattern: Pattern, shape: Shape | None) -> Node:
        if isinstance(pattern, Leaf):
            return LeafNode(Scan(pattern.component))
        assert shape is not None
        match pattern:
            case Sequence():
                return self.sequence(sequence_parts(pattern), shape, shape.order)
            case Conjunction(parts):
                return self.conjunction(parts, shape, shape.order)
            case Disjunction(parts):
                return UnionNode(tuple(self.node(part, below) for part, below in zip(parts, shape.parts, strict=True)))

    def conjunction(self, parts: tuple[Pattern, ...], shape: Shape, order: Order) -> Node:
        if isinstance(order, int):
            return self.node(parts[order], shape.parts[order])
        left, right = (self.conjunction(parts, shape, side) for side in order)
        return JoinNode(Join.CONJ, left, right)

    def sequence(self, parts: SequenceParts, shape: Shape, order: Order) -> Node:
        if isinstance(order, int):
            return self.node(parts.joined[order], shape.parts[order])
        left, right = (self.sequence(parts, shape, side) for side in order)
        place = numbers(order[1])[0]
        negations = [(n, where) for n, where in zip(parts.negations, shape.negations, strict=True) if n.after == place]
        closures = [(c, where) for c, where in zip(parts.closures, shape.closures, strict=True) if c.after == place]
        pushed = tuple((_SIDES[where], self.absence(n)) for n, where in negations if where in _SIDES)
        node: Node = JoinNode(Join.SEQ, left, right, pushed=pushed)
        for closure, where in closures:
            if where is Where.JOIN:
                node = self.group(node, closure)
        for negation, where in negations:
            if where is Where.JOIN:
                node = NegNode(node, self.absence(negation))
        return node

    def topped(self, node: Node, shape: Shape | None) -> Node:
        """What is looked at on whole records: groups first, since they may be neighbours of what is negated."""
        places = {component: place for place, component in enumerate(components(self.logical.pattern))}
        found = sorted(_on_top(self.logical.pattern, shape), key=lambda between: places[between.component])
        for between in found:
            if not between.component.negated:
                node = self.group(node, between)
        for between in found:
            if between.component.negated:
                node = NegNode(node, self.absence(between))
        return node

    def absence(self, negation: GapSite) -> Site:
        conditions = self.logical.negative.get(negation.component.variable, ())
        return Site(Scan(negation.component), negation.gap, unless_implied(conditions, self.key))

    def group(self, child: Node, closure: GapSite) -> GroupNode:
        members = self.logical.members.get(closure.component.variable, ())
        return GroupNode(child, Scan(closure.component), closure.gap, unless_implied(members, self.key))


def _on_top(pattern: Pattern, shape: Shape | None) -> Iterator[GapSite]:
    if isinstance(pattern, Leaf):
        return
    assert shape is not None
    parts = pattern.parts
    if isinstance(pattern, Sequence):
        found = sequence_parts(pattern)
        parts = found.joined
        places = (
            *zip(found.negations, shape.negations, strict=True),
            *zip(found.closures, shape.closures, strict=True),
        )
        yield from (between for between, where in places if where is Where.TOP)
    for part, below in zip(parts, shape.parts, strict=True):
        yield from _on_top(part, below)


# Tests ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Placing:
    """Where each clause is tested first."""

    # The variables that the plan binds; others are absent from all its records.
    present: frozenset[str]
    schema: Schema

    def settled(self, node: Node, clauses: list[Clause]) -> Node:
        """The node with these clauses tested in it or below, each of which it can test."""
        match node:
            case LeafNode(scan=scan) if scan.component.kind is ComponentKind.SINGLE:
                return LeafNode(Scan(scan.component, tuple(clauses)))
            case LeafNode():
                return replace(node, tests=tuple(clauses))
            case JoinNode(left=left, right=right):
                (to_left, to_right), here = self.divided(clauses, (left, right))
                equalities = tuple(clause for clause in here if self.is_equality(clause, left, right))
                return replace(
                    node,
                    left=self.settled(left, to_left),
                    right=self.settled(right, to_right),
                    equalities=equalities,
                    tests=tuple(clause for clause in here if clause not in equalities),
                )
            case UnionNode(parts=parts):
                below, _ = self.divided(filter(holds_when_absent, clauses), parts)
                lower = {clause for part in below for clause in part}
                settled = tuple(self.settled(part, own) for part, own in zip(parts, below, strict=True))
                return UnionNode(settled, tuple(clause for clause in clauses if clause not in lower))
            case GroupNode(child=child):
                (lower_ones,), here = self.divided(clauses, (child,))
                return replace(node, child=self.settled(child, lower_ones), tests=tuple(here))
            case NegNode(child=child):
                return replace(node, child=self.settled(child, clauses))

    def divided(self, clauses: Iterable[Clause], below: tuple[Node, ...]) -> tuple[list[list[Clause]], list[Clause]]:
        """The clauses that each node below can test, and those that none can."""
        known = [frozenset(variables_bound(node)) for node in below]
        given: list[list[Clause]] = [[] for _ in below]
        left: list[Clause] = []
        for clause in clauses:
            named = variables(clause) & self.present
            takers = (
                own
                for own, node, names in zip(given, below, known, strict=True)
                if named <= names and _can_test(node, clause)
            )
            next(takers, left).append(clause)
        return given, left

    def is_equality(self, clause: Clause, left: Node, right: Node) -> bool:
        """Whether a join can look the clause up."""
        return is_lookup(clause, {**_always_bound(left), **_always_bound(right)}, self.schema)


def _can_test(node: Node, clause: Clause) -> bool:
    """Whether a node has a place for a clause on its variables: the mask of a single event names no absent one."""
    match node:
        case LeafNode(scan=scan):
            return fits_leaf(clause, scan.component)
        case NegNode(child=child):
            return _can_test(child, clause)
        case _:
            return True


def _always_bound(node: Node) -> dict[str, Component]:
    """The components to which every record of a node gives events: those of a disjunction's branches are not."""
    match node:
        case UnionNode():
            return {}
        case JoinNode(left=left, right=right):
            return {**_always_bound(left), **_always_bound(right)}
        case LeafNode():
            return {component.variable: component for component in bound(node)}
        case GroupNode(child=child) | NegNode(child=child):
            return _always_bound(child)

"""Every tree of a pattern (ZStream §5), one by one, and the one that needs no statistics."""

from __future__ import annotations

from collections.abc import Iterator

from kleene.optimize.trees.building import Subtree, TreeBuilder
from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.parts import Parts, splits
from kleene.pattern.nodes import Disjunction, Leaf, Pattern
from kleene.pattern.query import BoundQuery
from kleene.plan.trees import TreePlan


def all_trees(query: BoundQuery, logical: Logical, key: tuple[str, ...] | None = None) -> Iterator[TreePlan]:
    """In every order of joins, with what is negated or grouped in every place that it may have."""
    builder = TreeBuilder(query, logical, key)
    # On top of its own join something stands where it stands on top of the whole, if that is the last join.
    seen: set[TreePlan] = set()
    for tree in _trees(builder, logical.pattern):
        plan, _ = builder.plan(builder.topped(tree))
        if plan not in seen:
            seen.add(plan)
            yield plan


def default_tree(query: BoundQuery, logical: Logical, key: tuple[str, ...] | None = None) -> TreePlan:
    """Left-deep, with negations and closures as low as they may stand."""
    builder = TreeBuilder(query, logical, key)
    plan, _ = builder.plan(builder.topped(_left_deep(builder, logical.pattern)))
    return plan


def _left_deep(builder: TreeBuilder, pattern: Pattern) -> Subtree:
    if isinstance(pattern, Leaf):
        return builder.leaf(pattern.component)
    if isinstance(pattern, Disjunction):
        return builder.union(tuple(_left_deep(builder, part) for part in pattern.parts))
    parts = builder.parts[pattern]
    tree, *others = (_left_deep(builder, part) for part in parts.joined)
    for number, other in enumerate(others, 1):
        tree = builder.joins(parts, tree, other, number)[0]
    return tree


def _trees(builder: TreeBuilder, pattern: Pattern) -> Iterator[Subtree]:
    if isinstance(pattern, Leaf):
        yield builder.leaf(pattern.component)
    elif isinstance(pattern, Disjunction):
        yield from map(builder.union, _combined(builder, pattern.parts))
    else:
        parts = builder.parts[pattern]
        for below in _combined(builder, parts.joined):
            yield from _joined(builder, parts, below, parts.every)


def _combined(builder: TreeBuilder, patterns: tuple[Pattern, ...]) -> Iterator[tuple[Subtree, ...]]:
    """Every combination of the parts' trees, none of them kept: a conjunction has more than memory holds."""
    if not patterns:
        yield ()
        return
    for first in _trees(builder, patterns[0]):
        for rest in _combined(builder, patterns[1:]):
            yield first, *rest


def _joined(builder: TreeBuilder, parts: Parts, below: tuple[Subtree, ...], own: int) -> Iterator[Subtree]:
    if not own & (own - 1):
        yield below[own.bit_length() - 1]
        return
    for left_set, right_set in splits(parts, own):
        first = (right_set & -right_set).bit_length() - 1
        for left in _joined(builder, parts, below, left_set):
            for right in _joined(builder, parts, below, right_set):
                yield from builder.joins(parts, left, right, first)

"""Shapes that have no meaning: negations and closures without bounds, strategies on what is not a sequence."""

from __future__ import annotations

from itertools import pairwise

from kleene.errors import (
    MisplacedClosure,
    NegationAlone,
    NegationWithoutWindow,
    Span,
    StrategyNeedsLine,
)
from kleene.lang import tree
from kleene.pattern.bind_pattern import BoundPattern
from kleene.pattern.closures import closures_at_edge, side_by_side
from kleene.pattern.gaps import negations
from kleene.pattern.nodes import ComponentKind, Disjunction, Leaf, Pattern, Sequence, is_linear


def check_shape(pattern: Pattern, bound: BoundPattern, *, windowed: bool, whole: Span) -> None:
    """Refuse an alternative whose negations or closures have no bounds."""
    positives = [leaf for leaf in _leaves(pattern) if not leaf.component.negated]
    if not positives:
        raise NegationAlone(
            "a pattern needs something that occurs", whole, hint="put an event before or after: `A ; !B`"
        )
    if all(leaf.component.kind is ComponentKind.CLOSURE for leaf in positives):
        raise MisplacedClosure(
            "a closure without brackets needs a neighbour",
            bound.spans[positives[0].component.variable],
            hint="write `B+ b[]`",
        )
    _check_closures(pattern, bound, windowed=windowed)
    _check_part(pattern, bound)
    for component, around in negations(pattern):
        if not windowed and (around.open_at_start or around.open_at_end):
            raise NegationWithoutWindow(
                "a negation that is not between two parts needs a window",
                bound.spans[component.variable],
                hint="add `WITHIN …`",
            )


def _check_part(pattern: Pattern, bound: BoundPattern) -> None:
    if isinstance(pattern, Leaf):
        return
    if isinstance(pattern, Sequence):
        for left, right in pairwise(part for part in pattern.parts if not _is_negated(part)):
            _check_facing(left, right, bound)
    for part in pattern.parts:
        _check_part(part, bound)


def _check_closures(pattern: Pattern, bound: BoundPattern, *, windowed: bool) -> None:
    """Refuse closures that nothing bounds."""
    left, right = (closures_at_edge(pattern, left=side) for side in (True, False))
    for closure in (*left, *right):
        if not windowed:
            raise MisplacedClosure(
                "a closure at the start or the end needs a window",
                bound.spans[closure.variable],
                hint="add `WITHIN …`",
            )
    for run in side_by_side(pattern):
        if len(run) > 1 and run[0] in left and run[0] in right:
            raise MisplacedClosure(
                "closures side by side have no event before or after them that tells where they meet",
                bound.spans[run[1].variable],
                hint="put a component before or after them, or join them with `&`",
            )


def _check_facing(left: Pattern, right: Pattern, bound: BoundPattern) -> None:
    """Refuse two closures that bound each other, unless they stand side by side in one sequence."""
    if isinstance(left, Leaf) and isinstance(right, Leaf):
        return
    one, other = closures_at_edge(left, left=False), closures_at_edge(right, left=True)
    if one and other:
        raise MisplacedClosure(
            f"`{one[0].variable}` and `{other[0].variable}` bound each other across the edge of a group with `&`",
            bound.spans[other[0].variable],
            hint="put a component between them",
        )


def _is_negated(part: Pattern) -> bool:
    return isinstance(part, Leaf) and part.component.negated


def _leaves(pattern: Pattern) -> list[Leaf]:
    return [pattern] if isinstance(pattern, Leaf) else [leaf for part in pattern.parts for leaf in _leaves(part)]


def check_strategy(strategy: tree.Strategy, bound: BoundPattern, options: tuple[Pattern, ...]) -> None:
    """Only lines have strategies other than skip till any match."""
    if strategy.kind is tree.SelectionStrategy.SKIP_TILL_ANY_MATCH:
        return
    for component in bound.components:
        if component.kind is ComponentKind.CLOSURE:
            raise MisplacedClosure(
                f"a closure without brackets has no meaning under {strategy.kind.value}",
                bound.spans[component.variable],
                hint=f"name it with brackets: `{component.variable.casefold()}[]`",
            )
    if has_disjunction(bound.pattern) or not all(map(is_linear, options)):
        raise StrategyNeedsLine(
            f"{strategy.kind.value} needs a sequence; other shapes have skip_till_any_match only",
            strategy.span,
            hint="use skip_till_any_match, or ANY(A, B) for a choice of types",
        )


def has_disjunction(pattern: Pattern) -> bool:
    if isinstance(pattern, Leaf):
        return False
    return isinstance(pattern, Disjunction) or any(map(has_disjunction, pattern.parts))

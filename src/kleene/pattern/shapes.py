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
from kleene.pattern.gaps import negations
from kleene.pattern.nodes import Component, ComponentKind, Disjunction, Leaf, Pattern, Sequence, is_linear


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
    _check_part(pattern, bound, windowed=windowed, outermost=True)
    for component, around in negations(pattern):
        if not windowed and (around.open_at_start or around.open_at_end):
            raise NegationWithoutWindow(
                "a negation that is not between two parts needs a window",
                bound.spans[component.variable],
                hint="add `WITHIN …`",
            )


def _check_part(pattern: Pattern, bound: BoundPattern, *, windowed: bool, outermost: bool) -> None:
    if isinstance(pattern, Leaf):
        return
    if isinstance(pattern, Sequence):
        _check_sequence(pattern, bound, windowed=windowed, outermost=outermost)
    for part in pattern.parts:
        _check_part(part, bound, windowed=windowed, outermost=False)


def _check_sequence(sequence: Sequence, bound: BoundPattern, *, windowed: bool, outermost: bool) -> None:
    places = [place for place, part in enumerate(sequence.parts) if not _is_negated(part)]
    closed = [_closure_of(sequence.parts[place]) for place in places]
    for left, right in pairwise(closed):
        if left is not None and right is not None:
            raise MisplacedClosure(
                "two closures stand side by side", bound.spans[right.variable], hint="write `B+ b[]`"
            )
    ends = [closure for closure in (closed[0], closed[-1]) if closure is not None]
    if len(places) > 1 and len(ends) == 2:
        raise MisplacedClosure("a closure at each end leaves no bound", bound.spans[ends[1].variable], hint="use one")
    for closure in ends:
        _check_end(bound.spans[closure.variable], windowed=windowed, outermost=outermost)


def _check_end(span: Span, *, windowed: bool, outermost: bool) -> None:
    if not outermost:
        raise MisplacedClosure(
            "a closure at the end of a nested part has no bound", span, hint="put it between two components"
        )
    if not windowed:
        raise MisplacedClosure("a closure at the start or the end needs a window", span, hint="add `WITHIN …`")


def _is_negated(part: Pattern) -> bool:
    return isinstance(part, Leaf) and part.component.negated


def _closure_of(part: Pattern) -> Component | None:
    return part.component if isinstance(part, Leaf) and part.component.kind is ComponentKind.CLOSURE else None


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

"""A pattern as a union of patterns without disjunction and without optional components."""

from __future__ import annotations

from typing import Any

from kleene.errors import EmptyPattern, Span, TooComplex
from kleene.pattern.bind_pattern import BoundPattern
from kleene.pattern.gaps import spliced
from kleene.pattern.nodes import Disjunction, Leaf, Pattern

MAX_ALTERNATIVES = 512


def alternatives(bound: BoundPattern, span: Span) -> tuple[Pattern, ...]:
    """The pattern as a union of patterns without disjunction and without optional components."""
    options = dict.fromkeys(_alternatives(bound.pattern, span))
    flat = tuple(dict.fromkeys(_flattened(option) for option in options if option is not None))
    if None in options:
        raise EmptyPattern("this pattern could match no event at all", span, hint="make one component obligatory")
    return flat


def _alternatives(pattern: Pattern, span: Span) -> list[Pattern | None]:
    """None stands for the alternative that takes nothing."""
    if isinstance(pattern, Leaf):
        return [pattern, None] if pattern.component.optional else [pattern]
    if isinstance(pattern, Disjunction):
        return _limited([option for part in pattern.parts for option in _alternatives(part, span)], span)
    combined: list[tuple[Pattern, ...]] = [()]
    for part in pattern.parts:
        options = _alternatives(part, span)
        combined = _limited(
            [(*left, option) if option is not None else left for left in combined for option in options], span
        )
    make = type(pattern)
    return [None if not parts else parts[0] if len(parts) == 1 else make(parts) for parts in combined]


def _limited(options: list[Any], span: Span) -> list[Any]:
    if len(options) > MAX_ALTERNATIVES:
        raise TooComplex(
            f"this pattern stands for more than {MAX_ALTERNATIVES} alternatives",
            span,
            hint="split it into several queries",
        )
    return options


def _flattened(pattern: Pattern) -> Pattern:
    """Nested sequences and conjunctions of the same kind as one list."""
    if isinstance(pattern, Leaf | Disjunction):
        return pattern
    parts = spliced(type(pattern), map(_flattened, pattern.parts))
    return type(pattern)(tuple(parts)) if len(parts) > 1 else parts[0]

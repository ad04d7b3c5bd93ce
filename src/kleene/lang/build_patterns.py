"""Patterns: one method a rule of the grammar; each gets its children, already built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lark import Token

from kleene.errors import NOWHERE, BadRepetition, Span
from kleene.lang import tree
from kleene.lang.building import build, place_of, span_of, word

_MAX_COUNT = 2**31
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


class Patterns:
    def pattern(self, parts: list[Any]) -> tree.Pattern:
        return build(tree.Sequence, tuple(parts), at=place_of(*parts), below=tuple(parts))

    def disjunction(self, parts: list[Any]) -> tree.Pattern:
        return build(tree.Disjunction, tuple(parts), at=place_of(*parts), below=tuple(parts))

    def conjunction(self, parts: list[Any]) -> tree.Pattern:
        return build(tree.Conjunction, tuple(parts), at=place_of(*parts), below=tuple(parts))

    def negate(self, items: list[Any]) -> tree.Negation:
        mark, operand = items
        return build(tree.Negation, operand, at=place_of(mark, operand), below=(operand,))

    def plain(self, items: list[Any]) -> tree.Component:
        return _component((items[0],), items[1:], any_of=False)

    def any_of(self, items: list[Any]) -> tree.Component:
        opening, types, closing, suffix = _enclosed(items)
        return _component(types, [opening, closing, *suffix], any_of=True)

    def group(self, items: list[Any]) -> tree.Pattern:
        opening, parts, closing, rest = _enclosed(items)
        at = place_of(opening, closing)
        inner: tree.Pattern = parts[0] if len(parts) == 1 else build(tree.Sequence, parts, at=at, below=parts)
        suffix = _suffix(rest, at)
        if suffix.repetition is None and suffix.variable is None:
            return replace(inner, span=at)
        if suffix.variable is None and isinstance(inner, tree.Component):
            optional = _optional(inner, suffix)
            if optional is not None:
                return optional
        return build(
            tree.Group, inner, suffix.repetition, suffix.variable, suffix.brackets, at=suffix.span, below=(inner,)
        )

    def plus(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.PLUS, 1, None, span=place_of(*items))

    def star(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.STAR, 0, None, span=place_of(*items))

    def optional(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.OPTIONAL, 0, 1, span=place_of(*items))

    def power(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.POWER, items[1], items[1], place_of(*items))

    def raised_power(self, items: list[Any]) -> tree.Repetition:
        (digits,) = items
        number = digits.update(value=digits.translate(_LOWERED))
        return _repetition(tree.Mark.POWER, number, number, place_of(digits))

    def exactly(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.BRACES, items[1], items[1], place_of(*items))

    def between_counts(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.BRACES, items[1], items[3], place_of(*items))

    def variable(self, items: list[Any]) -> tuple[Token, Token | None]:
        return items[0], items[1]

    def type_name(self, items: list[Any]) -> tree.TypeName:
        return tree.TypeName(word(items[0]), span=span_of(items[0]))


def _enclosed(items: list[Any]) -> tuple[Token, tuple[Any, ...], Token, list[Any]]:
    """`( parts ) suffix`: the opening token, the parts, the closing token, what follows."""
    closing = next(place for place, item in enumerate(items) if isinstance(item, Token) and item.type == "RPAR")
    return items[0], tuple(items[1:closing]), items[closing], items[closing + 1 :]


@dataclass(slots=True)
class _Suffix:
    """What may follow a type or a group: a repetition, a variable."""

    span: Span
    repetition: tree.Repetition | None = None
    variable: str | None = None
    variable_span: Span = NOWHERE
    brackets: bool = False


def _component(types: tuple[tree.TypeName, ...], rest: list[Any], *, any_of: bool) -> tree.Component:
    suffix = _suffix(rest, place_of(*types))
    return tree.Component(
        types,
        any_of,
        suffix.repetition,
        suffix.variable,
        suffix.brackets,
        variable_span=suffix.variable_span,
        span=suffix.span,
    )


def _suffix(rest: list[Any], span: Span) -> _Suffix:
    suffix = _Suffix(span)
    for item in rest:
        if isinstance(item, tree.Repetition):
            suffix.repetition, suffix.span = item, suffix.span.to(item.span)
        elif isinstance(item, Token):
            suffix.span = suffix.span.to(span_of(item))
        elif item is not None:
            name, marks = item
            suffix.variable, suffix.brackets = word(name), marks is not None
            suffix.variable_span = place_of(name, marks)
            suffix.span = suffix.span.to(suffix.variable_span)
    return suffix


def _optional(inner: tree.Component, suffix: _Suffix) -> tree.Component | None:
    """`(C c)?` is `C? c`, and `(C+ c[])?` is `C* c[]`; None where parentheses say something else."""
    assert suffix.repetition is not None
    if suffix.repetition.mark is not tree.Mark.OPTIONAL:
        return None
    mark = None if inner.repetition is None else inner.repetition.mark
    if mark in (None, tree.Mark.OPTIONAL) and not inner.brackets:
        return replace(inner, repetition=suffix.repetition, span=suffix.span)
    if mark in (tree.Mark.PLUS, tree.Mark.STAR) and inner.brackets:
        repetition = tree.Repetition(tree.Mark.STAR, 0, None, span=suffix.repetition.span)
        return replace(inner, repetition=repetition, span=suffix.span)
    return None


def _count(token: Token) -> int:
    """Python refuses to convert thousands of digits; twenty are too many already."""
    return int(token) if len(token) < 20 else _MAX_COUNT + 1


def _repetition(mark: tree.Mark, low: Token | None, high: Token | None, span: Span) -> tree.Repetition:
    minimum = _count(low) if low is not None else 0
    maximum = _count(high) if high is not None else None
    if minimum > _MAX_COUNT or (maximum is not None and (maximum > _MAX_COUNT or maximum < max(1, minimum))):
        raise BadRepetition("no number of events satisfies this", span, hint="write `{m,n}` with 0 ≤ m ≤ n and n ≥ 1")
    return tree.Repetition(mark, minimum, maximum, span=span)

"""Patterns: one method a rule of the grammar; each gets its children, already built."""

from __future__ import annotations

from typing import Any

from lark import Token

from kleene.errors import BadRepetition, Span
from kleene.lang import tree
from kleene.lang.building import build, place_of, span_of, word


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
        types = tuple(item for item in items if isinstance(item, tree.TypeName))
        return _component(types, items[len(types) :], any_of=True)

    def group(self, items: list[Any]) -> tree.Pattern:
        parts = tuple(item for item in items if not isinstance(item, tree.Repetition | tuple))
        repetition, variable, brackets, span = _suffix(items[len(parts) :], place_of(*parts))
        inner: tree.Pattern = parts[0]
        if len(parts) > 1:
            inner = build(tree.Sequence, parts, at=place_of(*parts), below=parts)
        if repetition is None and variable is None:
            return inner
        return build(tree.Group, inner, repetition, variable, brackets, at=span, below=(inner,))

    def plus(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.PLUS, 1, None, span=place_of(*items))

    def star(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.STAR, 0, None, span=place_of(*items))

    def optional(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.OPTIONAL, 0, 1, span=place_of(*items))

    def power(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.POWER, items[0], items[0], place_of(*items))

    def exactly(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.BRACES, items[0], items[0], place_of(*items))

    def between_counts(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.BRACES, items[0], items[2], place_of(*items))

    def variable(self, items: list[Any]) -> tuple[Token, Token | None]:
        return items[0], items[1]

    def type_name(self, items: list[Any]) -> tree.TypeName:
        return tree.TypeName(word(items[0]), span=span_of(items[0]))


def _component(types: tuple[tree.TypeName, ...], rest: list[Any], *, any_of: bool) -> tree.Component:
    repetition, variable, brackets, span = _suffix(rest, place_of(*types))
    return tree.Component(types, any_of, repetition, variable, brackets, span=span)


def _suffix(rest: list[Any], span: Span) -> tuple[tree.Repetition | None, str | None, bool, Span]:
    repetition, variable, brackets = None, None, False
    for item in rest:
        if isinstance(item, tree.Repetition):
            repetition, span = item, span.to(item.span)
        elif item is not None:
            name, marks = item
            variable, brackets = word(name), marks is not None
            span = span.to(place_of(name, marks))
    return repetition, variable, brackets, span


def _repetition(mark: tree.Mark, low: Token | None, high: Token | None, span: Span) -> tree.Repetition:
    minimum = int(low) if low is not None else 0
    maximum = int(high) if high is not None else None
    if minimum > 2**31 or (maximum is not None and (maximum > 2**31 or maximum < max(1, minimum))):
        raise BadRepetition("no number of events satisfies this", span, hint="write `{m,n}` with 0 ≤ m ≤ n and n ≥ 1")
    return tree.Repetition(mark, minimum, maximum, span=span)

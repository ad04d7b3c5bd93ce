"""Queries of EQL: one method a rule of `eql.lark`; each gets its children, already built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from lark import Token

from kleene.errors import BadDuration, Span, SyntaxProblem, UnclearException
from kleene.lang import eql_tree as eql
from kleene.lang import tree
from kleene.lang.build_expressions import Expressions
from kleene.lang.building import build, place_of, span_of, word
from kleene.lang.eql_advice import FILTERS, WITHOUT_DELAY
from kleene.lang.eql_pattern_advice import PATTERN_WORDS
from kleene.lang.format import format_duration
from kleene.lang.format_eql import format_event_pattern

# Patterns of any number of parts, which brackets between their signs do not divide.
Flat = eql.NextChain | eql.EitherPattern
F = TypeVar("F", eql.NextChain, eql.EitherPattern)

# Longer patterns are not repeated in hints.
_SHOWN = 60
# Functions that are words of the language, written in any case.
_FIELDS = frozenset(["prev", "all"])


@dataclass(frozen=True, slots=True)
class InParentheses:
    """A pattern that stands in parentheses, until what it is an operand of is built."""

    pattern: eql.EventPattern
    span: Span


class EqlQueries(Expressions):
    # Clauses

    def eql_query(self, items: list[Any]) -> eql.EqlQuery:
        chosen, pattern, qualifications, into = items
        pattern = _bare(pattern)
        if into is not None and chosen is None:
            raise SyntaxProblem(
                "`SELECT *` makes no stream",
                into[1],
                hint="name the fields that the stream has: `SELECT S1.acc, L.amount AS large FROM …`",
            )
        returns = None if chosen is None else tree.Return(chosen, into and into[0], span=place_of(*chosen))
        return eql.EqlQuery(pattern, qualifications or (), returns, span=pattern.span)

    def all_fields(self, _: list[Any]) -> None:
        return None

    def chosen_fields(self, items: list[Any]) -> tuple[tree.ReturnItem, ...]:
        for item in items:
            _refuse_filters(item.value)
        return tuple(items)

    def into(self, items: list[Any]) -> tuple[str, Span]:
        return items[1].name, place_of(*items)

    def qualifications(self, items: list[Any]) -> tuple[eql.Qualification, ...]:
        """Conditions between commas; AND between them, and in FILTER, is another comma."""
        return tuple(each for item in items for each in _qualifications(item))

    # Patterns

    def event_source(self, items: list[Any]) -> eql.EventSource:
        kind, alias = items
        _check_word(kind.name, kind.span)
        if alias is None:
            return eql.EventSource(kind, span=kind.span)
        _check_word(str(alias), span_of(alias))
        return eql.EventSource(kind, word(alias), alias_span=span_of(alias), span=place_of(kind, alias))

    def parenthesised_pattern(self, items: list[Any]) -> InParentheses:
        opening, pattern, closing = items
        return InParentheses(_bare(pattern), place_of(opening, closing))

    def next_chain(self, items: list[Any]) -> eql.NextChain:
        return _flat(eql.NextChain, items)

    def either(self, items: list[Any]) -> eql.EitherPattern:
        return _flat(eql.EitherPattern, items)

    def iterated(self, items: list[Any]) -> eql.Iterated:
        operand, mark = items
        return build(eql.Iterated, _bare(operand), at=place_of(operand, mark), below=(_bare(operand),))

    def excepted(self, items: list[Any]) -> eql.Excepted:
        _check_clear(items)
        operand, _, exception = items
        below = (_bare(operand), _bare(exception))
        return build(eql.Excepted, *below, at=place_of(operand, exception), below=below)

    def delayed(self, items: list[Any]) -> eql.Delayed:
        raise SyntaxProblem("EQL has no sign for the time operator", span_of(items[1]), hint=WITHOUT_DELAY)

    # Conditions

    def occurs_within(self, items: list[Any]) -> tree.OccursWithin:
        opening, *names, _, duration = items
        listed = tuple(tree.Name(word(name), span=span_of(name)) for name in names)
        return build(tree.OccursWithin, listed, duration, at=place_of(opening, duration))

    def negative_time(self, items: list[Any]) -> tree.Duration:
        sign, duration = items
        raise BadDuration(
            "a length of time is not negative",
            place_of(sign, duration),
            hint=f"leave out the sign: `{format_duration(duration)}`",
        )

    def call(self, items: list[Any]) -> tree.Call:
        if items[0].casefold() in _FIELDS:
            items = [Token.new_borrow_pos("NAME", items[0].upper(), items[0]), *items[1:]]
        return super().call(items)


class DelayedQueries(EqlQueries):
    """EQL with the sign of the time operator, as queries that are built in Python are printed."""

    def delayed(self, items: list[Any]) -> eql.Delayed:
        operand, _, delay = items
        return build(eql.Delayed, _bare(operand), delay, at=place_of(operand, delay), below=(_bare(operand),))


def _bare(operand: Any) -> Any:
    return operand.pattern if isinstance(operand, InParentheses) else operand


def _flat(node: type[F], items: list[Any]) -> F:
    """Chains of chains are one, unions of unions too, whatever the parentheses."""
    parts: list[eql.EventPattern] = []
    for item in map(_bare, items):
        parts.extend(item.parts if isinstance(item, node) else [item])
    return build(node, tuple(parts), at=place_of(*items), below=tuple(parts))


def _check_word(name: str, at: Span) -> None:
    """Refuse a word of another pattern language where a source or its alias stands; one in backquotes is a name."""
    if name.casefold() in PATTERN_WORDS and at.end - at.start == len(name):
        raise SyntaxProblem(f"unexpected `{name}`", at, hint=PATTERN_WORDS[name.casefold()])


# Exceptions ----------------------------------------------------------------------------------------------------------


def _check_clear(items: list[Any]) -> None:
    r"""Refuse `A ; B \ C` and `A \ B \ C`: nobody could tell what the exception belongs to."""
    operand, mark, exception, *others = items
    if others:
        again, third = others[:2]
        raise UnclearException(
            r"`\` beside another `\` needs parentheses",
            span_of(again),
            hint=_either_of(
                eql.Excepted(eql.Excepted(_bare(operand), _bare(exception)), _bare(third)),
                eql.Excepted(_bare(operand), eql.Excepted(_bare(exception), _bare(third))),
                r"`(A \ B) \ C`, or `A \ (B \ C)`",
            ),
        )
    loose = [each for each in (operand, exception) if isinstance(each, Flat)]
    if not loose:
        return
    sign = ";" if isinstance(loose[0], eql.NextChain) else "|"
    raise UnclearException(
        rf"`\` beside `{sign}` needs parentheses",
        span_of(mark),
        hint=_either_of(
            _tight(operand, exception),
            eql.Excepted(_bare(operand), _bare(exception)),
            rf"`A {sign} (B \ C)`, or `(A {sign} B) \ C`",
        ),
    )


def _tight(operand: Any, exception: Any) -> eql.EventPattern:
    r"""`A ; B \ C ; D` read as `A ; (B \ C) ; D`."""
    before, last = _split(operand, -1)
    after, first = _split(exception, 0)
    inner: eql.EventPattern = eql.Excepted(last, first)
    # What binds tighter is joined first.
    for node in sorted((each for each in (before, after) if each), key=lambda each: isinstance(each, eql.NextChain)):
        middle = inner.parts if type(inner) is type(node) else (inner,)
        inner = type(node)((*node.parts, *middle) if node is before else (*middle, *node.parts))
    return inner


def _split(operand: Any, place: int) -> tuple[Flat | None, eql.EventPattern]:
    """What a bare chain or union has besides the part at a place, and that part."""
    if not isinstance(operand, Flat):
        return None, _bare(operand)
    return type(operand)(operand.parts[:-1] if place == -1 else operand.parts[1:]), operand.parts[place]


def _either_of(first: eql.EventPattern, second: eql.EventPattern, otherwise: str) -> str:
    texts = [format_event_pattern(each) for each in (first, second)]
    short = all(len(text) <= _SHOWN and text.isprintable() for text in texts)
    return "write " + (" or ".join(f"`{text}`" for text in texts) if short else otherwise)


# Qualifications ------------------------------------------------------------------------------------------------------


def _qualifications(condition: tree.Expression) -> Iterator[eql.Qualification]:
    for part in condition.operands if isinstance(condition, tree.And) else [condition]:
        if not _is_filter(part):
            _refuse_filters(part)
            yield build(eql.Qualification, part, at=part.span, below=(part,))
            continue
        assert isinstance(part, tree.Call)
        if len(part.arguments) > 1:
            raise SyntaxProblem(
                "FILTER holds one condition", part.arguments[1].span, hint="write `FILTER(p AND q)`, or two filters"
            )
        (inner,) = part.arguments
        _refuse_filters(inner)
        for each in inner.operands if isinstance(inner, tree.And) else [inner]:
            yield build(eql.Qualification, each, True, at=each.span, below=(each,))


def _is_filter(condition: tree.Expression) -> bool:
    return isinstance(condition, tree.Call) and condition.function.casefold() == "filter"


def _refuse_filters(condition: tree.Expression) -> None:
    for node in tree.walk(condition):
        if isinstance(node, tree.Call) and _is_filter(node):
            raise SyntaxProblem("FILTER cannot stand here", node.span, hint=FILTERS)

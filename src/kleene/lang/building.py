"""What the builders of syntax trees share: places, words, and a bound on depth."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from lark import Token

from kleene.errors import BadDuration, Span, TooDeep, did_you_mean
from kleene.lang import tree
from kleene.lang.durations import TICKS, all_units, unit_named

MAX_DEPTH = 150

N = TypeVar("N", bound=tree.Node)


def place_of(*parts: Any) -> Span:
    """The place from the first to the last of some tokens and nodes."""
    spans = [span_of(part) for part in parts if part is not None]
    return Span(min(s.start for s in spans), max(s.end for s in spans))


def span_of(part: Any) -> Span:
    if isinstance(part, Token):
        start = part.start_pos or 0
        return Span(start, start + len(part))
    assert isinstance(part.span, Span)
    return part.span


def word(token: Token) -> str:
    return str(token)[1:-1] if token.type == "QUOTED" else str(token)


def build(node: Callable[..., N], *values: Any, at: Span, below: tuple[Any, ...] = (), **named: Any) -> N:
    depth = 1 + max((child.depth for child in below), default=0)
    if depth > MAX_DEPTH:
        raise TooDeep(f"nested more than {MAX_DEPTH} deep", at, hint="split the query, or write the condition flatter")
    return node(*values, span=at, depth=depth, **named)


def quantity_of(amount: Token, unit: Token | None) -> tree.Quantity:
    name = TICKS if unit is None else unit_named(unit)
    if name is None:
        raise BadDuration(
            f"`{unit}` is not a unit",
            place_of(unit),
            hint=did_you_mean(str(unit), all_units()) or "a unit or an operator follows a number; is AND missing?",
        )
    span = place_of(amount, unit)
    if amount.type == "PARAMETER":
        return tree.Quantity(tree.Parameter(str(amount)[1:], span=span_of(amount)), name, span=span)
    if len(amount) > 40:
        raise BadDuration("this amount is too large", span)
    return tree.Quantity(Fraction(str(amount)), name, span=span)


def text_of(token: str) -> str:
    quote, body = token[0], str(token)[1:-1]
    return body.replace(quote * 2, quote) if quote in "'\"" else body

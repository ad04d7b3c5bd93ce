"""The aggregate functions of the language."""

from __future__ import annotations

from kleene.errors import Span, UnknownFunction, did_you_mean
from kleene.lang import tree

AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last")


def aggregate_named(call: tree.Call) -> str:
    """The aggregate that a call names, in lower case."""
    name = call.function.casefold()
    if name not in AGGREGATES:
        span = Span(call.span.start, call.span.start + len(call.function))
        raise UnknownFunction(f"unknown function `{call.function}`", span, hint=did_you_mean(name, AGGREGATES))
    return name

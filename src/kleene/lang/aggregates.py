"""The aggregate functions of the language."""

from __future__ import annotations

from kleene.errors import Span, SyntaxProblem, UnknownFunction, did_you_mean
from kleene.lang import tree

AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last")


def aggregate_named(call: tree.Call) -> str:
    """The aggregate that a call names, in lower case."""
    name = call.function.casefold()
    if name not in AGGREGATES:
        span = Span(call.span.start, call.span.start + len(call.function))
        if name in {strategy.value for strategy in tree.SelectionStrategy}:
            raise SyntaxProblem("a strategy is followed by its conditions", span, hint=f"`{name}(…) {{ … }}`")
        raise UnknownFunction(f"unknown function `{call.function}`", span, hint=did_you_mean(name, AGGREGATES))
    return name

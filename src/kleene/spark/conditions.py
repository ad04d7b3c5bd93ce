"""Conditions on single events as plain data, which Spark tests as columns and tasks as Arrow arrays.

A condition is a tuple that begins with the name of its kind, so it can travel to tasks:

    never                           false for every event
    all, any     conditions         a list of them
    is_null      column, negated
    compare      operator, left, right
    among        value, list, type, negated
    between      value, low, high, type
    contains     text, part, negated

    column       name, type         the type that it is compared as: `bigint`, `double`, or None for its own
    constant     value, type        a `ValueType` by its value; a moment in microseconds
    integers     operator, left, right    64 bits; what overflows is NULL, or anything
    reals        operator, left, right

There is no negation of a condition. So a reader that cannot test one may take it as true, and the whole is only weaker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Condition = tuple[Any, ...]

NEVER: Condition = ("never",)


def any_of(parts: Sequence[Condition | None]) -> Condition | None:
    """One of them holds; None, which always holds, makes it always so."""
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    return known[0] if len(known) == 1 else ("any", known)


def all_of(parts: Iterable[Condition | None]) -> Condition | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    return known[0] if len(known) == 1 else ("all", known)


def columns_in(condition: Condition) -> Iterator[str]:
    """The columns that a condition is about; some several times."""
    kind, *parts = condition
    if kind == "column":
        yield parts[0]
        return
    for part in parts:
        for inner in part if isinstance(part, list) else [part]:
            if isinstance(inner, tuple):
                yield from columns_in(inner)

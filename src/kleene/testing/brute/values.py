"""The value of an expression for one assignment: the semantics page §2 and §3 Conditions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kleene.lang import tree
from kleene.lang.tree import Index
from kleene.testing.brute.stream import BruteEvent, BruteStream, Nothing

Assignment = Mapping[str, tuple[BruteEvent, ...]]

MISSING, UNDEFINED = Nothing.MISSING, Nothing.UNDEFINED
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Binding:
    """Which events each variable has; an absent variable has none. `turn` is the i − 1 of `a[i]`."""

    stream: BruteStream
    chosen: Assignment
    # The variables that hold lists (Kleene or closure): `a.LEN` is their length.
    lists: frozenset[str]
    # An unqualified attribute's variable.
    owners: Mapping[str, str]
    params: Mapping[str, Any]
    turn: int = 0

    def events(self, variable: str, index: Index | tree.Nth | None) -> tuple[BruteEvent, ...]:
        """The events that a reference speaks of: one, several, or none when the variable is absent."""
        events = self.chosen.get(variable, ())
        match index:
            case Index.FIRST:
                return events[:1]
            case tree.Nth(position):
                return events[position - 1 : position]
            case Index.LAST:
                return events[-1:]
            case Index.CURRENT:
                return events[self.turn : self.turn + 1]
            case Index.PREVIOUS:
                return events[self.turn - 1 : self.turn]
            case Index.SO_FAR:
                return events[: self.turn]
        return events


def evaluate(expression: tree.Expression, binding: Binding) -> Any:
    """A value, None for NULL, MISSING or UNDEFINED."""
    match expression:
        case tree.Literal(value):
            return value
        case tree.Parameter(name):
            return binding.params[name]
        case tree.Percent(operand):
            return arithmetic("/", evaluate(operand, binding), 100)
        case tree.Negative(operand):
            return arithmetic("-", 0, evaluate(operand, binding))
        case tree.Arithmetic(sign, left, right):
            return arithmetic(sign, evaluate(left, binding), evaluate(right, binding))
        case tree.Call(function, arguments):
            return _aggregate(function.casefold(), arguments[0], binding)
        case tree.Name(name):
            return _attribute(binding.owners[name], None, name, binding)
        case tree.Attribute(variable, index, attribute):
            if attribute.casefold() == "len" and index is None and variable in binding.lists:
                return len(binding.events(variable, None))
            return _attribute(variable, index, attribute, binding)
    raise NotImplementedError(f"no value for {expression!r}")


def _attribute(variable: str, index: Index | tree.Nth | None, attribute: str, binding: Binding) -> Any:
    events = binding.events(variable, index)
    if isinstance(index, tree.Nth) and not events and binding.chosen.get(variable):
        return None  # the variable is there, and has fewer events
    return binding.stream.value(events[0], attribute) if events else MISSING


def arithmetic(sign: str, left: Any, right: Any) -> Any:
    """`+ - * / %` on numbers; missing beats undefined beats NULL."""
    for nothing in (MISSING, UNDEFINED, None):
        if left is nothing or right is nothing:
            return nothing
    if sign in "/%" and right == 0:
        return UNDEFINED
    try:
        return _defined(_OPERATIONS[sign](left, right))
    except OverflowError:
        return UNDEFINED


def _defined(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else UNDEFINED
    return value if _SMALLEST <= value <= _LARGEST else UNDEFINED


def _remainder(left: Any, right: Any) -> Any:
    """The remainder with the sign of the dividend, as in SQL."""
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right)
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": _remainder,
}


def _aggregate(function: str, argument: tree.Expression, binding: Binding) -> Any:
    """Aggregates skip NULL (and missing) values; of an absent variable they are missing, but `count` is 0."""
    variable, index, attribute = aggregated(argument, binding.owners)
    events = binding.events(variable, index)
    if attribute is None:
        return len(events)
    values = list(_present(events, attribute, binding.stream))
    if function == "count":
        return len(values)
    if not events:
        return MISSING
    return _summary(function, values) if values else None


def aggregated(argument: tree.Expression, owners: Mapping[str, str]) -> tuple[str, Index | tree.Nth | None, str | None]:
    """The variable, index and attribute that an aggregate is over; no attribute means the events themselves."""
    match argument:
        case tree.Attribute(variable, index, attribute):
            return variable, index, attribute
        case tree.Events(variable, index):
            return variable, index, None
        case tree.Name(name):
            return (owners[name], None, name) if name in owners else (name, None, None)
    raise NotImplementedError(f"no aggregate over {argument!r}")


def _present(events: tuple[BruteEvent, ...], attribute: str, stream: BruteStream) -> Iterator[Any]:
    for event in events:
        value = stream.value(event, attribute)
        if value is not None and value is not MISSING:
            yield value


def _summary(function: str, values: list[Any]) -> Any:
    match function:
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "first":
            return values[0]
        case "last":
            return values[-1]
        case "sum" | "avg":
            total = values[0]
            for value in values[1:]:
                total = arithmetic("+", total, value)
            return total if function == "sum" else arithmetic("/", total, len(values))
    raise NotImplementedError(f"no aggregate {function}")

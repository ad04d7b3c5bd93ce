"""What expressions mean on events (the semantics page §2): NULL, missing, undefined, and the truth of a literal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Protocol

from kleene.errors import BadParameter
from kleene.pattern.expressions import (
    Aggregate,
    Agrees,
    Among,
    Arithmetic,
    Assigned,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Contains,
    Elapsed,
    IsNull,
    Literal,
    Negative,
    Nth,
    OpenParameter,
    Truth,
    Value,
    Which,
)
from kleene.pattern.types import ValueType
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline


class Special(Enum):
    """What an expression can be besides a value."""

    MISSING = "the event's type has no such attribute, or the variable is absent"
    UNDEFINED = "arithmetic without a result"


MISSING, UNDEFINED = Special.MISSING, Special.UNDEFINED


class Bindings(Protocol):
    """What the names of an expression stand for."""

    def read(self, reference: Attribute | Aggregate | Elapsed) -> Any:
        """A Python value, None for NULL, MISSING, or UNDEFINED."""

    def covered(self, variable: str, attribute: str) -> list[Any]:
        """The values of an attribute in all events that a Kleene variable has so far."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The events selected so far, by variable, and the one being looked at as `a[i]` or as a closure's member."""

    timeline: ReferenceTimeline
    selected: Mapping[str, tuple[ReferenceEvent, ...]]
    current: ReferenceEvent | None = field(default=None)

    def read(self, reference: Attribute | Aggregate | Elapsed) -> Any:
        match reference:
            case Aggregate():
                return _aggregate(reference, self)
            case Attribute(variable, which, attribute, _):
                event = _event(self, variable, which)
                return MISSING if event is None else _attribute(self, event, attribute)
        raise TypeError("DUR is of the stream algebra")

    def covered(self, variable: str, attribute: str) -> list[Any]:
        return _attributes(self, _covered(self, variable), attribute)


def holds(clause: Clause, environment: Bindings) -> bool:
    return any(literal_holds(literal, environment) for literal in clause.literals)


def literal_holds(literal: Literal, environment: Bindings) -> bool:
    """True, or not: unknown is not a match, and NOT has been pushed down already."""
    match literal:
        case Truth(value):
            return value
        case Comparison(operator, left, right):
            return _compare(operator, evaluate(left, environment), evaluate(right, environment))
        case IsNull(operand, negated):
            value = evaluate(operand, environment)
            return (value is None or value is MISSING) != negated and value is not UNDEFINED
        case Among(operand, values, negated):
            return _is_among(evaluate(operand, environment), values, negated)
        case Contains(left, right, negated):
            haystack, needle = evaluate(left, environment), evaluate(right, environment)
            if haystack is MISSING or needle is MISSING:
                return True
            if not isinstance(haystack, str) or not isinstance(needle, str):
                return False
            return (needle in haystack) != negated
        case Agrees(left, variable, _, attribute):
            value = evaluate(left, environment)
            return all(_compare("=", value, other) for other in environment.covered(variable, attribute))


def _is_among(value: Any, values: tuple[Any, ...], negated: bool) -> bool:
    """As equality with one of them, or inequality with all."""
    if value is MISSING or value is None or value is UNDEFINED:
        return value is MISSING
    return (value in values) != negated


def _compare(operator: str, left: Any, right: Any) -> bool:
    """Missing makes a comparison true; undefined arithmetic and NaN make it false; NULL makes it unknown."""
    if left is MISSING or right is MISSING:
        return True
    if left is None or right is None or left is UNDEFINED or right is UNDEFINED:
        return False
    if left != left or right != right:
        return False
    match operator:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
    return bool(left >= right)


def evaluate(value: Value, environment: Bindings) -> Any:
    """A Python value, None for NULL, MISSING, or UNDEFINED."""
    match value:
        case Constant():
            return value.value
        case Assigned(operand, kind):
            return assigned(evaluate(operand, environment), kind)
        case Attribute() | Aggregate() | Elapsed():
            return environment.read(value)
        case Negative(operand, kind):
            return _arithmetic("-", 0, evaluate(operand, environment), kind)
        case Arithmetic(operator, left, right, kind):
            return _arithmetic(operator, evaluate(left, environment), evaluate(right, environment), kind)
        case OpenParameter(name):
            raise BadParameter(f"parameter `:{name}` has no value", hint=f"pass params={{'{name}': …}}")
    raise TypeError(f"not a value: {value!r}")


def _event(environment: Environment, variable: str, which: Which) -> ReferenceEvent | None:
    if which in (Which.CURRENT, Which.MEMBER):
        return environment.current
    events = environment.selected.get(variable, ())
    if not events:
        return None
    return events[0] if which in (Which.SINGLE, Which.FIRST) else events[-1]


def _attribute(environment: Environment, event: ReferenceEvent, attribute: str) -> Any:
    return event.values.get(attribute) if environment.timeline.has_attribute(event, attribute) else MISSING


def _covered(environment: Environment, variable: str) -> tuple[ReferenceEvent, ...]:
    """The events of `a[..]` and of `a[..i-1]`: while `a[i]` is tested, only the events before it are selected."""
    return environment.selected.get(variable, ())


def _attributes(environment: Environment, events: Iterable[ReferenceEvent], attribute: str) -> list[Any]:
    return [_attribute(environment, event, attribute) for event in events]


def _aggregate(aggregate: Aggregate, environment: Environment) -> Any:
    events = _covered(environment, aggregate.variable)
    if aggregate.attribute is None:
        return len(events)
    if isinstance(aggregate, Nth) and events:
        # An event that is not there has no value; one whose type lacks the attribute makes it missing.
        rest = events[aggregate.position - 1 :]
        return _attribute(environment, rest[0], aggregate.attribute) if rest else None
    values = [v for v in _attributes(environment, events, aggregate.attribute) if v is not None and v is not MISSING]
    if aggregate.function == "count":
        return len(values)
    if not events:
        return MISSING
    if not values:
        return None
    match aggregate.function:
        case "first":
            return values[0]
        case "last":
            return values[-1]
        case "min":
            return UNDEFINED if any(v != v for v in values) else min(values)
        case "max":
            return UNDEFINED if any(v != v for v in values) else max(values)
    total = values[0]
    for value in values[1:]:
        total = _arithmetic("+", total, value, _value_type(total, value))
    if aggregate.function == "sum" or total is UNDEFINED:
        return _in_range(total)
    return _arithmetic("/", total, len(values), ValueType.FLOAT)


def _value_type(left: Any, right: Any) -> ValueType:
    if isinstance(left, float) or isinstance(right, float):
        return ValueType.FLOAT
    return ValueType.DECIMAL if isinstance(left, Decimal) or isinstance(right, Decimal) else ValueType.INT


def assigned(value: Any, kind: ValueType) -> Any:
    """A value as an attribute of a stream has it: one that is undefined is NULL, a column of reals holds reals."""
    if value is UNDEFINED:
        return None
    if kind is ValueType.FLOAT and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # 0.0 and −0.0 are equal, and streams are sets: one of them stands for both.
    return value + 0.0 if isinstance(value, float) else value


_LIMIT = 2**63


def _in_range(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and not -_LIMIT <= value < _LIMIT:
        return UNDEFINED
    if isinstance(value, float) and not math.isfinite(value):
        return UNDEFINED
    return value


def _arithmetic(operator: str, left: Any, right: Any, kind: ValueType) -> Any:
    """Missing spreads first, then undefined, then NULL; integers keep to 64 bits."""
    for special in (MISSING, UNDEFINED, None):
        if left is special or right is special:
            return special
    if isinstance(left, bool | str) or isinstance(right, bool | str):
        return UNDEFINED
    if isinstance(left, float) or isinstance(right, float) or operator == "/":
        left, right = _real(left), _real(right)
        if left is UNDEFINED or right is UNDEFINED:
            return UNDEFINED
    return _in_range(_compute(operator, left, right))


def _real(value: Any) -> Any:
    try:
        return float(value)
    except OverflowError:
        return UNDEFINED


def _compute(operator: str, left: Any, right: Any) -> Any:
    try:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
    except (OverflowError, ArithmeticError):
        return UNDEFINED
    if right == 0:
        return UNDEFINED
    if isinstance(left, int) and isinstance(right, int):
        return int(math.copysign(1, left)) * (abs(left) % abs(right)) if left else 0
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return Decimal(left) % Decimal(right)
    return UNDEFINED if math.isinf(left) else math.fmod(left, right)

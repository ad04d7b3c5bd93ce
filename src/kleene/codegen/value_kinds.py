"""What the values of a condition are when it runs: integers, reals, codes of strings, steps of time.

What a column really holds decides, as it does in the reference evaluator; `Attribute.type` may be wider.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from kleene.pattern.expressions import (
    Aggregate,
    Arithmetic,
    Assigned,
    Attribute,
    Constant,
    Elapsed,
    Negative,
    OpenParameter,
    Value,
)
from kleene.pattern.types import TIMES, ValueType, arithmetic_type
from kleene.plan.layout import Column, Layout
from kleene.plan.program import NotCompilable

TIME_LIKE = TIMES | {ValueType.DURATION}
# Types that only NULL has.
NO_VALUES = frozenset({ValueType.NULL, ValueType.UNKNOWN})
# Types that have values, but none that the machine knows.
FOREIGN = frozenset({ValueType.DECIMAL, ValueType.OTHER})
_NUMBERS = frozenset({ValueType.INT, ValueType.FLOAT})
# The types of parameters whose values programs are given later.
_OPEN = _NUMBERS | {ValueType.STRING, ValueType.BOOL}
# The steps that time-like columns may have, shortest first: each divides the next.
_STEPS = (1, 1_000, 1_000_000, 1_000_000_000, 86_400_000_000_000)


@dataclass(frozen=True, slots=True)
class ValueKind:
    type: ValueType
    # Of times and durations: how many nanoseconds one step is.
    step: int = 1


NULL = ValueKind(ValueType.NULL)
INT = ValueKind(ValueType.INT)
REAL = ValueKind(ValueType.FLOAT)


def column_named(name: str, layout: Layout) -> Column:
    if name not in layout.columns:
        raise NotCompilable(f"column `{name}` is not in the layout")
    return layout.columns[name]


def kind_of(value: Value, layout: Layout) -> ValueKind:
    match value:
        case Constant():
            return _constant_kind(value)
        case Attribute():
            column = layout.column_of(value)
            return ValueKind(column.type, column.step)
        case Aggregate(function, _, _, name):
            return INT if name is None else aggregate_kind(function, column_named(name, layout))
        case Negative(operand):
            return kind_of(from_zero(operand, layout), layout)
        case Arithmetic(operator, left, right):
            return _arithmetic_kind(operator, kind_of(left, layout), kind_of(right, layout))
        case Elapsed(kind):
            return ValueKind(kind)
        case Assigned(operand, kind):
            own = kind_of(operand, layout)
            return REAL if kind is ValueType.FLOAT and own == INT else own
        case OpenParameter(name, kind):
            if kind not in _OPEN:
                raise NotCompilable(f"parameter `:{name}` has no value")
            return ValueKind(kind)
    raise NotCompilable(f"a {type(value).__name__} is no value of a condition")


def aggregate_kind(function: str, column: Column) -> ValueKind:
    """The kind of an aggregate over a column; `agreed` counts as an aggregate."""
    if function == "count":
        return INT
    if column.type in NO_VALUES:
        return NULL
    if column.type in FOREIGN or (function in ("sum", "avg") and column.type not in _NUMBERS):
        raise NotCompilable(f"{function} of {column.type.value} values")
    return REAL if function == "avg" else ValueKind(column.type, column.step)


def from_zero(operand: Value, layout: Layout) -> Arithmetic:
    """`-x` as the difference `0 - x`."""
    kind = kind_of(operand, layout)
    zero = Constant(0, kind.type if kind.type is ValueType.DURATION else ValueType.INT)
    return Arithmetic("-", zero, operand, kind.type)


def _arithmetic_kind(operator: str, left: ValueKind, right: ValueKind) -> ValueKind:
    for kind in (left, right):
        if kind.type in FOREIGN:
            raise NotCompilable(f"arithmetic on {kind.type.value} values")
    if left.type in NO_VALUES or right.type in NO_VALUES:
        return NULL
    result_type = arithmetic_type(operator, left.type, right.type)
    if result_type is None:
        raise NotCompilable(f"{left.type.value} {operator} {right.type.value}")
    return ValueKind(result_type)


# Constants -----------------------------------------------------------------------------------------------------------


def _constant_kind(constant: Constant) -> ValueKind:
    value = constant.value
    if isinstance(value, Decimal):
        raise NotCompilable("decimal constants")
    if value is None:
        return NULL
    if isinstance(value, bool):
        return ValueKind(ValueType.BOOL)
    if isinstance(value, str):
        return ValueKind(ValueType.STRING)
    if isinstance(value, float):
        return REAL
    if constant.type in TIME_LIKE:
        return ValueKind(constant.type, in_steps(value)[1])
    if not fits(value):
        raise NotCompilable("an integer beyond 64 bits")
    return INT


def fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def in_steps(nanoseconds: int, wanted: int = 1) -> tuple[int, int]:
    """A constant time as a number of steps and their length: the wanted one, where that loses nothing."""
    for step in (wanted, *_STEPS):
        if nanoseconds % step == 0 and fits(nanoseconds // step):
            return nanoseconds // step, step
    raise NotCompilable("a time beyond 64 bits")


def beside(value: Value, kind: ValueKind) -> Value:
    """A constant number in the kind of the other side, where that loses nothing."""
    if not isinstance(value, Constant) or isinstance(value.value, bool):
        return value
    number = value.value
    if kind == REAL and isinstance(number, int) and fits(number) and int(float(number)) == number:
        return Constant(float(number), ValueType.FLOAT)
    if kind == INT and isinstance(number, float) and number.is_integer() and fits(int(number)):
        return Constant(int(number), ValueType.INT)
    return value

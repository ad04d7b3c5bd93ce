"""The types of values, and what may be done with them."""

from __future__ import annotations

from enum import Enum


class ValueType(Enum):
    INT = "int"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOL = "bool"
    STRING = "string"
    TIMESTAMP = "timestamp"
    ZONED = "timestamp with time zone"
    DURATION = "duration"
    OTHER = "nested or binary"
    NULL = "null"
    UNKNOWN = "unknown"


_NAMES = {
    ValueType.INT: "int integer long bigint smallint tinyint int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    ValueType.FLOAT: "float double real float32 float64",
    ValueType.DECIMAL: "decimal numeric",
    ValueType.BOOL: "bool boolean",
    ValueType.STRING: "string str text varchar char",
    ValueType.TIMESTAMP: "timestamp datetime date",
    ValueType.ZONED: "timestamptz zoned",
    ValueType.DURATION: "duration interval",
}
TYPE_NAMES = {name: kind for kind, names in _NAMES.items() for name in names.split()}

NUMERIC = frozenset({ValueType.INT, ValueType.FLOAT, ValueType.DECIMAL})
TIMES = frozenset({ValueType.TIMESTAMP, ValueType.ZONED})
_LOOSE = frozenset({ValueType.UNKNOWN, ValueType.NULL})
_UNORDERED = frozenset({ValueType.BOOL, ValueType.OTHER})


def comparable(left: ValueType, right: ValueType, operator: str) -> bool:
    """Whether two types may stand on the sides of a comparison."""
    if ValueType.OTHER in (left, right):
        return False
    if operator not in ("=", "!=") and (left in _UNORDERED or right in _UNORDERED):
        return False
    if left in _LOOSE or right in _LOOSE:
        return True
    return left is right or (left in NUMERIC and right in NUMERIC)


def arithmetic_type(operator: str, left: ValueType, right: ValueType) -> ValueType | None:
    """The type of `left operator right`, or None when there is none."""
    if ValueType.NULL in (left, right):
        return ValueType.NULL
    if left is ValueType.UNKNOWN or right is ValueType.UNKNOWN:
        known = {left, right} - {ValueType.UNKNOWN}
        usable = known <= NUMERIC | TIMES | {ValueType.DURATION}
        return ValueType.UNKNOWN if usable else None
    if left in NUMERIC and right in NUMERIC:
        if operator == "/" or ValueType.FLOAT in (left, right):
            return ValueType.FLOAT
        return ValueType.DECIMAL if ValueType.DECIMAL in (left, right) else ValueType.INT
    if operator == "-" and left in TIMES and left is right:
        return ValueType.DURATION
    if operator in "+-" and left in TIMES and right is ValueType.DURATION:
        return left
    if operator == "+" and left is ValueType.DURATION and right in TIMES:
        return right
    if operator in "+-" and left is right is ValueType.DURATION:
        return ValueType.DURATION
    return None


def aggregate_type(function: str, argument: ValueType) -> ValueType | None:
    """The type of an aggregate over values of a type, or None when there is none."""
    if function == "count":
        return ValueType.INT
    if function in ("first", "last"):
        return argument
    if argument is ValueType.UNKNOWN:
        return ValueType.FLOAT if function == "avg" else ValueType.UNKNOWN
    if function in ("min", "max"):
        return None if argument in _UNORDERED else argument
    if argument not in NUMERIC:
        return None
    return ValueType.FLOAT if function == "avg" else argument

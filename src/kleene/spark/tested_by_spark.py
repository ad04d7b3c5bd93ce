"""Conditions on single events (`kleene.spark.conditions`) as columns of Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from kleene.pattern.types import ValueType
from kleene.spark.conditions import Condition
from kleene.spark.numbered import Numbered

if TYPE_CHECKING:
    from pyspark.sql import Column

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_INTEGERS = {"+": functions.try_add, "-": functions.try_subtract, "*": functions.try_multiply}
_REALS: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul}


def spark_column(condition: Condition, events: Numbered) -> Column:
    """A condition on the rows of a data frame."""
    column: Column = _SparkColumns(events).column_of(condition)
    return column


class _SparkColumns:
    """Each kind of condition as a column, by its name."""

    def __init__(self, events: Numbered) -> None:
        self._events = events

    def column_of(self, condition: Condition) -> Any:
        kind, *parts = condition
        return getattr(self, f"_{kind}")(*parts)

    def _never(self) -> Any:
        return functions.lit(False)

    def _all(self, parts: list[Condition]) -> Any:
        return reduce(and_, map(self.column_of, parts))

    def _any(self, parts: list[Condition]) -> Any:
        return reduce(or_, map(self.column_of, parts))

    def _is_null(self, column: Condition, negated: bool) -> Any:
        tested = self.column_of(column)
        return tested.isNotNull() if negated else tested.isNull()

    def _compare(self, operator: str, left: Condition, right: Condition) -> Any:
        return _COMPARE[operator](self.column_of(left), self.column_of(right))

    def _among(self, value: Condition, values: list[Any], _: str, negated: bool) -> Any:
        listed = self.column_of(value).isin(*values)
        return ~listed if negated else listed

    def _between(self, value: Condition, low: Any, high: Any, _: str) -> Any:
        return self.column_of(value).between(functions.lit(low), functions.lit(high))

    def _contains(self, text: Condition, part: Condition, negated: bool) -> Any:
        found = self.column_of(text).contains(self.column_of(part))
        return ~found if negated else found

    def _column(self, name: str, compared_as: str | None) -> Any:
        column = self._events.column(name)
        return column if compared_as is None else column.cast(compared_as)

    def _constant(self, value: Any, kind: str) -> Any:
        literal = functions.lit(value)
        if kind == ValueType.INT.value:
            return literal.cast("bigint")
        if kind == ValueType.FLOAT.value:
            return literal.cast("double")
        if kind in (ValueType.ZONED.value, ValueType.TIMESTAMP.value):
            # Written with its zone, so that the session's does not matter.
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
            if kind == ValueType.ZONED.value:
                return functions.lit(moment.isoformat()).cast("timestamp")
            return functions.lit(moment.replace(tzinfo=None).isoformat()).cast("timestamp_ntz")
        return literal

    def _integers(self, operator: str, left: Condition, right: Condition) -> Any:
        return _INTEGERS[operator](self.column_of(left), self.column_of(right))

    def _reals(self, operator: str, left: Condition, right: Condition) -> Any:
        return _REALS[operator](self.column_of(left).cast("double"), self.column_of(right).cast("double"))

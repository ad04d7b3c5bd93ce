"""Conditions on single events (`kleene.spark.conditions`) over Arrow's arrays, and as Arrow's expressions.

The proofs are those of `kleene.spark.pruning`, with Arrow in Spark's place:

    NULL         unknown drops a row on either side
    integers     what overflows wraps round: true or false, where ours is false
    reals        IEEE; `!=` is true of NaN, where ours is false
    strings      ordered by their bytes
    the rest     a condition that Arrow cannot test is true
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kleene.pattern.types import ValueType
from kleene.spark.conditions import Condition

_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CASTS = {"bigint": pa.int64(), "double": pa.float64()}
_TYPES = {
    ValueType.INT.value: pa.int64(),
    ValueType.FLOAT.value: pa.float64(),
    ValueType.BOOL.value: pa.bool_(),
    ValueType.STRING.value: pa.string(),
    ValueType.TIMESTAMP.value: pa.timestamp("us"),
    ValueType.ZONED.value: pa.timestamp("us", "UTC"),
}


def row_mask(condition: Condition, column: Callable[[str], pa.Array], rows: int) -> pa.Array:
    """Which rows satisfy a condition; NULL: unknown.

    column   the values of a column, strings perhaps as a dictionary
    """
    mask = _Testing(column, pa.scalar).test(condition)
    return pa.repeat(mask, rows) if isinstance(mask, pa.Scalar) else mask


def expression(condition: Condition) -> pc.Expression:
    """The condition, or a weaker one, for Arrow's own reader, which knows by it which row groups hold nothing."""
    return _Bounding(pc.field, lambda value, kind: pc.scalar(pa.scalar(value, kind))).test(condition)


class _Testing:
    """Each kind of condition, by its name, over what `column` and `constant` give: arrays, or expressions."""

    def __init__(self, column: Callable[[str], Any], constant: Callable[[Any, pa.DataType], Any]) -> None:
        self._columns, self._constants = column, constant

    def test(self, condition: Condition) -> Any:
        kind, *parts = condition
        return getattr(self, f"_{kind}")(*parts)

    @property
    def _true(self) -> Any:
        return self._constants(True, pa.bool_())

    def _never(self) -> Any:
        return self._constants(False, pa.bool_())

    def _all(self, parts: list[Condition]) -> Any:
        return reduce(pc.and_kleene, map(self.test, parts))

    def _any(self, parts: list[Condition]) -> Any:
        return reduce(pc.or_kleene, map(self.test, parts))

    def _is_null(self, column: Condition, negated: bool) -> Any:
        tested = self.test(column)
        return pc.is_valid(tested) if negated else pc.is_null(tested)

    def _compare(self, operator: str, left: Condition, right: Condition) -> Any:
        first, second = self.test(left), self.test(right)
        if isinstance(second, pa.Scalar):
            return _by_code(lambda values: _COMPARE[operator](values, second), first)
        return _COMPARE[operator](_decoded(first), _decoded(second))

    def _among(self, value: Condition, values: list[Any], kind: str, negated: bool) -> Any:
        if kind not in _TYPES:
            return self._true
        listed = pa.array(values, _TYPES[kind])
        found = _by_code(lambda tested: pc.is_in(tested, value_set=listed), self.test(value))
        return pc.invert(found) if negated else found

    def _between(self, value: Condition, low: Any, high: Any, kind: str) -> Any:
        if kind not in _TYPES:
            return self._true
        bounds = [("constant", bound, kind) for bound in (low, high)]
        return self._all([("compare", ">=", value, bounds[0]), ("compare", "<=", value, bounds[1])])

    def _contains(self, text: Condition, part: Condition, negated: bool) -> Any:
        if part[0] != "constant" or text[0] == "constant":
            # Arrow looks for one text in many.
            return self._true
        found = _by_code(lambda texts: pc.match_substring(texts, part[1]), self.test(text))
        return pc.invert(found) if negated else found

    def _column(self, name: str, compared_as: str | None) -> Any:
        values = self._columns(name)
        return values if compared_as is None else values.cast(_CASTS[compared_as])

    def _constant(self, value: Any, kind: str) -> Any:
        return self._constants(value, _TYPES[kind])

    def _integers(self, operator: str, left: Condition, right: Condition) -> Any:
        return _ARITHMETIC[operator](self.test(left), self.test(right))

    def _reals(self, operator: str, left: Condition, right: Condition) -> Any:
        first, second = (self.test(side).cast(pa.float64()) for side in (left, right))
        return _ARITHMETIC[operator](first, second)


class _Bounding(_Testing):
    """Only what least and greatest values can tell, and nothing that Arrow would have to cast: that can fail."""

    def _compare(self, operator: str, left: Condition, right: Condition) -> Any:
        if {left[0], right[0]} == {"column", "constant"} and _is_plain(left if left[0] == "column" else right):
            return super()._compare(operator, left, right)
        return self._true

    def _among(self, value: Condition, values: list[Any], kind: str, negated: bool) -> Any:
        return super()._among(value, values, kind, negated) if _is_plain(value) else self._true

    def _contains(self, text: Condition, part: Condition, negated: bool) -> Any:
        return self._true


def _is_plain(value: Condition) -> bool:
    """Whether it is a column as it is."""
    return value[0] == "column" and value[2] is None


def _by_code(test: Callable[[Any], Any], values: Any) -> Any:
    """A test of values, once for each distinct one where they are a dictionary."""
    if isinstance(values, pa.DictionaryArray):
        return test(values.dictionary).take(values.indices)
    return test(values)


def _decoded(values: Any) -> Any:
    return values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values

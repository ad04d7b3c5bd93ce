"""Values as atoms: integers in the order of the values, of events and of the constants that they are compared with.

Integers, booleans and codes of strings are as they are; a real is its bits, so turned that greater reals are greater
integers. A comparison with a constant is then a closed range of integers, whatever its operator and the types of both
sides, and an equality is one integer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.pattern.types import ValueType

Reals = npt.NDArray[np.float64]

LEAST, GREATEST = -(2**63), 2**63 - 1
# Reals from here on hold whole numbers that need not fit 64 bits.
_BEYOND = 2.0**63


class Bounds(NamedTuple):
    """Closed ranges; nothing lies in one whose low is above its high."""

    low: Ints
    high: Ints

    @staticmethod
    def everything(size: int) -> Bounds:
        return Bounds(np.full(size, LEAST, np.int64), np.full(size, GREATEST, np.int64))

    def within(self, other: Bounds) -> Bounds:
        return Bounds(np.maximum(self.low, other.low), np.minimum(self.high, other.high))


def real_atoms(reals: Reals) -> Ints:
    """Reals in their order, −0.0 as 0.0; what is no number has no place in it."""
    bits = (reals + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(LEAST) - bits - 1, bits)


def bounds(operator: str, values: npt.NDArray[Any], column: ValueType) -> Bounds:
    """[row]: what a column must be within, so that its comparison with a value of each row is true.

    values   integers and codes as they are, reals as reals
    """
    whole = values.dtype == np.int64
    if column is ValueType.FLOAT:
        return _of_reals(operator, values) if not whole else _of_reals_and_integers(operator, values)
    return _of_integers(operator, values) if whole else _of_integers_and_reals(operator, values)


def _of_integers(operator: str, values: Ints) -> Bounds:
    """Ranges of integers: `<` c is up to c − 1, which no integer is below the least one."""
    low, high = Bounds.everything(len(values))
    if operator in ("=", "<=", "<"):
        high = values.copy()
    if operator in ("=", ">=", ">"):
        low = values.copy()
    if operator == "<":
        empty = high == LEAST
        high = np.where(empty, LEAST, high - np.where(empty, 0, 1))
        low = np.where(empty, GREATEST, low)
    if operator == ">":
        empty = low == GREATEST
        low = np.where(empty, GREATEST, low + np.where(empty, 0, 1))
        high = np.where(empty, LEAST, high)
    return Bounds(low, high)


def _of_integers_and_reals(operator: str, values: Reals) -> Bounds:
    """Integers compared with reals, which need not be whole."""
    known = ~np.isnan(values)
    floor = np.floor(np.where(known, values, 0.0))
    is_whole = floor == values
    above, under = floor >= _BEYOND, floor < -_BEYOND
    whole = np.where(above | under, 0.0, floor).astype(np.int64)
    # x < c and x ≤ c are x ≤ ⌊c⌋ where c is not whole; x > c and x ≥ c are x > ⌊c⌋.
    low, high = Bounds.everything(len(values))
    if operator in ("<", "<="):
        exact = _of_integers(operator, whole)
        high = np.where(is_whole, exact.high, whole)
        low = np.where(is_whole, exact.low, LEAST)
    elif operator in (">", ">="):
        exact = _of_integers(operator, whole)
        after = _of_integers(">", whole)
        low = np.where(is_whole, exact.low, after.low)
        high = np.where(is_whole, exact.high, after.high)
    else:
        low, high = np.where(is_whole, whole, GREATEST), np.where(is_whole, whole, LEAST)
    everything = (above & (operator in ("<", "<="))) | (under & (operator in (">", ">=")))
    nothing = ~known | ((above | under) & ~everything)
    low = np.where(everything, LEAST, np.where(nothing, GREATEST, low))
    high = np.where(everything, GREATEST, np.where(nothing, LEAST, high))
    return Bounds(low, high)


def _of_reals(operator: str, values: Reals) -> Bounds:
    known = ~np.isnan(values)
    ranges = _of_integers(operator, real_atoms(np.where(known, values, 0.0)))
    return Bounds(np.where(known, ranges.low, GREATEST), np.where(known, ranges.high, LEAST))


def _of_reals_and_integers(operator: str, values: Ints) -> Bounds:
    """Reals compared with integers, of which those beyond 2⁵³ may lie between two reals."""
    reals = values.astype(np.float64)
    back = np.where(reals >= _BEYOND, 0.0, reals).astype(np.int64)
    above = (reals >= _BEYOND) | (back > values)  # the next real is greater than the integer
    below = ~above & (back < values)
    exact = _of_reals(operator, reals)
    if operator == "=":
        between = above | below
        return Bounds(np.where(between, GREATEST, exact.low), np.where(between, LEAST, exact.high))
    up = operator in (">", ">=")
    when_above = _of_reals(">=" if up else "<", reals)
    when_below = _of_reals(">" if up else "<=", reals)
    low = np.where(above, when_above.low, np.where(below, when_below.low, exact.low))
    high = np.where(above, when_above.high, np.where(below, when_below.high, exact.high))
    return Bounds(low, high)

"""Operations of the expression machine on values that are present: the result, and whether it is a value."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kleene.kernels import arithmetic
from kleene.kernels import opcodes as op
from kleene.kernels.jit import inlined

Ints = NDArray[np.int64]


@inlined
def compute_int(operation: int, left: int, right: int, left_step: int, right_step: int) -> tuple[int, int]:
    """The result and its state."""
    if operation == op.ADD_INT:
        fits, result = arithmetic.add(left, right)
    elif operation == op.SUBTRACT_INT:
        fits, result = arithmetic.subtract(left, right)
    elif operation == op.MULTIPLY_INT:
        fits, result = arithmetic.multiply(left, right)
    elif operation == op.ADD_TIME:
        fits, result = arithmetic.add_times(left, left_step, right, right_step)
    elif operation == op.SUBTRACT_TIME:
        fits, result = arithmetic.subtract_times(left, left_step, right, right_step)
    elif operation == op.ELAPSED:
        fits, result = True, arithmetic.elapsed(left, right, left_step, right_step)
    else:
        fits, result = arithmetic.modulo(left, right)
    return result, op.VALUE if fits else op.UNDEFINED


@inlined
def compute_real(operation: int, left: float, right: float) -> tuple[float, int]:
    """The result and its state; division by zero is infinite or NaN here."""
    if operation == op.ADD_REAL:
        result = left + right
    elif operation == op.SUBTRACT_REAL:
        result = left - right
    elif operation == op.MULTIPLY_REAL:
        result = left * right
    elif operation == op.DIVIDE_REAL:
        result = left / right
    else:
        result = np.fmod(left, right)
    return result, op.VALUE if math.isfinite(result) else op.UNDEFINED


@inlined
def accepts(comparison: int, order: int) -> bool:
    """Whether -1, 0 or 1 is among the outcomes that a comparison accepts."""
    return (comparison >> (order + 1)) & 1 == 1


@inlined
def compare_reals(comparison: int, left: float, right: float) -> bool:
    """NaN makes any comparison false."""
    order = arithmetic.compare_real(left, right)
    return accepts(comparison, order) and not math.isnan(left) and not math.isnan(right)


@inlined
def compare_mixed(comparison: int, left: int, right: float) -> bool:
    """NaN makes any comparison false."""
    return not math.isnan(right) and accepts(comparison, arithmetic.compare_mixed(left, right))


@inlined
def compare_times(comparison: int, left: int, right: int, ratio: int) -> bool:
    """A left step is as long as `ratio` right ones; where it is negative, the other way round."""
    if ratio > 0:
        return accepts(comparison, arithmetic.compare_steps(left, right, ratio))
    return accepts(comparison, -arithmetic.compare_steps(right, left, -ratio))


@inlined
def is_among(ints: Ints, place: int, value: int) -> bool:
    """Whether the value is one of a sorted list, whose length stands before it at this place."""
    low, high = place + 1, place + 1 + ints[place]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if ints[middle] < value:
            low = middle + 1
        else:
            high = middle
    return bool(low < end and ints[low] == value)


@inlined
def is_null(state: int, negated: int) -> bool:
    return state != op.UNDEFINED and (state == op.VALUE) == (negated == 1)

"""Exact integer arithmetic for kernels: nothing wraps around, and no test is approximate.

A function that can fail to have a result returns whether it has one, and the result.
"""

from __future__ import annotations

import math

from kleene.kernels.jit import inlined

LEAST = -(2**63)
GREATEST = 2**63 - 1
# Products whose size, computed in reals, is below the first fit 64 bits, and above the second do not.
_SURELY_FITS = 9.22e18
_SURELY_NOT = 9.23e18
_BEYOND_INTEGERS = 2.0**63


@inlined
def add(left: int, right: int) -> tuple[bool, int]:
    if right > 0:
        if left > GREATEST - right:
            return False, left
    elif left < LEAST - right:
        return False, left
    return True, left + right


@inlined
def subtract(left: int, right: int) -> tuple[bool, int]:
    if right > 0:
        if left < LEAST + right:
            return False, left
    elif left > GREATEST + right:
        return False, left
    return True, left - right


@inlined
def multiply(left: int, right: int) -> tuple[bool, int]:
    size = math.fabs(float(left) * float(right))
    if size < _SURELY_FITS or (size < _SURELY_NOT and _product_fits(left, right)):
        return True, left * right
    return False, left


@inlined
def _product_fits(left: int, right: int) -> bool:
    """Whether a product fits 64 bits, by division; neither factor is zero."""
    if (left < 0) != (right < 0):
        if left > 0:
            left, right = right, left
        return left >= LEAST // right + (1 if LEAST % right != 0 else 0)
    if left < 0:
        if left == LEAST or right == LEAST:
            return False
        left, right = -left, -right
    return left <= GREATEST // right


@inlined
def modulo(left: int, right: int) -> tuple[bool, int]:
    """The remainder, with the dividend's sign."""
    if right == 0:
        return False, left
    if right == -1:
        return True, left - left  # the processor's division overflows on the least integer
    rest = left % right
    if rest != 0 and (left < 0) != (right < 0):
        rest -= right
    return True, rest


@inlined
def compare(left: int, right: int) -> int:
    """-1, 0 or 1."""
    return (1 if left > right else 0) - (1 if left < right else 0)


@inlined
def compare_real(left: float, right: float) -> int:
    """-1, 0 or 1; neither is NaN."""
    return (1 if left > right else 0) - (1 if left < right else 0)


@inlined
def compare_mixed(left: int, right: float) -> int:
    """-1, 0 or 1, without rounding the integer; the real is not NaN."""
    if right >= _BEYOND_INTEGERS:
        return -1
    if right < -_BEYOND_INTEGERS:
        return 1
    whole = int(right)
    if left != whole:
        return 1 if left > whole else -1
    # Where the real has a fraction, its whole part is small enough to be exact.
    return compare_real(float(whole), right)


@inlined
def compare_steps(left: int, right: int, ratio: int) -> int:
    """-1, 0 or 1: left steps, each as long as `ratio` of the right ones."""
    whole = right // ratio
    if left == whole and right != whole * ratio:
        return -1
    return compare(left, whole)


@inlined
def elapsed(start: int, end: int, step: int, tick: int) -> int:
    """`(end − start) · step + tick`, or the greatest number where that is beyond it; start is not after end."""
    fits, length = subtract(end, start)
    if fits:
        fits, length = multiply(length, step)
    if fits:
        fits, length = add(length, tick)
    return length if fits else GREATEST


@inlined
def add_times(left: int, left_step: int, right: int, right_step: int) -> tuple[bool, int]:
    """The sum in nanoseconds of two numbers of steps; the shorter step divides the longer one."""
    if left_step == right_step:
        fits, steps = add(left, right)
        return _in_nanoseconds(fits, steps, 1, 0, left_step)
    if left_step > right_step:
        ratio = left_step // right_step
        whole = right // ratio
        fits, steps = add(left, whole)
        return _in_nanoseconds(fits, steps, ratio, right - whole * ratio, right_step)
    ratio = right_step // left_step
    whole = left // ratio
    fits, steps = add(whole, right)
    return _in_nanoseconds(fits, steps, ratio, left - whole * ratio, left_step)


@inlined
def subtract_times(left: int, left_step: int, right: int, right_step: int) -> tuple[bool, int]:
    """The difference in nanoseconds of two numbers of steps; the shorter step divides the longer one."""
    if left_step == right_step:
        fits, steps = subtract(left, right)
        return _in_nanoseconds(fits, steps, 1, 0, left_step)
    if left_step > right_step:
        ratio = left_step // right_step
        whole = right // ratio
        rest = right - whole * ratio
        fits, steps = subtract(left, whole)
        if fits and rest > 0:
            fits, steps = subtract(steps, 1)
            rest = ratio - rest
        return _in_nanoseconds(fits, steps, ratio, rest, right_step)
    ratio = right_step // left_step
    whole = left // ratio
    fits, steps = subtract(whole, right)
    return _in_nanoseconds(fits, steps, ratio, left - whole * ratio, left_step)


@inlined
def _in_nanoseconds(fits: bool, steps: int, ratio: int, rest: int, step: int) -> tuple[bool, int]:
    """(steps · ratio + rest) · step, where 0 <= rest < ratio; too many steps are too many nanoseconds."""
    if steps < 0 and rest > 0:
        # Both terms of one sign, so that neither can be out of range when the sum is not.
        steps += 1
        rest -= ratio
    if fits:
        fits, steps = multiply(steps, ratio)
    if fits:
        fits, steps = add(steps, rest)
    if fits:
        fits, steps = multiply(steps, step)
    return fits, steps

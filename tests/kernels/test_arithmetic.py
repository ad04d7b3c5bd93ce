"""Exact arithmetic at the edges of 64 bits, against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.kernels.conftest import Kernels

_EDGE = 2**63
_INTS = sorted(
    {0, 1, 2, 3, 7, 10, 1000, 2**31, 2**32, 2**53 - 1, 2**53, 2**53 + 1, 3_037_000_499, 3_037_000_500, 2**62}
    | {_EDGE - 1, _EDGE - 2, (_EDGE - 1) // 3, (_EDGE - 1) // 3 + 1, 9_220_000_000_000_000_000}
)
INTS = [*_INTS, *(-value for value in _INTS), -_EDGE]
REALS = [0.0, -0.0, 0.5, -0.5, 1.0, 2.5, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**62, 9.223372036854775e18]
REALS += [-9.223372036854775e18, 9.3e18, -9.3e18, float("inf"), float("-inf"), 5e-324]
STEPS = [1, 1_000, 1_000_000, 1_000_000_000, 86_400_000_000_000]


@pytest.fixture(params=["compiled", "plain"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs a function of the arithmetic module on 64-bit integers."""
    kernels: Kernels = request.getfixturevalue(request.param)

    def run(name: str, *values: Any) -> Any:
        return getattr(kernels.arithmetic, name)(*(np.int64(v) if isinstance(v, int) else v for v in values))

    return run


def _in_range(value: int) -> tuple[bool, int | None]:
    fits = -_EDGE <= value < _EDGE
    return fits, value if fits else None


@pytest.mark.parametrize(
    ("name", "exact"),
    [("add", lambda x, y: x + y), ("subtract", lambda x, y: x - y), ("multiply", lambda x, y: x * y)],
)
def test_integers_keep_to_64_bits(call: Callable[..., Any], name: str, exact: Callable[[int, int], int]) -> None:
    for left, right in product(INTS, INTS):
        fits, value = call(name, left, right)
        assert (fits, int(value) if fits else None) == _in_range(exact(left, right)), (left, right)


def test_modulo_takes_the_sign_of_the_dividend(call: Callable[..., Any]) -> None:
    for left, right in product(INTS, INTS):
        fits, value = call("modulo", left, right)
        assert fits == (right != 0)
        if fits:
            assert int(value) == (abs(left) % abs(right)) * (-1 if left < 0 else 1), (left, right)


def test_an_integer_and_a_real_compare_exactly(call: Callable[..., Any]) -> None:
    for left, right in product(INTS, REALS):
        order = call("compare_mixed", left, right)
        assert order == (left > right) - (left < right), (left, right)


def test_times_of_different_steps_compare_exactly(call: Callable[..., Any]) -> None:
    for left, right in product(INTS, INTS):
        for ratio in (1, 1_000, 86_400_000_000_000):
            exact = left * ratio
            assert call("compare_steps", left, right, ratio) == (exact > right) - (exact < right), (left, right, ratio)


@pytest.mark.parametrize(("name", "sign"), [("add_times", 1), ("subtract_times", -1)])
def test_times_add_in_nanoseconds(call: Callable[..., Any], name: str, sign: int) -> None:
    few = [*INTS[::4], -_EDGE, _EDGE - 1, 9_223_372_036, -9_223_372_037, 106_751, -106_752]
    for left_step, right_step in product(STEPS, STEPS):
        for left, right in product(few, few):
            fits, value = call(name, left, left_step, right, right_step)
            wanted = _in_range(left * left_step + sign * right * right_step)
            assert (fits, int(value) if fits else None) == wanted, (left, left_step, right, right_step)


def test_far_apart_times_whose_difference_fits(call: Callable[..., Any]) -> None:
    """Two moments that no 64-bit counter of nanoseconds reaches, a second apart."""
    year_9999 = 253_402_300_799
    assert year_9999 * 10**9 > _EDGE
    fits, value = call("subtract_times", year_9999, 10**9, (year_9999 - 1) * 10**6, 1_000)
    assert (fits, value) == (True, 10**9)

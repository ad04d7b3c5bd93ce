"""Rows by number, digit by digit: the same order as NumPy's stable one, whatever the numbers."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from kleene.engine.intake import timeline
from kleene.kernels.interpreting import interpreted

EDGES = np.iinfo(np.int64)
RANGES = [(0, 1), (0, 3), (-5, 5), (0, 1 << 11), (0, (1 << 11) + 1), (-(1 << 40), 1 << 22), (EDGES.min, EDGES.max)]


@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.parametrize("size", [1, 2, 700, 5_000])
def test_as_a_stable_sort(low: int, high: int, size: int) -> None:
    numbers = np.random.default_rng(size).integers(low, high, size, endpoint=True)
    numbers[: min(size, 2)] = [low, high][:size]
    with mock.patch.object(timeline, "_FEW", 0):
        assert np.array_equal(timeline.order_by_number(numbers), np.argsort(numbers, kind="stable"))
        if size <= 700:
            with interpreted():
                assert np.array_equal(timeline.order_by_number(numbers), np.argsort(numbers, kind="stable"))


def test_few_numbers_are_compared() -> None:
    numbers = np.array([3, 1, 2, 1])
    assert timeline.order_by_number(numbers).tolist() == [1, 3, 2, 0]
    assert timeline.order_by_number(numbers[:0]).tolist() == []

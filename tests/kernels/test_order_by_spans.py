"""Matches in the order of results by their spans alone, where these tell all of them apart."""

from __future__ import annotations

import numpy as np
import pytest

from kleene.kernels.interpreting import interpreted
from kleene.kernels.ordering import EQUAL, IN_ORDER, SORTED, order_by_spans


def told(starts: list[int], ends: list[int]) -> tuple[int, list[int]]:
    order = np.arange(len(ends))
    with interpreted():
        answer = order_by_spans(np.array(starts, np.int64), np.array(ends, np.int64), order)
    return answer, order.tolist()


@pytest.mark.parametrize(
    ("starts", "ends", "answer", "order"),
    [
        ([], [], IN_ORDER, []),
        ([1, 1, 2], [3, 4, 5], IN_ORDER, [0, 1, 2]),
        ([3, 1, 5], [4, 4, 6], IN_ORDER, [0, 1, 2]),
        ([1, 3, 5], [4, 4, 6], SORTED, [1, 0, 2]),
        ([2, 5, 1, 4, 3, 0], [6, 6, 6, 6, 7, 7], SORTED, [1, 3, 0, 2, 4, 5]),
    ],
)
def test_by_end_then_from_the_latest_start(starts: list[int], ends: list[int], answer: int, order: list[int]) -> None:
    assert told(starts, ends) == (answer, order)


@pytest.mark.parametrize(
    ("starts", "ends"),
    [([1, 1], [4, 4]), ([1, 3, 1], [4, 4, 4]), ([1, 1], [5, 4]), (list(range(100)), [200] * 100)],
    ids=["equal", "equal but not side by side", "not by end", "too many to insert"],
)
def test_what_spans_do_not_tell(starts: list[int], ends: list[int]) -> None:
    assert told(starts, ends)[0] == EQUAL

"""Codes of partition keys: equal keys have equal codes, whether values are addressed in a table or looked up."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from kleene.engine.intake.keys import Interner, KeyCoder
from kleene.engine.intake.strings import StringPool

I64 = np.iinfo(np.int64)


def codes_of(interner: Interner, batches: list[list[int | None]]) -> list[int]:
    codes: list[int] = []
    for batch in batches:
        values = np.array([0 if value is None else value for value in batch], np.int64)
        missing = np.array([value is None for value in batch], np.bool_)
        codes += interner.codes(np.zeros(len(batch), np.int64), values, missing).tolist()
    return codes


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 9)],
        [(-5, 5), (-500, 500), (0, 2)],
        [(0, 20_000), (19_000, 40_000)],
        [(I64.min, I64.min + 9), (I64.max - 9, I64.max), (-3, 3)],
        [(I64.max - 4095, I64.max), (I64.min, I64.min + 4095)],
        [(0, 1 << 40), (0, 9)],
    ],
)
def test_values_close_together_have_the_codes_of_a_look_up(ranges: list[tuple[int, int]]) -> None:
    draw = random.Random(f"keys {ranges}")
    batches = [
        [None if draw.random() < 0.05 else draw.randint(*each) for _ in range(draw.randint(1, 6_000))]
        for each in ranges
    ]
    known: dict[int | None, int] = {None: -1}
    expected = [known.setdefault(value, len(known) - 1) for batch in batches for value in batch]
    assert codes_of(Interner(addresses=True), batches) == expected
    assert codes_of(Interner(), batches) == expected


def test_keys_of_two_attributes_are_not_mixed_up() -> None:
    """The second attribute is looked up under the code of the first, of which the first one's code is 0."""
    rows = pa.table({"x": [7, 7, 8, 8, 7], "y": [0, 1, 0, 1, 0]})
    assert KeyCoder(("x", "y"), StringPool()).codes(rows).tolist() == [0, 1, 2, 3, 0]

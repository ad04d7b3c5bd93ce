"""All case files, read once for all tests that run them, and some cases of each for what takes long."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kleene.testing.cases import read_cases

CASES = read_cases(Path(__file__).parent / "cases")


def some_of_every_other_file(share: int, first: int) -> list[Any]:
    """Parameters of a test: all in `make soak`, otherwise a case of every other file, of a long one one of so many.

    first   0 or 1: which file is taken first, and which of its cases, so that two tests have each file between them
    """
    marks = pytest.mark.soak
    numbers: Counter[str] = Counter()
    made: list[Any] = []
    for case in CASES:
        file = case.place.partition(":")[0]
        number, numbers[file] = numbers[file], numbers[file] + 1
        taken = number % share == first and list(numbers).index(file) % 2 == first
        made.append(case if taken else pytest.param(case, marks=marks))
    return made

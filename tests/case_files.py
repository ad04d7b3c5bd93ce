"""All case files, read once for all tests that run them, and some cases of each for what takes long."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kleene.testing.cases import read_cases

CASES = read_cases(Path(__file__).parent / "cases")


def some_of_every_file(share: int, first: int) -> list[Any]:
    """Parameters of a test: all in `make soak`, otherwise of every file one, and of a long file one of every so many.

    first   which case of a file is taken first, so that other tests have other cases
    """
    marks = pytest.mark.soak
    numbers: Counter[str] = Counter()
    made: list[Any] = []
    for case in CASES:
        file = case.place.partition(":")[0]
        made.append(case if numbers[file] % share == first else pytest.param(case, marks=marks))
        numbers[file] += 1
    return made

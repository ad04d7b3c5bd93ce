"""How many random cases a test draws: in `make soak` all of them, otherwise as many as find what one change breaks.

`make soak TIMES=5` draws five times as many.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

# 0 outside `make soak`.
TIMES = int(os.environ.get("KLEENE_SOAK", "0"))
SOAKING = TIMES > 0
_SHARE = 16


def some_of(items: Iterable[Any], share: int) -> list[Any]:
    """Parameters of a test: all in `make soak`, otherwise the first of every so many."""
    marks = pytest.mark.soak
    return [item if number % share == 0 else pytest.param(item, marks=marks) for number, item in enumerate(items)]


def few_of(items: Iterable[Any], share: int) -> list[Any]:
    """Parameters of a test: all in `make test`, in `make check` the first of every so many."""
    marks = pytest.mark.slow
    return [item if number % share == 0 else pytest.param(item, marks=marks) for number, item in enumerate(items)]


def rounds(many: int, share: int = _SHARE) -> int:
    """So many in `make soak`, a sixteenth of them otherwise, or one of `share`."""
    return many * TIMES if SOAKING else -(-many // share)


def least(expected: int, share: int = _SHARE) -> int:
    """What must come of so many rounds where `expected` came of all: a smaller sample may have a little less."""
    return expected * TIMES if SOAKING else expected * 3 // (4 * share)

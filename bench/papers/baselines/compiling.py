"""How a baseline is compiled: as the product's kernels are, but kept nowhere, so that no stale one is ever measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

from kleene.kernels.interpreting import Kernel

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """A loop that Python calls; within `interpreted()` it is plain Python, for tests."""
    return cast(F, Kernel(function, njit(nogil=True, error_model="numpy")(function)))


def step(function: F) -> F:
    """A part of loops, whose statements Numba writes into them: nothing is passed to it."""
    return cast(F, Kernel(function, njit(nogil=True, error_model="numpy", inline="always")(function)))

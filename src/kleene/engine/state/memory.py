"""Memory for arrays of results, from Arrow's memory pool, which reuses freed memory.

The first write to a new page costs more than the data written to it.
"""

from __future__ import annotations

import ctypes
import sys
from math import prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

T = TypeVar("T", bound=np.generic)
# As many zeros as were asked for at once.
_ZEROS = np.zeros(0, np.int64)
# Likewise of numbers; at most so many, since they take memory as long as the process runs.
_RANGE = np.arange(0, dtype=np.int64)
_MOST_SHARED = 1 << 20


def empty(shape: int | tuple[int, ...], kind: type[T]) -> npt.NDArray[T]:
    """An array whose values are not set yet."""
    size = shape if isinstance(shape, int) else prod(shape)
    if not size:
        return np.empty(shape, kind)
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(kind).itemsize), kind).reshape(shape)


def give_back() -> None:
    """Give freed memory back to the system, where what was computed is no longer needed."""
    pa.default_memory_pool().release_unused()
    # Of the GNU C library, which keeps up to 64 MB otherwise; others have no such function.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def shared_zeros(size: int) -> npt.NDArray[np.int64]:
    """So many zeros, which others have as well: nobody may write to them."""
    global _ZEROS
    zeros = _ZEROS
    if size > len(zeros):
        zeros = _ZEROS = np.zeros(max(size, 2 * len(zeros)), np.int64)
    return zeros[:size]


def shared_range(size: int) -> npt.NDArray[np.int64]:
    """The numbers from 0 on, which others have as well, unless they are many: nobody may write to them."""
    global _RANGE
    if size > _MOST_SHARED:
        return np.arange(size, dtype=np.int64)
    numbers = _RANGE
    if size > len(numbers):
        numbers = _RANGE = np.arange(max(size, 2 * len(numbers)), dtype=np.int64)
    return numbers[:size]


def are_shared_zeros(array: npt.NDArray[np.int64]) -> bool:
    """Whether an array is known to be zeros without a look at it."""
    return array.base is _ZEROS

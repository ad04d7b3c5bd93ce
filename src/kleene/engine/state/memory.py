"""Memory for arrays, scratch and results alike: what was freed is used again.

The first write to a new page costs more than the data written to it. Small arrays come from Arrow's memory pool, large
ones are lent blocks that are kept (`blocks`), since the pool gives large memory back to the system within milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import sys
from math import prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.state.blocks import Blocks, memory_of_the_machine

T = TypeVar("T", bound=np.generic)
# As many zeros as were asked for at once.
_ZEROS = np.zeros(0, np.int64)
# Likewise of numbers; at most so many, since they take memory as long as the process runs.
_RANGE = np.arange(0, dtype=np.int64)
_MOST_SHARED = 1 << 20
# Arrays of this size and more are lent blocks.
_LARGE = 1 << 18
# How many megabytes may be kept for arrays to come; without it, this part of the machine's memory.
VARIABLE, _SHARE_KEPT = "KLEENE_KEPT_MB", 4


def most_kept() -> int:
    """How many bytes one process may keep."""
    said = os.environ.get(VARIABLE, "")
    return int(said) << 20 if said.isdecimal() else memory_of_the_machine() // _SHARE_KEPT


_BLOCKS = Blocks(most_kept())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLOCKS.unlock)


def empty(shape: int | tuple[int, ...], kind: type[T]) -> npt.NDArray[T]:
    """An array whose values are not set yet."""
    size = shape if isinstance(shape, int) else prod(shape)
    if not size:
        return np.empty(shape, kind)
    nbytes = size * np.dtype(kind).itemsize
    if nbytes >= _LARGE:
        return np.ndarray(shape, kind, buffer=_BLOCKS.lend(nbytes))
    return np.frombuffer(pa.allocate_buffer(nbytes), kind).reshape(shape)


def one_of(processes: int) -> None:
    """This is one of so many processes of its kind on the machine: it keeps its part of what one of them may keep."""
    _BLOCKS.keep_at_most(most_kept() // processes)


def give_back() -> None:
    """Give freed memory back to the system, where what was computed is no longer needed."""
    _BLOCKS.let_go()
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

"""Arrays that live as long as a set of queries: they grow by little, and what they leave goes back to the system.

A set of many queries is hundreds of millions of bytes. Memory pools and the allocator of C keep what is freed, so
that a process would stay twice as large as its queries are; pages that the system itself gave go back to it.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

# Smaller arrays are not worth pages of their own.
_LARGE = 1 << 20


def lasting(shape: int | tuple[int, ...], kind: Any, fill: int = 0) -> npt.NDArray[Any]:
    """An array of one value."""
    size = (shape if isinstance(shape, int) else prod(shape)) * np.dtype(kind).itemsize
    if size < _LARGE:
        return np.full(shape, fill, kind)
    pages = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Events look at places far apart: with large pages the processor finds them faster.
        with suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(pages, kind).reshape(shape)
    if fill:
        array[:] = fill
    return array


def with_some_room(array: Any, needed: int, fill: int = 0) -> Any:
    """The array itself, or a longer copy: at least `needed` along its first axis, and a quarter more than it was."""
    if len(array) >= needed:
        return array
    longer = lasting((max(needed, len(array) + (len(array) >> 2)), *array.shape[1:]), array.dtype, fill)
    longer[: len(array)] = array
    return longer


def taken(array: Any, rows: Any) -> Any:
    """Some rows of an array, in this order; or its first ones, given their number."""
    if isinstance(rows, int):
        copy = lasting((rows, *array.shape[1:]), array.dtype)
        copy[:] = array[:rows]
        return copy
    copy = lasting((len(rows), *array.shape[1:]), array.dtype)
    np.take(array, rows, axis=0, out=copy)
    return copy

"""Slots by numbers that Spark's hash spreads evenly over its tasks: two buckets must not meet in one of two tasks.

A slot keeps its number whatever the number of tasks is, for Spark keeps its state under it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

# Slot n is in task n mod P for every number P of tasks that divides this: 2, 3, 4, 8, 10, 12, 16, 32, 64, 100, 200 …
_EVENLY = 9_600
_CANDIDATES = 400_000
_SEED = 42


@cache
def places(slots: int) -> tuple[int, ...]:
    """The numbers under which the slots go through the exchange, by slot."""
    remainders = murmur3(np.arange(_CANDIDATES, dtype=np.int32)).astype(np.int64) % _EVENLY
    order = np.argsort(remainders, kind="stable")
    first = np.searchsorted(remainders[order], np.arange(_EVENLY))
    numbers = np.arange(slots)
    return tuple(order[first[numbers % _EVENLY] + numbers // _EVENLY].tolist())


def murmur3(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Spark's `hash` of integers, by which it divides what it groups."""
    with np.errstate(over="ignore"):
        mixed = _rotated(values.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        hashes = _rotated(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        hashes ^= np.uint32(4)
        hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return (hashes ^ (hashes >> np.uint32(16))).astype(np.int32)


def _rotated(values: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))

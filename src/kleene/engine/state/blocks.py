"""Blocks of memory that arrays are lent: when nobody refers to an array any more, its block serves the next one.

The first write to a new page costs as much as writing it ten times, and a result has hundreds of megabytes of them.
So blocks are kept, up to a limit. While one is kept its pages belong to the system, which takes them where memory is
short.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from mmap import PAGESIZE, mmap
from threading import Lock
from typing import Any

import numpy as np

# Arrays of this size and more have large pages where the system has them.
_LARGE = 1 << 22
# A kept block serves an array that needs so much of it, or more.
_LEAST_USED = 0.6


class Loan(np.ndarray[Any, np.dtype[np.uint8]]):
    """The bytes of a block; arrays over it refer to it, and with the last of them the block comes back."""

    block: mmap
    lender: Blocks

    def __del__(self) -> None:
        lender: Blocks | None = getattr(self, "lender", None)
        if lender is not None:
            lender.take_back(self.block)


class Blocks:
    """Lends blocks, in any thread, and keeps those that come back."""

    def __init__(self, most: int) -> None:
        """`most`: so many bytes are kept."""
        self._most = most
        # The one that came back last stands last.
        self._kept: list[mmap] = []
        self._kept_bytes = 0
        self._lock = Lock()
        # Blocks that came back while the lock was held, perhaps by the same thread: objects die at any moment.
        self._returned: deque[mmap] = deque()

    def lend(self, size: int) -> Loan:
        """A block of at least so many bytes, whatever they are."""
        rounded = _rounded(size)
        with self._lock:
            self._file_returned()
            block = self._fitting(rounded)
        if block is None:
            block = _new_block(rounded)
        loan = Loan((len(block),), np.uint8, buffer=block)
        loan.block, loan.lender = block, self
        return loan

    def take_back(self, block: mmap) -> None:
        """Keep a block that nobody uses any more."""
        self._returned.append(block)
        if self._lock.acquire(blocking=False):
            try:
                self._file_returned()
            finally:
                self._lock.release()

    def keep_at_most(self, most: int) -> None:
        """Keep no more than so many bytes from now on."""
        with self._lock:
            self._most = most
            self._file_returned()
            self._let_go(0)

    def let_go(self) -> None:
        """Give all that is kept back to the system."""
        with self._lock:
            self._file_returned()
            self._kept.clear()
            self._kept_bytes = 0

    def unlock(self) -> None:
        """In a process that was just forked: who had the lock is not here."""
        self._lock = Lock()

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes

    def _file_returned(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            if len(block) > self._most:
                continue
            self._let_go(len(block))
            _lay_open(block)
            self._kept.append(block)
            self._kept_bytes += len(block)

    def _let_go(self, coming: int) -> None:
        """Make room for so many bytes more: those kept longest go first."""
        first = 0
        while self._kept_bytes + coming > self._most:
            self._kept_bytes -= len(self._kept[first])
            first += 1
        del self._kept[:first]

    def _fitting(self, size: int) -> mmap | None:
        for place in range(len(self._kept) - 1, -1, -1):
            length = len(self._kept[place])
            if length >= size >= _LEAST_USED * length:
                self._kept_bytes -= length
                return self._kept.pop(place)
        return None


def _rounded(size: int) -> int:
    """One of few sizes, so that blocks fit again: at most a quarter more, which nobody writes to."""
    pages = max(-(-size // PAGESIZE), 1)
    unit = 1 << max(pages.bit_length() - 3, 0)
    return -(-pages // unit) * unit * PAGESIZE


def _new_block(size: int) -> mmap:
    import mmap as system

    if sys.platform == "win32":
        return mmap(-1, size)
    block = mmap(-1, size, flags=system.MAP_PRIVATE | system.MAP_ANONYMOUS)
    if size >= _LARGE and hasattr(system, "MADV_HUGEPAGE"):
        block.madvise(system.MADV_HUGEPAGE)
    return block


def _lay_open(block: mmap) -> None:
    """Let the system take a block's pages where memory is short."""
    import mmap as system

    if sys.platform == "linux" and hasattr(system, "MADV_FREE"):
        block.madvise(system.MADV_FREE)


def memory_of_the_machine() -> int:
    """In bytes; a gigabyte where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 30

"""Blocks of memory that arrays are lent: when nobody refers to an array any more, its block serves the next one.

The first write to a new page costs as much as writing it ten times, and a result has hundreds of megabytes of them.
So blocks are kept, up to a limit. All but the latest are laid open: their pages belong to the system while they are
kept, which takes them where memory is short.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from mmap import PAGESIZE, mmap
from threading import Lock
from typing import Any

import numpy as np

# Arrays of this size and more have large pages where the system has them.
_LARGE = 1 << 22
# So many bytes are kept and not laid open, since that takes some microseconds a block.
_CLOSED = 1 << 27
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
        # Those that are laid open, then those that are not; of each the one that came back last stands last.
        self._open: list[mmap] = []
        self._closed: list[mmap] = []
        self._open_bytes = self._closed_bytes = 0
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
            self._open.clear()
            self._closed.clear()
            self._open_bytes = self._closed_bytes = 0

    def unlock(self) -> None:
        """In a process that was just forked: who had the lock is not here."""
        self._lock = Lock()

    @property
    def kept_bytes(self) -> int:
        return self._open_bytes + self._closed_bytes

    def _file_returned(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            if len(block) > self._most:
                continue
            self._let_go(len(block))
            self._closed.append(block)
            self._closed_bytes += len(block)
        while self._closed_bytes > _CLOSED:
            block = self._closed.pop(0)
            self._closed_bytes -= len(block)
            _lay_open(block)
            self._open.append(block)
            self._open_bytes += len(block)

    def _let_go(self, coming: int) -> None:
        """Make room for so many bytes more: those kept longest go first."""
        while self._open and self.kept_bytes + coming > self._most:
            self._open_bytes -= len(self._open.pop(0))
        while self._closed and self.kept_bytes + coming > self._most:
            self._closed_bytes -= len(self._closed.pop(0))

    def _fitting(self, size: int) -> mmap | None:
        place = _latest_fitting(self._closed, size)
        if place is not None:
            block = self._closed.pop(place)
            self._closed_bytes -= len(block)
            return block
        place = _latest_fitting(self._open, size)
        if place is not None:
            block = self._open.pop(place)
            self._open_bytes -= len(block)
            return block
        return None


def _latest_fitting(kept: Sequence[mmap], size: int) -> int | None:
    for place in range(len(kept) - 1, -1, -1):
        if len(kept[place]) >= size >= _LEAST_USED * len(kept[place]):
            return place
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

"""Locks between processes that share a folder: the system releases those of a process that ends, however it ends.

Where the system or the folder has no locks, all processes go ahead: locks prevent double work, not harm.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


class Regions:
    """Many locks in one file, each a byte of it; a process takes one at a time or those of what it calls."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    @contextmanager
    def locked(self, number: int) -> Iterator[None]:
        """Wait for a lock, and hold it."""
        file = self._opened()
        if file is None:
            yield
            return
        # Regions belong to the process: it never waits for itself, and a fork of it holds none.
        with suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, number)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_UN, 1, number)

    def _opened(self) -> int | None:
        """The file, opened once: to close it anywhere would release every lock of the process in it."""
        if self._file is None and fcntl is not None:
            with suppress(OSError):
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return self._file


def take(path: Path) -> int | None:
    """A lock that children inherit with the file: it is held until the last of them ends.

    None when it is taken, and where there are no locks.
    """
    if fcntl is None:  # pragma: no cover - Windows
        return None
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    if not try_lock(file):
        os.close(file)
        return None
    return file


def try_lock(file: int) -> bool | None:
    """Lock an open file for all processes that inherit it: False when others have it, None where there are no locks."""
    if fcntl is None:  # pragma: no cover - Windows
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def unlock(file: int) -> None:
    """Release what `try_lock` locked, also for processes that inherited the file."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_UN)


def is_taken(path: Path) -> bool:
    """Whether a process holds the lock of `take` now."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False

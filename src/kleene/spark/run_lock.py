"""One run at a time: a lock beside the checkpoint and beside each folder of results, held while a run lasts.

The system itself releases the lock of a process that ends, however it ends, so that none is left behind by a kill. The
JVM of a run inherits its locks: it may still write for a moment after the driver was killed. Of places that are on no
disk of this machine the lock is in the user's cache, and keeps apart the runs of this user on this machine.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from kleene.errors import RunInProgress
from kleene.kernels.locking import try_lock, unlock

_LOG = logging.getLogger(__name__)
# So long a run waits for the JVM of one that was killed, which ends by itself.
_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.1
# A run that has just taken its lock writes its number into it within this time.
_WRITING_SECONDS = 1.0
_open: set[int] = set()


@dataclass(frozen=True)
class LockedPlace:
    """What a run writes to: as a person names it, and its folder where that is on this machine."""

    name: str
    shown: str
    folder: Path | None = None


@contextmanager
def one_run(places: Iterable[LockedPlace]) -> Iterator[None]:
    """Hold the locks of these places; `RunInProgress` when another run holds one of them."""
    with ExitStack() as stack:
        # In one order for all runs: of two that want the same places one gets them all.
        for place in sorted(places, key=lambda place: place.name):
            stack.enter_context(_lock(place))
        yield


def handed_on() -> tuple[int, ...]:
    """The open files of the locks, for the JVM to inherit."""
    return tuple(_open)


@contextmanager
def _lock(place: LockedPlace) -> Iterator[None]:
    for file in _files(place):
        try:
            handle = _locked(file, place)
        except OSError as problem:
            _LOG.debug("no lock at %s: %s", file, problem)
            continue
        if handle is not None:
            break
    else:
        _LOG.warning("no lock can be kept for `%s`: see that no other run writes to it", place.shown)
        yield
        return
    _open.add(handle)
    try:
        yield
    finally:
        _open.discard(handle)
        with suppress(OSError):
            file.unlink()
        # To close it releases it as well, but not for a JVM that has it, too.
        with suppress(OSError):
            unlock(handle)
        os.close(handle)


def _files(place: LockedPlace) -> Iterator[Path]:
    """Where the lock of a place may be kept, the best first."""
    name = place.name
    if place.folder is not None:
        # By whatever name the folder is reached, its lock is one file.
        folder = place.folder.resolve()
        yield folder.with_name(f".{folder.name}.lock")
        name = str(folder)
    with suppress(RuntimeError):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kleene" / "locks"
        yield cache / f"{blake2b(name.encode(), digest_size=12).hexdigest()}.lock"


def _locked(path: Path, place: LockedPlace) -> int | None:
    """The open file of a lock that is now held; None where the file system knows no locks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            locked = try_lock(handle)
            # The run that held it may have removed the file meanwhile, and another run has made a new one.
            if locked and _is_at(handle, path):
                owner = json.dumps({"process": os.getpid(), "host": socket.gethostname()})
                # On a full disk the lock holds, and does not say whose it is.
                with suppress(OSError):
                    os.ftruncate(handle, 0)
                    os.write(handle, owner.encode())
                lock, handle = handle, -1
                return lock
            if locked is None:
                return None
            if locked is False:
                owner_process = _owner(handle)
                if owner_process is None or _lives(*owner_process) or time.monotonic() > deadline:
                    raise _refused(place, owner_process)
                time.sleep(_POLL_SECONDS)
        finally:
            if handle >= 0:
                os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _owner(handle: int) -> tuple[int, str] | None:
    """The number of the process that holds a lock, and its machine; None when it does not say."""
    deadline = time.monotonic() + _WRITING_SECONDS
    while time.monotonic() < deadline:
        with suppress(ValueError, KeyError, TypeError):
            known = json.loads(os.pread(handle, 4096, 0))
            return int(known["process"]), str(known["host"])
        time.sleep(_WRITING_SECONDS / 20)
    return None


def _lives(process: int, host: str) -> bool:
    """Whether a process is there; on another machine it is taken to be."""
    if host != socket.gethostname():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _refused(place: LockedPlace, owner: tuple[int, str] | None) -> RunInProgress:
    who = "another run"
    if owner is not None:
        process, host = owner
        elsewhere = "" if host == socket.gethostname() else f" on {host}"
        who = f"another run (process {process}{elsewhere})"
    return RunInProgress(
        f"{who} is writing to `{place.shown}`",
        hint="wait until it has ended, or stop it; after a kill there is nothing to clean up",
    )

"""The processes of a stream that runs: its driver, its JVM, its Python workers; found by `/proc`, to be killed."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_DAEMON = "kleene.spark.daemon"


def jvm_of(driver: int) -> int | None:
    return next((process for process in _below(driver) if "java" in _command(process).split("\0")[0]), None)


def workers_of(driver: int) -> list[int]:
    """What the daemon forked; it is itself a child of the JVM."""
    parents = _parents()
    daemons = {process for process in _below(driver) if _DAEMON in _command(process)}
    return sorted(process for process in daemons if parents.get(process) in daemons)


def kill(process: int) -> bool:
    """Whether it was there to be killed."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def ended(process: int, patience: float) -> bool:
    """Whether a process ends within so many seconds."""
    deadline = time.monotonic() + patience
    while process in _parents():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _below(root: int) -> list[int]:
    """A process's children, and theirs."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents().items():
        children.setdefault(parent, []).append(process)
    found, waiting = [], [root]
    while waiting:
        new = children.get(waiting.pop(), [])
        found += new
        waiting += new
    return sorted(found)


def _parents() -> dict[int, int]:
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                # After the name, which may hold anything: the state, then the parent.
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents[int(folder.name)] = int(parent)
    return parents


def _command(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text()
    return ""

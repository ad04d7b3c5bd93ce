"""Each process of a run, this one, its JVM, Spark's daemon and the Python workers: its memory and processor time.

Pages that several processes share are counted in parts (PSS), or not at all (USS): a worker is forked from the daemon,
and most of its resident pages are the daemon's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple, Self

_DAEMONS = (b"kleene.spark.daemon", b"pyspark.daemon")


class ProcessUse(NamedTuple):
    """What one process uses.

    pss       bytes of pages of its own, and its part of those that it shares
    uss       bytes of pages of its own
    seconds   processor time since it began
    """

    role: str
    pid: int
    pss: int
    uss: int
    seconds: float


def own_processes(*roles: str) -> list[ProcessUse]:
    """This process and all that it started, directly or not; or only those in some roles."""
    measured = ((role, pid, _sizes(pid), seconds) for role, pid, seconds in _own() if not roles or role in roles)
    return [ProcessUse(role, pid, *sizes, seconds) for role, pid, sizes, seconds in measured if sizes is not None]


def processor_seconds() -> dict[str, float]:
    """By role, the processor time of the processes of this run that are still there."""
    total: dict[str, float] = {}
    for role, _, seconds in _own():
        total[role] = total.get(role, 0.0) + seconds
    return total


def workers_memory() -> int:
    """Bytes that the Python workers of this run have for themselves."""
    return sum(process.uss for process in own_processes("worker"))


class MostMemory:
    """While it is entered, looks every second at what each process of the run has, and knows the most of each."""

    def __init__(self) -> None:
        self._most: dict[int, ProcessUse] = {}
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def processes(self) -> list[ProcessUse]:
        return [self._most[pid] for pid in sorted(self._most)]

    def _look(self) -> None:
        while not self._over.wait(1.0):
            for process in own_processes():
                known = self._most.get(process.pid)
                if known is None or process.pss > known.pss:
                    self._most[process.pid] = process


def _own() -> Iterable[tuple[str, int, float]]:
    """Role, number and processor time of this process and all that it started."""
    known = {pid: (parent, seconds) for pid, parent, seconds in _processes()}
    parents = {pid: parent for pid, (parent, _) in known.items()}
    for pid, (parent, seconds) in sorted(known.items()):
        if os.getpid() in (pid, *_ancestors(pid, parents)):
            yield _role(pid, parent), pid, seconds


def _processes() -> Iterable[tuple[int, int, float]]:
    """Number, parent and processor time of every process."""
    ticks = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name, in parentheses, may hold anything.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            yield int(entry.name), int(fields[1]), (int(fields[11]) + int(fields[12])) / ticks


def _ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    above = []
    while (pid := parents.get(pid, 0)) > 1:
        above.append(pid)
    return above


def _role(pid: int, parent: int) -> str:
    if pid == os.getpid():
        return "driver"
    command = _command(pid)
    if any(daemon in command for daemon in _DAEMONS):
        return "worker" if any(daemon in _command(parent) for daemon in _DAEMONS) else "daemon"
    return "JVM" if b"java" in command.split(b"\0")[0] else "other"


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _sizes(pid: int) -> tuple[int, int] | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines[1:]}
    return sizes.get("Pss", 0), sum(size for name, size in sizes.items() if name.startswith("Private_"))

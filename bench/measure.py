"""Timing: alternating repeats with equal counts, sizes that fit a time, profiles, fits, and the goals' last lines."""

from __future__ import annotations

import cProfile
import gc
import io
import os
import platform
import pstats
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import numpy.typing as npt

REPEATS = 3
Work = Callable[[], int]


@dataclass(frozen=True)
class Timing:
    """Of one piece of work: each repeat's seconds, what it counted, and each repeat's seconds of processors."""

    seconds: tuple[float, ...]
    count: int
    processor_seconds: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def processor(self) -> float:
        """The least time of processors, which other programs of the machine hardly change."""
        return min(self.processor_seconds)

    def rate(self, number: int) -> float:
        """Millions a second."""
        return number / self.median / 1e6


@dataclass(frozen=True)
class Verdict:
    """A goal or a part of one: met, missed, or (None) not measured here."""

    goal: str
    met: bool | None
    text: str
    profile: str = ""

    def line(self) -> str:
        state = {True: "met", False: "missed", None: "not measured here"}[self.met]
        return f"{self.goal} {state}: {self.text}"


class CountsDiffer(SystemExit):
    """Two ways to the same answer gave different ones: no figure of this run means anything."""

    @classmethod
    def between(cls, counts: Mapping[str, int]) -> CountsDiffer:
        return cls("match counts differ: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))


def alternate(
    works: Mapping[str, Work],
    repeats: int = REPEATS,
    *,
    same: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """One warm-up each, then rounds in which each runs once, so that a busy moment falls on all of them."""
    counts = {name: work() for name, work in works.items()}
    if same and len(set(counts.values())) > 1:
        raise CountsDiffer.between(counts)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    processors: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            gc.collect()
            began, used = clock(), time.process_time()
            count = work()
            seconds[name].append(clock() - began)
            processors[name].append(time.process_time() - used)
            if count != counts[name]:
                raise CountsDiffer.between({f"{name} at first": counts[name], f"{name} later": count})
    return {name: Timing(tuple(seconds[name]), counts[name], tuple(processors[name])) for name in works}


def once(work: Callable[..., object], *arguments: object) -> float:
    """Seconds of one run."""
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


def affordable(run: Callable[[int], object], events: int, seconds: float, probe: int = 1_000) -> int:
    """How many events a run can have in about this time, judged by beginnings ten times as long each.

    Of each the second run counts: the first one of its size finds no memory that was used before.
    """
    size = min(probe, events)
    run(size)
    while size < events and min(once(run, size), once(run, size)) * 10 <= seconds:
        size = min(events, size * 10)
    return size


def profile(work: Callable[[], object], top: int = 10) -> str:
    """Where the time of one run goes: the functions that take most of it themselves."""
    watched = cProfile.Profile()
    watched.runcall(work)
    text = io.StringIO()
    pstats.Stats(watched, stream=text).strip_dirs().sort_stats("tottime").print_stats(top)
    lines = [line.rstrip() for line in text.getvalue().splitlines() if line.strip()]
    start = next(number for number, line in enumerate(lines) if "ncalls" in line)
    return "\n".join([lines[0].strip(), *lines[start:]])


@dataclass(frozen=True)
class Line:
    """The least-squares line through some points, and how much of the variation it explains."""

    slope: float
    intercept: float
    r_squared: float

    @classmethod
    def through(cls, x: Sequence[float], y: Sequence[float]) -> Line:
        across: npt.NDArray[np.float64] = np.asarray(x, np.float64)
        up: npt.NDArray[np.float64] = np.asarray(y, np.float64)
        slope, intercept = np.polyfit(across, up, 1)
        rest = up - (slope * across + intercept)
        spread = float(((up - up.mean()) ** 2).sum())
        return cls(float(slope), float(intercept), 1.0 - float((rest**2).sum()) / spread if spread else 1.0)


def header(*packages: str) -> str:
    """The machine and the versions, for the first line of a report."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {versions}"

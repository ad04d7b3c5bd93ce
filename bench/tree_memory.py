"""ZStream's Tables 3 and 5: the peak memory of each plan, in a process of its own.

`python -m bench.tree_memory "rate 1:100:100:100" bushy 20000` streams so many events and prints the peak, the most
that was held between two batches, and what of it are events.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bench.memory import peak_bytes
from bench.running import bound
from bench.tree_plans import FOUR, PAPERS_FOUR, THREE, Way, batches, lines, replayed, trees
from bench.tree_points import Size
from bench.tree_workloads import QUERY_6, QUERY_8, SETTINGS, web_log

EVENTS = 20_000
# Small ones, so that what a batch makes does not hide what is kept; few records of the log matter.
BATCH, LOG_BATCH = 256, 8_192
LINES = ("stacks", "automaton")
WEB_LOG = "web log"
TABLE_3 = tuple(SETTINGS)[:2]


# Memory that is freed goes back to the system at once, so that a peak is of what is in use: without this Arrow's
# allocator keeps several times as much for what comes, in steps of megabytes that depend on sizes and moments.
EXACT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 16),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 16),
}


@dataclass(frozen=True)
class Peak:
    """Of one plan over one stream, in MB above what the process had before.

    used      the most that was in use at once
    held      the most that the engine held between two batches
    events    of these, the events themselves and their columns
    process   the peak of a process whose allocator keeps what is freed, as everybody runs it
    """

    used: float
    held: float
    events: float
    process: float

    @property
    def in_a_round(self) -> float:
        """What a batch makes and drops again."""
        return max(0.0, self.used - self.held)


def memory(size: Size) -> dict[str, dict[str, Peak]]:
    """By stream and plan, without those whose run failed."""
    peaks: dict[str, dict[str, Peak]] = {}
    events = min(EVENTS, size.most)
    print("\nTables 3 and 5: peak memory in MB above what the process had before the stream")
    print(f"({events:,} events in batches of {BATCH}; the log's {size.records:,} records in batches of {LOG_BATCH:,})")
    four, three = (*PAPERS_FOUR, *LINES), (*THREE, *LINES)
    for title, names, streams, number in (
        ("Query 6", four, TABLE_3, events),
        ("Query 8", three, (WEB_LOG,), size.records),
    ):
        print(f"{title:32}" + "".join(f"{name:>11}" for name in names))
        for stream in streams:
            peaks[stream] = dict(_peaks(stream, names, number))
            print(stream)
            for line, value in _LINES.items():
                cells = (f"{value(peaks[stream][name]):.1f}" if name in peaks[stream] else "failed" for name in names)
                print(f"  {line:30}" + "".join(f"{cell:>11}" for cell in cells), flush=True)
    return peaks


_LINES: dict[str, Callable[[Peak], float]] = {
    "in use at the peak": lambda peak: peak.used,
    "held between batches": lambda peak: peak.held,
    "of it events": lambda peak: peak.events,
    "made and dropped in a batch": lambda peak: peak.in_a_round,
    "the process, with what is kept": lambda peak: peak.process,
}


def _peaks(stream: str, names: Iterable[str], number: int) -> Iterable[tuple[str, Peak]]:
    for name in names:
        exact, usual = (_in_a_process(stream, name, number, settings) for settings in (EXACT, {}))
        if exact is not None and usual is not None:
            used, held, events = exact
            yield name, Peak(used, held, events, usual[0])


def _in_a_process(stream: str, name: str, number: int, settings: Mapping[str, str]) -> list[float] | None:
    command = [sys.executable, "-m", "bench.tree_memory", stream, name, str(number)]
    made = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **settings})
    if made.returncode:
        print(f"{stream}, {name} failed:\n{made.stderr}")
        return None
    return [int(size) / 2**20 for size in made.stdout.split()[-3:]]


def peak(stream: str, name: str, number: int) -> tuple[int, int, int]:
    """Bytes at the peak of a run, above what the process had before it; the most held between batches, and events."""
    table, way = _way(stream, name, number)
    rows = LOG_BATCH if stream == WEB_LOG else BATCH
    # Kernels are loaded once.
    replayed(way, list(batches(table.slice(0, 2 * rows), rows)))
    _forget_peak()
    before = peak_bytes()
    engine = way.engine()
    held = events = 0
    for part, watermark in batches(table, rows):
        engine.replay(part, watermark)
        state = engine._state
        held, events = max(held, engine.nbytes), max(events, 0 if state is None else state.store.nbytes)
    return peak_bytes() - before, held, events


def _way(stream: str, name: str, number: int) -> tuple[pa.Table, Way]:
    table = web_log(number) if stream == WEB_LOG else SETTINGS[stream].table(number)
    query = bound(table, QUERY_8 if stream == WEB_LOG else QUERY_6)
    ways = lines(query) if name in LINES else trees(query, THREE if stream == WEB_LOG else FOUR)
    return table, ways[name]


def _forget_peak() -> None:
    """Where the system can: its peak is then what the process has now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    print(*peak(sys.argv[1], sys.argv[2], int(sys.argv[3])))

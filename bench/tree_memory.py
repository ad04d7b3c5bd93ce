"""ZStream's Tables 3 and 5: the peak memory of each plan, in a process of its own.

`python -m bench.tree_memory "rate 1:100:100:100" bushy 20000` streams so many events and prints the peak.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
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


def memory(size: Size) -> dict[str, dict[str, float | None]]:
    """MB by stream and plan; None where a run failed."""
    peaks: dict[str, dict[str, float | None]] = {}
    events = min(EVENTS, size.most)
    print("\nTables 3 and 5: peak memory in MB above what the process had before the stream")
    print(f"({events:,} events in batches of {BATCH}; the log's {size.records:,} records in batches of {LOG_BATCH:,})")
    four, three = (*PAPERS_FOUR, *LINES), (*THREE, *LINES)
    for title, names, streams, number in (
        ("Query 6", four, TABLE_3, events),
        ("Query 8", three, (WEB_LOG,), size.records),
    ):
        print(f"{title:22}" + "".join(f"{name:>11}" for name in names))
        for stream in streams:
            peaks[stream] = dict(_peaks(stream, names, number))
            cells = ("failed" if peak is None else f"{peak:.1f}" for peak in peaks[stream].values())
            print(f"{stream:22}" + "".join(f"{cell:>11}" for cell in cells), flush=True)
    return peaks


def _peaks(stream: str, names: Iterable[str], number: int) -> Iterable[tuple[str, float | None]]:
    for name in names:
        command = [sys.executable, "-m", "bench.tree_memory", stream, name, str(number)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            print(f"{stream}, {name} failed:\n{made.stderr}")
        yield name, None if made.returncode else int(made.stdout.split()[-1]) / 2**20


def peak(stream: str, name: str, number: int) -> int:
    """Bytes at the peak of a run, above what the process had before it."""
    table, way = _way(stream, name, number)
    rows = LOG_BATCH if stream == WEB_LOG else BATCH
    # Kernels are loaded once.
    replayed(way, list(batches(table.slice(0, 2 * rows), rows)))
    _forget_peak()
    before = peak_bytes()
    engine = way.engine()
    for part, watermark in batches(table, rows):
        engine.replay(part, watermark)
    return peak_bytes() - before


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
    print(peak(sys.argv[1], sys.argv[2], int(sys.argv[3])))

"""The engine against the goals G1 to G5 (`make bench-engine`): workloads of the papers, peers, ablations.

Every figure is of this run: medians of at least three repeats after a warm-up, ours and peers in turn, one thread each.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable

import pyarrow as pa

from bench.ablations import ablations
from bench.closure_goals import closures
from bench.cold_start import first_match, light_check
from bench.measure import Verdict, header
from bench.memory import memory
from bench.sequence_goals import joins, windows
from bench.spelled_out import spelled_out

EVENTS = 1_000_000

# Each part: its name, and how it is measured with a stream of so many events.
PARTS: dict[str, Callable[[int], list[Verdict]]] = {
    "joins": joins,
    "windows": windows,
    "closures": closures,
    "spelled": lambda events: spelled_out(events // 5),
    "cold": lambda events: [*first_match(), light_check()],
    "memory": lambda events: memory(),
    "ablations": lambda events: ablations(events // 5),
}


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    given.add_argument(
        "parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all of them when none is named"
    )
    given.add_argument("--events", type=int, default=EVENTS, help="length of the streams")
    arguments = given.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        given.error(f"no part {', '.join(sorted(unknown))}")
    logging.getLogger("kleene").setLevel(logging.ERROR)
    # Polars and DuckDB are told so in bench.peers.
    pa.set_cpu_count(1)
    began = time.perf_counter()
    print(header("numba", "numpy", "pyarrow", "polars", "duckdb") + "; one thread for each side")
    verdicts: list[Verdict] = []
    for name in arguments.parts or PARTS:
        started = time.perf_counter()
        verdicts += PARTS[name](arguments.events)
        print(f"({name}: {time.perf_counter() - started:.0f} s)", flush=True)
    for verdict in verdicts:
        if verdict.profile:
            print(f"\nwhy {verdict.line()}\n{verdict.profile}")
    print(f"\n{time.perf_counter() - began:.0f} s in all")
    for verdict in sorted(verdicts, key=lambda verdict: verdict.goal):
        print(verdict.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())

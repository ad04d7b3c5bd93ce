"""The engine against the goals G1 to G5 (`make bench-engine`): workloads of the papers, peers, ablations.

Every figure is of this run: medians of at least three repeats after a warm-up (G1: five), ours and peers in turn, with
as many cores for each side. Streams of G1 and G2 come from a seed that is drawn anew and printed.

parts:
  joins      G1: W1, W4 and no key beside Polars and DuckDB, on one core and on all
  large      the same with ten times the events; only when it is named
  cliffs     G1: strings, equal times, shuffled rows, chunks, conditions and negation beside integers
  flink      G1: beside Flink CEP, in a JVM
  lengths    W1 by length and with a second key
  windows    G2: the window grows
  closures   G3: Kleene closure over stocks
  spelled    equality as `[id]` and spelled out
  cold       G4: the first match of a process
  memory     G5: state of windows
  ablations  optimisations of the papers switched off
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Callable

from bench.ablations import ablations
from bench.cliffs import cliffs
from bench.closure_goals import closures
from bench.cold_start import first_match, light_check
from bench.cores import prepare
from bench.flink_peer import flink
from bench.measure import Verdict, header
from bench.memory import memory
from bench.sequence_goals import joins, lengths, windows
from bench.spelled_out import spelled_out

EVENTS = 1_000_000

# Each part: its name, and how it is measured with a stream of so many events, from a seed.
PARTS: dict[str, Callable[[int, int], list[Verdict]]] = {
    "joins": joins,
    "large": lambda events, seed: joins(10 * events, seed),
    "cliffs": cliffs,
    "flink": flink,
    "lengths": lengths,
    "windows": windows,
    "closures": lambda events, seed: closures(events),
    "spelled": lambda events, seed: spelled_out(events // 5),
    "cold": lambda events, seed: [*first_match(), light_check()],
    "memory": lambda events, seed: memory(),
    "ablations": lambda events, seed: ablations(events // 5),
}

# Takes minutes and ten gigabytes.
ONLY_WHEN_NAMED = frozenset({"large"})


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    given = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__, formatter_class=raw)
    given.add_argument(
        "parts", nargs="*", metavar="part", help=f"all but {', '.join(ONLY_WHEN_NAMED)} when none is named"
    )
    given.add_argument("--events", type=int, default=EVENTS, help="length of the streams")
    given.add_argument("--seed", type=int, help="of the streams of G1 and G2; drawn when none is given")
    arguments = given.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        given.error(f"no part {', '.join(sorted(unknown))}")
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    prepare(1)
    began = time.perf_counter()
    print(header("numba", "numpy", "pyarrow", "polars", "duckdb"))
    print(f"seed {seed} (`--seed {seed}` draws the same streams); one core for each side where nothing else is said")
    verdicts: list[Verdict] = []
    for name in arguments.parts or [name for name in PARTS if name not in ONLY_WHEN_NAMED]:
        started = time.perf_counter()
        verdicts += PARTS[name](arguments.events, seed)
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

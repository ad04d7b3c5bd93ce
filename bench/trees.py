"""Tree plans against the goal G9 (`make bench-trees`): W6, the experiments of ZStream §6.

Every figure is of this run: medians of at least three repeats after a warm-up, all plans in turn, one thread, by
processor time (the phases by the clock). As in the paper, the time to deliver matches does not count: streams are
replayed, in batches of 2,048 events, which finds the matches and makes no tables of them. The matches of an automaton
are then still a graph that its runs share.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable

import pyarrow as pa

from bench.measure import Verdict, header
from bench.tree_figures import accesses, all_figures, search
from bench.tree_memory import memory
from bench.tree_phases import phases
from bench.tree_points import FULL, QUICK, Size, judged


def _figures(size: Size) -> list[Verdict]:
    return [judged(all_figures(size))]


def _web(size: Size) -> list[Verdict]:
    accesses(size)
    return []


def _memory(size: Size) -> list[Verdict]:
    memory(size)
    return []


# Each part: its name, and how it is measured with runs of this size.
PARTS: dict[str, Callable[[Size], list[Verdict]]] = {
    "figures": _figures,
    "phases": phases,
    "web": _web,
    "memory": _memory,
    "search": lambda size: [search()],
}


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m bench.trees", description=__doc__)
    given.add_argument(
        "parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all of them when none is named"
    )
    given.add_argument("--quick", action="store_true", help="tiny streams: whether everything runs, not how fast")
    arguments = given.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        given.error(f"no part {', '.join(sorted(unknown))}")
    logging.getLogger("kleene").setLevel(logging.ERROR)
    pa.set_cpu_count(1)
    began = time.perf_counter()
    print(header("numba", "numpy", "pyarrow") + "; one thread")
    verdicts: list[Verdict] = []
    for name in arguments.parts or PARTS:
        started = time.perf_counter()
        verdicts += PARTS[name](QUICK if arguments.quick else FULL)
        print(f"({name}: {time.perf_counter() - started:.0f} s)", flush=True)
    print(f"\n{time.perf_counter() - began:.0f} s in all")
    if arguments.quick:
        print("streams this short say nothing about the goals")
        return 0
    for verdict in verdicts:
        print(verdict.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())

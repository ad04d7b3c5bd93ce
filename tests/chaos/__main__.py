"""Failures drawn from seeds: `python -m tests.chaos` (`make chaos`), or one seed of each kind: `--seed 7`.

Each seed is one line: failures by kind, by the operation hit, and per output the rows wanted / got / missing / extra.
It ends with 1 when a row is missing, or there is one too many, or a reader has seen half a result; with `--mutation` a
part of the code is changed, and that is what must happen.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

# Kernels are what runs, as in the tests.
os.environ.setdefault("KLEENE_WARM", "now")

STREAMS, BATCHES, REAL = 170, 110, 6
LEAST_FAILURES, LEAST_HITS, LEAST_KILLS = 10_000, 100, 100


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    asked.add_argument("--tier", choices=("both", "simulated", "real"), default="both")
    asked.add_argument("--seed", type=int, help="run this seed alone")
    asked.add_argument("--streams", type=int, default=STREAMS, help="how many simulated streams")
    asked.add_argument("--batches", type=int, default=BATCHES, help="how many simulated pipelines that replace results")
    asked.add_argument("--real", type=int, default=REAL, help="how many streams on Spark")
    asked.add_argument("--mutation", choices=("copy", "nosync", "unplanned"))
    given = asked.parse_args()
    right = True
    if given.tier != "real":
        right = simulated(given) and right
    if given.tier != "simulated" and given.mutation is None:
        right = real(given) and right
    return 0 if right else 1


def simulated(given: argparse.Namespace) -> bool:
    from tests.chaos.disk import OPERATIONS, STATE
    from tests.chaos.simulation import run_seeds
    from tests.chaos.tally import Tally

    began, whole = time.monotonic(), Tally()
    seeds = [("stream", n) for n in range(given.streams)] + [("batch", n) for n in range(given.batches)]
    if given.seed is not None:
        seeds = [("stream", given.seed), ("batch", given.seed)]
    print("simulated: a stream or a pipeline on a disk that fails; rows are wanted/got/missing/extra", flush=True)
    for kind, seed, tally in run_seeds(seeds, given.mutation, 1 if given.seed is not None else 2):
        whole.add(tally)
        print(f"{kind} {seed}: {tally.line()}{'' if tally.is_right else '  WRONG'}", flush=True)
    print(f"\n{whole.report()}\nsimulated: {time.monotonic() - began:.0f} s", flush=True)
    few = [name for name in (*OPERATIONS, *STATE) if whole.operations[name] < LEAST_HITS]
    if given.seed is None and given.mutation is None and (few or whole.failures.total() < LEAST_FAILURES):
        print(f"too few failures{'; seldom hit: ' + ', '.join(few) if few else ''}")
        return False
    return whole.is_right


def real(given: argparse.Namespace) -> bool:
    from tests.chaos.real_run import run_real_seed
    from tests.chaos.tally import Tally

    began, whole = time.monotonic(), Tally()
    print("\nreal: a stream on Spark whose processes are killed; rows are wanted/got/missing/extra", flush=True)
    for seed in range(given.real) if given.seed is None else [given.seed]:
        with tempfile.TemporaryDirectory() as folder:
            tally = run_real_seed(Path(folder), seed)
        whole.add(tally)
        print(f"real {seed}: {tally.line()}{'' if tally.is_right else '  WRONG'}", flush=True)
    print(f"\n{whole.report()}\nreal: {time.monotonic() - began:.0f} s", flush=True)
    kills, late = whole.failures.total(), whole.counts["kills after the first finished batch"]
    if given.seed is None and (kills < LEAST_KILLS or 2 * late < kills):
        print("too few kills")
        return False
    return whole.is_right


if __name__ == "__main__":
    sys.exit(main())

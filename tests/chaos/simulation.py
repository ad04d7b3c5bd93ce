"""The simulated tier: many seeds, each a stream or a pipeline that is run again and again, in two processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.chaos.batch_run import run_batch_seed
from tests.chaos.mutations import mutated
from tests.chaos.stream_run import run_stream_seed
from tests.chaos.tally import Tally

RUNS: dict[str, Callable[[Path, int], Tally]] = {"stream": run_stream_seed, "batch": run_batch_seed}


def run_seed(kind: str, seed: int, mutation: str | None = None) -> Tally:
    """One seed, in a folder that is in memory where there is such a one."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder, mutated(mutation):
        return RUNS[kind](Path(folder).resolve() / "run", seed)


def run_seeds(
    seeds: Iterable[tuple[str, int]], mutation: str | None = None, processes: int = 2
) -> Iterator[tuple[str, int, Tally]]:
    """Many seeds, as they come."""
    listed = list(seeds)
    if processes == 1:
        for kind, seed in listed:
            yield kind, seed, run_seed(kind, seed, mutation)
        return
    # Not by a fork: threads of Arrow would be copied while they hold locks.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(run_seed, kind, seed, mutation) for kind, seed in listed]
        for (kind, seed), one in zip(listed, waiting, strict=True):
            yield kind, seed, one.result()

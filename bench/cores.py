"""Work in a process of its own, where every side has so many cores: Polars fixes its threads when it is imported."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

import pyarrow as pa

from kleene.engine.slices import cores
from kleene.plan.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

POLARS_THREADS = "POLARS_MAX_THREADS"


def all_cores() -> int:
    """As many as ours uses when it is not told."""
    return cores(Settings())


def on_cores(number: int, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What some work returns in a fresh process; what it prints is printed."""
    before = os.environ.get(POLARS_THREADS)
    os.environ[POLARS_THREADS] = str(number)
    try:
        with ProcessPoolExecutor(1, get_context("spawn"), prepare, (number,)) as process:
            return process.submit(work, *arguments, **named).result()
    finally:
        if before is None:
            del os.environ[POLARS_THREADS]
        else:
            os.environ[POLARS_THREADS] = before


def prepare(number: int) -> None:
    """Arrow with so many threads, and no warnings among the figures; peers and ours are told where they run."""
    logging.getLogger("kleene").setLevel(logging.ERROR)
    pa.set_cpu_count(number)

"""Sequences on the engine (W1, W2, and the same without a key), beside hand-written joins in Polars.

Events are in memory for both; ours returns the matches with their ids, the peer only counts. Median of three after a
warm-up, one thread each. A run in which the counts differ fails.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import polars as pl
import pyarrow as pa

from bench.workloads import sase
from kleene.evaluation import evaluate
from kleene.pattern import Query

EVENTS = 1_000_000


def timed(work: Callable[[], int]) -> tuple[float, int]:
    times = []
    for repeat in range(4):
        began = time.perf_counter()
        count = work()
        if repeat:
            times.append(time.perf_counter() - began)
    return statistics.median(times), count


def ours(table: pa.Table, text: str) -> int:
    return int(evaluate(table, [Query(text)]).matches.num_rows)


def joins(frame: pl.DataFrame, window: int) -> int:
    """The best joins that we could write: filter by type, join on the key, keep what is in order and in the window."""
    a, b, c = (
        frame.lazy().filter(pl.col("type") == f"E{n}").select("attr1", pl.col("ts").alias(f"t{n}")) for n in (1, 2, 3)
    )
    pairs = a.join(b, on="attr1").filter((pl.col("t2") > pl.col("t1")) & (pl.col("t2") - pl.col("t1") < window))
    triples = pairs.join(c, on="attr1").filter((pl.col("t3") > pl.col("t2")) & (pl.col("t3") - pl.col("t1") < window))
    return int(triples.select(pl.len()).collect().item())


def row(name: str, table: pa.Table, text: str, peer: Callable[[], int] | None) -> None:
    seconds, count = timed(lambda: ours(table, text))
    line = f"{name:28} {count:9,} matches   ours {table.num_rows / seconds / 1e6:7.2f} M events/s"
    if peer is not None:
        theirs, expected = timed(peer)
        if expected != count:
            raise SystemExit(f"{name}: {count} matches here, {expected} by joins")
        line += f"   Polars {table.num_rows / theirs / 1e6:7.2f}   ratio {theirs / seconds:6.2f}"
    print(line, flush=True)


def main() -> int:
    print(f"{EVENTS:,} events in memory, SEQ(E1 a, E2 b, E3 c), one thread")
    text = "PATTERN SEQ(E1 a, E2 b, E3 c) WHERE [attr1] WITHIN {}"
    for values in (100, 1_000, 10_000):
        table = sase(EVENTS, values)
        frame = pl.DataFrame(table)
        row(f"W1 V={values:,}", table, text.format(10_000), lambda frame=frame: joins(frame, 10_000))
    for window in (20_000, 100_000):
        row(
            f"W2 window {window:,}", table, text.format(window), lambda frame=frame, window=window: joins(frame, window)
        )
    row("no key, window 200", table.slice(0, 200_000), "PATTERN SEQ(E1 a, E2 b, E3 c) WITHIN 200", None)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Spark batch against the goal G6 (`make bench-spark`): W1, W4 and a query without a key over Parquet, `local[2]`.

Beside Kleene, whose tasks read the files, in the same run and with the same number of matches: Kleene where Spark reads
them and hands rows over; self-joins in SQL, plain and with time in the join's key; the engine behind `repartition` +
sort + `mapInArrow`; and the floor, a `mapInArrow` that hands every row to Python and does nothing. Then where the time
goes, and the memory of workers on a skewed key and on five million keys.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kleene
from bench.measure import REPEATS, CountsDiffer, Verdict, header
from bench.workloads import Sequence, bystanders, sase, sequence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS = 10_000_000
FILES = 8
# A run that takes longer is not repeated.
PATIENCE = 30.0
# Joins that compare every event of a key with every other, or every event with every other, get a part of the stream.
SHORT, SHORT_WITHOUT_KEY = 4, 200
KLEENE, BEHIND, FLOOR = "kleene", "kleene, read by Spark", "every row to Python (floor)"
JOIN, BUCKETED, SORTED = "self-join", "self-join, time in its key", "repartition + sort + mapInArrow"


@dataclass(frozen=True)
class Took:
    events: int
    seconds: float
    matches: int | None
    runs: int

    @property
    def rate(self) -> float:
        return self.events / self.seconds / 1e6


def write_events(table: pa.Table, folder: Path) -> Path:
    """A stream as Parquet files, in the order of time."""
    folder.mkdir()
    plain = table.set_column(0, "type", table.column("type").cast(pa.string()))
    size = -(-table.num_rows // FILES)
    for number in range(FILES):
        pq.write_table(plain.slice(number * size, size), folder / f"{number}.parquet", row_group_size=250_000)
    return folder


# The sides ---------------------------------------------------------------------------------------------------------


def with_kleene(events: DataFrame, query: Sequence) -> int:
    return int(kleene.match(events, query.text).count())


def with_joins(events: DataFrame, query: Sequence) -> int:
    """Every pair of a key is compared."""
    events.createOrReplaceTempView("events")
    names = [f"v{number}" for number in range(len(query.types))]
    tests = [f"{name}.type = '{kind}'" for name, kind in zip(names, query.types, strict=True)]
    for left, right in pairwise(names):
        tests += [f"{left}.{key} = {right}.{key}" for key in query.keys]
        tests += [f"{left}.ts < {right}.ts", f"{right}.ts - {names[0]}.ts < {query.window}"]
    listed = ", ".join(f"events {name}" for name in names)
    text = f"SELECT count(*) AS n FROM {listed} WHERE {' AND '.join(tests)}"
    return int(events.sparkSession.sql(text).collect()[0]["n"])


def with_bucketed_joins(events: DataFrame, query: Sequence) -> int:
    """Time in the join's key: an event meets those of its own window's length and of the next one."""
    from pyspark.sql import functions

    length = query.window
    found: DataFrame | None = None
    for number, kind in enumerate(query.types):
        part = events.where(functions.col("type") == kind).select("ts", *query.keys)
        if found is None:
            found = part.withColumnRenamed("ts", "first").withColumn("last", functions.col("first"))
            continue
        bucket = functions.floor(functions.col("first") / length)
        spread = found.withColumn("slot", functions.explode(functions.array(bucket, bucket + 1)))
        own = part.withColumn("slot", functions.floor(functions.col("ts") / length))
        found = (
            spread.join(own, ["slot", *query.keys])
            .where(f"ts > last AND ts - first < {length}")
            .select("first", functions.col("ts").alias("last"), *query.keys)
        )
        assert number
    assert found is not None
    return int(found.count())


def with_sorting(events: DataFrame, query: Sequence) -> int:
    """Rows shuffled and sorted by the JVM, matched by the same engine."""
    text = query.text

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kleene.evaluation import evaluate
        from kleene.pattern import Query

        held = list(batches)
        number = evaluate(pa.Table.from_batches(held), [Query(text)]).matches.num_rows if held else 0
        yield pa.RecordBatch.from_pydict({"n": [number]})

    ordered = events.repartition(*query.keys).sortWithinPartitions("ts")
    return int(ordered.mapInArrow(match, "n bigint").groupBy().sum("n").collect()[0][0])


def hand_over(events: DataFrame) -> None:
    """Every row to Python and back to nowhere."""

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from ()

    drain(events.mapInArrow(nothing, "n bigint"))


def drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


# Measuring ---------------------------------------------------------------------------------------------------------


def measured(works: Mapping[str, tuple[Callable[[], int | None], int]]) -> dict[str, Took]:
    """Each side once to warm up, then rounds in which each runs once; one beyond patience counts by its first run."""
    first: dict[str, tuple[float, int | None]] = {}
    for name, (work, _) in works.items():
        began = time.perf_counter()
        matches = work()
        first[name] = time.perf_counter() - began, matches
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(REPEATS):
        for name, (work, _) in works.items():
            if first[name][0] > PATIENCE:
                continue
            began = time.perf_counter()
            again = work()
            seconds[name].append(time.perf_counter() - began)
            if again != first[name][1]:
                raise CountsDiffer.between({f"{name} at first": first[name][1] or 0, f"{name} later": again or 0})
    return {
        name: Took(
            events, statistics.median(seconds[name] or [first[name][0]]), first[name][1], len(seconds[name]) or 1
        )
        for name, (_, events) in works.items()
    }


def side_by_side(name: str, session: SparkSession, folder: Path, query: Sequence, events: int) -> dict[str, Took]:
    """All ways to the same matches; on a part of the stream where a way needs too long for all of it."""
    whole = session.read.parquet(str(folder))
    few = events // (SHORT if query.keys else SHORT_WITHOUT_KEY)
    beginning = whole.where(f"ts < {few}")
    works: dict[str, tuple[Callable[[], int | None], int]] = {
        KLEENE: (lambda: with_kleene(kleene.parquet(session, folder), query), events),
        BEHIND: (lambda: with_kleene(session.read.parquet(str(folder)), query), events),
        FLOOR: (lambda: hand_over(whole), events),
        BUCKETED: (lambda: with_bucketed_joins(whole, query), events),
        JOIN: (lambda: with_joins(beginning, query), few),
    }
    if query.keys:
        works[SORTED] = (lambda: with_sorting(whole, query), events)
    took = measured(works)
    expected = {events: took[KLEENE].matches, few: with_kleene(beginning, query)}
    for side, one in took.items():
        if side != FLOOR and one.matches != expected[one.events]:
            raise CountsDiffer.between({"kleene": expected[one.events] or 0, side: one.matches or 0})
    print(f"\n{name}: {query.text}\n  {events:,} events in {FILES} Parquet files, {took[KLEENE].matches:,} matches")
    for side, one in took.items():
        size = "" if one.events == events else f" on the first {one.events:,} events"
        once = "" if one.runs > 1 else ", one run"
        print(f"  {side:32s} {one.rate:7.2f} M events/s ({one.seconds:.1f} s{once}){size}", flush=True)
    return took


def shares(session: SparkSession, folder: Path, query: Sequence) -> None:
    """Where the time goes: the same road, ending after each of its parts."""
    from kleene.pattern import Query
    from kleene.spark.batch import prepare
    from kleene.spark.division import exchanged

    events = kleene.parquet(session, folder)
    prepared = prepare(events, [Query(query.text)], schema=None, several=False)
    found = kleene.match(events, query.text)
    roads: dict[str, tuple[Callable[[], None], int]] = {
        "reading, filter, packing": (lambda: drain(prepared.packed), 1),
        "exchange of packed rows": (lambda: drain(prepared.packed.repartition("slot")), 1),
        "order of packed rows": (lambda: drain(exchanged(prepared.packed)), 1),
        "match, and output": (lambda: drain(found), 1),
    }
    took = measured(roads)
    whole = took["match, and output"].seconds
    print(f"\nshares of {whole:.1f} s, each part measured by ending the road behind it")
    before = 0.0
    for name, one in took.items():
        print(
            f"  {name:32s} {max(one.seconds - before, 0.0) / whole:5.0%}  (up to here {one.seconds:.1f} s)", flush=True
        )
        before = max(before, one.seconds)


# Memory ------------------------------------------------------------------------------------------------------------


def skewed(events: int) -> pa.Table:
    """One key has three events in ten."""
    table = sase(events, 1_000)
    rng = np.random.default_rng(7)
    keys = table.column("attr1").to_numpy().copy()
    keys[rng.random(events) < 0.3] = 0
    return table.set_column(table.column_names.index("attr1"), "attr1", pa.array(keys))


def many_keys(events: int) -> pa.Table:
    """Five million keys."""
    return sase(events, 5_000_000)


SETS: dict[str, tuple[Callable[[int], pa.Table], Sequence]] = {
    "skewed": (skewed, sequence(window=200)),
    "many keys": (many_keys, sequence(window=1_000_000)),
}


def memory_of(name: str, events: int) -> None:
    """Run one set in this process, and print what its workers took at most."""
    from kleene.spark.session import local_session

    make, query = SETS[name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_events(make(events), Path(scratch) / "events")
        session = local_session("local[2]")
        logging.getLogger("kleene").setLevel(logging.ERROR)
        began = time.perf_counter()
        found = with_kleene(kleene.parquet(session, folder), query)
        seconds = time.perf_counter() - began
        print(f"{found} {seconds:.1f} {max(peaks())}", flush=True)
        session.stop()


def peaks() -> list[int]:
    """The largest resident size that each Python worker of this process's Spark ever had, in MB."""
    known: dict[int, tuple[int, str, int]] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError, KeyError, ValueError):
            said = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            command = (status.parent / "cmdline").read_bytes().decode(errors="replace")
            known[int(status.parent.name)] = int(said["PPid"]), command, int(said["VmHWM"].split()[0]) // 1024
    ours = {os.getpid()}
    # Parents before children: numbers of processes may wrap round, so until nothing is new.
    while new := {one for one, (parent, _, _) in known.items() if parent in ours} - ours:
        ours |= new
    return [known[one][2] for one in ours if one in known and "daemon" in known[one][1]]


def memory(events: int) -> list[Verdict]:
    print("\nmemory of Python workers, each set in a session of its own")
    verdicts = []
    for name, (_, query) in SETS.items():
        peak = []
        for size in (events // 4, events):
            command = [sys.executable, "-m", "bench.spark_batch", "--memory-of", name, "--events", str(size)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found, seconds, most = printed.split()[-3:]
            peak.append(int(most))
            print(f"  {name:10s} {size:>10,} events, {int(found):,} matches, {seconds} s, peak {most} MB  {query.text}")
        bounded = peak[1] < 2 * peak[0]
        text = f"{name}: a worker takes {peak[0]} MB at most for {events // 4:,} events, {peak[1]} MB for {events:,}"
        verdicts.append(Verdict("G6 memory", bounded, text))
    return verdicts


# -------------------------------------------------------------------------------------------------------------------


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m bench.spark_batch", description=__doc__)
    given.add_argument("--events", type=int, default=EVENTS, help="length of the streams")
    given.add_argument(
        "--memory-of", metavar="SET", help="measure one set's memory only (the benchmark calls itself so)"
    )
    given.add_argument("--parts", nargs="*", default=["w1", "w4", "keyless", "shares", "memory"])
    arguments = given.parse_args()
    if arguments.memory_of:
        memory_of(arguments.memory_of, arguments.events)
        return 0
    from kleene.spark.session import local_session

    session = local_session("local[2]")
    logging.getLogger("kleene").setLevel(logging.ERROR)
    print(header("pyspark", "pyarrow", "numba") + "; local[2]")
    scratch = Path(tempfile.mkdtemp(prefix="kleene-bench-"))
    verdicts: list[Verdict] = []
    try:
        events = arguments.events
        w1 = write_events(sase(events, 1_000), scratch / "w1")
        if "w1" in arguments.parts:
            verdicts += judged(side_by_side("W1, V = 1,000", session, w1, sequence(), events))
        if "shares" in arguments.parts:
            shares(session, w1, sequence())
        if "w4" in arguments.parts:
            table, query = bystanders(events)
            side_by_side("W4", session, write_events(table, scratch / "w4"), query, events)
        if "keyless" in arguments.parts:
            side_by_side("without a key", session, w1, sequence(window=200, keys=()), events)
    finally:
        session.stop()
        shutil.rmtree(scratch)
    if "memory" in arguments.parts:
        verdicts += memory(arguments.events)
    print()
    for verdict in verdicts:
        print(verdict.line())
    return 0


def judged(took: dict[str, Took]) -> list[Verdict]:
    ours, before, floor, plain, bucketed = (took[name] for name in (KLEENE, BEHIND, FLOOR, JOIN, BUCKETED))
    joins = (
        f"W1 {ours.rate / plain.rate:.1f} x the self-join on {plain.events:,} events (goal 3), slower on longer"
        f" ones; {ours.rate / bucketed.rate:.1f} x joins with time in their key"
    )
    over = f"W1 {ours.rate:.2f} M events/s, {ours.rate / floor.rate:.1f} x the floor of {floor.rate:.2f} (goal 2)"
    read = f"W1 {ours.rate / before.rate:.2f} x what it is where Spark reads the files, {before.rate:.2f} (goal 1.5)"
    return [
        Verdict("G6", ours.rate >= 2 * floor.rate, over),
        Verdict("G6", ours.rate >= 1.5 * before.rate, read),
        Verdict("G6", ours.rate >= 3 * plain.rate, joins),
    ]


if __name__ == "__main__":
    sys.exit(main())

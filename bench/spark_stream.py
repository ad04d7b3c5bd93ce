"""Spark streaming against the goal G7 (`make bench-stream`): W1 and W8 through the checkpointed stateful path.

Files are the source, two a trigger; matches are written to Parquet in every batch. Beside Kleene, in the same run: the
same stream read and dropped, and the same stream handed to Python and dropped there. Then the floor of a trigger, the
time from an event to its match, what a longer window costs, what keeping state costs, and memory over many windows.
`bench.stream_cores` runs both on one core and on two.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import kleene
from bench.measure import CountsDiffer, Verdict, header
from bench.process_memory import processor_seconds, workers_memory
from bench.workloads import LATE_SECONDS, fraud, payments, sase, sequence
from kleene.spark.streaming.live import MicroBatch
from kleene.spark.streaming.live_slot import ARRIVAL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = 1_000_000
BATCHES = 10
# Triggers that warm up: workers start, code is compiled.
WARM = 3
# Spark cuts a file by its bytes: both halves of a small one may fall to one task, and a second core reads nothing.
FILES = 2
LATENCY_RATE, LATENCY_SECONDS = 100_000, 40
GOAL, GOAL_FEW, GOAL_FLOOR, GOAL_WINDOW = 0.5, 1.0, 1.0, 1.5


@dataclass(frozen=True)
class Trigger:
    """One batch: its number, events, seconds in all and seconds for keeping state and offsets."""

    number: int
    events: int
    seconds: float
    keeping: float
    state: int


@dataclass(frozen=True)
class Ran:
    triggers: tuple[Trigger, ...]
    matches: int
    # By batch: bytes of memory of the Python workers, and bytes that slots keep in Spark's state.
    memory: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    # By update of a slot: whether it was made anew, caught up or handed over, and how long that took.
    arrivals: tuple[dict[str, int], ...] = ()
    # By batch and role of processes: their processor time so far.
    processor: tuple[dict[str, float], ...] = ()

    @property
    def warm(self) -> tuple[Trigger, ...]:
        return tuple(one for one in self.triggers[WARM:] if one.events)

    @property
    def rate(self) -> float:
        """Million events a second, once warm."""
        return sum(one.events for one in self.warm) / sum(one.seconds for one in self.warm) / 1e6

    @property
    def seconds(self) -> float:
        return statistics.median(one.seconds for one in self.warm)


class Bench:
    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session, self.folder = session, folder
        self._runs = 0

    def files(self, name: str, table: pa.Table, batches: int) -> DataFrame:
        """A stream of files, so many a trigger that each of two cores has one to read."""
        folder = self.folder / name
        if not folder.exists():
            folder.mkdir()
            plain = table.set_column(0, "type", table.column("type").cast(pa.string()))
            size = -(-table.num_rows // (FILES * batches))
            for number in range(FILES * batches):
                file = folder / f"{number:04}.parquet"
                pq.write_table(plain.slice(number * size, size), file, row_group_size=size)
                os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        columns = self.session.read.parquet(str(folder)).schema
        return self.session.readStream.schema(columns).option("maxFilesPerTrigger", FILES).parquet(str(folder))

    def kleene(self, events: DataFrame, text: str, delay: str | int, *, watch: bool = False) -> Ran:
        """Matches written batch by batch."""
        live = kleene.live(
            events, kleene.query(text, name="q"), settings=kleene.Settings(stream=kleene.Stream(delay=delay))
        )
        place = self._place()
        counts: list[int] = []
        kept: dict[int, int] = {}
        memory: list[int] = []
        sizes: list[int] = []
        arrivals: list[dict[str, int]] = []
        processor: list[dict[str, float]] = []

        def write(found: MicroBatch, number: int) -> None:
            counts.append(found.number("matches"))
            if counts[-1]:
                found.matches("q").write.mode("overwrite").parquet(str(place / "out" / f"batch={number}"))
            if watch:
                kept.update((one.slot, one.values["kept_bytes"]) for one in found.measured)
                memory.append(workers_memory())
                processor.append(processor_seconds())
                sizes.append(sum(kept.values()))
                arrivals.extend({name: one.values[name] for name in ARRIVAL} for one in found.measured)

        running = live.start(write, checkpoint=str(place / "checkpoint"), available_now=True)
        running.awaitTermination()
        made = Ran(_triggers(running), sum(counts), tuple(memory), tuple(sizes), tuple(arrivals), tuple(processor))
        shutil.rmtree(place)
        return made

    def dropped(self, events: DataFrame) -> Ran:
        """A stream whose rows go nowhere."""
        place = self._place()
        writer = events.writeStream.format("noop").option("checkpointLocation", str(place / "checkpoint"))
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        shutil.rmtree(place)
        return Ran(_triggers(running), 0)

    def _place(self) -> Path:
        self._runs += 1
        return self.folder / f"run{self._runs}"


def _triggers(running: Any) -> tuple[Trigger, ...]:
    found = []
    for progress in running.recentProgress:
        said = json.loads(progress.json)
        spent, operators = said["durationMs"], said["stateOperators"]
        keeping = spent.get("walCommit", 0) + spent.get("commitOffsets", 0)
        keeping += sum(operator["commitTimeMs"] / max(1, operator["numShufflePartitions"]) for operator in operators)
        found.append(
            Trigger(
                said["batchId"],
                said["numInputRows"],
                spent["triggerExecution"] / 1000,
                keeping / 1000,
                sum(operator["memoryUsedBytes"] for operator in operators),
            )
        )
    return tuple(found)


def handed_over(events: DataFrame) -> DataFrame:
    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from ()

    return events.mapInArrow(nothing, "n bigint")


# The parts ---------------------------------------------------------------------------------------------------------


def sustained(bench: Bench, events: int, batches: int) -> list[Verdict]:
    """W1 and W8, as fast as they go."""
    print(f"\nsustained, {events // batches:,} events a trigger, matches written to Parquet")
    w1 = bench.files("w1", sase(events, 1_000), batches)
    w8_table = payments(events)
    w8 = bench.files("w8", w8_table, batches)
    floor = {"read and dropped": bench.dropped(w1), "handed to Python": bench.dropped(handed_over(w1))}
    for name, ran in floor.items():
        _say(f"W1 {name}", ran)
    verdicts = []
    for length, goal in ((3, GOAL_FEW), (6, GOAL)):
        query = sequence(length)
        ran = bench.kleene(w1, query.text, 0)
        expected = _in_process(sase(events, 1_000), query.text)
        _check(f"W1, {length} of 20 types", ran, expected)
        _say(f"W1, {length} of 20 types", ran)
        text = f"W1 with {length} of 20 types {ran.rate:.2f} M events/s sustained (goal {goal})"
        verdicts.append(Verdict("G7", ran.rate >= goal, text))
    whole = fraud("10 minutes")
    few = f"{whole} RETURN s1.acc AS acc, s1.id AS first, s2.id AS second, l.id AS third, l.amount AS amount"
    for name, text in (("W8, whole events", whole), ("W8, five columns", few)):
        ran = bench.kleene(w8, text, f"{LATE_SECONDS:.0f} seconds")
        _check(name, ran, _in_process(w8_table, text))
        _say(name, ran)
        said = f"{name} {ran.rate:.2f} M events/s sustained (goal {GOAL})"
        verdicts.append(Verdict("G7 (W8)", ran.rate >= GOAL, said))
    return verdicts


def trigger_floor(bench: Bench) -> list[Verdict]:
    """Triggers with next to nothing to do."""
    events = bench.files("tiny", sase(30 * 100, 100), 30)
    ran = bench.kleene(events, sequence().text, 0)
    seconds = statistics.median(one.seconds for one in ran.triggers[WARM:])
    print(f"\nfloor: a trigger of 100 events takes {seconds:.2f} s (median of {len(ran.triggers) - WARM})")
    return [Verdict("G7 floor", seconds <= GOAL_FLOOR, f"{seconds:.2f} s (goal {GOAL_FLOOR})")]


def longer_window(bench: Bench, events: int, batches: int) -> list[Verdict]:
    """The same stream with a window of one trigger's length, and with one ten times longer."""
    table = sase(events, 10_000)
    stream = bench.files("windows", table, batches)
    found: dict[int, Ran] = {}
    print(f"\nwindow, {events // batches:,} events a trigger, few matches")
    for window in (events // batches // 2, 5 * events // batches):
        query = sequence(2, window, ("attr1", "attr2"))
        ran = found[window] = bench.kleene(stream, query.text, 0, watch=True)
        _say(f"window of {window:,}", ran)
        print(f"    state kept {ran.kept[-1] / 1e6:.1f} MB at the end, {max(ran.kept) / 1e6:.1f} MB at most")
    short, long = found.values()
    ratio = long.seconds / short.seconds
    text = f"a window ten times longer makes a trigger {ratio:.2f} × slower (goal {GOAL_WINDOW})"
    share = sum(one.keeping for one in long.warm) / sum(one.seconds for one in long.warm)
    print(f"    keeping state and offsets takes {share:.0%} of a trigger")
    return [Verdict("G7 window", ratio <= GOAL_WINDOW, text)]


def flat(bench: Bench, events: int) -> list[Verdict]:
    """Memory and state over many windows."""
    batches = 25
    stream = bench.files("flat", sase(events, 10_000), batches)
    query = sequence(2, events // batches, ("attr1", "attr2"))
    ran = bench.kleene(stream, query.text, 0, watch=True)
    early, late = (slice(3, 8), slice(-6, -1))
    memory = [statistics.median(ran.memory[part]) / 1e6 for part in (early, late)]
    kept = [statistics.median(ran.kept[part]) / 1e6 for part in (early, late)]
    text = (
        f"over {batches} windows workers {memory[0]:.0f} → {memory[1]:.0f} MB, "
        f"state kept {kept[0]:.1f} → {kept[1]:.1f} MB"
    )
    print(f"\nflat: {text}")
    return [Verdict("G7 memory", memory[1] < 1.15 * memory[0] and kept[1] < 1.15 * kept[0], text)]


def latency(bench: Bench) -> None:
    """From an event to its match, at 100,000 events a second by the clock of the machine."""
    from pyspark.sql import functions

    rate = bench.session.readStream.format("rate").option("rowsPerSecond", LATENCY_RATE).load()
    number = functions.col("value")
    kind = functions.concat(functions.lit("E"), (functions.pmod(functions.hash(number), functions.lit(20)) + 1))
    events = rate.select(
        kind.alias("type"),
        functions.col("timestamp").alias("ts"),
        functions.pmod(functions.hash(number, functions.lit(7)), functions.lit(10_000)).alias("attr1"),
    )
    text = "PATTERN SEQ(E1 a, E2 b) WHERE [attr1] WITHIN 5 seconds"
    live = kleene.live(
        events, kleene.query(text, name="q"), settings=kleene.Settings(stream=kleene.Stream(delay="0 seconds"))
    )
    place = bench.folder / "latency"
    waits: list[float] = []
    began = time.time()

    def write(found: MicroBatch, batch: int) -> None:
        if not found.number("matches"):
            return
        ends = found.matches("q").select("end").toArrow().column("end")
        now = time.time()
        if now - began > LATENCY_SECONDS / 3:
            micros = pc.cast(ends, pa.int64()).to_pylist()
            waits.extend(now - end / 1e6 for end in micros)

    running = live.start(write, checkpoint=str(place), trigger="0 seconds")
    running.awaitTermination(LATENCY_SECONDS)
    running.stop()
    waits.sort()
    middle, high = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    said = f"at {LATENCY_RATE:,} events/s, from event to match: p50 {middle:.2f} s, p99 {high:.2f} s"
    print(f"\nlatency: {said} ({len(waits):,} matches)")
    print("    the source gives a second's events when it is over; an event waits for the next batch's watermark")


def _say(name: str, ran: Ran) -> None:
    print(
        f"  {name:<28}{ran.rate:6.2f} M events/s   {ran.seconds:5.2f} s a trigger"
        + (f"   {ran.matches:,} matches" if ran.matches else "")
    )


def _in_process(table: pa.Table, text: str) -> int:
    return int(kleene.match(table, text).num_rows)


def _check(name: str, ran: Ran, expected: int) -> None:
    """The last events wait for later ones, so that a stream has as many matches as its table, or a few less."""
    if ran.matches > expected or ran.matches < 0.95 * expected:
        raise CountsDiffer.between({f"{name} on a stream": ran.matches, "in process": expected})


def main(given: Sequence[str]) -> None:
    from kleene.spark.session import local_session

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=BATCH * BATCHES)
    parser.add_argument("--parts", nargs="*", default=["sustained", "cores", "floor", "window", "flat", "latency"])
    arguments = parser.parse_args(given)
    logging.getLogger("kleene").setLevel(logging.ERROR)
    session = local_session("local[2]", **STREAMING)
    print(header("kleene", "pyspark", "pyarrow"))
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(session, Path(folder))
        if "sustained" in arguments.parts:
            verdicts += sustained(bench, arguments.events, BATCHES)
        if "cores" in arguments.parts:
            from bench.stream_cores import scaling

            verdicts += scaling(arguments.events, BATCHES)
        if "floor" in arguments.parts:
            verdicts += trigger_floor(bench)
        if "window" in arguments.parts:
            verdicts += longer_window(bench, arguments.events, 2 * BATCHES)
        if "flat" in arguments.parts:
            verdicts += flat(bench, arguments.events)
        if "latency" in arguments.parts:
            latency(bench)
    print()
    for verdict in verdicts:
        print(verdict.line())


STREAMING = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

if __name__ == "__main__":
    main(sys.argv[1:])

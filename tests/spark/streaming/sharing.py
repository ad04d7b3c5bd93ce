"""Many small runs on one Spark stream: each has slots of its own, and all share the watermark.

Which events reach which slot is found out by one job over bounded events, by the same plan as on a stream. Then the
events come one by one, shuffled within the delay and cut into batches at random, and at the end something that matters
to nobody moves time on.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.soaking import SOAKING
from tests.spark.comparing import ROOM

from kleene.engine.intake.timeline import integers
from kleene.errors import KleeneError
from kleene.optimize.planner import plan_query
from kleene.plan.settings import Budget, Exchange, Settings, Stream
from kleene.queries.any_query import AnyBoundQuery, is_pattern
from kleene.spark.packing import PACKED, from_bytes, to_bytes
from kleene.spark.slot import named
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.stateful import SlotProcessor
from kleene.spark.worker import ENVELOPE, ENVELOPE_DDL, TaskSpec, work_from

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kleene.spark.streaming.preparing import PreparedStream

# Queries without a window run, too, where a budget bounds what they hold.
BOUNDED = Settings(exchange=Exchange(buckets=2), stream=Stream(delay=0), budget=Budget(state_bytes=1 << 30))
NOBODY = -1
DELAY = 3
AT_A_TIME = 24
# Into how many batches the events are cut.
BATCHES = 8 if SOAKING else 3
# Longer than any window of a case, in milliseconds.
FAR = 400 * 24 * 3600 * 1000
_ARRIVING = PACKED.append(pa.field("at", pa.timestamp("us", "UTC")))


def waits_for_the_end(query: AnyBoundQuery) -> bool:
    """Whether something is decided when a window closes that time does not close."""
    if not is_pattern(query):
        return False
    if query.window is not None and not query.window.events:
        return False
    return query.timeouts is not None or plan_query(query).has_negated_end


class ManyProcessor(SlotProcessor):
    """The operator for many runs, each with what its tasks are told."""

    def __init__(self, task_specs: Sequence[TaskSpec]) -> None:
        super().__init__({"parts": []})
        self._errands = task_specs

    def _slot(self, key: Any) -> int:
        return int(key[0])

    def _called(self, slot: int, *given: Any, **named: Any) -> Iterator[Any]:
        if slot == NOBODY:
            return
        number, own = divmod(slot, ROOM)
        self._task_spec = self._errands[number]
        try:
            for frame in super()._called(own, *given, **named):
                frame["query"] += number * ROOM
                yield frame
        except KleeneError as problem:
            # The others go on.
            yield _failure(number, problem)


def _failure(number: int, problem: KleeneError) -> Any:
    import pandas as pd

    values = (number * ROOM, f"failed {problem.code}", 0, to_bytes(pa.table({"message": [problem.message]})))
    return pd.DataFrame({name: [value] for name, value in zip(ENVELOPE.names, values, strict=True)})


def run_on_stream(
    spark: SparkSession, prepared: Sequence[PreparedStream], folder: Path, *, seed: int
) -> dict[tuple[int, str], pa.Table]:
    """What the first query of each run gives, by number and kind; an error is a kind, too."""
    from kleene.spark.streaming import live

    task_specs = [made.task_spec() for made in prepared]
    arrivals = _arrivals(prepared, task_specs, random.Random(seed))
    write_batches(arrivals, folder / "in", random.Random(seed), BATCHES)
    spark.conf.set(live.STATE_STORE, live.ROCKSDB)
    read = spark.readStream.schema("slot int, begin bigint, events binary, at timestamp")
    events = read.option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    timed = events.withWatermark("at", f"{DELAY} milliseconds").select("slot", "begin", "events")
    made = timed.groupBy("slot").transformWithStateInPandas(
        ManyProcessor(task_specs), ENVELOPE_DDL, "Append", "EventTime"
    )
    found: dict[tuple[int, str], list[pa.Table]] = {}

    def collect(batch: Any, _: int) -> None:
        for row in batch.collect():
            number, query = divmod(row["query"] + 1, ROOM)
            if query <= 1 and row["rows"] is not None:
                found.setdefault((number, row["kind"]), []).append(from_bytes(pa.py_buffer(bytes(row["rows"]))))

    running = made.writeStream.foreachBatch(collect).option("checkpointLocation", str(folder / "checkpoint"))
    running.trigger(availableNow=True).start().awaitTermination()
    return {key: pa.concat_tables(tables) for key, tables in found.items()}


Arrival = tuple[int, dict[str, Any]]


def _union(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.union(right)


def _arrivals(prepared: Sequence[PreparedStream], task_specs: Sequence[TaskSpec], draw: random.Random) -> list[Arrival]:
    """Every packed event with the millisecond at which it happens, in the order in which they come."""
    from pyspark.sql import functions

    frames = [
        made.packed.select((functions.col("slot") + number * ROOM).alias("slot"), "begin", "events")
        for number, made in enumerate(prepared)
    ]
    # A plan of hundreds of parts takes Spark longer than several jobs.
    parts = [frames[first : first + AT_A_TIME] for first in range(0, len(frames), AT_A_TIME)]
    packed = [row for part in parts for row in reduce(_union, part).toArrow().to_pylist()]
    works = [(work_from(task_spec), Pace(*task_spec["pace"]), task_spec["bad_slot"]) for task_spec in task_specs]
    arrivals: list[Arrival] = []
    for row in packed:
        number, own = divmod(row["slot"], ROOM)
        work, pace, bad_slot = works[number]
        events = from_bytes(row["events"])
        times = [0] * events.num_rows
        if own != bad_slot:
            known = named(events, work.part_of(own), work.columns)
            times = integers(known.column(work.schema.time)).tolist()
        for place, time in enumerate(times):
            at = time // pace.steps * pace.milliseconds
            single = to_bytes(events.slice(place, 1))
            arrivals.append((at, {"slot": row["slot"], "begin": time, "events": single, "at": at * 1000}))
    arrivals.sort(key=lambda arrival: arrival[0] + draw.uniform(0, DELAY))
    return arrivals


def write_batches(arrivals: Sequence[Arrival], folder: Path, draw: random.Random, batches: int) -> None:
    """One file a batch, and a last one that only moves time on."""
    folder.mkdir(parents=True)
    cuts = [0, *sorted(draw.randrange(len(arrivals) + 1) for _ in range(batches - 1)), len(arrivals)]
    parts = [[row for _, row in arrivals[first:last]] for first, last in pairwise(cuts)]
    latest = max((at for at, _ in arrivals), default=0)
    parts.append([{"slot": NOBODY, "begin": 0, "events": b"", "at": (latest + FAR) * 1000}])
    for number, rows in enumerate(part for part in parts if part):
        draw.shuffle(rows)
        file = folder / f"{number:03}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, _ARRIVING), file)
        # Spark takes files in the order of their times, of which it sees milliseconds.
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

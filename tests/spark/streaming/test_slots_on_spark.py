"""Slots on Spark's own workers, which are given tasks as they are free: nothing is replayed, and nothing is left."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.spark.streaming.test_streams import COLUMNS, Folder

import kleene
from kleene.spark.streaming import ended_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.streaming.live import MicroBatch

TRIGGERS, EACH, PATIENCE_SECONDS = 6, 60, 20.0
QUERY = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 300", name="pairs")


def test_slots_are_not_made_anew_and_an_ended_stream_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder, draw = Folder(spark, tmp_path), random.Random(5)
    rows = [(draw.choice("AB"), place, draw.randrange(40)) for place in range(TRIGGERS * EACH)]
    for first in range(0, len(rows), EACH):
        folder.put(*rows[first : first + EACH])
    folder.put(("Z", 10_000, 0))
    updates: list[dict[str, int]] = []
    matches: list[str] = []
    offered: list[int] = []

    def gather(found: MicroBatch, batch: int) -> None:
        matches.extend(row["match_id"] for row in found.matches("pairs").toArrow().to_pylist())
        updates.extend(dict(slot.values) for slot in found.measured)
        offered.append(len(list(ended_streams._folder().iterdir())))

    live = kleene.live(folder.events, QUERY, settings=kleene.Settings(stream=kleene.Stream(delay=0)))
    live.start(gather, checkpoint=str(tmp_path / "state"), available_now=True).awaitTermination()

    table = pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS)
    assert sorted(matches) == sorted(kleene.match(table, QUERY).column("match_id").to_pylist())
    assert len(updates) >= 2 * TRIGGERS
    # A worker that has both slots and is busy gives one away, once.
    assert sum(update["made_anew"] + update["caught_up"] for update in updates) <= 1
    assert max(offered) >= 3, "two slots and the socket of a worker"
    _awaits_empty(ended_streams._folder())


def _awaits_empty(folder: Path) -> None:
    """Spark tells its listeners when the stream has ended already."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while list(folder.iterdir()):
        assert time.monotonic() < deadline, "a worker still has slots of a stream that has ended"
        time.sleep(0.05)

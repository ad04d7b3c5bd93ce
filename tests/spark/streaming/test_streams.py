"""Streams by `kleene.match` and `kleene.live`: how time passes, what a restart finds, who is not believed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kleene
from kleene.errors import BadSnapshot, NoDelay, NotOnStreams, UnboundedState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kleene.queries.any_query import AnyQuery
    from kleene.spark.streaming.live import MicroBatch

pytestmark = [pytest.mark.slow, pytest.mark.sparks_own]

COLUMNS = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("id", pa.int64())])
PAIRS = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10", name="pairs")
ALONE = kleene.query("PATTERN SEQ(A a, !(B b)) WHERE [id] WITHIN 10", name="alone")


class Folder:
    """A stream of files, one a batch."""

    def __init__(self, spark: SparkSession, place: Path, columns: pa.Schema = COLUMNS) -> None:
        from kleene.spark.types import spark_schema

        self.place, self.columns, self.number = place / "in", columns, 0
        self.place.mkdir()
        reader = spark.readStream.schema(spark_schema(columns)).option("maxFilesPerTrigger", 1)
        self.events: DataFrame = reader.parquet(str(self.place))

    def put(self, *rows: tuple[Any, ...]) -> None:
        table = pa.Table.from_pylist([dict(zip(self.columns.names, row, strict=True)) for row in rows], self.columns)
        draft = self.place / f".{self.number}"
        pq.write_table(table, draft)
        os.utime(draft, (1_700_000_000 + self.number, 1_700_000_000 + self.number))
        draft.rename(self.place / f"{self.number:03}.parquet")
        self.number += 1


class Gathered:
    """What batches made; one that is given again takes the place of what it gave before."""

    def __init__(self) -> None:
        self.batches: dict[int, dict[str, list[dict[str, Any]]]] = {}

    def __call__(self, found: MicroBatch, batch: int) -> None:
        frames = {query.name: found.matches(query.name) for query in found.queries}
        frames |= {"late": found.late, "bad": found.bad_rows}
        wanted = {
            name for name in frames if found.number(*(("matches", name) if name not in ("late", "bad") else (name,)))
        }
        self.batches[batch] = {name: frames[name].toArrow().to_pylist() for name in wanted}

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """Start and end of matches, or the rows."""
        rows = [row for batch in self.batches.values() for row in batch.get(name, [])]
        return sorted((row["start"], row["end"]) if "start" in row else tuple(row.values()) for row in rows)


def test_time_passes_and_a_restart_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    folder, found = Folder(spark, tmp_path), Gathered()
    settings = kleene.Settings(stream=kleene.Stream(delay=2))

    def run(queries: list[AnyQuery], settings: kleene.Settings = settings) -> None:
        live = kleene.live(folder.events, queries, settings=settings)
        live.start(found, checkpoint=str(tmp_path / "state"), available_now=True).awaitTermination()

    folder.put(("A", 1, 1), ("B", 3, 1), ("A", 4, 2), ("C", None, 1))
    folder.put(("A", 2, 1))
    run([PAIRS, ALONE])
    # The watermark is at 2: nothing is certain.
    assert found.of("pairs") == found.of("alone") == []
    assert [row[0] for row in found.of("bad")] == ["no time: `ts` is NULL"]

    # Events that matter to no query let time pass: pairs are certain, and who is alone is not yet.
    folder.put(("Z", 13, None))
    run([PAIRS, ALONE])
    assert found.of("pairs") == [(1, 3), (2, 3)]
    assert found.of("alone") == []
    # Strictly: at 14 the window of 4 is still open, at 15 it has closed.
    folder.put(("Z", 16, None))
    run([PAIRS, ALONE])
    assert found.of("alone") == []
    folder.put(("Z", 17, None))
    folder.put(("B", 14, 2), ("B", 15, 2))
    run([PAIRS, ALONE])
    assert found.of("alone") == [(4, 4)]
    assert found.of("late") == [("B", 14, 2)]
    assert found.of("pairs") == [(1, 3), (2, 3)]

    changed = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 11", name="pairs")
    with pytest.raises(BadSnapshot, match="`pairs` has changed since"):
        run([changed, ALONE])
    with pytest.raises(BadSnapshot, match="`alone` is gone since"):
        run([PAIRS])
    with pytest.raises(BadSnapshot, match=r"begun with \d+ buckets, and 5 are asked for"):
        run([PAIRS, ALONE], kleene.Settings(stream=settings.stream, exchange=kleene.Exchange(buckets=5)))


@pytest.mark.soak  # slots that fail at random show it without Spark (`test_slots_agree`)
def test_a_worker_that_worked_in_vain_is_not_believed(spark: SparkSession, tmp_path: Path) -> None:
    """A task fails after its slots have gone on; the processes that hold them live on, and the batch comes again."""
    folder = Folder(spark, tmp_path)
    for place in range(6):
        begin = 10 * place
        folder.put(*((kind, begin + at, at % 3) for at in range(10) for kind in ("A", "B")))
    folder.put(("Z", 1_000, 0))
    mark = tmp_path / "killed"
    found: dict[int, set[str]] = {}

    def deadly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Dies once, on the first match of a later batch."""
        for batch in batches:
            if "matches" in batch.column("kind").to_pylist():
                seen = len(list(mark.parent.glob("seen*")))
                if seen == 3 and not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                (mark.parent / f"seen{seen}").touch()
            yield batch

    def gather(batch: DataFrame, number: int) -> None:
        from kleene.spark.packing import from_bytes

        tables = [from_bytes(pa.py_buffer(bytes(row["rows"]))) for row in batch.where("kind = 'matches'").collect()]
        found[number] = {name for table in tables for name in table.column("match_id").to_pylist()}

    live = kleene.live(folder.events, PAIRS, settings=kleene.Settings(stream=kleene.Stream(delay=3)))
    made = live.envelopes.mapInArrow(deadly, live.envelopes.schema)

    def run() -> None:
        writer = made.writeStream.foreachBatch(gather).option("checkpointLocation", str(tmp_path / "state"))
        writer.trigger(availableNow=True).start().awaitTermination()

    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException):
        run()
    assert mark.exists()
    run()
    whole = pa.concat_tables(pq.read_table(file) for file in sorted(folder.place.glob("*.parquet")))
    expected = kleene.match(whole, PAIRS).column("match_id").to_pylist()
    gathered = [name for names in found.values() for name in names]
    assert sorted(gathered) == sorted(expected)
    assert len(expected) > 20


def test_a_stream_with_a_watermark_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """Several queries in one table, as a streaming data frame like any other."""
    zoned = pa.schema([("type", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("id", pa.int64())])
    folder = Folder(spark, tmp_path, zoned)
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    folder.put(("A", noon, 1), ("B", noon + timedelta(seconds=3), 1))
    folder.put(("Z", noon + timedelta(hours=1), 1))
    queries = [
        kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 seconds", name="pairs"),
        kleene.query("PATTERN SEQ(A a, B b) WITHIN 10 seconds", name="any"),
    ]
    matches = kleene.match(folder.events.withWatermark("ts", "5 seconds"), queries)
    assert matches.isStreaming
    writer = matches.writeStream.format("memory").queryName("found").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "state")).start().awaitTermination()
    rows = spark.table("found").collect()
    assert sorted(row["query"] for row in rows) == ["any", "pairs"]
    here = kleene.match(pq.read_table(folder.place / "000.parquet"), queries)
    assert sorted(row["match_id"] for row in rows) == sorted(here.column("match_id").to_pylist())


@pytest.mark.soak
def test_time_moves_on_while_nothing_comes(spark: SparkSession, tmp_path: Path) -> None:
    """With `idle` the clock of the machine lets time pass."""
    local = pa.schema([("type", pa.string()), ("ts", pa.timestamp("us")), ("id", pa.int64())])
    folder, found = Folder(spark, tmp_path, local), Gathered()
    now = datetime.now(tz=UTC).replace(tzinfo=None)
    folder.put(("A", now, 1), ("B", now + timedelta(seconds=1), 1))
    pairs = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 seconds", name="pairs")
    settings = kleene.Settings(stream=kleene.Stream(delay="0 seconds", idle="2 seconds"))
    running = kleene.live(folder.events, pairs, settings=settings).start(found, checkpoint=str(tmp_path / "state"))
    try:
        deadline = time.monotonic() + 240
        while not found.of("pairs") and time.monotonic() < deadline and running.isActive:
            time.sleep(0.2)
    finally:
        running.stop()
    assert len(found.of("pairs")) == 1
    assert found.of("late") == []


def test_what_cannot_run_is_refused_before_it_starts(spark: SparkSession, tmp_path: Path) -> None:
    events = Folder(spark, tmp_path).events
    with pytest.raises(NoDelay, match="how long must events of a stream be waited for"):
        kleene.match(events, PAIRS)
    delayed = kleene.Settings(stream=kleene.Stream(delay=5))
    with pytest.raises(UnboundedState, match="keeps its events for ever"):
        kleene.match(events, "PATTERN SEQ(A a, B b)", settings=delayed)
    wide = " & ".join(f"A a{number}" for number in range(61))
    with pytest.raises(NotOnStreams, match="depends on all events before"):
        kleene.match(events, f"PATTERN {wide} WITHIN 5 OUTPUT NON_OVERLAP", settings=delayed)
    idle = kleene.Settings(stream=kleene.Stream(delay=5, idle="1 second"))
    with pytest.raises(NoDelay, match="`ts` is no timestamp"):
        kleene.match(events, PAIRS, settings=idle)

"""`idle`: the clock of the machine moves time on when the sources have nothing left to read, and not before."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.soaking import SOAKING
from tests.spark.streaming.test_streams import Folder, Gathered

import kleene
from kleene.errors import NoDelay
from kleene.spark.streaming import heartbeats
from kleene.spark.streaming.heartbeats import HeartbeatReader, notes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

LOCAL = pa.schema([("type", pa.string()), ("ts", pa.timestamp("us")), ("id", pa.int64())])
PAIRS = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 1 hour", name="pairs")
ALONE = kleene.query("PATTERN SEQ(A a, !(B b)) WHERE [id] WITHIN 2 seconds", name="alone")
BEGAN = "2026-03-02T12:00:00.000Z"
BEGAN_MS = 1_772_452_800_000
# Files that come while a stream is down, each half a second later: as long as `idle`.
OUTAGE = 10 if SOAKING else 4


# What a batch shows --------------------------------------------------------------------------------------------------


def source(start: object, end: object, latest: object = None) -> dict[str, Any]:
    return {"description": "any", "startOffset": start, "endOffset": end, "latestOffset": latest, "numInputRows": 0}


def beat(reader: str, number: int = 7) -> dict[str, Any]:
    return source(None, {"kleene_beat": number, "reader": reader, "read_by": -1})


def shown(*sources: dict[str, Any]) -> dict[str, int]:
    return {reader: note.read_by for reader, note in notes_of({"timestamp": BEGAN, "sources": sources}).items()}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([source({"n": 1}, {"n": 1}), beat("r")], {"r": BEGAN_MS}),
        # A file without a row is something read, too: the offset says so.
        ([source({"n": 1}, {"n": 2}), beat("r")], {"r": -1}),
        # The first batch, with something in it; and a folder in which nothing has ever been.
        ([source(None, {"n": 0}), beat("r")], {"r": -1}),
        ([source(None, None), beat("r")], {"r": BEGAN_MS}),
        # Kafka's minOffsetsPerTrigger: nothing was taken, but there is more.
        ([source({"t": {"0": 5}}, {"t": {"0": 5}}, {"t": {"0": 9}}), beat("r")], {"r": -1}),
        ([source({"t": {"0": 5}}, {"t": {"0": 5}}, {"t": {"0": 5}}), beat("r")], {"r": BEGAN_MS}),
        # Two streams: one has more to read, the other has nothing. A stream of two sources needs both.
        ([source(1, 2), beat("r"), source(3, 3), beat("s")], {"r": -1, "s": BEGAN_MS}),
        ([source(1, 1), source(1, 2), beat("r"), source(3, 3), beat("s")], {"r": -1, "s": BEGAN_MS}),
        # Both streams are of one source, which Spark lists once.
        ([source(1, 2), beat("r"), beat("s")], {"r": -1, "s": -1}),
        ([source(1, 1), beat("r"), beat("s")], {"r": BEGAN_MS, "s": BEGAN_MS}),
        ([source(1, 1)], {}),
    ],
)
def test_a_batch_that_took_nothing_shows_that_all_is_read(
    sources: Sequence[dict[str, Any]], expected: dict[str, int]
) -> None:
    assert shown(*sources) == expected


# What a reader says --------------------------------------------------------------------------------------------------


class Driven:
    """A reader as Spark drives it, and the listener that tells it of its batches."""

    def __init__(self, folder: Path, start: dict[str, Any] | None = None) -> None:
        self.reader = HeartbeatReader(folder)
        self.folder, self.offset = folder, start or self.reader.initialOffset()

    def batch(self, read_by: int | None) -> list[int]:
        """The rows of the next batch; `read_by` is what the listener says of it."""
        before, self.offset = self.offset, self.reader.latestOffset(self.offset, None)
        if read_by is not None and self.offset != before:
            (self.folder / self.offset["reader"]).write_text(json.dumps([self.offset["kleene_beat"], read_by]))
        return rows(self.reader, before, self.offset)


def rows(reader: HeartbeatReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    return [value for partition in reader.partitions(start, end) for (value,) in reader.read(partition)]


def test_a_reader_says_what_it_was_told_and_says_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "_SECONDS_APART", 0.0)
    driven = Driven(tmp_path)
    assert driven.batch(-1) == []
    assert driven.batch(5_000) == []
    before = driven.offset
    assert driven.batch(6_000) == [5_000]
    # Another process is given the same batch again.
    other = tmp_path / "other"
    other.mkdir()
    assert rows(HeartbeatReader(other), before, driven.offset) == [5_000]
    # It goes on from the offset of the one before, and knows nothing of its time.
    assert Driven(other, driven.offset).batch(None) == []


def test_a_reader_beats_once_a_second(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.batch(5_000)
    first = driven.offset
    driven.batch(5_000)
    assert driven.offset == first


def test_a_reader_of_earlier_sparks_is_asked_without_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "_SECONDS_APART", 0.0)
    reader = HeartbeatReader(tmp_path)
    assert [reader.latestOffset()["kleene_beat"] for _ in range(3)] == [1, 2, 3]


def test_a_checkpoint_with_heartbeats_of_another_source_goes_on(tmp_path: Path) -> None:
    reader = HeartbeatReader(tmp_path)
    assert rows(reader, 7, 9) == []  # type: ignore[arg-type]
    assert reader.latestOffset(9, None)["kleene_beat"] == 1


def test_a_stream_that_ends_is_told_the_time_once_all_is_read(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.reader.prepareForTriggerAvailableNow()
    began = int(time.time() * 1000)
    assert [driven.batch(-1) for _ in range(5)] == [[]] * 5, "five files"
    assert driven.batch(began + 60_000) == [], "nothing was left in this one"
    (said,) = driven.batch(-1)
    assert abs(said - began) < 10_000, "when the run began: what came later is not read"
    last = driven.offset
    assert driven.batch(None) == []
    assert driven.offset == last, "and so the stream ends"


def test_a_stream_that_ends_does_so_when_nobody_tells_of_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "_PATIENCE_SECONDS", 0.05)
    driven = Driven(tmp_path)
    driven.reader.prepareForTriggerAvailableNow()
    driven.batch(None)
    last = driven.offset
    driven.batch(None)
    assert driven.offset == last


# On Spark ------------------------------------------------------------------------------------------------------------


def now() -> datetime:
    return datetime.now(tz=UTC).replace(tzinfo=None)


def wait(running: Any, until: Callable[[], object]) -> None:
    deadline = time.monotonic() + 240
    while not until() and time.monotonic() < deadline and running.isActive:
        time.sleep(0.1)


def idle(delay: str, clock: str) -> kleene.Settings:
    return kleene.Settings(stream=kleene.Stream(delay=delay, idle=clock))


@pytest.mark.soak
def test_nothing_is_late_after_an_outage(spark: SparkSession, tmp_path: Path) -> None:
    """Many times `idle`, one file a batch: an empty file, one of another type and one of bad rows are among them."""
    folder, found = Folder(spark, tmp_path, LOCAL), Gathered()
    settings = idle("0.5 seconds", "0.5 seconds")

    def start() -> Any:
        live = kleene.live(folder.events, [PAIRS, ALONE], settings=settings)
        return live.start(found, checkpoint=str(tmp_path / "state"))

    folder.put(("A", now(), 0))
    running = start()
    try:
        # The window closes while nothing comes.
        wait(running, lambda: found.of("alone"))
    finally:
        running.stop()
    stopped = now()
    time.sleep(OUTAGE / 2)
    for number in range(OUTAGE):
        if number == 1:
            folder.put()
        if number == 2:
            folder.put(("Z", stopped, number))
        if number == 3:
            folder.put(("A", None, number))
        folder.put(("BA"[number % 2 == 0], stopped + timedelta(seconds=0.5 * number), number // 2))
    folder.put(("A", stopped + timedelta(seconds=OUTAGE / 2), 99))
    running = start()
    try:
        wait(running, lambda: len(found.of("alone")) >= 2)
    finally:
        running.stop()
    assert found.of("late") == []
    assert len(found.of("bad")) == 1
    table = pa.concat_tables([pq.read_table(file) for file in sorted(folder.place.glob("*.parquet"))])
    table = table.filter(pa.compute.is_valid(table["ts"]))
    for query in (PAIRS, ALONE):
        expected = kleene.match(table, query).select(["start", "end"]).to_pylist()
        assert found.of(str(query.name)) == sorted((row["start"], row["end"]) for row in expected)
        assert expected


def test_a_silent_stream_does_not_hold_up_a_busy_one(spark: SparkSession, tmp_path: Path) -> None:
    """Each stream is told the time when it has nothing left itself, and a run that ends is told once."""
    for name in ("busy", "silent"):
        (tmp_path / name).mkdir()
    busy, silent = (Folder(spark, tmp_path / name, LOCAL.remove(0)) for name in ("busy", "silent"))
    begun = now() - timedelta(hours=1)
    for number in range(4):
        busy.put((begun + timedelta(minutes=10 * number), number))
    silent.put((begun, 1))
    found = Gathered()
    alone = kleene.query("PATTERN SEQ(busy a, !(silent b)) WHERE [id] WITHIN 1 minute", name="alone")
    live = kleene.live({"busy": busy.events, "silent": silent.events}, alone, settings=idle("1 second", "1 second"))
    live.start(found, checkpoint=str(tmp_path / "state"), available_now=True).awaitTermination()
    assert len(found.of("alone")) == 4
    assert found.of("late") == []


def test_streams_with_watermarks_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """All of a dict, or some of them and the others by the delay."""
    zoned = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64())])
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
    a, b = (Folder(spark, tmp_path / name, zoned) for name in ("A", "B"))
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    a.put((noon, 1), (noon + timedelta(hours=3), 9))
    b.put((noon + timedelta(minutes=1), 1), (noon + timedelta(hours=3), 8))
    delayed = kleene.Settings(stream=kleene.Stream(delay="1 second"))
    watermarked = a.events.withWatermark("ts", "1 second"), b.events.withWatermark("ts", "1 second")
    for number, (streams, settings) in enumerate(
        [((watermarked[0], watermarked[1]), None), ((watermarked[0], b.events), delayed)]
    ):
        found = Gathered()
        live = kleene.live(dict(zip("AB", streams, strict=True)), PAIRS, settings=settings)
        live.start(found, checkpoint=str(tmp_path / f"state{number}"), available_now=True).awaitTermination()
        assert len(found.of("pairs")) == 1
        assert found.of("late") == []
    with pytest.raises(NoDelay, match="`idle` cannot move the watermark"):
        kleene.live(dict(zip("AB", watermarked, strict=True)), PAIRS, settings=idle("1 second", "1 second"))

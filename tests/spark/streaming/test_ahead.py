"""`ahead`: an event from the far future is a bad row, and does not move time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.streaming.test_streams import COLUMNS, Folder, Gathered

import kleene
from kleene.errors import NoDelay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.streaming.live import MicroBatch

LOCAL = pa.schema([("type", pa.string()), ("ts", pa.timestamp("us")), ("id", pa.int64())])
PAIRS = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 seconds", name="pairs")


def settings(ahead: str, delay: str = "0 seconds") -> kleene.Settings:
    return kleene.Settings(stream=kleene.Stream(delay=delay, ahead=ahead))


def test_far_ahead_is_bad_and_moves_no_time(spark: SparkSession, tmp_path: Path) -> None:
    """Of times in seconds since 1970: the tick says so."""
    folder, found = Folder(spark, tmp_path, COLUMNS), Gathered()
    now = int(time.time())
    folder.put(("A", now, 1), ("A", now + 86_400 * 365, 1), ("A", (1 << 62), 1))
    folder.put(("B", now + 5, 1))
    folder.put(("Z", now + 1800, 1))
    live = kleene.live(folder.events, PAIRS, schema=kleene.Schema(tick="1 second"), settings=settings("1 hour"))
    live.start(found, checkpoint=str(tmp_path / "state"), available_now=True).awaitTermination()
    assert found.of("pairs") == [(now, now + 5)]
    assert found.of("late") == []
    reasons = sorted(row[0] for row in found.of("bad"))
    beyond, ahead = reasons
    assert ahead == "`ts` is more than 1 hour ahead of the clock of the machine"
    assert beyond.startswith("`ts` is beyond what a stream can tell")


def test_a_batch_given_again_has_the_same_bad_rows(spark: SparkSession, tmp_path: Path) -> None:
    """The clock is that of the batch when it was planned first, whatever it is now."""
    folder, attempts = Folder(spark, tmp_path, LOCAL), []
    soon = datetime.now(tz=UTC).replace(tzinfo=None) + timedelta(seconds=60)

    def refuse(found: MicroBatch, batch: int) -> None:
        attempts.append((batch, found.number("bad"), datetime.now(tz=UTC).replace(tzinfo=None)))
        if len(attempts) == 1:
            raise OSError("the first attempt comes to nothing")

    def run(ahead: str) -> Any:
        live = kleene.live(folder.events, PAIRS, settings=settings(ahead))
        return live.start(refuse, checkpoint=str(tmp_path / "state"), available_now=True)

    folder.put(("A", soon, 1))
    with pytest.raises(Exception, match="the first attempt comes to nothing"):
        run("59 seconds").awaitTermination()
    planned = int(
        (tmp_path / "state" / "offsets" / "0").read_text().partition('"batchTimestampMs":')[2].partition(",")[0]
    )
    left = soon - datetime.fromtimestamp(planned / 1000, UTC).replace(tzinfo=None)
    # What was further ahead than this when the batch was planned is not any more when it is given again.
    limit = f"{int(left.total_seconds() * 1000) - 1} milliseconds"
    time.sleep(0.1)
    run(limit).awaitTermination()
    assert [(batch, bad) for batch, bad, _ in attempts[1:2]] == [(0, 1)]
    assert soon - attempts[1][2] < left - timedelta(milliseconds=1), "by the clock of now it would be good"


def test_what_no_clock_can_be_compared_with_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    events = Folder(spark, tmp_path).events
    ticks = kleene.Settings(stream=kleene.Stream(delay=5, ahead="1 hour"))
    with pytest.raises(NoDelay, match="`ts` counts ticks, and it is not known how long one is"):
        kleene.match(events, "PATTERN SEQ(A a, B b) WITHIN 10", settings=ticks)
    (tmp_path / "timed").mkdir()
    timed = Folder(spark, tmp_path / "timed", LOCAL).events.selectExpr("type", "cast(ts as timestamp) as ts", "id")
    with pytest.raises(NoDelay, match="cannot keep events from moving the watermark"):
        kleene.match(timed.withWatermark("ts", "5 seconds"), PAIRS, settings=settings("1 hour"))

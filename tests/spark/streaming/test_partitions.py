"""A stream goes on under another number of shuffle partitions: all of its state is found, and each match once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import SHUFFLE_PARTITIONS
from tests.spark.stream_pipelines import Watched
from tests.spark.streaming.test_streams import ALONE, PAIRS, Folder

import kleene
from kleene.errors import BadSnapshot
from kleene.spark.pipeline.reading import read_pipeline
from kleene.spark.streaming.processor import slot_at
from kleene.spark.streaming.spreading import places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.sparks_own]

QUERIES = [PAIRS, ALONE]
SETTINGS = kleene.Settings(stream=kleene.Stream(delay=2))
PIPELINE = f"""\
[[sources]]
name = "readings"
kind = "parquet"
path = "in"
options = {{ maxFilesPerTrigger = 1 }}

[[queries]]
name = "pairs"
text = "{PAIRS.text}"

[[queries]]
name = "alone"
text = "{ALONE.text}"

[[sinks]]
kind = "parquet"
path = "piped/{{query}}"

[stream]
checkpoint = "piped-state"
delay = 2
available_now = true
"""
KEYS = 40


def by_match(spark: SparkSession, folder: Folder, place: Path) -> list[str]:
    """Only Spark knows the checkpoint."""
    matches = kleene.match(folder.events, QUERIES, settings=SETTINGS)
    writer = matches.writeStream.format("parquet").option("path", str(place / "matched"))
    writer.option("checkpointLocation", str(place / "matched-state")).trigger(
        availableNow=True
    ).start().awaitTermination()
    return _ids(place.glob("matched/*.parquet"))


def by_live(spark: SparkSession, folder: Folder, place: Path) -> list[str]:
    def write(found: Any, batch: int) -> None:
        for name in ("pairs", "alone"):
            if found.number("matches", name):
                found.matches(name).write.mode("overwrite").parquet(str(place / "live" / name / str(batch)))

    live = kleene.live(folder.events, QUERIES, settings=SETTINGS)
    live.start(write, checkpoint=str(place / "live-state"), available_now=True).awaitTermination()
    return _ids(place.glob("live/*/*/*.parquet"))


def by_pipeline(spark: SparkSession, folder: Folder, place: Path) -> list[str]:
    from kleene.spark.pipeline.stream_running import run_stream

    (place / "pipeline.toml").write_text(PIPELINE)
    run_stream(read_pipeline(place / "pipeline.toml"), Watched(), spark)
    return _ids(place.glob("piped/*/batch=*/*.parquet"))


@pytest.mark.parametrize(
    ("before", "after", "run"),
    [
        (1, 3, by_match),
        pytest.param(1, 8, by_match, marks=pytest.mark.soak),
        pytest.param(4, 1, by_live, marks=pytest.mark.soak),
        pytest.param(2, 4, by_pipeline, marks=pytest.mark.soak),
        pytest.param(2, 4, by_match, marks=pytest.mark.soak),
        pytest.param(1, 2, by_live, marks=pytest.mark.soak),
    ],
)
def test_another_number_of_partitions(before: int, after: int, run: Any, spark: SparkSession, tmp_path: Path) -> None:
    """Every key has an event that waits when the stream stops; of every fourth nothing else comes, and time passes."""
    folder = Folder(spark, tmp_path)
    folder.put(*(("A", 100 + key % 5, key) for key in range(KEYS)))
    spark.conf.set(SHUFFLE_PARTITIONS, before)
    assert run(spark, folder, tmp_path) == []
    folder.put(*(("B", 106, key) for key in range(KEYS) if key % 4))
    folder.put(("Z", 1_000, 0))
    spark.conf.set(SHUFFLE_PARTITIONS, after)
    found = run(spark, folder, tmp_path)
    whole = pa.concat_tables(pq.read_table(file) for file in sorted(folder.place.glob("*.parquet")))
    expected = kleene.match(whole, QUERIES).column("match_id").to_pylist()
    assert Counter(found) == Counter(expected)
    assert len(found) == KEYS


def test_buckets_that_are_asked_for_cannot_change(spark: SparkSession, tmp_path: Path) -> None:
    """What `kleene.match` is not told by a record it is told by the state, in one sentence."""
    from pyspark.errors import StreamingQueryException

    folder = Folder(spark, tmp_path)

    def run(buckets: int) -> None:
        settings = kleene.Settings(stream=SETTINGS.stream, exchange=kleene.Exchange(buckets=buckets))
        matches = kleene.match(folder.events, ALONE, settings=settings)
        writer = matches.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "state"))
        writer.trigger(availableNow=True).start().awaitTermination()

    folder.put(*(("A", 100, key) for key in range(KEYS)))
    run(5)
    folder.put(("Z", 1_000, 0))
    with pytest.raises(StreamingQueryException, match=r"error\[KL\d+\]: this stream's state was kept for"):
        run(2)


def test_a_slot_that_there_is_not() -> None:
    assert [slot_at(place, 5) for place in places(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(BadSnapshot, match="kept for other slots than the 5"):
        slot_at(places(6)[5], 5)


def _ids(files: Any) -> list[str]:
    return [name for file in files for name in pq.read_table(file, columns=["match_id"]).column(0).to_pylist()]

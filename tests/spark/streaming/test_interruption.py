"""A stream that is stopped while it makes a batch, a batch that fails, and one of which nobody reads anything."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import SHUFFLE_PARTITIONS
from tests.soaking import SOAKING
from tests.spark.stream_pipelines import Watched, event, lines, put
from tests.spark.stream_pipelines import changed as stream_file
from tests.spark.streaming.test_streams import PAIRS, Folder, Gathered

import kleene
from kleene.spark.streaming.interruption import BatchFailed, BatchInterrupted, failure_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kleene.spark.streaming.live import MicroBatch

pytestmark = [pytest.mark.slow, pytest.mark.sparks_own]

SETTINGS = kleene.Settings(stream=kleene.Stream(delay=2))
STOPS = 10 if SOAKING else 2
# How a line of Java's stack begins.
STACK = "\tat "


class JavaError(Exception):
    """As Py4J's is called, which cannot be made without a JVM."""


JavaError.__module__, JavaError.__qualname__ = "py4j.protocol", "Py4JJavaError"
CALLING = "An error occurred while calling o12.collect.\n: "


# What Spark is told --------------------------------------------------------------------------------------------------


def raised(problem: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise problem from cause
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    "text",
    [
        f"{CALLING}java.lang.InterruptedException\n" + f"{STACK}java.base/java.lang.Object.wait\n" * 200,
        f"{CALLING}org.apache.spark.SparkException: Job 5 cancelled part of cancelled job group 7-8-9\n",
        f"{CALLING}java.io.IOException: x\nCaused by: java.nio.channels.ClosedByInterruptException\n",
    ],
)
def test_an_interruption_is_told_in_few_words(text: str) -> None:
    for problem in (JavaError(text), raised(ValueError("it is no good"), JavaError(text))):
        failure = failure_for_spark(problem)
        assert isinstance(failure, BatchInterrupted)
        assert len(str(failure)) < 200


def test_what_only_speaks_of_an_interruption_is_a_failure() -> None:
    problem = ValueError("java.lang.InterruptedException")
    assert failure_for_spark(problem) is problem


def test_a_failure_of_sparks_is_told_whole_but_for_the_name_that_spark_looks_for() -> None:
    failure = failure_for_spark(
        raised(JavaError(f"{CALLING}java.lang.IllegalStateException: the disk is gone\n" + "x" * 9_000))
    )
    assert isinstance(failure, BatchFailed)
    assert "py4j.protocol.Py4JJavaError" not in str(failure)
    assert "Py4JJavaError: An error occurred while calling o12.collect" in str(failure)
    assert "the disk is gone" in str(failure)


# On Spark ------------------------------------------------------------------------------------------------------------


def test_stopped_in_a_batch(
    spark: SparkSession,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    """Ten times in what Spark does for the batch, or between; then the stream goes on, and each match is there once."""
    spark.conf.set(SHUFFLE_PARTITIONS, 1)
    folder, found = Folder(spark, tmp_path), Gathered()
    folder.put(("A", 1, 1), ("B", 3, 1))
    folder.put(("Z", 100, 1))
    capfd.readouterr()
    for number in range(STOPS):
        running = stopped_in_a_batch(folder, tmp_path / "state", in_spark=number % 2 == 0)
        assert running.exception() is None
    errors = capfd.readouterr().err
    assert STACK not in errors, errors[:2_000]
    assert "StackOverflowError" not in errors
    live = kleene.live(folder.events, PAIRS, settings=SETTINGS)
    live.start(found, checkpoint=str(tmp_path / "state"), available_now=True).awaitTermination()
    assert found.of("pairs") == [(1, 3)]
    record_property("counted", f"stopped inside a batch {STOPS} times: no stack trace, no exception, each match once")


def stopped_in_a_batch(folder: Folder, checkpoint: Path, *, in_spark: bool) -> StreamingQuery:
    """A stream that was told to stop while its batch was in a job of Spark's, or before that."""
    inside = Event()

    def slowly(batches: Any) -> Any:
        time.sleep(2)
        yield from batches

    def on_batch(found: MicroBatch, batch: int) -> None:
        inside.set()
        if in_spark:
            found._envelopes.mapInArrow(slowly, found._envelopes.schema).collect()
        else:
            _wait_until(lambda: not running.isActive)
        found.number("matches")

    running = kleene.live(folder.events, PAIRS, settings=SETTINGS).start(on_batch, checkpoint=str(checkpoint))
    _wait_until(lambda: inside.is_set() or not running.isActive)
    assert inside.is_set(), running.exception()
    running.stop()
    return running


@pytest.mark.parametrize(
    ("stopping", "kind"),
    [
        (False, "of its own"),
        (True, "of Java"),
        pytest.param(True, "of its own", marks=pytest.mark.soak),
        pytest.param(False, "of Java", marks=pytest.mark.soak),
    ],
)
def test_a_writer_that_fails(
    kind: str, stopping: bool, spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its failure is there, also when the stream is being stopped."""
    spark.conf.set(SHUFFLE_PARTITIONS, 1)
    folder, inside = Folder(spark, tmp_path), Event()
    folder.put(("A", 1, 1))

    def on_batch(found: MicroBatch, batch: int) -> None:
        inside.set()
        if stopping:
            _wait_until(lambda: not running.isActive)
        if kind == "of its own":
            raise OSError("the disk of the writer is gone")
        jvm: Any = spark.sparkContext._jvm
        try:
            jvm.java.util.ArrayList().get(5)
        except Exception as problem:
            raise RuntimeError("the disk of the writer is gone" + 1_000 * " and gone") from problem

    running = kleene.live(folder.events, PAIRS, settings=SETTINGS).start(on_batch, checkpoint=str(tmp_path / "state"))
    _wait_until(lambda: inside.is_set() or not running.isActive)
    assert inside.is_set(), running.exception()
    if stopping:
        running.stop()
    _wait_until(lambda: not running.isActive)
    _wait_until(lambda: running.exception() is not None)
    assert "the disk of the writer is gone" in str(running.exception())
    assert kind == "of its own" or "IndexOutOfBoundsException" in str(running.exception())
    assert "StackOverflowError" not in capfd.readouterr().err


@pytest.mark.parametrize("read", ["nothing", pytest.param("one row", marks=pytest.mark.soak)])
def test_a_batch_of_which_little_is_read_is_made_all_the_same(read: str, spark: SparkSession, tmp_path: Path) -> None:
    """What waits in its state is found by the next one."""
    spark.conf.set(SHUFFLE_PARTITIONS, 2)
    folder, found = Folder(spark, tmp_path), Gathered()
    folder.put(*(("A", 1, key) for key in range(10)))

    def on_batch(found: MicroBatch, batch: int) -> None:
        if read == "one row":
            found.matches("pairs").take(1)

    def run(callback: Any) -> None:
        live = kleene.live(folder.events, PAIRS, settings=SETTINGS)
        live.start(callback, checkpoint=str(tmp_path / "state"), available_now=True).awaitTermination()

    run(on_batch)
    folder.put(*(("B", 3, key) for key in range(10)))
    folder.put(("Z", 100, 1))
    run(found)
    assert found.of("pairs") == [(1, 3)] * 10


# Pipelines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signals", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_a_pipeline_told_to_stop_in_a_batch(
    signals: int, spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """By one signal the batch is finished; by a second one it is interrupted, and made again by the next run."""
    from kleene.spark.pipeline.reading import read_pipeline
    from kleene.spark.pipeline.stream_running import run_stream

    spark.conf.set(SHUFFLE_PARTITIONS, 1)
    put(tmp_path / "in", 0, event("A", 1, 5), event("B", 2, 5))
    put(tmp_path / "in", 1, event("Z", 100, 0))
    changes = [('"parquet"', '"json"'), ('x = "long" }', 'x = "long" }\noptions = { maxFilesPerTrigger = 1 }')]
    (tmp_path / "pipeline.toml").write_text(stream_file(*changes))
    pipeline = read_pipeline(tmp_path / "pipeline.toml")

    class Told(Watched):
        """Told to stop when the first batch is about to be matched."""

        def say(self, text: str) -> None:
            super().say(text)
            if text.endswith("matching"):
                for _ in range(signals):
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(0.5)

    told = Told()
    capfd.readouterr()
    if signals == 1:
        assert run_stream(pipeline, told, spark).stopped
        assert len(told.batches) == 1
    else:
        with pytest.raises(KeyboardInterrupt):
            run_stream(pipeline, told, spark)
    errors = capfd.readouterr().err
    assert STACK not in errors, errors[:2_000]
    run_stream(pipeline, Watched(), spark)
    assert [(row["start"], row["end"]) for row in lines(tmp_path / "out")] == [(1, 2)]


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert is_so()

"""What is said of a full disk, wherever it was noticed: one sentence, and what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines import written
from tests.spark.stream_pipelines import STREAM

from kleene.errors import BadTarget, SparkFailed

pytest.importorskip("pyspark")

FULL = "No space left on device"
HINT = "make room, and run again: a stream goes on where it stopped"


class SparkException(Exception):
    """An error as PySpark hands it on, with Java's causes beside it; PySpark's own needs a JVM."""

    __module__ = "pyspark.errors"

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self._stackTrace = trace


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            SparkException("[TASK_WRITE_FAILED] Task failed.", f"…\nCaused by: java.io.IOException: {FULL}\n\tat …"),
            FULL,
        ),
        (SparkException("[STREAM_FAILED] Query [id = 1] failed: Disk quota exceeded"), "Disk quota exceeded"),
        (OSError(errno.ENOSPC, FULL), FULL),
    ],
    ids=["in a cause", "in the message", "of the system"],
)
def test_a_full_disk_is_said_and_nothing_else(problem: Exception, said: str) -> None:
    from kleene.spark.pipeline.failures import essence, room_hint

    assert (essence(problem), room_hint(problem)) == (said, HINT)


def test_other_failures_are_said_as_before() -> None:
    from kleene.spark.pipeline.failures import essence, room_hint, spark_failures

    problem = SparkException(
        "[FAILED_READ_FILE] Encountered error while reading. SQLSTATE: KD001", "java.io.EOFException"
    )
    assert (essence(problem), room_hint(problem)) == ("Encountered error while reading", None)
    with pytest.raises(SparkFailed, match="Spark stopped: Encountered error while reading"), spark_failures([]):
        raise problem


def test_what_python_could_not_write_is_one_error_at_its_key(tmp_path: Path) -> None:
    from kleene.spark.pipeline.planned_batches import PlannedBatches
    from kleene.spark.pipeline.reading import read_pipeline
    from kleene.spark.pipeline.stream_places import add_measures
    from kleene.spark.pipeline.stream_sinks import StreamSinks

    pipeline, nothing = read_pipeline(written(tmp_path, f'{STREAM}metrics = "m.jsonl"\n')), Any
    with pytest.raises(BadTarget, match=f"`m.jsonl` cannot be written: {FULL}"):
        add_measures(pipeline, Path("/dev/full"), {"batch": 1})

    class Full(PlannedBatches):
        def sync(self) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(BadTarget, match=f"the checkpoint cannot be written: {FULL}") as raised:
        StreamSinks(nothing, pipeline, (), nothing, Full(None)).write(nothing, 0)  # type: ignore[arg-type]
    assert raised.value.hint == HINT


def test_a_failure_of_java_is_told_by_its_last_cause() -> None:
    from kleene.spark.pipeline.failures import essence

    trace = (
        "An error occurred while calling o12.save.\n: org.apache.spark.SparkException: Job aborted: the task failed\n"
    )
    assert essence(SparkException(trace)) == "Job aborted: the task failed"
    cause = "\tat org.apache.spark.X\nCaused by: org.apache.kafka.TimeoutException: Topic t not present in metadata.\n"
    assert essence(SparkException(trace + cause)) == "Topic t not present in metadata"
    assert (
        essence(SparkException("An error occurred while calling o12.save."))
        == "An error occurred while calling o12.save"
    )

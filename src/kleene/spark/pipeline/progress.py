"""The progress of a run, and of Spark's tasks where Spark reports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from kleene.spark.pipeline.targets import Target

# Tasks that are done, and tasks that are known so far.
Tasks = Callable[[], tuple[int, int]]


class Report(Protocol):
    """Receives the progress of a run."""

    def stage(self, text: str, tasks: Tasks | None = None) -> AbstractContextManager[None]:
        """Report a stage that begins now and ends with the context."""

    def show(self, target: Target, rows: pa.Table, total: int) -> None:
        """Show the first rows of a result that goes to the console, and how many there are."""


def tasks_of(session: SparkSession) -> Tasks | None:
    """A function that asks Spark for its tasks; None on Spark Connect, which has no tracker."""
    try:
        tracker = session.sparkContext.statusTracker()
    except Exception:
        return None

    def tasks() -> tuple[int, int]:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        there = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in there), sum(stage.numTasks for stage in there)

    return tasks

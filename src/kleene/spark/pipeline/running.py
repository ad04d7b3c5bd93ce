"""The run of a pipeline: open, bind, count, find, write, put in place; a `Report` receives its progress."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions

from kleene.spark.batch_run import BatchRun, RunTotals, together
from kleene.spark.pipeline.bad_rows import check_limit
from kleene.spark.pipeline.binding import OnData, bound_to, opened
from kleene.spark.pipeline.failures import spark_failures
from kleene.spark.pipeline.file_checks import FileChecks
from kleene.spark.pipeline.progress import Report, tasks_of
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.sinks import Writing, first_rows, output_of, shaped, unwritten
from kleene.spark.pipeline.sources import Opened, open_source
from kleene.spark.pipeline.targets import Target, check_sources, check_targets, folders_of, recover, targets_of
from kleene.spark.run_lock import one_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BAD_COLUMNS = ("source", "row", "line", "reason", "text")
_SHOWN_REASONS = 5


class BoundPipeline(OnData[Opened, BatchRun]):
    """A pipeline on its data, before any job has run."""

    @property
    def bad_rows(self) -> DataFrame:
        """Rows that could not be read, and rows that are no events."""
        alone = self.sources[0].name if len(self.sources) == 1 else None
        named = self.run.bad_rows.withColumn("source", functions.lit(alone).cast("string"))
        frames = [named.select(*_BAD_COLUMNS), *(source.bad for source in self.sources if source.bad is not None)]
        return reduce(lambda left, right: left.union(right), frames)


@dataclass(frozen=True)
class SourceCount:
    name: str
    rows: int


@dataclass(frozen=True)
class Summary:
    """The counts of a run, and what it wrote."""

    sources: tuple[SourceCount, ...]
    counts: RunTotals
    bad_rows: int
    # The commonest reasons, with their numbers.
    reasons: tuple[tuple[str, int], ...]
    targets: tuple[Target, ...]
    finding: float
    seconds: float

    @property
    def rows(self) -> int:
        return sum(source.rows for source in self.sources)


@contextmanager
def bound(pipeline: Pipeline, report: Report, session: SparkSession | None = None) -> Iterator[BoundPipeline]:
    """The pipeline on its data: sources opened, queries bound; only schemas have been looked at."""
    targets = targets_of(pipeline)
    check_sources(pipeline)
    check_targets(pipeline, targets)
    files = FileChecks(pipeline)
    files.check_whole()
    with spark_failures(pipeline.secrets):
        session, sources = opened(pipeline, report, session, open_source)
        with report.stage("binding the queries"):
            run = bound_to(pipeline, sources, together)
        try:
            files.check_columns({source.name: source.columns for source in sources}, run.keys)
            writing = Writing(session, pipeline)
            for target in targets:
                writing.check(target)
            yield BoundPipeline(pipeline, session, sources, targets, run)
        finally:
            run.close()


def run_pipeline(pipeline: Pipeline, report: Report, session: SparkSession | None = None) -> Summary:
    """Run a pipeline; its results are in their places when this returns, and as they were when it raises.

    `RunInProgress` when another run writes to one of them.
    """
    began = time.perf_counter()
    targets = targets_of(pipeline)
    with one_run(folders_of(targets)):
        for target in targets:
            if target.local is not None:
                try:
                    recover(target.local)
                except OSError as problem:
                    raise unwritten(pipeline, target, problem) from problem
        with bound(pipeline, report, session) as on_data:
            return _run(on_data, report, began)


def _run(on_data: BoundPipeline, report: Report, began: float) -> Summary:
    pipeline, tasks = on_data.pipeline, tasks_of(on_data.session)
    with report.stage("counting the rows", tasks):
        counted = {source.name: source.counted() for source in on_data.sources}
        rows = sum(number for number, _ in counted.values())
        bad = sum(number for _, number in counted.values()) + on_data.run.bad_rows.count()
    results = [target for target in on_data.targets if target.sink.output != "bad_rows"]
    aside = [target for target in on_data.targets if target.sink.output == "bad_rows"]
    # Bad rows are written first, and stay when there are too many: they are what one wants to see then.
    _write(on_data, aside, {}, bad, report)
    check_limit(pipeline, rows, bad)
    started = time.perf_counter()
    with report.stage("finding matches", tasks):
        counts = on_data.run.run()
    finding = time.perf_counter() - started
    totals = {("matches", name): number for name, number in counts.matches.items()}
    totals |= {("timeouts", name): number for name, number in counts.timeouts.items()}
    _write(on_data, results, totals, bad, report)
    return Summary(
        tuple(SourceCount(name, number) for name, (number, _) in counted.items()),
        counts,
        bad,
        _reasons(on_data) if bad else (),
        on_data.targets,
        finding,
        time.perf_counter() - began,
    )


def _reasons(on_data: BoundPipeline) -> tuple[tuple[str, int], ...]:
    counted = on_data.bad_rows.groupBy("reason").count().orderBy(functions.desc("count"), "reason")
    return tuple((row["reason"], row["count"]) for row in counted.limit(_SHOWN_REASONS).collect())


def _write(
    on_data: BoundPipeline,
    targets: Sequence[Target],
    totals: Mapping[tuple[str, str], int],
    bad: int,
    report: Report,
) -> None:
    """Write everything aside, then put everything in its place."""
    writing, tasks = Writing(on_data.session, on_data.pipeline), tasks_of(on_data.session)
    waiting: list[tuple[Target, str]] = []
    for target in targets:
        frame = on_data.bad_rows if target.query is None else output_of(on_data.run, target.query, target.sink.output)
        if target.sink.kind == "console":
            total = bad if target.query is None else totals.get((target.sink.output, target.query), 0)
            with report.stage(f"fetching {target.what}", tasks):
                console_frame = shaped(frame, target)
                if target.sink.flat or target.sink.output == "compressed":
                    total = console_frame.count()
                first = first_rows(console_frame, target.sink.limit)
            report.show(target, first, total)
            continue
        with report.stage(f"writing {target.what}", tasks):
            waiting.append((target, writing.write(frame, target)))
    for target, aside in waiting:
        if aside:
            writing.put_in_place(target, aside)

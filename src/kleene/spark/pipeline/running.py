"""The run of a pipeline: open, bind, count, find, write, put in place; told to a `Report`, summed up at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions

from kleene.errors import QueryError
from kleene.pattern.query import BoundQuery
from kleene.spark.pipeline.bad_rows import check_limit
from kleene.spark.pipeline.columns import check_columns, is_one_stream
from kleene.spark.pipeline.failures import spark_failures
from kleene.spark.pipeline.kafka import with_connector
from kleene.spark.pipeline.progress import Report, tasks_of
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.sinks import Writing, shaped
from kleene.spark.pipeline.sources import Opened, open_source
from kleene.spark.pipeline.targets import Target, check_sources, check_targets, recover, targets_of
from kleene.spark.pipeline.values import for_spark
from kleene.spark.session import brief_session, cluster_session, local_session
from kleene.spark.together import Counts, Together, together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BAD_COLUMNS = ("source", "row", "line", "reason", "text")
_SHOWN_REASONS = 5


@dataclass(frozen=True)
class Bound:
    """A pipeline on its data, before any job has run."""

    pipeline: Pipeline
    session: SparkSession
    sources: tuple[Opened, ...]
    targets: tuple[Target, ...]
    together: Together

    @property
    def queries(self) -> tuple[BoundQuery, ...]:
        return self.together.queries

    @property
    def routes(self) -> tuple[str, ...]:
        return self.together.routes

    @property
    def bad_rows(self) -> DataFrame:
        """Rows that could not be read, and rows that are no events."""
        alone = self.sources[0].name if len(self.sources) == 1 else None
        named = self.together.bad_rows.withColumn("source", functions.lit(alone).cast("string"))
        frames = [named.select(*_BAD_COLUMNS), *(source.bad for source in self.sources if source.bad is not None)]
        return reduce(lambda left, right: left.union(right), frames)


@dataclass(frozen=True)
class SourceCount:
    name: str
    rows: int


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    sources: tuple[SourceCount, ...]
    counts: Counts
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
def bound(pipeline: Pipeline, report: Report, session: SparkSession | None = None) -> Iterator[Bound]:
    """The pipeline on its data: sources opened, queries bound; only schemas have been looked at."""
    targets = targets_of(pipeline)
    check_sources(pipeline)
    check_targets(pipeline, targets)
    with spark_failures(pipeline.secrets):
        if session is None:
            with report.stage("starting Spark"):
                session = session_for(pipeline)
        with report.stage("opening the sources"):
            sources = tuple(open_source(session, pipeline, number) for number in range(len(pipeline.model.sources)))
        with report.stage("binding the queries"):
            on_data = _bind(pipeline, sources)
        try:
            made = Bound(pipeline, session, sources, targets, on_data)
            writing = Writing(session, pipeline)
            for target in targets:
                writing.check(target)
            yield made
        finally:
            on_data.close()


def run_pipeline(pipeline: Pipeline, report: Report, session: SparkSession | None = None) -> Summary:
    """Run a pipeline; its results are in their places when this returns, and as they were when it raises."""
    began = time.perf_counter()
    for target in targets_of(pipeline):
        if target.local is not None:
            recover(target.local)
    with bound(pipeline, report, session) as on_data:
        return _run(on_data, report, began)


def session_for(pipeline: Pipeline) -> SparkSession:
    entry = pipeline.model.spark
    conf = with_connector(for_spark(entry.conf), pipeline.model)
    if entry.is_local:
        stream = pipeline.model.stream
        started = brief_session if stream is None or stream.available_now else local_session
        return started(master_of(pipeline), **conf)
    archive = None if entry.archive is None else pipeline.folder / entry.archive
    return cluster_session(entry.master, archive, **conf)


def master_of(pipeline: Pipeline) -> str:
    """Spark's master; unless the file names one, tasks of a stream are tried again, for it should outlive them."""
    entry = pipeline.model.spark
    return entry.master if pipeline.model.stream is None or "master" in entry.model_fields_set else "local[*,3]"


def _bind(pipeline: Pipeline, sources: Sequence[Opened]) -> Together:
    frames = {source.name: source.frame for source in sources}
    columns = {name: frame.columns for name, frame in frames.items()}
    try:
        check_columns(pipeline, columns)
        events = sources[0].frame if is_one_stream(columns, pipeline.schema) else frames
        return together(events, pipeline.queries, schema=pipeline.schema, settings=pipeline.settings)
    except QueryError as error:
        raise pipeline.located(error) from None


def _run(on_data: Bound, report: Report, began: float) -> Summary:
    pipeline, tasks = on_data.pipeline, tasks_of(on_data.session)
    with report.stage("counting the rows", tasks):
        counted = {source.name: source.counted() for source in on_data.sources}
        rows = sum(number for number, _ in counted.values())
        bad = sum(number for _, number in counted.values()) + on_data.together.bad_rows.count()
    results = [target for target in on_data.targets if target.sink.output != "bad_rows"]
    aside = [target for target in on_data.targets if target.sink.output == "bad_rows"]
    # Bad rows are written first, and stay when there are too many: they are what one wants to see then.
    _write(on_data, aside, {}, bad, report)
    check_limit(pipeline, rows, bad)
    started = time.perf_counter()
    with report.stage("finding matches", tasks):
        counts = on_data.together.run()
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


def _reasons(on_data: Bound) -> tuple[tuple[str, int], ...]:
    counted = on_data.bad_rows.groupBy("reason").count().orderBy(functions.desc("count"), "reason")
    return tuple((row["reason"], row["count"]) for row in counted.limit(_SHOWN_REASONS).collect())


def _write(
    on_data: Bound,
    targets: Sequence[Target],
    totals: Mapping[tuple[str, str], int],
    bad: int,
    report: Report,
) -> None:
    """Write everything aside, then put everything in its place."""
    writing, tasks = Writing(on_data.session, on_data.pipeline), tasks_of(on_data.session)
    waiting: list[tuple[Target, str]] = []
    for target in targets:
        frame = _frame(on_data, target)
        if target.sink.kind == "console":
            total = bad if target.query is None else totals.get((target.sink.output, target.query), 0)
            with report.stage(f"fetching {target.what}", tasks):
                made = shaped(frame, target)
                if target.sink.flat or target.sink.output == "compressed":
                    total = made.count()
                order = [name for name in ("start", "end") if name in made.columns]
                first = (made.orderBy(*order) if order else made).limit(target.sink.limit).toArrow()
            report.show(target, first, total)
            continue
        with report.stage(f"writing {target.what}", tasks):
            waiting.append((target, writing.write(frame, target)))
    for target, aside in waiting:
        if aside:
            writing.put_in_place(target, aside)


def _frame(on_data: Bound, target: Target) -> DataFrame:
    if target.query is None:
        return on_data.bad_rows
    if target.sink.output == "matches":
        return on_data.together.matches(target.query)
    of_query = on_data.together.timeouts if target.sink.output == "timeouts" else on_data.together.compressed
    found = of_query(target.query)
    assert found is not None, "the reader has checked that there is such an output"
    return found

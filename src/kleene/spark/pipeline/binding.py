"""A pipeline on its data, before anything runs: what bounded sources and streams have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kleene.errors import QueryError, UnfitSource
from kleene.frames.arrow import value_type
from kleene.pattern.types import ValueType
from kleene.queries.any_query import AnyBoundQuery
from kleene.spark.batch import OnEvents
from kleene.spark.pipeline.columns import check_columns, is_one_stream
from kleene.spark.pipeline.declared_streams import check_opened
from kleene.spark.pipeline.kafka import with_connector
from kleene.spark.pipeline.progress import Report
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.targets import Target
from kleene.spark.pipeline.values import for_spark
from kleene.spark.session import brief_session, cluster_session, local_session
from kleene.spark.types import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class OpenedSource(Protocol):
    """A source that Spark has opened."""

    @property
    def name(self) -> str: ...

    @property
    def frame(self) -> DataFrame: ...

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """The names of its columns, under which queries know them, and their types."""


Source = TypeVar("Source", bound=OpenedSource)
Run = TypeVar("Run", bound=OnEvents)


@dataclass(frozen=True)
class OnData(Generic[Source, Run]):
    """A pipeline with its sources opened and its queries bound to them; only schemas have been looked at."""

    pipeline: Pipeline
    session: SparkSession
    sources: tuple[Source, ...]
    targets: tuple[Target, ...]
    run: Run

    @property
    def queries(self) -> tuple[AnyBoundQuery, ...]:
        return self.run.queries

    @property
    def routes(self) -> tuple[str, ...]:
        return self.run.routes


def opened(
    pipeline: Pipeline,
    report: Report,
    session: SparkSession | None,
    open_one: Callable[[SparkSession, Pipeline, int], Source],
) -> tuple[SparkSession, tuple[Source, ...]]:
    """The sources of a pipeline, and the session that opened them; one is started where none is given."""
    if session is None:
        with report.stage("starting Spark"):
            session = session_for(pipeline)
    with report.stage("opening the sources"):
        return session, tuple(open_one(session, pipeline, number) for number in range(len(pipeline.model.sources)))


def bound_to(pipeline: Pipeline, sources: Sequence[OpenedSource], run: Callable[..., Run]) -> Run:
    """The queries of a pipeline on the events of its sources; a wrong one is shown at its place in the file.

    run   what binds queries to events: `together`, or `live`
    """
    columns = {source.name: [name for name, _ in source.dtypes] for source in sources}
    try:
        check_columns(pipeline, columns)
        _check_declared(pipeline, sources)
        events: DataFrame | Mapping[str, Any] = {source.name: source.frame for source in sources}
        if is_one_stream(columns, pipeline.schema):
            events = sources[0].frame
        return run(events, pipeline.queries, schema=pipeline.schema, settings=pipeline.settings)
    except (QueryError, UnfitSource) as error:
        raise pipeline.located(error) from None


def _check_declared(pipeline: Pipeline, sources: Sequence[OpenedSource]) -> None:
    """Sources that queries declare have the columns that they declare."""

    def held(kind: Any) -> ValueType:
        try:
            return value_type(arrow_type(kind))
        except TypeError:  # which no query can read
            return ValueType.OTHER

    columns = {source.name: {field.name: held(field.dataType) for field in source.frame.schema} for source in sources}
    check_opened(columns, pipeline.queries, pipeline.schema.type)


def session_for(pipeline: Pipeline) -> SparkSession:
    """The session that a pipeline asks for."""
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

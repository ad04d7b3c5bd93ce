"""Queries over a bounded Spark data frame: bind on the driver, bucket by key, run each bucket in a task.

Public API only, so that a Spark Connect session serves as well. Nothing runs until the user asks a result for rows; a
wrong query or a missing column is raised before that, here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import StructType

from kleene.composition.query_graph import QueryGraph
from kleene.errors import UnknownKind
from kleene.evaluation import outputs_of, report_warnings, warn_of_reference
from kleene.frames.arrow import empty_table, schema_on
from kleene.frames.outputs import Outputs
from kleene.frames.results import listed_columns, of_queries, result_schema, shown
from kleene.frames.streams import reads
from kleene.lang.tree import OutputMode
from kleene.pattern.schema import Schema
from kleene.plan.settings import Policy, Settings
from kleene.queries.any_query import AnyBoundQuery, AnyQuery, is_pattern
from kleene.queries.feeding import bound_in_order, declared_together, in_dependency_order
from kleene.queries.parameters import check_parameters
from kleene.spark.compiling import compile_beside
from kleene.spark.division import divide, exchanged
from kleene.spark.interpreter import in_tasks
from kleene.spark.links import linking_columns
from kleene.spark.numbered import Numbered
from kleene.spark.parquet.listing import ListedFiles, ReadBySpark, listed_files
from kleene.spark.routing import OneTask, Route, routes_of, selects_afterwards
from kleene.spark.sending import Sent
from kleene.spark.slot import RANK, SlotGroup
from kleene.spark.streams import inputs, united
from kleene.spark.types import as_spark_expects, spark_schema
from kleene.spark.worker import TaskSpec, chooser, task, task_spec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LOG = logging.getLogger("kleene.spark")
_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


def spark_outputs(
    events: DataFrame | Mapping[str, DataFrame],
    queries: Sequence[AnyQuery],
    *,
    schema: Schema | None,
    several: bool,
    settings: Settings | None = None,
) -> Outputs[DataFrame]:
    """The outputs of the first query, or of all in one table, as data frames that have not run yet.

    Only where time must be cut are the times of the events looked at first.
    """
    prepared = prepare(events, queries, schema=schema, several=several, settings=settings)
    if prepared.settings.budget.policy is Policy.DROP_OLDEST:
        _LOG.warning(
            "how many matches and partial matches are dropped over the budget is not shown here; "
            "a pipeline and `kleene.spark.batch_run` show it"
        )
    nothing = prepared.nothing
    timeouts = None if nothing.timeouts is None else prepared.output("timeouts", nothing.timeouts.schema)
    dense = prepared.compressed_columns()
    compressed = None if dense is None else prepared.output("compressed", dense)
    return Outputs(prepared.output("matches", nothing.matches.schema), timeouts, prepared.bad_rows, compressed)


@dataclass(frozen=True)
class Prepared:
    """Queries bound on the driver to events that are divided and packed, but not exchanged yet."""

    queries: Sequence[AnyQuery]
    bound: tuple[AnyBoundQuery, ...]
    schema: Schema
    events: Numbered
    routes: tuple[Route, ...]
    packed: DataFrame
    parts: tuple[SlotGroup, ...]
    graph: QueryGraph
    several: bool
    settings: Settings
    # The names of the streams, where the events came as several.
    streams: tuple[str, ...] = ()

    @property
    def columns(self) -> pa.Schema:
        return self.events.columns

    @cached_property
    def nothing(self) -> Outputs[pa.Table]:
        """The outputs on no events, which have the right columns."""
        return outputs_of(self.graph, {}, several=self.several)

    @property
    def bad_rows(self) -> DataFrame:
        return _bad_rows(self.events, why_bad(self.events, self.schema))

    def output(self, kind: str, columns: pa.Schema) -> DataFrame:
        """One output of the first query, or of all in one table."""
        if self.finds(0, kind):
            columns = columns.append(pa.field(RANK, pa.int64()))
        spec = self.task_spec(output=kind, returned=as_spark_expects(columns, large=is_large(self.packed)))
        frame = in_tasks(exchanged(self.packed), Sent(task, spec), spark_schema(columns))
        return apart(frame) if self.finds(0, kind) else frame

    def compressed_columns(self) -> pa.Schema | None:
        """The columns of compressed matches of all queries; None where the policy is another, or all queries fail."""
        if self.settings.budget.policy is not Policy.EMIT_COMPRESSED:
            return None
        columns = listed_columns(self.nothing.matches.schema) if self.several else self.columns
        patterns = [query for query in self.bound if is_pattern(query)]
        queries = [query.listing() if self.several else query for query in patterns]
        emitted = [
            (query.name, empty_table(result_schema(replace(query, output=OutputMode.COMPRESSED), columns)))
            for query in queries
            if query.output is OutputMode.ALL and query.returns is None
        ]
        together = of_queries(emitted)
        return None if together is None else together.schema

    def finds(self, query: int, kind: str) -> bool:
        """Whether tasks give all matches of a query, of which one task then selects those that do not overlap."""
        return kind == "matches" and any(part.finds and query in part.queries for part in self.parts)

    def task_spec(self, **said: Any) -> TaskSpec:
        return task_spec(
            self.queries,
            self.schema,
            self.columns,
            self.parts,
            several=self.several,
            settings=self.settings,
            **said,
        )


@dataclass(frozen=True)
class KeyColumn:
    """A column that events of these types must have to take part in any match of a query."""

    column: str
    types: frozenset[str]
    query: str


class OnEvents:
    """Queries bound to events."""

    _prepared: Prepared

    @property
    def queries(self) -> tuple[AnyBoundQuery, ...]:
        return self._prepared.bound

    @property
    def routes(self) -> tuple[str, ...]:
        """How the events of each query are divided."""
        return tuple(route.describe() for route in self._prepared.routes)

    @property
    def keys(self) -> tuple[KeyColumn, ...]:
        """The columns of partition keys, and of equalities that link all components of a query."""
        keys: list[KeyColumn] = []
        for query in self._prepared.bound:
            if not is_pattern(query):
                continue
            keys += [KeyColumn(name, frozenset(query.types), query.name) for name in query.partition]
            linked = linking_columns(query, self._prepared.columns)
            keys += [KeyColumn(name, frozenset({kind}), query.name) for kind, name in linked.items()]
        return tuple(keys)


def prepare(
    events: DataFrame | Mapping[str, DataFrame],
    queries: Sequence[AnyQuery],
    *,
    schema: Schema | None,
    several: bool,
    settings: Settings | None = None,
) -> Prepared:
    """Bind queries to the columns of events, and divide these."""
    settings = settings or Settings()
    streams, declared, graph = bind(events, queries, schema=schema, several=several)
    bound = tuple(node.query for node in graph.in_order_given)
    numbered = united(streams)
    if numbered.frame.isStreaming:
        raise UnknownKind("this Spark data frame is a stream", hint="`kleene.match` and `kleene.live` take streams")
    warn_of_reference(graph)
    compile_beside(numbered.frame.sparkSession)
    routes = _routes(bound, numbered.columns, settings, several=several)
    good = numbered.where(why_bad(numbered, declared).isNull())
    # One table of several queries shows events whole, whatever they return.
    packed, parts = divide(good, bound, routes, settings.exchange, whole=several, files=_files(events))
    return Prepared(
        queries, bound, declared, numbered, routes, packed, parts, graph, several, settings, stream_names(events)
    )


def _files(events: DataFrame | Mapping[str, DataFrame]) -> ListedFiles | None:
    """The Parquet files that the events are, where this is certain."""
    try:
        return listed_files(events)
    except ReadBySpark as reason:
        _LOG.info("Spark reads the events: %s", reason)
        return None


def stream_names(events: DataFrame | Mapping[str, DataFrame]) -> tuple[str, ...]:
    return tuple(events) if isinstance(events, Mapping) else ()


def bind(
    events: DataFrame | Mapping[str, DataFrame], queries: Sequence[AnyQuery], *, schema: Schema | None, several: bool
) -> tuple[tuple[Numbered, ...], Schema, QueryGraph]:
    """The streams of events, what their columns mean, and the queries on these columns, which give their warnings."""
    declared = declared_together(schema or Schema(), queries)
    check_parameters(queries, declared)
    streams, typed = inputs(events, declared, reads(queries, declared))
    columns = streams[0].columns
    known = schema_on(columns, typed)
    in_order = bound_in_order(in_dependency_order(queries, known), known)
    graph = QueryGraph.of(in_order, columns, streams=len(known.streams), several=several)
    report_warnings(node.query for node in graph.in_order_given)
    return streams, typed, graph


def _routes(
    bound: Sequence[AnyBoundQuery], columns: pa.Schema, settings: Settings, *, several: bool
) -> tuple[Route, ...]:
    routes = routes_of(bound, columns, settings.budget.policy)
    # One table of several queries has no place for a rank, so one task does both.
    chosen = [
        OneTask(f"`{query.name}` selects among matches") if several and selects_afterwards(query, route) else route
        for query, route in zip(bound, routes, strict=True)
    ]
    return tuple(chosen)


def apart(matches: DataFrame) -> DataFrame:
    """Those matches of all slices that do not overlap: one task takes them in order."""
    names = matches.columns
    offered = matches.repartition(1).sortWithinPartitions(
        functions.col("end"), functions.col("start").desc(), functions.col(f"`{RANK}`")
    )
    columns = [field for field in matches.schema if field.name != RANK]
    return in_tasks(offered, Sent(chooser, names.index("start"), names.index("end")), StructType(columns))


def is_large(frame: DataFrame) -> bool:
    return str(frame.sparkSession.conf.get(_LARGE_TYPES, "false")).lower() == "true"


# Bad rows ----------------------------------------------------------------------------------------------------------


def why_bad(events: Numbered, schema: Schema) -> Column:
    """Why a row is no event, NULL when it is one: the rules and the words of `kleene.frames.rows`."""
    time = events.column(schema.time)
    reason = functions.when(time.isNull(), f"no time: `{schema.time}` is NULL")
    if schema.start is not None:
        start = events.column(schema.start)
        reason = reason.when(start.isNull(), f"no start: `{schema.start}` is NULL")
        reason = reason.when(start > time, f"`{schema.start}` is after `{schema.time}`")
    if schema.tie_breaker is not None:
        tie = events.column(schema.tie_breaker)
        reason = reason.when(tie.isNull(), f"no tie-breaker: `{schema.tie_breaker}` is NULL")
    return reason


def _bad_rows(events: Numbered, wrong: Column) -> DataFrame:
    """The columns that bad rows have everywhere. Rows have no numbers on Spark, so `text` holds the row as JSON."""
    nowhere = functions.lit(None).cast("bigint")
    row = functions.struct(*(events.column(name).alias(name) for name in shown(events.columns).names))
    return events.frame.where(wrong.isNotNull()).select(
        nowhere.alias("row"),
        nowhere.alias("line"),
        wrong.alias("reason"),
        functions.to_json(row, {"timeZone": "UTC"}).alias("text"),
    )

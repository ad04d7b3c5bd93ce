"""Queries over a bounded Spark data frame: bind on the driver, bucket by key, run each bucket in a task.

Public API only, so that a Spark Connect session serves as well. Nothing runs until the user asks a result for rows; a
wrong query or a missing column is raised before that, here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import StructType

from kleene.evaluation import warn_of_reference
from kleene.frames.streams import reads
from kleene.pattern.feeding import declared_together
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.spark.division import divide, exchanged
from kleene.spark.numbered import Numbered
from kleene.spark.routing import OneTask, Route, routes_of, selects_afterwards
from kleene.spark.slot import RANK, Part
from kleene.spark.streams import one_input
from kleene.spark.types import as_spark_expects, spark_schema
from kleene.spark.worker import Errand, chooser, errand, task
from kleene.testing.process import Tables, table_outputs
from kleene.testing.reference import reference_results

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


def spark_outputs(
    events: DataFrame | Mapping[str, DataFrame],
    queries: Sequence[Query],
    *,
    schema: Schema | None,
    several: bool,
    settings: Settings | None = None,
) -> tuple[DataFrame, DataFrame | None, DataFrame]:
    """Matches, timeouts (None when no query asks for them) and bad rows, as data frames that have not run yet.

    Only where time must be cut are the times of the events looked at first.
    """
    given = prepare(events, queries, schema=schema, several=several, settings=settings)
    nothing = given.nothing
    timeouts = None if nothing.timeouts is None else given.output("timeouts", nothing.timeouts.schema)
    return given.output("matches", nothing.matches.schema), timeouts, given.bad_rows


@dataclass(frozen=True)
class Prepared:
    """Queries bound on the driver to events that are divided and packed, but not exchanged yet."""

    queries: Sequence[Query]
    bound: tuple[BoundQuery, ...]
    schema: Schema
    events: Numbered
    routes: tuple[Route, ...]
    packed: DataFrame
    parts: tuple[Part, ...]
    # The outputs on no events.
    nothing: Tables
    several: bool
    settings: Settings

    @property
    def columns(self) -> pa.Schema:
        return self.events.columns

    @property
    def bad_rows(self) -> DataFrame:
        return _bad_rows(self.events, _why_bad(self.events, self.schema))

    def output(self, kind: str, columns: pa.Schema) -> DataFrame:
        """One output of the first query, or of all in one table."""
        if self.finds(0, kind):
            columns = columns.append(pa.field(RANK, pa.int64()))
        told = self.errand(output=kind, returned=as_spark_expects(columns, large=is_large(self.packed)))
        found = exchanged(self.packed).mapInArrow(task(told), spark_schema(columns))
        return apart(found) if self.finds(0, kind) else found

    def finds(self, query: int, kind: str) -> bool:
        """Whether tasks give all matches of a query, of which one task then selects those that do not overlap."""
        return kind == "matches" and any(part.finds and query in part.queries for part in self.parts)

    def errand(self, **said: Any) -> Errand:
        return errand(
            self.queries,
            self.schema,
            self.columns,
            self.parts,
            several=self.several,
            settings=self.settings,
            **said,
        )


def prepare(
    events: DataFrame | Mapping[str, DataFrame],
    queries: Sequence[Query],
    *,
    schema: Schema | None,
    several: bool,
    settings: Settings | None = None,
) -> Prepared:
    """Bind queries to the columns of events, and divide these."""
    settings = settings or Settings()
    declared = declared_together(schema or Schema(), queries)
    numbered, given = one_input(events, declared, reads(queries, declared))
    columns = numbered.columns
    # On no events the queries are bound and give their warnings, and the empty outputs have the right columns.
    empty = columns.empty_table()
    nothing = table_outputs(empty, queries, schema=given, several=several)
    bound = tuple(result.query for result in reference_results(empty, queries, schema=given))
    warn_of_reference(bound)
    routes = _routes(bound, columns, several=several)
    good = numbered.where(_why_bad(numbered, given).isNull())
    # One table of several queries shows events whole, whatever they return.
    packed, parts = divide(good, bound, routes, settings.exchange, whole=several)
    return Prepared(queries, bound, given, numbered, routes, packed, parts, nothing, several, settings)


def _routes(bound: Sequence[BoundQuery], columns: pa.Schema, *, several: bool) -> tuple[Route, ...]:
    routes = routes_of(bound, columns)
    # One table of several queries has no place for a rank, so one task does both.
    chosen = [
        OneTask(f"`{query.name}` selects among matches") if several and selects_afterwards(query, route) else route
        for query, route in zip(bound, routes, strict=True)
    ]
    return tuple(chosen)


def apart(found: DataFrame) -> DataFrame:
    """Of the matches that slices found, those that do not overlap: one task takes them in order."""
    names = found.columns
    offered = found.repartition(1).sortWithinPartitions(
        functions.col("end"), functions.col("start").desc(), functions.col(f"`{RANK}`")
    )
    kept = [field for field in found.schema if field.name != RANK]
    return offered.mapInArrow(chooser(names.index("start"), names.index("end")), StructType(kept))


def is_large(frame: DataFrame) -> bool:
    return str(frame.sparkSession.conf.get(_LARGE_TYPES, "false")).lower() == "true"


# Bad rows ----------------------------------------------------------------------------------------------------------


def _why_bad(events: Numbered, schema: Schema) -> Column:
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
    row = functions.struct(*(events.column(name).alias(name) for name in events.columns.names))
    return events.frame.where(wrong.isNotNull()).select(
        nowhere.alias("row"),
        nowhere.alias("line"),
        wrong.alias("reason"),
        functions.to_json(row, {"timeZone": "UTC"}).alias("text"),
    )

"""Queries over a bounded Spark data frame: bind on the driver, bucket by key, run each bucket in a task.

Public API only, so that a Spark Connect session serves as well. Nothing runs until the user asks a result for rows; a
wrong query or a missing column is raised before that, here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from kleene.evaluation import warn_of_reference
from kleene.frames.streams import reads
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.spark.numbered import Numbered
from kleene.spark.routing import Route, into_buckets, route_of
from kleene.spark.streams import one_input
from kleene.spark.types import as_spark_expects, spark_schema
from kleene.spark.worker import errand, task
from kleene.testing.process import table_outputs
from kleene.testing.reference import reference_results

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_LOG = logging.getLogger("kleene.spark")
_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
# An empty bucket costs nothing and a small one 3 ms, while the evaluator's work grows with the square of a bucket.
_LEAST_BUCKETS = 64


def spark_outputs(
    events: DataFrame | Mapping[str, DataFrame],
    queries: Sequence[Query],
    *,
    schema: Schema | None,
    several: bool,
    buckets: int | None = None,
    settings: Settings | None = None,
) -> tuple[DataFrame, DataFrame | None, DataFrame]:
    """Matches, timeouts (None when no query asks for them) and bad rows, as data frames that have not run yet.

    buckets   how many groups of keys there are; else as many as Spark has shuffle partitions, and at least 64
    """
    declared = (schema or Schema()).declaring([each for query in queries for each in query.tree.declarations])
    numbered, given = one_input(events, declared, reads(queries, declared))
    columns = numbered.columns
    # On no events the queries are bound and give their warnings, and the empty outputs have the right columns.
    empty = columns.empty_table()
    nothing = table_outputs(empty, queries, schema=given, several=several)
    bound = [result.query for result in reference_results(empty, queries, schema=given)]
    warn_of_reference(bound, several=several)

    route = route_of(bound, columns)
    session = numbered.frame.sparkSession
    number = _bucket_number(session, buckets)
    _say(route, number)
    wrong = _why_bad(numbered, given)
    grouped = into_buckets(numbered.where(wrong.isNull()), route, number)
    large = str(session.conf.get(_LARGE_TYPES, "false")).lower() == "true"

    def output(name: str, like: pa.Table) -> DataFrame:
        returned = as_spark_expects(like.schema, large=large)
        told = errand(queries, given, columns, several=several, output=name, returned=returned, settings=settings)
        return grouped.applyInArrow(task(told), spark_schema(like.schema))

    timeouts = None if nothing.timeouts is None else output("timeouts", nothing.timeouts)
    return output("matches", nothing.matches), timeouts, _bad_rows(numbered, wrong)


def _bucket_number(session: SparkSession, asked: int | None) -> int:
    if asked is not None:
        if asked < 1:
            raise ValueError("there must be at least one bucket")
        return asked
    setting = str(session.conf.get(_SHUFFLE_PARTITIONS, ""))
    # Some platforms say `auto`.
    return max(_LEAST_BUCKETS, int(setting) if setting.isdigit() else 0)


def _say(route: Route, buckets: int) -> None:
    if route.key:
        _LOG.info("%d buckets by hash of %s", buckets, ", ".join(route.key))
    else:
        _LOG.warning("one task handles all events: %s", route.reason)


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

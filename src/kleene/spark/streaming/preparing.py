"""Queries bound to a stream on the driver: what cannot run on one is refused here, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

from kleene.engine.compiling import why_not_compiled
from kleene.engine.engine import Engine, check_bounded
from kleene.evaluation import warn_of_reference
from kleene.pattern.feeding import families
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.spark.batch import Prepared, bind, stream_names, why_bad
from kleene.spark.compiling import compile_beside
from kleene.spark.numbered import UNREADABLE, Numbered
from kleene.spark.routing import routes_of
from kleene.spark.streaming.division import bad_columns, divide_stream, stream_routes
from kleene.spark.streaming.event_time import Pace, beyond, with_event_time, with_heartbeats
from kleene.spark.streaming.replayed import check_replays
from kleene.spark.streams import united
from kleene.spark.worker import Errand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PreparedStream(Prepared):
    """`packed` is a stream; rows that are no events go to a slot of their own."""

    bad_slot: int = 0

    @property
    def bad_schema(self) -> pa.Schema:
        return pa.schema([(name, pa.string()) for name in bad_columns(self.events)])

    @property
    def slots(self) -> int:
        """That of rows that are no events is the last one."""
        return self.bad_slot + 1

    def errand(self, **said: Any) -> Errand:
        pace = Pace.of(self.bound[0].schema.clock)
        return {**super().errand(**said), "bad_slot": self.bad_slot, "pace": (pace.steps, pace.milliseconds)}


def prepare_stream(
    events: DataFrame | Mapping[str, DataFrame],
    queries: Sequence[Query],
    *,
    schema: Schema | None,
    several: bool,
    settings: Settings | None = None,
) -> PreparedStream:
    """Bind queries to the columns of a stream, and divide its events."""
    settings = settings or Settings()
    streams, given, nothing, bound = bind(events, queries, schema=schema, several=several)
    numbered = united(streams)
    check_runs(bound, numbered.columns, settings)
    compile_beside(numbered.frame.sparkSession)
    known = bound[0].schema
    wrong = why_bad(numbered, given)
    wrong = functions.when(wrong.isNotNull(), wrong).when(
        beyond(numbered, known), f"`{known.time}` is beyond what a stream can tell; the schema's `tick` makes it finer"
    )
    if numbered.along:
        wrong = functions.coalesce(functions.col(UNREADABLE), wrong)
    timed = united([_timed(stream, known, settings) for stream in streams])
    routes = stream_routes(bound, routes_of(bound, numbered.columns, settings.budget.policy))
    packed, parts, bad = divide_stream(timed, bound, routes, settings.exchange, wrong, whole=several)
    return PreparedStream(
        queries, bound, given, timed, routes, packed, parts, nothing, several, settings, stream_names(events), bad
    )


def _timed(stream: Numbered, schema: Schema, settings: Settings) -> Numbered:
    """A stream with its own event time: of several, the one that is furthest behind says how far time has come.

    Were they one to Spark, events of a slow stream would be late by those of a fast one, which other queries read.
    """
    if settings.stream.idle is not None:
        stream = with_heartbeats(stream, schema, settings.stream.idle)
    return with_event_time(stream, schema, settings.stream.delay)


def check_runs(queries: Sequence[BoundQuery], columns: pa.Schema, settings: Settings) -> None:
    """Refuse what cannot run on a stream, and warn of what runs slowly."""
    feeding = {number for family in families(queries) if len(family) > 1 for number in family}
    for number, query in enumerate(queries):
        why_not = why_not_compiled(query, columns, settings)
        if number in feeding:
            check_replays(query, settings.budget, "queries that feed each other are evaluated again at every watermark")
        elif why_not is not None:
            check_replays(query, settings.budget, f"it stays on the reference evaluator: {why_not}")
        elif settings.budget.state_bytes is None:
            check_bounded(query, Engine(query, settings).plan)
    warn_of_reference(queries)

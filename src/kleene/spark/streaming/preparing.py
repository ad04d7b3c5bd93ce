"""Queries bound to a stream on the driver: what cannot run on one is refused here, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

from kleene.composition.query_graph import QueryGraph, QueryNode
from kleene.composition.reference_run import check_evaluated_again
from kleene.engine.any_engine import check_bounded
from kleene.errors import NotOnStreams
from kleene.evaluation import warn_of_reference
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyQuery
from kleene.spark.batch import Prepared, bind, stream_names, why_bad
from kleene.spark.compiling import compile_beside
from kleene.spark.numbered import UNREADABLE, Numbered
from kleene.spark.routing import ByKey, routes_of
from kleene.spark.streaming.division import bad_columns, buckets_of, divide_stream, stream_routes
from kleene.spark.streaming.event_time import Pace, beyond, too_far_ahead, with_event_time, with_one_event_time
from kleene.spark.streaming.heartbeats import with_heartbeats
from kleene.spark.streams import united
from kleene.spark.worker import TaskSpec

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
    def buckets(self) -> int | None:
        """How many buckets keys go to if the stream begins now; None where nothing is divided by key."""
        by_key = any(isinstance(route, ByKey) for route in self.routes)
        return buckets_of(self.events, self.settings.exchange) if by_key else None

    def task_spec(self, **said: Any) -> TaskSpec:
        pace = Pace.of(self.bound[0].schema.clock)
        return {**super().task_spec(**said), "bad_slot": self.bad_slot, "pace": (pace.steps, pace.milliseconds)}


def prepare_stream(
    events: DataFrame | Mapping[str, DataFrame],
    queries: Sequence[AnyQuery],
    *,
    schema: Schema | None,
    several: bool,
    settings: Settings | None = None,
) -> PreparedStream:
    """Bind queries to the columns of a stream, and divide its events."""
    settings = settings or Settings()
    streams, declared, graph = bind(events, queries, schema=schema, several=several)
    bound = tuple(node.query for node in graph.in_order_given)
    numbered = united(streams)
    check_runs(graph, settings)
    compile_beside(numbered.frame.sparkSession)
    known = bound[0].schema
    wrong = why_bad(numbered, declared)
    wrong = functions.when(wrong.isNotNull(), wrong).when(
        beyond(numbered, known), f"`{known.time}` is beyond what a stream can tell; the schema's `tick` makes it finer"
    )
    ahead = settings.stream.ahead
    if ahead is not None:
        too_far = too_far_ahead(numbered, known, ahead)
        reason = f"`{known.time}` is more than {ahead} ahead of the clock of the machine"
        wrong = functions.coalesce(wrong, functions.when(too_far, reason))
    if numbered.along:
        wrong = functions.coalesce(functions.col(UNREADABLE), wrong)
    timed = united(with_one_event_time([_timed(stream, known, settings) for stream in streams], known))
    routes = stream_routes(bound, routes_of(bound, numbered.columns, settings.budget.policy))
    packed, parts, bad = divide_stream(timed, bound, routes, settings.exchange, wrong, whole=several)
    return PreparedStream(
        queries, bound, declared, timed, routes, packed, parts, graph, several, settings, stream_names(events), bad
    )


def _timed(stream: Numbered, schema: Schema, settings: Settings) -> Numbered:
    """A stream with its own event time: of several, the one that is furthest behind says how far time has come.

    Were they one to Spark, events of a slow stream would be late by those of a fast one, which other queries read.
    """
    if settings.stream.idle is not None:
        stream = with_heartbeats(stream, schema, settings.stream.idle)
    ahead = settings.stream.ahead
    too_far = None if ahead is None else too_far_ahead(stream, schema, ahead)
    return with_event_time(stream, schema, settings.stream.delay, too_far)


def check_runs(graph: QueryGraph, settings: Settings) -> None:
    """Refuse what cannot run on a stream, and warn of what runs slowly."""
    on_reference = graph.on_reference(settings)
    for node in graph.nodes:
        _check_input(node)
        if node.number in on_reference:
            check_evaluated_again(node, settings.budget, on_reference[node.number])
        elif settings.budget.state_bytes is None:
            check_bounded(node.runs, settings)
    warn_of_reference(graph)


def _check_input(node: QueryNode) -> None:
    """Refuse a query whose time would stand still: when the events that it reads are certain, no time tells."""
    if node.lag is None:
        raise NotOnStreams(
            f"`{node.query.name}` cannot run on a stream: matches of what it reads ({', '.join(node.feeds_on)}) "
            "are certain only when enough events have come to close `WITHIN n EVENTS`",
            hint="say `WITHIN` in time in the query that makes them",
        )

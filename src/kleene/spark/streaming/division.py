"""The events of a stream, pruned above the watermark, given a slot for each group of queries, and packed.

Rows that are no events go along, as text, to a slot of their own, so that they leave with the matches of their batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions

from kleene.frames.results import shown
from kleene.plan.settings import Exchange
from kleene.queries.any_query import AnyBoundQuery
from kleene.spark.division import Leg, columns_of, group_of, say, served_by, shuffle_partitions, slot_of, wanted_by
from kleene.spark.interpreter import in_tasks
from kleene.spark.numbered import Numbered
from kleene.spark.packing import PLACED_DDL
from kleene.spark.pruning import columns_needed
from kleene.spark.routing import ByKey, ByTime, OneTask, Route
from kleene.spark.sending import Sent
from kleene.spark.slot import SlotGroup
from kleene.spark.streaming.buckets import stream_packer
from kleene.spark.streaming.event_time import above_watermark
from kleene.spark.streaming.heartbeats import HEARTBEAT
from kleene.spark.tested_by_spark import spark_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


# Rows that are no events: why, and what they hold.
BAD_COLUMNS = ("reason", "text")


def bad_columns(events: Numbered) -> tuple[str, ...]:
    """The columns of rows that are no events; where a row stood is known where that came along."""
    return ("source", "place", *BAD_COLUMNS) if events.along else BAD_COLUMNS


def stream_routes(queries: Sequence[AnyBoundQuery], routes: Sequence[Route]) -> tuple[Route, ...]:
    """As events of a batch are divided, but time is not cut: a slice would be a stream that ends."""
    return tuple(
        OneTask(f"`{query.name}` has no key that divides a stream") if isinstance(route, ByTime) else route
        for query, route in zip(queries, routes, strict=True)
    )


def divide_stream(
    events: Numbered,
    queries: Sequence[AnyBoundQuery],
    routes: Sequence[Route],
    exchange: Exchange,
    wrong: Column,
    *,
    whole: bool,
) -> tuple[DataFrame, tuple[SlotGroup, ...], int]:
    """The events as packed rows, what their slots mean, and the slot of rows that are no events.

    How many slots there are is what the session says now; tasks know it better (`kleene.spark.streaming.buckets`).

    wrong   why a row is no event, NULL when it is one
    whole   whether events keep columns that no query reads or returns
    """
    schema = queries[0].schema
    real = functions.lit(True) if HEARTBEAT not in events.frame.columns else ~functions.col(HEARTBEAT)
    good, bad = wrong.isNull() & real, wrong.isNotNull() & real
    parts: list[SlotGroup] = []
    legs: list[Leg] = []
    hashed: list[bool] = []
    base = 0
    for (route, *_), numbers in served_by(queries, routes).items():
        own = [queries[number] for number in numbers]
        by_key = isinstance(route, ByKey)
        slots = buckets_of(events, exchange) if by_key else 1
        wanted = wanted_by(own, route, events)
        columns = columns_needed(own, events.columns, whole=whole)
        parts.append(SlotGroup(tuple(numbers), columns, base, slots, per_task=by_key and exchange.buckets is None))
        real_and_wanted = good if wanted is None else good & spark_column(wanted, events)
        legs.append(Leg(real_and_wanted, slot_of(events, route, None, schema)))
        hashed.append(by_key)
        base += slots
        say(own, route, slots)
    needed = columns_of(parts, events)
    useful = reduce(or_, [bad, *(leg.wanted for leg in legs if leg.wanted is not None)])
    events = events.where(above_watermark(events, schema, useful))
    chosen = [events.column(name) for name in needed]
    routed = [leg.routed.alias(f"g{number}") for number, leg in enumerate(legs)]
    groups = [
        replace(group_of(part, needed, number, schema), buckets=part.slots if hashed[number] else None)
        for number, part in enumerate(parts)
    ]
    packing = Sent(
        stream_packer, [asdict(group) for group in groups], [asdict(part) for part in parts], bad_columns(events)
    )
    aside = _described(events, wrong, bad).alias("aside")
    packed = in_tasks(events.frame.select(*chosen, *routed, aside), packing, PLACED_DDL)
    return packed, tuple(parts), base


def _described(events: Numbered, wrong: Column, bad: Column) -> Column:
    """A line of JSON for a row that is no event, NULL for all others.

    One column: each that goes from Spark to Python costs time for every row.
    """
    row = functions.struct(*(events.column(name).alias(name) for name in shown(events.columns).names))
    by_name = {"reason": wrong, "text": functions.to_json(row, {"timeZone": "UTC"})}
    if events.along:
        source, place, _, text = map(functions.col, events.along)
        by_name |= {"source": source, "place": place, "text": functions.coalesce(text, by_name["text"])}
    known = functions.struct(*(by_name[name].cast("string").alias(name) for name in bad_columns(events)))
    return functions.when(bad, functions.to_json(known, {"ignoreNullFields": "true"}))


def buckets_of(events: Numbered, exchange: Exchange) -> int:
    """How many buckets the keys of a stream that begins now go to."""
    return exchange.buckets or shuffle_partitions(events.frame.sparkSession)

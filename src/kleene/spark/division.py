"""The events of a run, divided and packed: pruned, given a slot for each group of queries, and exchanged.

Spark reads, prunes and routes them, and hands over what is left; files of which everything is known are read by the
tasks that pack (`kleene.spark.parquet`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from kleene.pattern.schema import STREAM, Schema
from kleene.pattern.types import ValueType
from kleene.plan.settings import Exchange
from kleene.queries.any_query import AnyBoundQuery
from kleene.queries.feeding import families
from kleene.spark.conditions import Condition, all_of, any_of
from kleene.spark.interpreter import in_tasks
from kleene.spark.numbered import Numbered
from kleene.spark.packing import PACKED_DDL, PackedGroup, Slices, packer
from kleene.spark.parquet.listing import ListedFiles, ReadBySpark
from kleene.spark.parquet.planning import RoutedGroup, packed_by_tasks
from kleene.spark.pruning import columns_needed, useful
from kleene.spark.routing import ByKey, ByTime, OneTask, Route, selects_afterwards
from kleene.spark.sending import Sent
from kleene.spark.slices import slices_of
from kleene.spark.slot import SlotGroup
from kleene.spark.tested_by_spark import spark_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_LOG = logging.getLogger("kleene.spark")
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
# Several buckets a task, so that tasks are of about the same size.
_BUCKETS_A_TASK = 4


def divide(
    events: Numbered,
    queries: Sequence[AnyBoundQuery],
    routes: Sequence[Route],
    exchange: Exchange,
    *,
    whole: bool = False,
    files: ListedFiles | None = None,
) -> tuple[DataFrame, tuple[SlotGroup, ...]]:
    """The events as packed rows that have not been exchanged yet, and what their slots mean.

    whole   whether events keep columns that no query reads or returns
    files   the Parquet files that hold the events, and nothing else, where this is known
    """
    parts: list[SlotGroup] = []
    routed: list[RoutedGroup] = []
    base = 0
    for (route, finds, _), numbers in served_by(queries, routes).items():
        own = [queries[number] for number in numbers]
        columns = columns_needed(own, events.columns, whole=whole)
        wanted = wanted_by(own, route, events)
        slots, slices = _slots(events, own[0].schema, route, wanted, exchange)
        by_end = isinstance(route, ByTime) and route.by_end
        parts.append(SlotGroup(tuple(numbers), columns, base, slots, slices, by_end, finds))
        routed.append(RoutedGroup(wanted, route, slots))
        base += slots
        say(own, route, slots)
    schema, needed = queries[0].schema, columns_of(parts, events)
    groups = [group_of(part, needed, number, schema) for number, part in enumerate(parts)]
    if files is not None:
        try:
            return packed_by_tasks(files, events.columns, schema, needed, routed, groups), tuple(parts)
        except ReadBySpark as reason:
            _LOG.info("Spark reads the files: %s", reason)
    return _packed_behind_spark(events, schema, needed, routed, groups), tuple(parts)


def _packed_behind_spark(
    events: Numbered,
    schema: Schema,
    needed: tuple[str, ...],
    routed: Sequence[RoutedGroup],
    groups: Sequence[PackedGroup],
) -> DataFrame:
    """Rows that the JVM has pruned and routed, handed to tasks that pack."""
    legs = [Leg(_tested(group.wanted, events), slot_of(events, group.route, group.slots, schema)) for group in routed]
    wanted_by_some = [leg.wanted for leg in legs if leg.wanted is not None]
    if len(wanted_by_some) == len(legs):
        events = events.where(reduce(or_, wanted_by_some))
    slots_of_all = [leg.routed.alias(f"g{number}") for number, leg in enumerate(legs)]
    chosen = events.frame.select(*(events.column(name) for name in needed), *slots_of_all)
    return in_tasks(chosen, Sent(packer, [asdict(group) for group in groups]), PACKED_DDL)


def _tested(wanted: Condition | None, events: Numbered) -> Column | None:
    return None if wanted is None else spark_column(wanted, events)


def served_by(
    queries: Sequence[AnyBoundQuery], routes: Sequence[Route]
) -> dict[tuple[Route, bool, frozenset[str | None]], list[int]]:
    """The queries, by number, that are given the same events: they go the same way and read the same streams.

    Of each way also whether its queries select among their matches afterwards. Queries that feed each other read the
    streams of all of them, of which each is then given its own.
    """
    streams: dict[int, frozenset[str | None]] = {}
    for family in families(queries):
        read = frozenset(name for number in family for name, _ in queries[number].schema.streams)
        streams |= dict.fromkeys(family, read)
    served: dict[tuple[Route, bool, frozenset[str | None]], list[int]] = {}
    for number, (query, route) in enumerate(zip(queries, routes, strict=True)):
        served.setdefault((route, selects_afterwards(query, route), streams[number]), []).append(number)
    return served


@dataclass(frozen=True)
class Leg:
    """Which events a part of a division wants (None: all), and the column that says where they go."""

    wanted: Column | None
    slot: Column

    @property
    def routed(self) -> Column:
        slot = self.slot if self.wanted is None else functions.when(self.wanted, self.slot)
        return slot.cast("int")


def columns_of(parts: Sequence[SlotGroup], events: Numbered) -> tuple[str, ...]:
    """The columns that go along for one of the parts, in the order of the input."""
    needed = {name for part in parts for name in part.columns}
    return tuple(name for name in events.columns.names if name in needed)


def _slots(
    events: Numbered, schema: Schema, route: Route, wanted: Condition | None, exchange: Exchange
) -> tuple[int, Slices | None]:
    """How many slots a route has; slices of time are cut here, which looks at the times of the events."""
    tasks = shuffle_partitions(events.frame.sparkSession)
    if isinstance(route, ByKey):
        return exchange.buckets or _BUCKETS_A_TASK * tasks, None
    if isinstance(route, OneTask):
        return 1, None
    relevant = events if wanted is None else events.where(spark_column(wanted, events))
    slices = slices_of(relevant.frame, events.name(schema.time), route, width=exchange.slice_width, tasks=tasks)
    return slices.number, slices


def exchanged(packed: DataFrame) -> DataFrame:
    """Packed rows by slot, those of a slot in the order of time."""
    return packed.repartition("slot").sortWithinPartitions("slot", "begin")


def shuffle_partitions(session: SparkSession) -> int:
    # Without a default of our own: an ordinary session refuses one that is no number.
    setting = str(session.conf.get(_SHUFFLE_PARTITIONS))
    # Some platforms say `auto`.
    return int(setting) if setting.isdigit() else 200


def group_of(part: SlotGroup, needed: tuple[str, ...], number: int, schema: Schema) -> PackedGroup:
    places = tuple(needed.index(name) for name in part.columns)
    return PackedGroup(
        part.base,
        places,
        routed=len(needed) + number,
        time=part.columns.index(schema.time),
        start=None if schema.start is None else part.columns.index(schema.start),
        slices=part.slices,
    )


def wanted_by(queries: Sequence[AnyBoundQuery], route: Route, events: Numbered) -> Condition | None:
    """What an event must satisfy to go to a group; None: every event does.

    A NULL key is in no partition: such an event matches nothing, is counted in no window and breaks no contiguity (the
    semantics page §3), so it stays behind; so does an event of a stream that none of the queries reads.
    """
    conditions = [any_of([useful(query, events) for query in queries])]
    if STREAM in events.columns.names:
        streams = {name for query in queries for name, _ in query.schema.streams if name is not None}
        stream: Condition = ("column", STREAM, None)
        read: Condition = ("among", stream, sorted(streams), ValueType.STRING.value, False)
        conditions.append(("any", [("is_null", stream, False), read]))
    if isinstance(route, ByKey) and route.columns[0][0] is None:
        conditions += [("is_null", ("column", name, None), True) for name in route.columns[0][1]]
    return all_of(conditions)


def slot_of(events: Numbered, route: Route, slots: int | None, schema: Schema) -> Column:
    """The slot of an event within its part; for a route by key without a number of slots, the hash of the key."""
    if not isinstance(route, ByKey):
        return functions.lit(0)
    if len({names for _, names in route.columns}) == 1:
        return _bucket(events, route.columns[0][1], slots)
    kind = events.column(schema.type)
    chosen = functions.when(functions.lit(False), functions.lit(0))
    for name, columns in route.columns:
        chosen = chosen.when(kind == functions.lit(name), _bucket(events, columns, slots))
    return chosen


def _bucket(events: Numbered, columns: Sequence[str], buckets: int | None) -> Column:
    hashed = functions.hash(*(_hashable(events, name) for name in columns))
    return hashed if buckets is None else functions.pmod(hashed, functions.lit(buckets))


def _hashable(events: Numbered, name: str) -> Column:
    """0.0 and -0.0 are equal but have other bits. A NaN key is in no partition, so its bucket does not matter."""
    column = events.column(name)
    if pa.types.is_floating(events.type(name)):
        return functions.when(column == 0, functions.lit(0.0)).otherwise(column.cast("double"))
    return column


def say(queries: Sequence[AnyBoundQuery], route: Route, slots: int) -> None:
    if isinstance(route, OneTask):
        _LOG.warning("%s", route.describe())
    else:
        names = ", ".join(f"`{query.name}`" for query in queries)
        _LOG.info("%s: %d %s", names, slots, route.describe())

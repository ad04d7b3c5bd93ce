"""Where events go: into buckets by the hash of the partition key, never one group an entity.

Events of one partition must meet, and nothing else must. So any part of a query's partition key routes it, and what
every query of a run has in its key routes them all; identical events go together, which keeps the ids of their matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from kleene.lang.tree import SelectionStrategy
from kleene.pattern.query import BoundQuery
from kleene.spark.numbered import Numbered

if TYPE_CHECKING:
    from pyspark.sql import Column, GroupedData


@dataclass(frozen=True, slots=True)
class Route:
    """The columns whose hash chooses an event's bucket; none means one bucket, and `reason` says why."""

    key: tuple[str, ...]
    reason: str = ""


def route_of(queries: Sequence[BoundQuery], columns: pa.Schema) -> Route:
    """The route that is right for all queries of a run."""
    for query in queries:
        if query.strategy is SelectionStrategy.STRICT_CONTIGUITY:
            return Route((), f"strict_contiguity of `{query.name}` is judged against all events")
        if not query.partition:
            return Route((), f"`{query.name}` has no partition key, such as `[id]`")
        makers = [maker for maker in queries if maker.into is not None and maker.into in query.types]
        if makers:
            return Route((), f"`{query.name}` reads what `{makers[0].name}` makes")
    shared = [name for name in queries[0].partition if all(name in query.partition for query in queries)]
    key = tuple(name for name in shared if _hashes_like_equality(columns.field(name).type))
    if shared and not key:
        return Route((), f"the key column `{shared[0]}` is of a type that cannot be hashed")
    return Route(key) if key else Route((), "the queries have no partition key in common")


def into_buckets(events: Numbered, route: Route, buckets: int) -> GroupedData:
    """The events grouped by bucket.

    A NULL key is in no partition: such an event matches nothing, is counted in no window and breaks no contiguity
    (semantics §3), so it stays behind.
    """
    if not route.key:
        return events.frame.groupBy()
    for name in route.key:
        events = events.where(events.column(name).isNotNull())
    hashed = functions.hash(*(_hashable(events, name) for name in route.key))
    return events.frame.groupBy(functions.pmod(hashed, functions.lit(buckets)).alias("bucket"))


def _hashes_like_equality(kind: pa.DataType) -> bool:
    """Whether values that are equal to us have equal hashes in Spark (`_hashable` helps); not so for nested ones."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_time(kind))


def _hashable(events: Numbered, name: str) -> Column:
    """0.0 and -0.0 are equal but have other bits. A NaN key is in no partition, so its bucket does not matter."""
    column = events.column(name)
    if pa.types.is_floating(events.type(name)):
        return functions.when(column == 0, functions.lit(0.0)).otherwise(column.cast("double"))
    return column

"""Types that queries name and that no event on Spark has, from what the tasks of a run met.

Tasks meet only the events that queries can use, so a type that none of them met is looked for once in all events: one
more pass over one column, and only where something is wrong. What types there are is told from the first rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions

from kleene.errors import NoSuchEvents
from kleene.queries.unseen import unseen_types

if TYPE_CHECKING:
    from kleene.spark.batch import Prepared

# So many rows are looked at for the types that there are.
_FIRST = 10_000


def unseen_on_spark(prepared: Prepared, met: Mapping[int, Collection[str]]) -> list[NoSuchEvents]:
    """Warnings of types that no event has, query by query.

    met   by the number of a query, the types of events that its tasks met
    """
    schema, streams = prepared.schema, known_streams(prepared)
    absent = {
        name
        for number, query in enumerate(prepared.bound)
        for name in query.types
        if name not in met.get(number, ()) and name not in streams
    }
    if not absent or schema.constant_type is not None:
        return []
    types = prepared.events.column(schema.type).cast("string")
    names = sorted(absent)
    looked = [functions.max(types == name) for name in names]
    rows, *present = prepared.events.frame.agg(functions.count(functions.lit(1)), *looked).first() or (0,)
    if not rows or all(present):
        return []
    first = prepared.events.frame.select(types.alias("type")).limit(_FIRST).distinct().collect()
    seen = {row["type"] for row in first if row["type"] is not None}
    seen |= {name for query in prepared.bound for name in query.types if name not in absent}
    seen |= {name for name, there in zip(names, present, strict=True) if there}
    return [warning for query in prepared.queries for warning in unseen_types(query, schema, seen, streams)]


def known_streams(prepared: Prepared) -> set[str]:
    """The streams that are given, and those that queries make: of these there may be no event."""
    return {*prepared.streams, *(name for query in prepared.queries for name in query.tree.makes)}

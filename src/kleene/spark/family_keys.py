"""A key by which the events of queries that feed each other can be divided, though it has other names in each of them.

Each query has ways to be divided: a column for each type that it reads. They fit when a type has one column in all
queries, and when what a query makes has its own key in the column by which another reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.pattern.expressions import Attribute
from kleene.pattern.query import BoundQuery
from kleene.queries.any_query import AnyBoundQuery
from kleene.spark.eql_queries import eql_type_keys
from kleene.spark.links import hashes_like_equality, linking_columns
from kleene.spark.stream_queries import TypeKeys, type_keys

# So many combinations are tried.
_MOST = 4096


def family_keys(family: Sequence[AnyBoundQuery], columns: pa.Schema) -> dict[str, str]:
    """The column of each type of the input; empty where there is no such key."""
    ways = [list(_ways(query, columns)) for query in family]
    streams = {name for query in family for name in query.makes}
    tries = [0]

    def fitting(number: int, chosen: list[TypeKeys]) -> list[TypeKeys] | None:
        if number == len(family):
            return chosen
        for way in ways[number]:
            tries[0] += 1
            if tries[0] > _MOST:
                return None
            if _fit([*chosen, way], streams):
                choice = fitting(number + 1, [*chosen, way])
                if choice is not None:
                    return choice
        return None

    chosen = fitting(0, [])
    if chosen is None:
        return {}
    keys = {kind: name for way in chosen for kind, name in way.columns.items() if kind not in streams}
    kinds = {columns.field(name).type for name in keys.values()}
    return keys if len(kinds) == 1 else {}


def _fit(chosen: Sequence[TypeKeys], streams: set[str]) -> bool:
    """Whether all agree on the column of each type, and read what others make by its key."""
    by_type: dict[str, str] = {}
    for way in chosen:
        for kind, name in way.columns.items():
            if by_type.setdefault(kind, name) != name:
                return False
    makers = [(name, handed) for way in chosen for name, handed in way.handed_on.items() if name in streams]
    return all(name not in by_type or by_type[name] in handed for name, handed in makers)


def _ways(query: AnyBoundQuery, columns: pa.Schema) -> Iterator[TypeKeys]:
    if isinstance(query, BoundStreamQuery):
        yield from type_keys(query, columns)
        return
    if isinstance(query, BoundEqlQuery):
        yield from eql_type_keys(query, columns)
        return
    # Where events of any type matter, the key of some types does not divide them.
    if query.counts_events or query.strategy.is_contiguous:
        return
    for name in query.partition:
        if name in columns.names and hashes_like_equality(columns.field(name).type):
            yield TypeKeys(dict.fromkeys(query.types, name), _handed_on(query, dict.fromkeys(query.types, name)))
    linked = linking_columns(query, columns)
    if linked:
        yield TypeKeys(linked, _handed_on(query, linked))


def _handed_on(query: BoundQuery, by_type: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The columns of composite events that have the key: what is returned of it, and in timeouts the partition."""
    handed_on: dict[str, frozenset[str]] = {}
    if query.timeouts is not None:
        handed_on[query.timeouts] = frozenset(query.partition) & frozenset(by_type.values())
    if query.into is not None:
        types = {component.variable: component.types for component in query.components}
        returned = {
            column.name
            for column in query.returns or ()
            if isinstance(column.value, Attribute)
            and all(by_type.get(kind) == column.value.attribute for kind in types.get(column.value.variable, ()))
        }
        handed_on[query.into] = frozenset(returned) & handed_on.get(query.into, frozenset(returned))
    return handed_on

"""Queries in EQL on Spark: where their events go."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.optimize.detections.linking import AliasKeys, linked
from kleene.pattern.expressions import Attribute
from kleene.spark.stream_queries import TypeKeys, hash_alike


def eql_type_keys(query: BoundEqlQuery, columns: pa.Schema) -> Iterator[TypeKeys]:
    """The ways to divide the events of a query by key."""
    for way in linked(query):
        by_type = _by_type(way)
        if by_type is not None and hash_alike(by_type, columns):
            returned = query.returns or ()
            handed_on = frozenset(
                column.name
                for column in returned
                if isinstance(column.value, Attribute) and (column.value.variable, column.value.attribute) in way.key
            )
            yield TypeKeys(by_type, dict.fromkeys(query.makes, handed_on))


def _by_type(way: AliasKeys) -> dict[str, str] | None:
    """The column of each type; None where a type would have two."""
    by_type: dict[str, str] = {}
    for source, column in way.columns.items():
        for name in source.component.types:
            if by_type.setdefault(name, column) != column:
                return None
    return by_type

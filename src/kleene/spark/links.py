"""Columns by which the events of a query can be routed: equalities that link all of its components."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from kleene.pattern.links import columns_by_type
from kleene.pattern.query import BoundQuery


def linking_columns(query: BoundQuery, columns: pa.Schema) -> Mapping[str, str]:
    """The column by which the events of each type can be routed; nothing when no equality links all components."""

    def comparable(left: str, right: str) -> bool:
        kinds = [columns.field(name).type for name in (left, right) if name in columns.names]
        return len(kinds) == 2 and kinds[0] == kinds[1] and hashes_like_equality(kinds[0])

    return columns_by_type(query, comparable)


def hashes_like_equality(kind: pa.DataType) -> bool:
    """Whether values that are equal to us have equal hashes in Spark (`division` helps); not so for nested ones."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_time(kind))

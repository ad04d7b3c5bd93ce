"""The types that the events of a table have, found without reading further than must be."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from kleene.frames.arrow import python_values

# Usually every type that a query names is among so many events.
_FIRST = 1 << 14


def types_among(column: pa.ChunkedArray, wanted: Collection[str]) -> set[str]:
    """The types in a column of types: those of the first rows where all wanted ones are there, otherwise of all rows.

    >>> sorted(types_among(pa.chunked_array([["A", "B", None]]), ["C"]))
    ['A', 'B']
    """
    types = _distinct(column.slice(0, _FIRST))
    if len(column) > _FIRST and not types.issuperset(wanted):
        types |= _distinct(column.slice(_FIRST))
    return types


def _distinct(column: pa.ChunkedArray) -> set[str]:
    values = column.unique()
    names = values.dictionary.take(values.indices.drop_null()) if pa.types.is_dictionary(values.type) else values
    return {str(name) for name in python_values(pa.chunked_array([names])) if name is not None}

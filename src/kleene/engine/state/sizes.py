"""How much memory rows take: as they are stored now, and as these rows would take alone.

The second is what budgets count. It depends on the values alone: not on how rows came, were cut or were put together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.frames.numbers import to_arrow, to_numpy
from kleene.kernels.expression import Ints

# Where a string begins.
_OFFSET = 4
# Pieces of a column.
_MANY = 64


def held_bytes(tables: Sequence[pa.Table]) -> int:
    """The bytes of tables; a dictionary that several chunks share counts once."""
    total = 0
    dictionaries: dict[tuple[int, ...], int] = {}
    for table in tables:
        if not table.num_rows:
            continue
        if any(column.num_chunks > _MANY for column in table.columns):
            # To look at each piece takes longer than to match its rows.
            total += int(table.get_total_buffer_size())
            continue
        for column in table.columns:
            if not pa.types.is_dictionary(column.type):
                total += int(column.nbytes)
                continue
            for chunk in column.chunks:
                values = chunk.dictionary
                where = tuple(buffer.address for buffer in values.buffers() if buffer is not None)
                dictionaries[where] = int(values.nbytes)
                total += int(chunk.indices.nbytes)
    return total + sum(dictionaries.values())


def row_bytes(table: pa.Table, rows: Ints | None = None) -> int:
    """The bytes of some rows of a table, whatever other rows it has; None: of all rows."""
    some = None if rows is None or len(rows) == table.num_rows else rows
    return sum(_column_bytes(column, some) for column in table.columns)


def _column_bytes(column: pa.ChunkedArray, rows: Ints | None) -> int:
    kind = column.type
    number = len(column) if rows is None else len(rows)
    if pa.types.is_null(kind):
        return 0
    if pa.types.is_dictionary(kind):
        used = _used(column if rows is None else column.take(to_arrow(rows)))
        return number * int(kind.index_type.bit_width) // 8 + _column_bytes(pa.chunked_array([used]), None)
    if _has_lengths(kind):
        lengths = to_numpy(pc.fill_null(pc.binary_length(column), 0))
        return number * _OFFSET + int(np.sum(lengths if rows is None else lengths[rows], dtype=np.int64))
    try:
        return number * -(-int(kind.bit_width) // 8)
    except ValueError:
        some = column if rows is None else column.take(to_arrow(rows))
        return _nested_bytes(some)


def _used(column: pa.ChunkedArray) -> pa.Array:
    """The values of a dictionary that occur."""
    chunks = column.unify_dictionaries().chunks
    if not chunks:
        return pa.array([], column.type.value_type)
    places = pc.unique(pa.chunked_array([chunk.indices for chunk in chunks]))
    return chunks[0].dictionary.take(places.drop_null())


def _nested_bytes(column: pa.ChunkedArray) -> int:
    """The bytes of lists and structs, by their parts."""
    kind = column.type
    if pa.types.is_struct(kind):
        fields = column.flatten()
        return sum(_column_bytes(field, None) for field in fields)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        members = pa.chunked_array([chunk.flatten() for chunk in column.chunks], kind.value_type)
        return len(column) * _OFFSET + _column_bytes(members, None)
    return sum(len(repr(value)) for value in column.to_pylist())


def _has_lengths(kind: pa.DataType) -> bool:
    known = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_kind(kind) for is_kind in known)

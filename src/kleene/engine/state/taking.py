"""Values of a column taken by row number, without copies of whole columns and without Python objects.

Values of fixed width are gathered from the column's own buffer, codes of dictionaries likewise; the rest is Arrow's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.state.memory import empty
from kleene.frames.numbers import bitmap, memory, to_arrow
from kleene.kernels.gathering import Rows, gather, gather_bits

_WIDTHS: dict[int, type[np.unsignedinteger[Any]]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return (column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column).combine_chunks()


def taken(values: pa.Array, rows: Rows, *, absent: bool) -> pa.Array:
    """The values at these rows; NULL where there is none (a negative number), if any is absent."""
    kind = values.type
    if not len(rows):
        return pa.nulls(0, kind)
    if pa.types.is_dictionary(kind):
        codes = taken(values.indices, rows, absent=absent)
        return pa.DictionaryArray.from_arrays(codes, values.dictionary, ordered=kind.ordered, safe=False)
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(kind, len(rows), [*_validity(values, rows, absent), _bits(values, 1, rows)[0]])
    if not _has_fixed_width(kind):
        return values.take(places_of_rows(rows, absent=absent))
    width = _WIDTHS[kind.bit_width]
    source = memory(values.buffers()[1], width)[values.offset : values.offset + len(values)]
    out = empty(len(rows), width)
    gather(source, rows, out)
    return pa.Array.from_buffers(kind, len(rows), [*_validity(values, rows, absent), pa.py_buffer(out)])


def taken_from_pieces(column: pa.ChunkedArray, rows: Rows, *, absent: bool) -> pa.Array:
    """As `taken`, each value from its piece of the column: Arrow would put the whole column together for that."""
    rows = rows if absent else np.maximum(rows, 0)
    order = np.argsort(rows, kind="stable")
    in_order = rows[order]
    firsts = np.cumsum([0, *map(len, column.chunks)])
    cuts = np.searchsorted(in_order, firsts).tolist()
    pieces = [pa.nulls(cuts[0], column.type)] if cuts[0] else []
    for piece, first, begin, end in zip(column.chunks, firsts.tolist(), cuts, cuts[1:], strict=False):
        if begin < end:
            pieces.append(taken(piece, in_order[begin:end] - first, absent=False))
    back = np.empty_like(order, dtype=np.int32)
    back[order] = np.arange(len(order))
    return taken(in_one_piece(pa.chunked_array(pieces, column.type)), back, absent=False)


def places_of_rows(rows: Rows, *, absent: bool) -> pa.Array:
    """Row numbers for Arrow; NULL where there is none, if any is absent."""
    return to_arrow(rows, rows < 0) if absent else to_arrow(np.maximum(rows, 0))


def _has_fixed_width(kind: pa.DataType) -> bool:
    return pa.types.is_primitive(kind) and kind.bit_width in _WIDTHS


def _validity(values: pa.Array, rows: Rows, absent: bool) -> list[Any]:
    """Which values are there, as the bitmap that Arrow wants; None when all are."""
    if values.null_count:
        bits, clear = _bits(values, 0, rows)
        return [bits if clear else None]
    return [bitmap(rows >= 0) if absent else None]


def _bits(values: pa.Array, buffer: int, rows: Rows) -> tuple[pa.Buffer, int]:
    out = np.empty((len(rows) + 7) // 8, np.uint8)
    clear = gather_bits(memory(values.buffers()[buffer], np.uint8), values.offset, rows, out)
    return pa.py_buffer(out), clear

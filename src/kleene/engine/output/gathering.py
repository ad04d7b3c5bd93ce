"""Columns of results: a table's values taken by row number, without copies of whole columns and without Python objects.

Values of fixed width are gathered from the column's own buffer, codes of dictionaries likewise; the rest is Arrow's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.state.memory import empty
from kleene.frames.numbers import bitmap, memory, to_arrow
from kleene.frames.results import times
from kleene.kernels.gathering import Rows, gather, gather_bits

_WIDTHS: dict[int, type[np.unsignedinteger[Any]]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table, each in one piece."""

    table: pa.Table
    _whole: dict[str, pa.Array] = field(default_factory=dict)

    def whole(self, name: str) -> pa.Array:
        if name not in self._whole:
            self._whole[name] = _in_one_piece(self.table.column(name))
        return self._whole[name]

    def take(self, name: str, rows: Rows, *, absent: bool) -> pa.Array:
        """A column's values at these rows; NULL where there is none (a negative number), if any is absent."""
        column = self.table.column(name)
        if column.num_chunks > 1 and 4 * len(rows) < len(column):
            return _in_one_piece(column.take(_places(rows, absent)))
        return _taken(self.whole(name), rows, absent)

    def events(self, rows: Rows, kind: pa.DataType) -> pa.Array:
        """A struct of the named columns for each row, NULL where there is none."""
        absent = bool(len(rows)) and bool(rows.min() < 0)
        children = [self.take(member.name, rows, absent=False) for member in kind]
        validity = bitmap(rows >= 0) if absent else None
        return pa.Array.from_buffers(kind, len(rows), [validity], children=children)

    def event_lists(self, rows: Rows, offsets: npt.NDArray[np.int32], kind: pa.DataType) -> pa.Array:
        """A list of such structs for each match, whose rows begin at its offset."""
        values = self.events(rows, kind.value_type)
        return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets)], children=[values])


def taken_rows(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """The table's rows at these numbers, all of which there are."""
    columns, places = Columns(table), rows.astype(np.int32)
    arrays = [columns.take(name, places, absent=False) for name in table.column_names]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def constant(text: str, length: int) -> pa.Array:
    """A column with the same value in every row."""
    data = text.encode()
    offsets = (
        np.arange(0, len(data) * length + 1, len(data), dtype=np.int32) if data else np.zeros(length + 1, np.int32)
    )
    return pa.StringArray.from_buffers(length, pa.py_buffer(offsets), pa.py_buffer(data * length))


def time_column(steps: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Whole steps as values of the time column."""
    if not pa.types.is_null(kind) and kind.bit_width == 64:
        return pa.Array.from_buffers(kind, len(steps), [None, pa.py_buffer(steps)])
    return times(steps, kind)


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return (column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column).combine_chunks()


def _taken(values: pa.Array, rows: Rows, absent: bool) -> pa.Array:
    kind = values.type
    if not len(rows):
        return pa.nulls(0, kind)
    if pa.types.is_dictionary(kind):
        codes = _taken(values.indices, rows, absent)
        return pa.DictionaryArray.from_arrays(codes, values.dictionary, ordered=kind.ordered, safe=False)
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(kind, len(rows), [*_validity(values, rows, absent), _bits(values, 1, rows)[0]])
    if not _has_fixed_width(kind):
        return values.take(_places(rows, absent))
    width = _WIDTHS[kind.bit_width]
    source = memory(values.buffers()[1], width)[values.offset : values.offset + len(values)]
    out = empty(len(rows), width)
    gather(source, rows, out)
    return pa.Array.from_buffers(kind, len(rows), [*_validity(values, rows, absent), pa.py_buffer(out)])


def _places(rows: Rows, absent: bool) -> pa.Array:
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

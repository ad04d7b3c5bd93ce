"""Values of a column taken by row number, without copies of whole columns and without Python objects.

Values of fixed width are gathered from the column's own buffer, codes of dictionaries likewise; the rest is Arrow's.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.state.memory import empty
from kleene.frames.numbers import bitmap, memory, to_arrow
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows, gather, gather_bits

T = TypeVar("T", bound=np.generic)
_WIDTHS: dict[int, type[np.unsignedinteger[Any]]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}

# Results of so many bytes would only push out what caches hold.
_BEYOND_CACHES = 1 << 20


def in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return (column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column).combine_chunks()


class Source:
    """A column that values are taken from, again and again: what there is to know of its memory is looked up once."""

    def __init__(self, values: pa.Array) -> None:
        self.kind, self.values = values.type, values
        # The codes of a dictionary's values, which are taken in their place.
        self.codes = Source(values.indices) if pa.types.is_dictionary(self.kind) else None
        self._has_null = bool(values.null_count)
        # [row], as numbers of this width; None: values have no fixed one.
        self._width = None if self.codes else _WIDTHS.get(_bit_width(self.kind))
        self._numbers: npt.NDArray[Any] | None = None
        if self._width is not None and len(values):
            self._numbers = memory(values.buffers()[1], self._width)[values.offset : values.offset + len(values)]

    @property
    def is_plain(self) -> bool:
        """Whether it has 64-bit integers or times, and no NULL."""
        return not self._has_null and (pa.types.is_int64(self.kind) or pa.types.is_timestamp(self.kind))

    def integers(self, rows: Rows) -> Ints:
        """The values at these rows, all of which there are, of a column that is plain."""
        return self._gathered(rows, np.uint64).view(np.int64)

    def places(self, rows: Rows) -> Ints | None:
        """The places in the dictionary at these rows, all of which there are; None where there may be NULL."""
        if self.codes is None or self._has_null or not pa.types.is_int32(self.codes.kind):
            return None
        return self.codes._gathered(rows, np.uint32).astype(np.int64)

    def _gathered(self, rows: Rows, width: type[T], *, is_result: bool = False) -> npt.NDArray[T]:
        out = empty(len(rows), width)
        if len(rows):
            assert self._numbers is not None, "rows of a column of fixed width"
            gather(self._numbers, rows, out, is_result and out.nbytes >= _BEYOND_CACHES)
        return out

    def taken(self, rows: Rows, *, absent: bool) -> pa.Array:
        """The values at these rows; NULL where there is none (a negative number), if any is absent."""
        kind, values = self.kind, self.values
        if not len(rows):
            return pa.nulls(0, kind)
        if self.codes is not None:
            codes = self.codes.taken(rows, absent=absent)
            return pa.DictionaryArray.from_arrays(codes, values.dictionary, ordered=kind.ordered, safe=False)
        if self._numbers is not None and self._width is not None:
            out = pa.py_buffer(self._gathered(rows, self._width, is_result=True))
            return pa.Array.from_buffers(kind, len(rows), [self._validity(rows, absent), out])
        if pa.types.is_boolean(kind):
            return pa.Array.from_buffers(kind, len(rows), [self._validity(rows, absent), _bits(values, 1, rows)[0]])
        return values.take(places_of_rows(rows, absent=absent))

    def _validity(self, rows: Rows, absent: bool) -> Any:
        """Which values are there, as the bitmap that Arrow wants; None when all are."""
        if self._has_null:
            bits, clear = _bits(self.values, 0, rows)
            return bits if clear else None
        return bitmap(rows >= 0) if absent else None


def taken(values: pa.Array, rows: Rows, *, absent: bool) -> pa.Array:
    """The values at these rows; NULL where there is none (a negative number), if any is absent."""
    return Source(values).taken(rows, absent=absent)


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


def _bit_width(kind: pa.DataType) -> int:
    return kind.bit_width if pa.types.is_primitive(kind) else 0


def _bits(values: pa.Array, buffer: int, rows: Rows) -> tuple[pa.Buffer, int]:
    out = np.empty((len(rows) + 7) // 8, np.uint8)
    clear = gather_bits(memory(values.buffers()[buffer], np.uint8), values.offset, rows, out)
    return pa.py_buffer(out), clear

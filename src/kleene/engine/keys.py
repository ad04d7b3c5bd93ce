"""Partition keys as dense codes: equal keys have equal codes, a NULL or NaN key has −1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

# An integer column whose values span at most this many times its length is coded by subtraction.
_DENSE = 4


def key_codes(table: pa.Table, names: tuple[str, ...], rows: Ints) -> tuple[Ints, int]:
    """The code of each row's key, and how many codes there are."""
    codes, number = np.zeros(len(rows), np.int64), 1
    missing = np.zeros(len(rows), np.bool_)
    for name in names:
        column, size = _column_codes(table.column(name), rows)
        missing |= column < 0
        codes = codes * size + column
        number *= size
        if number > max(_DENSE * len(rows), 1 << 16):
            codes, number = _densely(codes)
    codes[missing] = -1
    return codes, max(number, 1)


def _column_codes(column: pa.ChunkedArray, rows: Ints) -> tuple[Ints, int]:
    kind = column.type
    if pa.types.is_integer(kind) and column.null_count == 0 and not pa.types.is_uint64(kind):
        values = column.to_numpy()[rows].astype(np.int64, copy=False)
        if not len(values):
            return values, 1
        low, high = int(values.min()), int(values.max())
        if high - low < max(_DENSE * len(values), 1 << 16):
            return values - low, high - low + 1
    taken = column.take(pa.array(rows)) if len(rows) < len(column) else column
    if pa.types.is_floating(kind):
        taken = pc.if_else(pc.is_nan(taken), None, pc.add(taken, 0.0))
    encoded = taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1)
    return np.ascontiguousarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64), max(1, len(encoded.dictionary))


def _densely(codes: Ints) -> tuple[Ints, int]:
    unique, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64), len(unique)

"""Numbers between Arrow and NumPy, by their buffers.

pyarrow's own `to_numpy` and `pa.array` import pandas where it is installed, which takes longer than a first match.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Flags = npt.NDArray[np.bool_]


def to_numpy(column: pa.Array | pa.ChunkedArray, null: float = 0) -> npt.NDArray[Any]:
    """Integers, reals or flags, and `null` where there is none; read-only.

    >>> to_numpy(pa.chunked_array([[1, None], [3]]), -1)
    array([ 1, -1,  3])
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_values(chunk, null) for chunk in chunks]
    numbers = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, column.type.to_pandas_dtype()), *parts])
    numbers.flags.writeable = False
    return numbers


def to_arrow(values: npt.NDArray[Any], missing: Flags | None = None) -> pa.Array:
    """Integers, reals or flags, NULL where one is missing; not copied.

    >>> to_arrow(np.array([True, False]), np.array([False, True])).to_pylist()
    [True, None]
    """
    kind = pa.from_numpy_dtype(values.dtype)
    data = bitmap(values) if pa.types.is_boolean(kind) else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [None if missing is None else bitmap(~missing), data])


def memory(buffer: pa.Buffer, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values in a buffer; always read-only, so that kernels are compiled for one kind of array."""
    # A buffer of another library may have bytes after its last value.
    values = np.frombuffer(buffer, kind, buffer.size // np.dtype(kind).itemsize)
    values.flags.writeable = False
    return values


def missing_in(chunk: pa.Array) -> Flags:
    """[row]: whether it is NULL, in an array that has some."""
    return ~_flags(chunk.buffers()[0], chunk)


def bitmap(flags: Flags) -> pa.Buffer:
    """Flags as Arrow has them."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _values(chunk: pa.Array, null: float) -> npt.NDArray[Any]:
    kind: type[np.generic] = chunk.type.to_pandas_dtype()
    if not len(chunk):
        return np.zeros(0, kind)
    there, data = chunk.buffers()
    if pa.types.is_boolean(chunk.type):
        values: npt.NDArray[Any] = _flags(data, chunk)
    else:
        values = memory(data, kind)[chunk.offset : chunk.offset + len(chunk)]
    return np.where(_flags(there, chunk), values, kind(null)) if chunk.null_count else values


def _flags(bits: pa.Buffer, chunk: pa.Array) -> Flags:
    begin = chunk.offset % 8
    packed = memory(bits, np.uint8)[chunk.offset // 8 :][: (begin + len(chunk) + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[begin : begin + len(chunk)].view(np.bool_)

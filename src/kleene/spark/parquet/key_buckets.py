"""The bucket of each event by the hash of its key, where tasks read the events themselves.

All events of a run get their buckets here, or all get them from Spark, so the two hashes need not agree. Values that
are equal have the same hash, in every process; keys of one route have the same type.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.frames.arrow import as_integers
from kleene.frames.numbers import to_numpy
from kleene.kernels.identity import mixed

Hashes = npt.NDArray[np.uint64]

# Odd, so that no power of it is zero.
_BASE = np.uint64(0x9E3779B97F4A7C15)


def buckets_of(key: Sequence[pa.Array], buckets: int) -> npt.NDArray[np.int32]:
    """The bucket of each row; where a part of its key is NULL, some bucket."""
    total = np.zeros(len(key[0]), np.uint64)
    for column in key:
        total = mixed(total * _BASE + _hashes(column))
    return (total % np.uint64(buckets)).astype(np.int32)


def _hashes(column: pa.Array) -> Hashes:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _text_hashes(column)
    if pa.types.is_decimal128(kind):
        halves = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
        return mixed(halves[::2].copy()) + halves[1::2]
    if pa.types.is_floating(kind):
        # 0.0 and -0.0 are equal but have other bits. A NaN key is in no partition, so its bucket does not matter.
        reals = to_numpy(column.cast(pa.float64()))
        return np.where(reals == 0, 0.0, reals).view(np.uint64)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return to_numpy(as_integers(column)).view(np.uint64)


def _text_hashes(column: pa.Array) -> Hashes:
    """A polynomial of each text's bytes: its bytes by the powers of a base, added up by running sums."""
    if not len(column):
        return np.zeros(0, np.uint64)
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    first, last = int(bounds[0]), int(bounds[-1])
    letters = np.frombuffer(data, np.uint8)[first:last] if last > first else np.zeros(0, np.uint8)
    bounds, lengths = bounds - first, np.diff(bounds)
    places = np.arange(last - first) - np.repeat(bounds[:-1], lengths)
    powers = np.full(int(lengths.max(initial=0)) + 1, _BASE, np.uint64)
    powers[0] = 1
    sums = np.zeros(last - first + 1, np.uint64)
    np.cumsum((letters.astype(np.uint64) + np.uint64(1)) * np.cumprod(powers)[places], out=sums[1:])
    return sums[bounds[1:]] - sums[bounds[:-1]]

"""Match ids, as `testing.identity` defines them, computed by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.row_types import row_types
from kleene.frames.arrow import as_integers, nanoseconds_a_step, python_values
from kleene.frames.identity import BOOL, FLOAT, INT, LANES, NULL, bytes_hash, value_hash
from kleene.kernels.identity import fold_column, match_digits, mixed, number_equals
from kleene.pattern.query import BoundQuery

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


def event_hashes(query: BoundQuery, table: pa.Table) -> Hashes:
    """The hash of each row: its content in the columns that the query reads or returns, and its number among equals."""
    content = np.zeros(table.num_rows, np.uint64)
    distinct, codes = row_types(table, query.schema)
    names = query.columns_read if query.columns_read is not None else table.column_names
    for name in sorted(set(names)):
        has = np.array([_has(query, kind, name) for kind in distinct], np.bool_)[codes]
        values = column_hashes(table.column(name)) if name in table.column_names else _constant(NULL, table.num_rows)
        fold_column(content, np.uint64(bytes_hash(name.encode())), values, has)
    return number_equals(content)


def _has(query: BoundQuery, kind: str | None, attribute: str) -> bool:
    attributes = None if kind is None else query.schema.attributes_of(kind)
    return attributes is None or attribute in attributes


def _constant(value: int, length: int) -> Hashes:
    return mixed(np.full(length, value, np.uint64))


def column_hashes(column: pa.ChunkedArray) -> Hashes:
    """The hash of each value of a column."""
    kind = column.type
    step = nanoseconds_a_step(kind)
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        hashes = _string_hashes(column)
    elif pa.types.is_boolean(kind):
        hashes = mixed(_filled(column.cast(pa.uint8())).astype(np.uint64) + np.uint64(BOOL))
    elif step is not None:
        hashes = mixed(_filled(as_integers(column)).astype(np.uint64) * np.uint64(step) ^ np.uint64(INT))
    elif pa.types.is_integer(kind):
        hashes = mixed(_filled(column).astype(np.int64).view(np.uint64) ^ np.uint64(INT))
    elif pa.types.is_float64(kind) or pa.types.is_float32(kind):
        hashes = _real_hashes(_filled(column).astype(np.float64))
    else:
        return np.array([value_hash(value) for value in python_values(column)], np.uint64)
    if column.null_count:
        hashes[np.asarray(pc.is_null(column).to_numpy(), np.bool_)] = _constant(NULL, 1)[0]
    return hashes


def _filled(column: pa.ChunkedArray) -> npt.NDArray[np.generic]:
    whole = pc.fill_null(column, 0) if column.null_count else column
    return np.asarray(whole.to_numpy())


def _string_hashes(column: pa.ChunkedArray) -> Hashes:
    whole = column.combine_chunks()
    encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    table = np.array([value_hash(value) for value in encoded.dictionary.to_pylist()] or [0], np.uint64)
    places = np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), np.int64)
    return table[places]


def _real_hashes(values: npt.NDArray[np.float64]) -> Hashes:
    bits = np.where(np.isnan(values), np.float64("nan"), values).view(np.uint64) ^ np.uint64(FLOAT)
    with np.errstate(invalid="ignore"):
        whole = (np.abs(values) < 2.0**63) & (np.trunc(values) == values)
        integers = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64) ^ np.uint64(INT)
    return mixed(np.where(whole, integers, bits))


def match_id_column(query: BoundQuery, matches: Ints, events: Hashes, places: Sequence[int]) -> pa.Array:
    """The ids of matches given as [match, variable] numbers of hashed events."""
    seeds = np.array([bytes_hash(query.digest) ^ lane for lane in LANES], np.uint64)
    digits = np.empty((len(matches), 32), np.uint8)
    # A last place closes the fold for variables that this alternative does not have.
    padded = np.concatenate([matches, np.full((len(matches), 1), -1, np.int64)], axis=1)
    match_digits(padded, events, seeds, np.array([*places, len(query.positives)], np.int64), digits)
    offsets = pa.py_buffer(np.arange(0, 32 * len(matches) + 1, 32, dtype=np.int32))
    return pa.StringArray.from_buffers(len(matches), offsets, pa.py_buffer(digits))

"""Match ids, as `reference.identity` defines them, computed by column."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.intake.row_types import row_types
from kleene.engine.output.gathering import even_offsets
from kleene.engine.output.matches import Matches
from kleene.engine.output.selected import Selected
from kleene.engine.state.distinct import distinct_between
from kleene.engine.state.event_rows import AnyRows, EventRows
from kleene.engine.state.memory import empty
from kleene.frames.arrow import as_integers, nanoseconds_a_step, python_values
from kleene.frames.identity import BOOL, FLOAT, INT, LANES, NULL, bytes_hash, value_hash
from kleene.frames.numbers import memory, to_numpy
from kleene.kernels.identity import (
    fold_codes,
    fold_column,
    fold_ints,
    fold_lists,
    fold_singles,
    hexadecimal,
    ids_of_singles,
    mixed,
    number_equals,
)
from kleene.kernels.scanning import STRICT, how_ends_follow
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import EVENT_HASH, IDENTITY, Schema

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
# A dictionary of no more strings has its hashes remembered.
_FEW_TEXTS = 256


def event_hashes(query: BoundQuery, table: AnyRows, steps: Ints) -> Hashes:
    """The hash of each row: its content in the columns that the query reads or returns, and its number among equals.

    A composite event is known by its match id alone. A table for many queries of one template brings the hashes, since
    there the same event stands several times.

    steps   [row], rows in canonical order: equal events are simultaneous
    """
    if EVENT_HASH in table.column_names:
        return to_numpy(table.column(EVENT_HASH)).astype(np.uint64)
    content = np.zeros(table.num_rows, np.uint64)
    for name in sorted(query.columns_compared(table.column_names)):
        name_hash = np.uint64(_text_hash(name))
        has = None if query.schema.all_have(name) else _having(query.schema, name, table)
        if has is None and isinstance(table, EventRows) and _fold_taken(content, name_hash, table, name):
            continue
        column = table.column(name) if name in table.column_names else pa.chunked_array([pa.nulls(len(content))])
        if has is not None:
            fold_column(content, name_hash, column_hashes(column), has)
        elif not _fold_plain(content, name_hash, column):
            fold_column(content, name_hash, column_hashes(column), np.ones(len(content), np.bool_))
    if IDENTITY in table.column_names:
        composite = to_numpy(pc.is_valid(table.column(IDENTITY)))
        identities = table.column(IDENTITY).drop_null().to_pylist()
        content[composite] = np.array([bytes_hash(identity.encode()) for identity in identities], np.uint64)
    return number_equals(content, steps)


def _having(schema: Schema, name: str, table: AnyRows) -> npt.NDArray[np.bool_] | None:
    """[row]: whether its type has an attribute; None where all have it."""
    types = row_types(table, schema)
    has = types.which(lambda kind: schema.has(kind, name))
    return None if has.all() else has[types.codes]


# Names of columns and types come again with every run.
_text_hash = lru_cache(maxsize=1024)(value_hash)


def _hashes_of(dictionary: pa.Array) -> Hashes:
    """The hash of each value of a dictionary of strings."""
    few = len(dictionary) <= _FEW_TEXTS
    return np.array([(_text_hash if few else value_hash)(text) for text in dictionary.to_pylist()] or [0], np.uint64)


def _fold_taken(content: Hashes, name_hash: np.uint64, rows: EventRows, name: str) -> bool:
    """Fold a column of 64-bit integers, times or codes that has no NULL; False when it is another one."""
    if name not in rows.column_names:
        return False
    integers = rows.integers(name)
    if integers is not None:
        step = nanoseconds_a_step(rows.schema.field(name).type) or 1
        fold_ints(content, name_hash, _read_only(integers), np.uint64(step), np.uint64(INT))
        return True
    texts = rows.texts(name)
    if texts is None or not _is_plain(rows.schema.field(name).type):
        return False
    codes, dictionary = texts
    fold_codes(content, name_hash, _read_only(codes), _hashes_of(dictionary))
    return True


def _read_only(values: Ints) -> Ints:
    """As Arrow's own arrays are, for which kernels are compiled."""
    shown = values.view()
    shown.flags.writeable = False
    return shown


def _fold_plain(content: Hashes, name: np.uint64, column: pa.ChunkedArray) -> bool:
    """Fold a column of integers, times or codes that has no NULL, chunk by chunk; False when it is another one."""
    step = nanoseconds_a_step(column.type) or 1
    if column.null_count or not _is_plain(column.type):
        return False
    begin = 0
    for chunk in filter(len, column.chunks):
        part = content[begin : begin + len(chunk)]
        begin += len(chunk)
        if pa.types.is_dictionary(chunk.type):
            codes = _read_only(to_numpy(chunk.indices).astype(np.int64, copy=False))
            fold_codes(part, name, codes, _hashes_of(chunk.dictionary))
        else:
            width = np.dtype(f"{'u' if pa.types.is_unsigned_integer(chunk.type) else 'i'}{chunk.type.bit_width // 8}")
            values = memory(chunk.buffers()[1], width)[chunk.offset : chunk.offset + len(chunk)]
            values = _read_only(values.astype(np.int64, copy=False))
            fold_ints(part, name, values, np.uint64(step), np.uint64(INT))
    return True


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values are integers, or codes of strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return bool(pa.types.is_integer(kind)) or nanoseconds_a_step(kind) is not None


def used_hashes(query: BoundQuery, table: EventRows, steps: Ints, matches: Matches) -> Hashes:
    """The hashes of at least the events in matches, and of those simultaneous with them, which may be their equals."""
    size = table.num_rows
    if 2 * matches.number >= size:
        return event_hashes(query, table, steps)
    references = matches.references
    if how_ends_follow(steps) == STRICT:
        wanted = distinct_between(references, 0, size - 1)
    else:
        used = distinct_between(steps[references], int(steps[0]), int(steps[-1]))
        first, last = np.searchsorted(steps, used), np.searchsorted(steps, used, side="right")
        sizes = last - first
        wanted = np.repeat(last - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
    # Those of other events are never read.
    hashes = empty(size, np.uint64)
    hashes[wanted] = event_hashes(query, table.take(wanted), steps[wanted])
    return hashes


def match_ids(query: BoundQuery, selected: Selected, hashes: Hashes, digests: Hashes | None = None) -> pa.Array:
    """The ids of matches, given the hashes of their events, and those of their queries where these are several."""
    if digests is None and selected.columns is not None:
        digits = empty((selected.size, 4), np.uint64)
        ids_of_singles(begun_folds(query.digest, 1)[:, 0], *selected.columns, hashes, digits)
        return _texts(digits)
    folds = begun_folds(query.digest, selected.size) if digests is None else folds_of_queries(digests)
    for place, component in enumerate(query.positives, 1):
        if component.kind is ComponentKind.SINGLE:
            fold_singles(folds, place, selected.singles[component.variable], hashes)
        else:
            fold_lists(folds, place, *selected.lists[component.variable], hashes)
    return ids_of(folds)


def begun_folds(digest: bytes, size: int) -> Hashes:
    """[lane, match]: what the ids of a query's matches are folded from."""
    folds = empty((2, size), np.uint64)
    folds[:] = np.array([[bytes_hash(digest) ^ lane] for lane in LANES], np.uint64)
    return folds


def folds_of_queries(digests: Hashes) -> Hashes:
    """[lane, match]: the same, where each match has a query of its own, given the hashes that identify these."""
    return np.array(LANES, np.uint64)[:, None] ^ digests[None, :]


def ids_of(folds: Hashes) -> pa.Array:
    """The ids of matches as texts."""
    size = folds.shape[1]
    digits = empty((size, 4), np.uint64)
    hexadecimal(folds, digits)
    return _texts(digits)


def _texts(digits: Hashes) -> pa.Array:
    size = len(digits)
    return pa.StringArray.from_buffers(size, even_offsets(32, size), pa.py_buffer(digits))


def _constant(value: int, length: int) -> Hashes:
    return mixed(np.full(length, value, np.uint64))


def column_hashes(column: pa.ChunkedArray) -> Hashes:
    """The hash of each value of a column."""
    kind = column.type
    step = nanoseconds_a_step(kind)
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        hashes = _string_hashes(column)
    elif pa.types.is_boolean(kind):
        hashes = mixed(to_numpy(column.cast(pa.uint8())).astype(np.uint64) + np.uint64(BOOL))
    elif step is not None:
        hashes = mixed(to_numpy(as_integers(column)).astype(np.uint64) * np.uint64(step) ^ np.uint64(INT))
    elif pa.types.is_integer(kind):
        hashes = mixed(to_numpy(column).astype(np.int64).view(np.uint64) ^ np.uint64(INT))
    elif pa.types.is_float64(kind) or pa.types.is_float32(kind):
        hashes = _real_hashes(to_numpy(column).astype(np.float64))
    else:
        return np.array([value_hash(value) for value in python_values(column)], np.uint64)
    if column.null_count:
        hashes[to_numpy(pc.is_null(column))] = _constant(NULL, 1)[0]
    return hashes


def _string_hashes(column: pa.ChunkedArray) -> Hashes:
    whole = column.combine_chunks()
    encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    hashes: Hashes = _hashes_of(encoded.dictionary)[to_numpy(encoded.indices.cast(pa.int64()))]
    return hashes


def _real_hashes(values: npt.NDArray[np.float64]) -> Hashes:
    bits = np.where(np.isnan(values), np.float64("nan"), values).view(np.uint64) ^ np.uint64(FLOAT)
    with np.errstate(invalid="ignore"):
        whole = (np.abs(values) < 2.0**63) & (np.trunc(values) == values)
        integers = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64) ^ np.uint64(INT)
    return mixed(np.where(whole, integers, bits))

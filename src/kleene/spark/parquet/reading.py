"""What a task does that reads Parquet files: reads its row groups, drops what no query can use, packs the rest by slot.

It holds a batch of a row group, and the events that wait to be packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kleene.errors import FileChanged
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.spark.conditions import columns_in
from kleene.spark.packing import pack, packed_groups
from kleene.spark.parquet.footers import digest_of, footer_of
from kleene.spark.parquet.key_buckets import buckets_of
from kleene.spark.parquet.tested_by_arrow import row_mask

# Rows that are read at a time.
_ROWS = 1 << 17

Plan = Mapping[str, Any]


def reader(plan: Plan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that reads and packs the row groups of a task, which is given its number."""

    def on_numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        events = (batch for number in numbers for batch in read_task(plan, number))
        return pack(events, packed_groups(plan["packing"]))

    return on_numbers


def read_task(plan: Plan, number: int) -> Iterator[pa.RecordBatch]:
    """The events of a task, each with its slot in every group of queries; NULL: not in this one."""
    kinds = pa.ipc.read_schema(pa.BufferReader(plan["columns"]))
    for place, groups in groupby(plan["tasks"][number], key=itemgetter(0)):
        file = plan["files"][place]
        try:
            yield from _read_file(plan, file, [group for _, group in groups], kinds)
        except (OSError, pa.ArrowException) as problem:
            raise FileChanged.of(file["path"], f"cannot be read: {problem}").with_traceback(None) from None


def _read_file(plan: Plan, file: Mapping[str, Any], groups: list[int], kinds: pa.Schema) -> Iterator[pa.RecordBatch]:
    path = file["path"]
    if not Path(path).exists():
        raise FileChanged.of(path, "is not there any more")
    if digest_of(footer_of(path)) != file["digest"]:
        raise FileChanged.of(path, "is not as it was")
    tested = set() if plan["keep"] is None else set(columns_in(plan["keep"]))
    strings = [theirs for ours, theirs in file["columns"].items() if ours in tested and _is_string(kinds, ours)]
    names = list(file["columns"].values())
    # Times are whole microseconds to Spark.
    with pq.ParquetFile(path, read_dictionary=strings, coerce_int96_timestamp_unit="us", pre_buffer=False) as opened:
        if not names:
            # No column of the file is asked for, and only its rows count.
            for group in groups:
                yield from _routed(plan, _Rows(None, opened.metadata.row_group(group).num_rows, file, kinds))
            return
        for batch in opened.iter_batches(_ROWS, row_groups=groups, columns=names, use_threads=False):
            yield from _routed(plan, _Rows(batch, batch.num_rows, file, kinds))


def _is_string(kinds: pa.Schema, name: str) -> bool:
    return bool(pa.types.is_string(kinds.field(name).type))


class _Rows:
    """Rows of a file under our names and types."""

    def __init__(self, batch: pa.RecordBatch | None, number: int, file: Mapping[str, Any], kinds: pa.Schema) -> None:
        self._batch, self.number, self._file, self._kinds = batch, number, file, kinds

    def column(self, name: str) -> pa.Array:
        """The values of a column; strings perhaps as a dictionary."""
        kind, theirs = self._kinds.field(name).type, self._file["columns"].get(name)
        if theirs is None or self._batch is None:
            return pa.repeat(pa.scalar(self._file["constants"].get(name), kind), self.number)
        values = self._batch.column(theirs)
        if pa.types.is_string(kind) and isinstance(values, pa.DictionaryArray):
            return values
        return values if values.type == kind else values.cast(kind)

    def plain(self, name: str) -> pa.Array:
        """The values of a column as its type says."""
        values, kind = self.column(name), self._kinds.field(name).type
        return values if values.type == kind else values.cast(kind)

    def where(self, mask: pa.Array) -> _Rows:
        kept = pc.sum(mask).as_py() or 0
        batch = None if self._batch is None else self._batch.filter(mask)
        return _Rows(batch, kept, self._file, self._kinds)


def _routed(plan: Plan, rows: _Rows) -> Iterator[pa.RecordBatch]:
    if plan["keep"] is not None:
        rows = rows.where(row_mask(plan["keep"], rows.column, rows.number))
    if not rows.number:
        return
    routed = plan["routed"]
    slots = [_slots(group, rows, plan["type"], alone=len(routed) == 1) for group in routed]
    names = [*plan["needed"], *(f"g{number}" for number in range(len(routed)))]
    yield pa.RecordBatch.from_arrays([*map(rows.plain, plan["needed"]), *slots], names=names)


def _slots(group: Mapping[str, Any], rows: _Rows, type_column: str, *, alone: bool) -> pa.Array:
    """The slot of each row within its group; NULL where the group does not want it."""
    slots, missing = _by_key(group["keys"], group["slots"], rows, type_column)
    if group["wanted"] is not None and not alone:
        mask = row_mask(group["wanted"], rows.column, rows.number)
        missing = missing | ~to_numpy(mask)
    return to_arrow(slots, missing if missing.any() else None)


def _by_key(
    keys: Sequence[tuple[str | None, Sequence[str]]], slots: int, rows: _Rows, type_column: str
) -> tuple[Any, Any]:
    nowhere = np.zeros(rows.number, np.bool_)
    if not keys:
        return np.zeros(rows.number, np.int32), nowhere
    if keys[0][0] is None:
        return buckets_of([rows.plain(name) for name in keys[0][1]], slots), nowhere
    # Each type by its own column; an event of another type goes nowhere.
    chosen, missing = np.zeros(rows.number, np.int32), ~nowhere
    types = rows.plain(type_column)
    for kind, names in keys:
        own = to_numpy(pc.equal(types, kind)).astype(np.bool_)
        chosen[own] = buckets_of([rows.plain(name) for name in names], slots)[own]
        missing &= ~own
    return chosen, missing

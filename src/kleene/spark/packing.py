"""Events packed by slot: a few rows of Arrow bytes cross the exchange, not millions of rows.

A slot is a bucket of keys, a slice of time, or everything. Each packed row holds events of one slot in time order, and
says when the first of them ends; a task that takes the packed rows of a slot by that time knows how far time has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.frames.arrow import as_integers
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.kernels.timeline import shifted

Ints = npt.NDArray[np.int64]

PACKED = pa.schema([("slot", pa.int32()), ("begin", pa.int64()), ("events", pa.binary())])
PACKED_DDL = "slot int, begin bigint, events binary"
# On a stream, with what Spark calls the slot.
PLACED = PACKED.append(pa.field("place", pa.int32()))
PLACED_DDL = f"{PACKED_DDL}, place int"
# So many rows, or bytes, are sorted and packed at a time.
_MOST_ROWS, _MOST_BYTES = 1 << 18, 64 << 20
# A packed row holds no more events, so that a slot with many can be read in the order of time.
_MOST_PACKED = 1 << 15


@dataclass(frozen=True)
class PackedGroup:
    """Queries that are given the same events, divided in the same way.

    base     the number of its first slot
    places   the columns that its events keep, by their places in the input
    routed   the place of the column that says where an event goes; NULL: not to this group
    time     the place, among those, of the column that says when an event ends; `start` of the one when it starts
    slices   how time is cut; None when the routed column is the slot
    buckets  where the routed column is a hash: how many buckets there are
    """

    base: int
    places: tuple[int, ...]
    routed: int
    time: int
    start: int | None = None
    slices: Slices | None = None
    buckets: int | None = None


@dataclass(frozen=True)
class Slices:
    """Time cut into slices, each with what lies around it.

    bounds   where slices begin, in steps of the time column, but for the first
    before   how long before its slice an event must not start, and `after` how long after it it must not end;
             where neighbours are counted, these are numbers of slices
    """

    bounds: tuple[int, ...]
    before: int
    after: int
    neighbours: bool = False

    @property
    def number(self) -> int:
        return len(self.bounds) + 1

    def owner(self, times: Ints) -> Ints:
        """The slice that a time lies in."""
        return np.searchsorted(np.array(self.bounds, np.int64), times, side="right")

    def spread(self, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """The events, by place, and the slices that need them: one row for each pair."""
        # One that needs nothing from around is where it ends, however long it lasts.
        if self.neighbours or self.before == self.after == 0:
            own = self.owner(end)
            first, last = np.maximum(own - self.after, 0), np.minimum(own + self.before, self.number - 1)
        else:
            bounds = np.array(self.bounds, np.int64)
            first = np.searchsorted(bounds, shifted(end, -self.after), side="left")
            last = np.searchsorted(bounds, shifted(start, self.before), side="right")
        copies = np.maximum(last - first + 1, 0)
        events = np.repeat(np.arange(len(end)), copies)
        within = np.arange(len(events)) - np.repeat(np.cumsum(copies) - copies, copies)
        return events, np.repeat(first, copies) + within


# Packing -----------------------------------------------------------------------------------------------------------


def pack(
    batches: Iterator[pa.RecordBatch],
    groups: Sequence[PackedGroup],
    aside: Callable[[pa.Table], Iterator[pa.RecordBatch]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Events as packed rows; `aside` packs the rows that are no events."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _MOST_ROWS or size >= _MOST_BYTES:
            yield from _packed(pa.Table.from_batches(waiting), groups, aside)
            waiting, rows, size = [], 0, 0
    if rows:
        yield from _packed(pa.Table.from_batches(waiting), groups, aside)


def packer(groups: Sequence[Mapping[str, Any]]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that packs events for these groups, which are given as plain data."""
    own = packed_groups(groups)

    def on_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack(batches, own)

    return on_events


def packed_groups(described: Sequence[Mapping[str, Any]]) -> list[PackedGroup]:
    """Groups that were given as plain data."""
    return [PackedGroup(**{**plain, "slices": plain["slices"] and Slices(**plain["slices"])}) for plain in described]


def _packed(
    table: pa.Table, groups: Sequence[PackedGroup], aside: Callable[[pa.Table], Iterator[pa.RecordBatch]] | None
) -> Iterator[pa.RecordBatch]:
    whole = table.combine_chunks()
    for group in groups:
        events, slots, times = _routed(whole, group)
        if len(slots):
            yield written(events, slots, times)
    if aside is not None:
        yield from aside(whole)


def _routed(table: pa.Table, group: PackedGroup) -> tuple[pa.Table, Ints, Ints]:
    """The events of a group by slot and time, with both."""
    routed = table.column(group.routed)
    events = table.select(list(group.places))
    if routed.null_count:
        here = routed.is_valid()
        events, routed = events.filter(here), routed.filter(here)
    times = _integers(events.column(group.time))
    slots = to_numpy(routed).astype(np.int64)
    if group.buckets is not None:
        slots = np.mod(slots, group.buckets)
    rows = None
    if group.slices is not None:
        start = times if group.start is None else _integers(events.column(group.start))
        rows, slots = group.slices.spread(start, times)
        times = times[rows]
    order = np.lexsort((times, slots))
    taken = events.take(to_arrow(order if rows is None else rows[order]))
    return taken, slots[order] + group.base, times[order]


def written(events: pa.Table, slots: Ints, times: Ints) -> pa.RecordBatch:
    """One packed row a slot, or several in the order of time."""
    changes = np.flatnonzero(slots[1:] != slots[:-1]) + 1
    first = np.concatenate(([0], changes))
    length = np.diff(np.concatenate((first, [len(slots)])))
    pieces = -(-length // _MOST_PACKED)
    begin = np.repeat(first, pieces) + _MOST_PACKED * (
        np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    )
    size = np.minimum(np.repeat(first + length, pieces) - begin, _MOST_PACKED)
    tables = [events.slice(at, count) for at, count in zip(begin.tolist(), size.tolist(), strict=True)]
    # Measured first: a buffer that grows is copied as often as it doubles.
    measured = pa.MockOutputStream()
    ends = [0]
    for table in tables:
        _write(table, measured)
        ends.append(measured.size())
    data = pa.allocate_buffer(ends[-1])
    with pa.FixedSizeBufferWriter(data) as sink:
        for table in tables:
            _write(table, sink)
    offsets = pa.py_buffer(np.array(ends, np.int32))
    blobs = pa.BinaryArray.from_buffers(pa.binary(), len(begin), [None, offsets, data])
    return pa.RecordBatch.from_arrays(
        [to_arrow(slots[begin].astype(np.int32)), to_arrow(times[begin]), blobs], schema=PACKED
    )


def to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    _write(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def _integers(column: pa.ChunkedArray) -> Ints:
    return to_numpy(as_integers(column)).astype(np.int64, copy=False)


# Unpacking ---------------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    slot: int
    begin: int
    events: pa.Table


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Piece]]]:
    """The slots among packed rows, which must stand by slot and then by time; each with its pieces."""
    return groupby(_pieces(batches), key=lambda piece: piece.slot)


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    for batch in batches:
        slots, begins, blobs = batch.columns
        for row in range(batch.num_rows):
            yield Piece(slots[row].as_py(), begins[row].as_py(), from_bytes(blobs[row].as_buffer()))


def from_bytes(blob: pa.Buffer) -> pa.Table:
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()

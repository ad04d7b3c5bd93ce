"""The stateful operator, which Spark calls with the packed events of a slot, or when the slot's timer fires.

A worker process keeps the slots that it has worked on alive. Slots move between workers, and an attempt may fail after
it has worked, so a live slot counts only when the page that Spark keeps knows its last update by its random name.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kleene.errors import BadSnapshot, KleeneError
from kleene.spark.packing import from_bytes
from kleene.spark.slot import OutputChunk, SlotGroup, TaskContext, named
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.live_slot import LiveSlot, new_page
from kleene.spark.streaming.segments import SlotCheckpoint, not_kept
from kleene.spark.streaming.spreading import places
from kleene.spark.worker import ENVELOPE, TaskSpec, portions, without_repeated_warnings, work_from

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

# Larger values are kept in pieces: each passes through memory of the JVM and of the worker as a whole.
_PIECE = 8 << 20


def called(
    task_spec: TaskSpec, slot: int, rows: Iterator[pd.DataFrame], watermark: int, store: InSpark
) -> Iterator[Any]:
    """The outputs of a slot for its rows and the time that has passed, as envelopes.

    watermark   in Spark's milliseconds
    """
    blobs = [pa.py_buffer(blob) for frame in rows for blob in frame["events"]]
    try:
        with without_repeated_warnings():
            if slot == task_spec["bad_slot"]:
                if not blobs:  # It keeps nothing, and is never woken.
                    raise _other_slots(slot + 1)
                chunks: Iterable[OutputChunk] = map(_bad, map(from_bytes, blobs))
            else:
                chunks = _updated(task_spec, slot, blobs, watermark, store)
            for chunk in chunks:
                yield from _envelopes(chunk, slot)
    except KleeneError as error:
        # Spark passes on the text of the traceback, in which our own frames would only hide the message.
        raise error.with_traceback(None) from None


def _updated(
    task_spec: TaskSpec, slot: int, blobs: list[pa.Buffer], watermark: int, store: InSpark
) -> Iterator[OutputChunk]:
    work, pace = _work(_SpecKey(task_spec))
    part = work.part_of(slot)
    live = _LIVE.slot(work, part, slot, store)
    tables = [named(from_bytes(blob), part, work.columns) for blob in blobs]
    rows = pa.concat_tables(tables) if tables else None
    yield from live.update(rows, pace.watermark(watermark), store, pace)
    _LIVE.remember(live, slot)


def _bad(rows: pa.Table) -> OutputChunk:
    """Rows that are no events, of no query."""
    return OutputChunk(-1, "bad", rows.num_rows, rows)


def _envelopes(chunk: OutputChunk, slot: int) -> Iterator[pd.DataFrame]:
    import pandas as pd

    for number, rows in portions(chunk):
        values = (chunk.query, chunk.kind, slot if chunk.kind == "metrics" else number, rows)
        yield pd.DataFrame({name: [value] for name, value in zip(ENVELOPE.names, values, strict=True)})


class InSpark:
    """`Kept` in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle, page: ValueState, parts: MapState, fired: int | None) -> None:
        self._handle, self._page, self._parts, self._fired = handle, page, parts, fired

    def page(self) -> bytes | None:
        row = self._page.get()
        return None if row is None else bytes(row[0])

    def set_page(self, data: bytes) -> None:
        self._page.update((data,))

    def get(self, kind: str, number: int) -> bytes | None:
        pieces: list[bytes] = []
        while not pieces or len(pieces[-1]) == _PIECE:
            row = self._parts.getValue((kind, number, len(pieces)))
            if row is None:
                break
            pieces.append(bytes(row[0]))
        return b"".join(pieces) if pieces else None

    def put(self, kind: str, number: int, data: bytes) -> None:
        for piece in range(_pieces(len(data))):
            self._parts.updateValue((kind, number, piece), (data[piece * _PIECE : (piece + 1) * _PIECE],))

    def remove(self, kind: str, number: int, size: int) -> None:
        for piece in range(_pieces(size)):
            self._parts.removeKey((kind, number, piece))

    def all(self, kind: str) -> Iterator[tuple[int, bytes]]:
        # By their keys: an iterator over values has many of them in memory at a time, in the JVM and here.
        for number in sorted({number for name, number, _ in self._parts.keys() if name == kind}):  # noqa: SIM118
            data = self.get(kind, number)
            if data is None:
                raise not_kept(f"{kind} {number} has no beginning")
            yield number, data

    def set_timer(self, milliseconds: int) -> None:
        self._handle.registerTimer(milliseconds)

    def drop_timer(self, milliseconds: int) -> None:
        # Spark drops the one that has just fired itself.
        if milliseconds != self._fired:
            self._handle.deleteTimer(milliseconds)


def _pieces(size: int) -> int:
    return -(-size // _PIECE)


# Live slots --------------------------------------------------------------------------------------------------------


class _Live:
    """The slots that this process has worked on, the latest last."""

    def __init__(self) -> None:
        self._slots: OrderedDict[tuple[str, int], LiveSlot] = OrderedDict()

    def slot(self, work: TaskContext, part: SlotGroup, slot: int, store: InSpark) -> LiveSlot:
        """The slot as Spark keeps it; it is not here until it is remembered, for what fails half-way stands nowhere."""
        serves = serves_of(work, part)
        data = store.page()
        if data is None:
            return LiveSlot.opened(work, part, new_page(serves), store)
        page = SlotCheckpoint.from_bytes(data, serves)
        live = self._slots.pop((page.life, slot), None)
        if live is not None and live.work is work and live.catch_up(page, store):
            return live
        return LiveSlot.opened(work, part, page, store)

    def remember(self, live: LiveSlot, slot: int) -> None:
        self._slots[live.page.life, slot] = live
        while len(self._slots) > 1 and self.nbytes > live.work.settings.stream.cache_bytes:
            self._slots.popitem(last=False)

    @property
    def nbytes(self) -> int:
        return sum(live.nbytes for live in self._slots.values())


_LIVE = _Live()


def serves_of(work: TaskContext, part: SlotGroup) -> dict[str, Any]:
    """The queries and buckets that the state of a slot serves: it must not be used with others."""
    queries = [f"{work.bound[number].name} {work.bound[number].digest.hex()[:16]}" for number in part.queries]
    return {"queries": queries, "buckets": part.slots}


class _SpecKey:
    """A task spec as a key of a cache: the tasks of a stream are given the same spec again and again."""

    def __init__(self, task_spec: TaskSpec) -> None:
        self.task_spec = task_spec
        self._text = json.dumps(task_spec, default=repr, sort_keys=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SpecKey) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def slot_at(place: int, slots: int) -> int:
    """The slot that Spark calls by this number; `BadSnapshot` where there are not as many slots."""
    slot = _slots_by_place(slots).get(place)
    if slot is None:
        raise _other_slots(slots)
    return slot


def _other_slots(slots: int) -> BadSnapshot:
    return BadSnapshot(
        f"this stream's state was kept for other slots than the {slots} of now: its buckets or queries have changed",
        hint="go on with what it was begun with, or begin with a new checkpoint",
    )


@lru_cache(maxsize=32)
def _slots_by_place(slots: int) -> dict[int, int]:
    return {place: slot for slot, place in enumerate(places(slots))}


@lru_cache(maxsize=1024)
def _work(key: _SpecKey) -> tuple[TaskContext, Pace]:
    return work_from(key.task_spec), Pace(*key.task_spec["pace"])

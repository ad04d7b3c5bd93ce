"""The stateful operator, which Spark calls with the packed events of a slot, or when the slot's timer fires.

A worker process keeps the slots that it has worked on alive (`live_slots`). Where another worker of the machine has the
slot, it is handed what came, and this one tells Spark what to keep.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kleene.errors import BadSnapshot, KleeneError
from kleene.spark.packing import from_bytes
from kleene.spark.slot import OutputChunk
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.live_slots import Arrived, LiveSlots, StreamTask, serves_of
from kleene.spark.streaming.segments import SlotCheckpoint, not_kept
from kleene.spark.streaming.slot_messages import Envelope, read_updated
from kleene.spark.streaming.slot_owner import hand_over, slots_folder
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
                envelopes: Iterable[Envelope] = _bad_rows(blobs)
            else:
                envelopes = _updated(task_spec, Arrived(slot, blobs, watermark, _stream()), store)
            yield from map(_frame, envelopes)
    except KleeneError as error:
        # Spark passes on the text of the traceback, in which our own frames would only hide the message.
        raise error.with_traceback(None) from None


def _updated(task_spec: TaskSpec, arrived: Arrived, store: InSpark) -> list[Envelope]:
    """The outputs of a slot, which this worker or another one has, or which is made anew."""
    task = _task(_SpecKey(task_spec))
    data = store.page()
    page = None
    if data is not None:
        page = SlotCheckpoint.from_bytes(data, serves_of(task.work, task.work.part_of(arrived.slot)))
    folder = slots_folder(task_spec.get("slots_folder"))
    if folder is not None and page is not None and not _LIVE.knows(page, arrived.slot):
        envelopes = _handed_over(folder, task, arrived, page, store)
        if envelopes is not None:
            return envelopes
    return _LIVE.update(task, arrived, page, store, folder)


def _handed_over(
    folder: Path, task: StreamTask, arrived: Arrived, page: SlotCheckpoint, store: InSpark
) -> list[Envelope] | None:
    """The outputs of a slot that another worker has, as Spark keeps it; None when none has it so."""
    asked = {
        "update": page.name,
        "task": task.digest,
        "watermark": arrived.watermark,
        "stream": arrived.stream,
        "slots": len(_LIVE),
    }
    name = page.life, arrived.slot
    answer = hand_over(folder, name, asked, arrived.blobs)
    if answer is None or answer[0]["answer"] != "updated":
        return None
    writes, envelopes = read_updated(*answer)
    writes.apply(store)
    # What may be here is older.
    _LIVE.forget(name)
    return envelopes


def _bad_rows(blobs: Iterable[pa.Buffer]) -> Iterator[Envelope]:
    """Rows that are no events, of no query."""
    for rows in map(from_bytes, blobs):
        for number, data in portions(OutputChunk(-1, "bad", rows.num_rows, rows)):
            yield -1, "bad", number, data


def _frame(envelope: Envelope) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: [value] for name, value in zip(ENVELOPE.names, envelope, strict=True)})


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


# The stream that a task is of ---------------------------------------------------------------------------------------

_LIVE = LiveSlots()


class _SpecKey:
    """A task spec as a key of a cache: the tasks of a stream are given the same spec again and again."""

    def __init__(self, task_spec: TaskSpec) -> None:
        self.task_spec = task_spec
        self._text = json.dumps(task_spec, default=repr, sort_keys=True)

    @property
    def digest(self) -> str:
        return sha256(self._text.encode()).hexdigest()

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
def _task(key: _SpecKey) -> StreamTask:
    return StreamTask(work_from(key.task_spec), Pace(*key.task_spec["pace"]), key.digest)


def _stream() -> str | None:
    """The id of the stream whose task this is, which stays when it is started again; None where Spark does not say."""
    from pyspark import TaskContext

    task = TaskContext.get()
    return None if task is None else task.getLocalProperty("sql.streaming.queryId")

"""The slots that a worker process keeps alive, for its own tasks and for those of the other workers of the machine.

Spark gives a task to any worker that is free. A slot stays with the worker that has it all the same: the worker of the
task hands it what came, and is told what it found and what Spark must keep. Slots change hands only where that helps:
a worker that is busy gives one away to another that has at least two fewer, so that each move makes them more equal.

A live slot counts only when the page that Spark keeps knows its last update by its random name: an attempt may fail
after it has worked.
"""

from __future__ import annotations

import gc
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any

import pyarrow as pa

from kleene.engine.state.memory import give_back
from kleene.spark.packing import from_bytes
from kleene.spark.slot import SlotGroup, TaskContext, named
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.live_slot import LiveSlot, new_page
from kleene.spark.streaming.segments import Kept, SlotCheckpoint
from kleene.spark.streaming.slot_messages import Envelope, Writes, updated_message
from kleene.spark.streaming.slot_owner import SlotName, SlotOwner
from kleene.spark.worker import portions, without_repeated_warnings

# So long a slot waits for its stream, which may have ended on another machine.
UNUSED_SECONDS = 900.0
UNKNOWN = {"answer": "unknown"}


@dataclass(frozen=True)
class StreamTask:
    """What tasks of a stream have in common; `digest` tells those of other queries or settings apart."""

    work: TaskContext
    pace: Pace
    digest: str


class Arrived:
    """What a call of Spark's brings to a slot: packed events, and how far time has come, in Spark's milliseconds."""

    def __init__(self, slot: int, blobs: Sequence[pa.Buffer], watermark: int, stream: str | None) -> None:
        self.slot, self.blobs, self.watermark, self.stream = slot, blobs, watermark, stream

    def rows(self, part: SlotGroup, work: TaskContext) -> pa.Table | None:
        """In one piece, as they are written and held: the buffers that they came in are let go."""
        tables = [from_bytes(blob) for blob in self.blobs]
        return named(pa.concat_tables(tables), part, work.columns).combine_chunks() if tables else None


@dataclass
class _Held:
    live: LiveSlot
    task: StreamTask
    stream: str | None
    used_at: float
    # Where other workers look for it; None: they do not.
    folder: Path | None


class LiveSlots:
    """The slots that this process has worked on, the latest last."""

    def __init__(self) -> None:
        self._slots: OrderedDict[SlotName, _Held] = OrderedDict()
        self._changing = RLock()
        # One slot at a time is worked on: others would only share the interpreter.
        self._working = Lock()
        # By the folder in which workers meet: streams of several drivers may have this worker.
        self._owners: dict[Path, SlotOwner] = {}
        # How often each stream has ended: what was begun before that is not remembered after it.
        self._endings: Counter[str | None] = Counter()

    # For a task of this worker

    def update(
        self, task: StreamTask, arrived: Arrived, page: SlotCheckpoint | None, store: Kept, folder: Path | None
    ) -> list[Envelope]:
        """The outputs of a slot that is to be worked on here; then it is kept.

        folder   where other workers look for it
        """
        with self._working:
            endings = self._endings[arrived.stream]
            part = task.work.part_of(arrived.slot)
            live = self.slot(task.work, part, arrived.slot, page, store)
            envelopes = _updated(live, task, arrived, store)
            self.remember(live, task, arrived, endings, folder)
            return envelopes

    def slot(self, work: TaskContext, part: SlotGroup, slot: int, page: SlotCheckpoint | None, store: Kept) -> LiveSlot:
        """The slot as Spark keeps it; it is not here until it is remembered, for what fails half-way stands nowhere."""
        if page is None:
            return LiveSlot.opened(work, part, new_page(serves_of(work, part)), store)
        began = time.monotonic()
        held = self._taken((page.life, slot))
        if held is not None and held.live.work is work:
            missed = held.live.page.name != page.name
            if held.live.catch_up(page, store):
                held.live.arrival = _arrival("caught_up", began) if missed else {}
                return held.live
        live = LiveSlot.opened(work, part, page, store)
        live.arrival = _arrival("made_anew", began)
        return live

    def remember(
        self, live: LiveSlot, task: StreamTask, arrived: Arrived, endings: int = 0, folder: Path | None = None
    ) -> None:
        with self._changing:
            if self._endings[arrived.stream] != endings:
                return
            name = live.page.life, arrived.slot
            self._slots[name] = _Held(live, task, arrived.stream, time.monotonic(), folder)
            self._slots.move_to_end(name)
            while len(self._slots) > 1 and self.nbytes > live.work.settings.stream.cache_bytes:
                self.forget(next(iter(self._slots)))
            if folder is not None:
                self._offer(folder, name)

    def knows(self, page: SlotCheckpoint, slot: int) -> bool:
        """Whether the slot is here as the page says."""
        held = self._slots.get((page.life, slot))
        return held is not None and held.live.page.name == page.name

    def _offer(self, folder: Path, name: SlotName) -> None:
        """Let other workers hand over what comes for a slot; where there are no such sockets, each makes it anew."""
        with suppress(OSError):
            if folder not in self._owners:
                self._owners[folder] = SlotOwner(folder, self)
            self._owners[folder].offer(name)

    # For tasks of other workers

    def update_for_other(
        self, asked: Mapping[str, Any], blobs: Sequence[pa.Buffer]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a worker that was given a task of a slot which is here."""
        name: SlotName = (asked["life"], asked["slot"])
        if not self._working.acquire(blocking=False):
            if len(self) >= asked["slots"] + 2:
                self.forget(name)
                return UNKNOWN, []
            self._working.acquire()
        try:
            endings = self._endings[asked["stream"]]
            held = self._taken(name)
            if held is None or held.task.digest != asked["task"] or held.live.page.name != asked["update"]:
                return UNKNOWN, []
            arrived = Arrived(name[1], blobs, asked["watermark"], asked["stream"])
            writes = Writes()
            held.live.arrival = {"handed_over": 1}
            with without_repeated_warnings():
                envelopes = _updated(held.live, held.task, arrived, writes)
            self.remember(held.live, held.task, arrived, endings, held.folder)
            return updated_message(writes, envelopes)
        except Exception:
            # The other worker makes the slot anew, and meets what was wrong itself, where Spark hears of it.
            return UNKNOWN, []
        finally:
            self._working.release()

    # What is not needed any more

    def forget(self, name: SlotName) -> None:
        with self._changing:
            self._slots.pop(name, None)
            self._withdraw([name])

    def forget_stream(self, stream: str) -> None:
        """A stream has ended: nothing is left of it here."""
        with self._changing:
            self._endings[stream] += 1
            self._forget_where(lambda held: held.stream == stream)
        # Slots and their engines refer to each other, and what is freed is kept for a next table that may never come.
        gc.collect()
        give_back()

    def forget_unused(self) -> None:
        oldest = time.monotonic() - UNUSED_SECONDS
        with self._changing:
            self._forget_where(lambda held: held.used_at < oldest)

    def _forget_where(self, condition: Callable[[_Held], bool]) -> None:
        names = [name for name, held in self._slots.items() if condition(held)]
        for name in names:
            del self._slots[name]
        self._withdraw(names)

    def _withdraw(self, names: Sequence[SlotName]) -> None:
        used = {held.folder for held in self._slots.values()}
        for folder, owner in list(self._owners.items()):
            owner.withdraw(names)
            if folder not in used:
                owner.close()
                del self._owners[folder]

    def _taken(self, name: SlotName) -> _Held | None:
        with self._changing:
            return self._slots.pop(name, None)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        return sum(held.live.nbytes for held in self._slots.values())


def _updated(live: LiveSlot, task: StreamTask, arrived: Arrived, store: Kept) -> list[Envelope]:
    """The outputs of an update, whole before any leaves: a slot is not worked on while Spark takes its time."""
    chunks = live.update(arrived.rows(live.part, live.work), task.pace.watermark(arrived.watermark), store, task.pace)
    return [
        (chunk.query, chunk.kind, arrived.slot if chunk.kind == "metrics" else number, rows)
        for chunk in chunks
        for number, rows in portions(chunk)
    ]


def _arrival(how: str, began: float) -> dict[str, int]:
    return {how: 1, "catching_up_ms": round(1000 * (time.monotonic() - began))}


def serves_of(work: TaskContext, part: SlotGroup) -> dict[str, Any]:
    """The queries and buckets that the state of a slot serves: it must not be used with others."""
    queries = [f"{work.bound[number].name} {work.bound[number].digest.hex()[:16]}" for number in part.queries]
    return {"queries": queries, "buckets": part.slots}

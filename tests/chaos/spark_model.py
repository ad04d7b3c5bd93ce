"""A small model of Spark, of what it writes and when: the logs of a checkpoint, state by version, folders of results.

Kleene's own code runs over it as it runs over Spark. As in Spark, which files a batch takes is written down before the
batch is made, its state when its tasks are done, its results after that, and at last that it is done; what Spark writes
it moves into place and does not sync. A batch that was planned and is not done is made again from the state before it.
What cannot be read ends the stream: `Damaged`.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock
from zlib import crc32

import pandas as pd
import pyarrow as pa
from tests.chaos.disk import Disk, TaskLost
from tests.chaos.frames import Frame
from tests.chaos.job import Input, Job, Planned
from tests.spark.streaming.driving import Store, Watermark

from kleene.spark.packing import from_bytes, to_bytes
from kleene.spark.streaming import processor
from kleene.spark.streaming.live import Live, MicroBatch
from kleene.spark.streaming.live_slots import LiveSlots
from kleene.spark.streaming.spreading import places
from kleene.spark.streaming.stateful import SlotProcessor

# So often Spark tries a task, and so many versions of the state it keeps here.
_ATTEMPTS, _VERSIONS = 3, 3
_MOMENT = "2026-03-02T09:00:00Z"


class Damaged(Exception):
    """Spark finds in its checkpoint what it cannot go on with, and says so."""


class SparkStopped(Exception):
    """Spark cannot write to its checkpoint, or read it."""


class TaskFailed(SparkStopped):
    """A task lost its worker each time it was tried, and the stream ends with it."""


@contextmanager
def by_spark() -> Iterator[None]:
    """What the disk refuses Spark is an error of Spark's."""
    try:
        yield
    except OSError as problem:
        raise SparkStopped(str(problem)) from problem


# The stream ----------------------------------------------------------------------------------------------------------


class SimulatedBatch(MicroBatch):
    """What a batch made; its tasks run when it is first asked for."""

    def __init__(self, stream: SimulatedStream, made: Callable[[], list[tuple[int, str, int, bytes | None]]]) -> None:
        self._stream, self._made = stream, made
        self._prepared, self.life = stream.live._prepared, ""

    @property
    def _headers(self) -> list[tuple[int, str, int, bytes | None]]:
        if "_once" not in self.__dict__:
            self._once = self._made()
        return self._once

    def _rows(self, kind: str, query: int | None) -> Frame:
        tables = [
            from_bytes(pa.py_buffer(rows))
            for of, what, _, rows in self._headers
            if what == kind and query in (None, of) and rows is not None
        ]
        return Frame(pa.concat_tables(tables), self._stream.draw.randint(1, 3))

    def matches(self, name: str) -> Any:
        return self._rows("matches", self._place(name))

    def timeouts(self, name: str) -> Any:
        return self._rows("timeouts", self._place(name))

    @property
    def late(self) -> Any:
        return self._rows("late", None)

    @property
    def bad_rows(self) -> Any:
        return self._rows("bad", None)


class SimulatedLive(Live):
    """Queries on the model of a stream; the record of the checkpoint is Kleene's own."""

    def __init__(
        self,
        job: Job,
        inbox: Mapping[str, Input],
        plans: dict[int, Planned],
        disk: Disk,
        on_lost_task: Callable[[], None],
    ) -> None:
        self.on_lost_task = on_lost_task
        bound = tuple(job.work.bound[number] for number in range(len(job.work.queries)))
        self._settings = job.work.settings
        self._prepared: Any = SimpleNamespace(
            packed=SimpleNamespace(sparkSession=None),
            bound=bound,
            buckets=job.parts[0].slots,
            columns=job.work.columns,
            parts=job.parts,
            queries=job.work.queries,
        )
        self._job, self._inbox, self._plans, self._disk = job, inbox, plans, disk

    def _prepare(self, settings: object) -> Any:
        return self._prepared

    def unseen(self, types: object) -> list[Any]:
        return []

    def start(self, on_batch: Callable[[Any, int], None], *, checkpoint: str, **_: object) -> Any:
        self._recorded(checkpoint)
        folder = Path(checkpoint.removeprefix("file://"))
        return SimulatedStream(self, self._job, self._inbox, self._plans, self._disk, on_batch, folder)


@dataclass
class SimulatedStream:
    """A stream that makes a batch each time it is asked whether it is active."""

    live: SimulatedLive
    job: Job
    inbox: Mapping[str, Input]
    # As they were planned last, for who checks the results.
    plans: dict[int, Planned]
    disk: Disk
    on_batch: Callable[[Any, int], None]
    checkpoint: Path
    recentProgress: list[Any] = field(default_factory=list)  # noqa: N815 - Spark's name
    status: Mapping[str, bool] = field(default_factory=lambda: {"isTriggerActive": False})
    problem: Exception | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        self._workers = [LiveSlots(), LiveSlots()]
        self._stores: dict[int, _Slot] = {}
        with by_spark():
            for name in ("offsets", "commits", "sources/0", "state/0"):
                (self.checkpoint / name).mkdir(parents=True, exist_ok=True)
        offsets, commits = _numbers(self.checkpoint / "offsets"), _numbers(self.checkpoint / "commits")
        self._taken = [self._read(f"sources/0/{n}") for n in _numbers(self.checkpoint / "sources/0")]
        numbers = [entry["number"] for entry in self._taken]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers)) if numbers else []):
            raise Damaged("a source's log has a hole")
        self._done = -1 if not offsets else offsets[-1] - 1
        self._next: Mapping[str, int] | None = None
        self._watermark = self._last_watermark = 0
        self._source = -1
        if offsets:
            last = self._read(f"offsets/{offsets[-1]}")
            self._next, self._last_watermark = last, last["watermark"]
            self._source = self._before(offsets[-1])
            if commits and commits[-1] == offsets[-1]:
                self._watermark = self._read(f"commits/{commits[-1]}")["watermark"]
                self._source, self._done, self._next = last["source"], commits[-1], None

    def _before(self, batch: int) -> int:
        return -1 if batch == 0 else int(self._read(f"offsets/{batch - 1}")["source"])

    @property
    def draw(self) -> random.Random:
        return self.disk.draw

    # What a driver asks

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        if not self.ended:
            try:
                self.ended = not self._batch()
            except Exception as problem:
                self.ended, self.problem = True, problem
        return not self.ended

    def stop(self) -> None:
        self.ended = True

    def exception(self) -> Exception | None:
        return self.problem

    # A batch

    def _batch(self) -> bool:
        number = self._done + 1
        planned = self._next or self._plan(number)
        if planned is None:
            return False
        files = [name for n in range(self._source + 1, planned["source"] + 1) for name in self._log(n)]
        self.plans[number] = Planned(tuple(files), planned["watermark"])
        inputs = [self.inbox[name] for name in files]
        events = [event for one in inputs for event in one.events]
        bad = [line for one in inputs for line in one.bad]
        self._load(number)
        self.on_batch(SimulatedBatch(self, lambda: self._tasks(number, planned["watermark"], events, bad)), number)
        self._last_watermark = planned["watermark"]
        latest = max((event["ts"] for event in events), default=0)
        self._watermark = max(planned["watermark"], latest - self.job.delay)
        self._put(f"commits/{number}", {"watermark": self._watermark})
        self._purge(number)
        self._source, self._done, self._next = planned["source"], number, None
        progress = {"batchId": number, "timestamp": _MOMENT, "durationMs": {"addBatch": 1}, "sources": []}
        self.recentProgress.append(SimpleNamespace(json=json.dumps(progress)))
        return True

    def _purge(self, batch: int) -> None:
        """Of everything the last versions are kept; the log of a source says in each entry what came before."""
        last = {"offsets": batch, "commits": batch, "state/0": batch, "sources/0": self._source}
        with by_spark():
            for folder, newest in last.items():
                for old in _numbers(self.checkpoint / folder):
                    if old <= newest - _VERSIONS:
                        (self.checkpoint / folder / str(old)).unlink()

    def _log(self, number: int) -> list[str]:
        files = [entry["files"] for entry in self._taken if entry["number"] == number]
        if not files:
            raise Damaged("a source's log lacks what a batch takes")
        return list(files[0])

    @property
    def _logged(self) -> int:
        """The number of the last entry in the source's log."""
        return int(self._taken[-1]["number"]) if self._taken else -1

    def _plan(self, number: int) -> Mapping[str, int] | None:
        """The next batch: some of the files that are there by now, or time alone."""
        known = [] if not self._taken else [*self._taken[-1]["before"], *self._taken[-1]["files"]]
        new = [name for name in self.inbox if name not in set(known)]
        # A source's log may be ahead of the batches: a kill came between.
        if new and self._logged == self._source:
            entry = {"number": self._logged + 1, "files": new[: self.draw.randint(1, 3)], "before": known}
            self._put(f"sources/0/{entry['number']}", entry)
            self._taken.append(entry)
        source = self._logged
        if source == self._source and self._watermark <= self._last_watermark:
            return None
        planned = {"source": source, "watermark": self._watermark}
        self._put(f"offsets/{number}", planned)
        return planned

    # Tasks

    def _tasks(
        self, number: int, watermark: int, events: Sequence[Mapping[str, Any]], bad: Sequence[str]
    ) -> list[tuple[int, str, int, bytes | None]]:
        given = self.job.rows_by_slot(events, bad)
        made: list[tuple[int, str, int, bytes | None]] = []
        for slot in range(self.job.bad_slot + 1):
            store = self._stores.setdefault(slot, _Slot(self.disk))
            if slot in given or any(timer <= watermark for timer in store.timers):
                made += self._task(slot, store, given.get(slot), watermark)
        state = {str(slot): store.plain() for slot, store in self._stores.items()}
        self._put(f"state/0/{number + 1}", state)
        return made

    def _task(
        self, slot: int, store: _Slot, rows: pa.Table | None, watermark: int
    ) -> list[tuple[int, str, int, bytes | None]]:
        for _ in range(_ATTEMPTS):
            which = self.draw.randrange(len(self._workers))
            store.begin()
            try:
                made = self._attempt(self._workers[which], slot, store, rows, watermark)
            except TaskLost:
                self.live.on_lost_task()
                store.rollback()
                self._workers[which] = LiveSlots()
                continue
            store.commit()
            return made
        raise TaskFailed("a task failed too often")

    def _attempt(
        self, worker: LiveSlots, slot: int, store: _Slot, rows: pa.Table | None, watermark: int
    ) -> list[tuple[int, str, int, bytes | None]]:
        key, now = (places(self.job.bad_slot + 1)[slot],), Watermark(watermark)
        frames: list[pd.DataFrame] = []
        with mock.patch.object(processor, "_LIVE", worker):
            task: Any = SlotProcessor(self.job.told)
            task.init(store)
            if rows is not None:
                frames += task.handleInputRows(key, iter([_packed(rows, slot == self.job.bad_slot)]), now)
            for timer in sorted(timer for timer in store.timers if timer <= watermark):
                frames += task.handleExpiredTimer(key, now, Watermark(timer))
                store.timers.discard(timer)
        columns = ("query", "kind", "number", "rows")
        return [row for frame in frames for row in zip(*(frame[name] for name in columns), strict=True)]

    # The checkpoint

    def _load(self, version: int) -> None:
        if version == 0:
            self._stores = {}
            return
        kept = self._read(f"state/0/{version}")
        self._stores = {int(slot): _Slot.of(self.disk, plain) for slot, plain in kept.items()}

    def _read(self, name: str) -> dict[str, Any]:
        with by_spark():
            if not (self.checkpoint / name).exists():
                raise Damaged(f"there is no {name}")
            text = (self.checkpoint / name).read_bytes()
        said, _, checked = text.rpartition(b"\n")
        if not said or checked != f"{crc32(said):08x}".encode():
            raise Damaged(f"{name} cannot be read")
        return dict(json.loads(said))

    def _put(self, name: str, value: Mapping[str, Any]) -> None:
        """Spark's way: written aside, moved, not synced."""
        file = self.checkpoint / name
        said = json.dumps(value).encode()
        aside = file.with_name(f".{file.name}.tmp")
        with by_spark():
            aside.write_bytes(b"%s\n%08x" % (said, crc32(said)))
            os.replace(aside, file)


class _Slot(Store):
    """What Spark keeps of a slot; each call may be the last one of a task, or of everything."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk

    def called(self, what: str) -> None:
        if self._disk.step(what, self._disk.root / "store"):
            self._disk.die()

    def plain(self) -> dict[str, Any]:
        parts = [[*key, data.hex()] for key, data in self.parts.items()]
        return {"page": None if self.page is None else self.page.hex(), "parts": parts, "timers": sorted(self.timers)}

    @staticmethod
    def of(disk: Disk, plain: Mapping[str, Any]) -> _Slot:
        slot = _Slot(disk)
        slot.page = None if plain["page"] is None else bytes.fromhex(plain["page"])
        slot.parts = {(kind, number, piece): bytes.fromhex(data) for kind, number, piece, data in plain["parts"]}
        slot.timers = set(plain["timers"])
        return slot


def _packed(rows: pa.Table, bad: bool) -> pd.DataFrame:
    numbered = rows if bad else rows.rename_columns([f"c{place}" for place in range(rows.num_columns)])
    return pd.DataFrame({"slot": 0, "begin": 0, "events": [to_bytes(numbered)]})


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())

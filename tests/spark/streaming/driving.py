"""A slot of a stream as Spark drives it, without Spark: workers that come, fail and go, batch by batch.

`Store` is what Spark keeps of the slot, in dicts: what an attempt wrote is lost when it fails. Everything else is the
code that Spark calls.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow as pa
from tests.engine.agreement import content
from tests.engine.batches import events

from kleene.pattern import Query, Schema
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyQuery
from kleene.spark.packing import from_bytes, to_bytes
from kleene.spark.slot import SlotGroup, TaskContext
from kleene.spark.streaming import live_slot, processor
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.live_slot import LiveSlot
from kleene.spark.streaming.live_slots import LiveSlots, serves_of
from kleene.spark.streaming.segments import SlotCheckpoint
from kleene.spark.streaming.spreading import places
from kleene.spark.streaming.stateful import SlotProcessor
from kleene.spark.worker import task_spec, work_from

# What Spark calls the first of two slots.
KEY = (places(2)[0],)
OUTPUTS = ("matches", "timeouts", "compressed")
# Time after everything, in steps.
FAR = 1_000_000


# What Spark keeps --------------------------------------------------------------------------------------------------


class Gone(Exception):
    """The task is no more."""


class Store:
    """The state of one slot in Spark's store, and the handle by which a processor knows it."""

    def __init__(self) -> None:
        self.page: bytes | None = None
        self.parts: dict[tuple[str, int, int], bytes] = {}
        self.timers: set[int] = set()
        self._before: tuple[bytes | None, dict[tuple[str, int, int], bytes], set[int]] = None, {}, set()
        # Bytes that the attempt wrote, without the page; and after how many calls the task dies.
        self.wrote = 0
        self.lives: int | None = None

    # Transactions

    def begin(self, lives: int | None = None) -> None:
        self._before = self.page, dict(self.parts), set(self.timers)
        self.wrote, self.lives = 0, lives

    def commit(self) -> None:
        self._before = self.page, dict(self.parts), set(self.timers)

    def rollback(self) -> None:
        self.page, self.parts, self.timers = self._before

    # As Spark shows it

    def called(self, what: str) -> None:
        """A task asks for something: it reads, writes or removes a part of the state, or sets a timer."""
        if self.lives is not None:
            self.lives -= 1
            if self.lives < 0:
                raise Gone

    def getValueState(self, name: str, schema: object) -> _Value:  # noqa: N802
        return _Value(self)

    def getMapState(self, name: str, key: object, value: object) -> _Map:  # noqa: N802
        return _Map(self)

    def registerTimer(self, milliseconds: int) -> None:  # noqa: N802
        self.called("set timer")
        self.timers.add(milliseconds)

    def deleteTimer(self, milliseconds: int) -> None:  # noqa: N802
        self.called("drop timer")
        assert milliseconds in self.timers, "a slot knows its timers"
        self.timers.discard(milliseconds)

    @property
    def nbytes(self) -> int:
        """Without what is written once: the page, and what the columns mean."""
        return sum(len(data) for (kind, _, _), data in self.parts.items() if kind != live_slot.MEANING)

    @property
    def segments(self) -> list[int]:
        return sorted({number for kind, number, _ in self.parts if kind == live_slot.SEGMENT})


class _Value:
    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self) -> tuple[bytes] | None:
        self._store.called("get")
        return None if self._store.page is None else (self._store.page,)

    def update(self, value: tuple[bytes]) -> None:
        self._store.called("put")
        self._store.page = value[0]


class _Map:
    def __init__(self, store: Store) -> None:
        self._store = store

    def getValue(self, key: tuple[str, int, int]) -> tuple[bytes] | None:  # noqa: N802
        self._store.called("get")
        return (self._store.parts[key],) if key in self._store.parts else None

    def updateValue(self, key: tuple[str, int, int], value: tuple[bytes]) -> None:  # noqa: N802
        self._store.called("put")
        assert key not in self._store.parts, "nothing is written twice"
        self._store.parts[key] = value[0]
        if key[0] != live_slot.MEANING:
            self._store.wrote += len(value[0])

    def removeKey(self, key: tuple[str, int, int]) -> None:  # noqa: N802
        """What is not there may be removed: a live slot does not know what others have removed."""
        self._store.called("remove")
        self._store.parts.pop(key, None)

    def keys(self) -> Iterator[tuple[str, int, int]]:
        # In an order of Spark's own.
        for key in sorted(self._store.parts, key=lambda key: (key[2], -key[1])):
            self._store.called("list")
            yield key


@dataclass(frozen=True)
class Watermark:
    milliseconds: int

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802
        return self.milliseconds

    def getExpiryTimeInMs(self) -> int:  # noqa: N802
        return self.milliseconds


# Workers -----------------------------------------------------------------------------------------------------------


class Worker(LiveSlots):
    """A worker process: what it remembers of the slot, and how it came to it."""

    def __init__(self, counted: Counter[str]) -> None:
        super().__init__()
        self._counted = counted

    def slot(self, work: TaskContext, part: SlotGroup, slot: int, page: SlotCheckpoint | None, store: Any) -> LiveSlot:
        before = {id(held.live): held.live.page.update for held in self._slots.values()}
        live = super().slot(work, part, slot, page, store)
        if live.page.update:
            known = before.get(id(live))
            how = "made anew" if known is None else "as it stood" if known == live.page.update else "caught up"
            self._counted[how] += 1
        return live

    def last(self) -> LiveSlot:
        return next(reversed(self._slots.values())).live

    def forget_all(self) -> None:
        for name in list(self._slots):
            self.forget(name)


@dataclass
class Slot:
    """A slot with its workers.

    failing    how likely an attempt is to fail
    folder     where the workers meet; None: each is alone
    """

    queries: Sequence[AnyQuery]
    schema: Schema
    columns: pa.Schema
    settings: Settings = field(default_factory=Settings)
    pace: Pace = field(default_factory=Pace)
    several: bool = False
    workers: int = 1
    failing: float = 0.0
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    counted: Counter[str] = field(default_factory=Counter)
    folder: Path | None = None

    def __post_init__(self) -> None:
        part = SlotGroup(tuple(range(len(self.queries))), tuple(self.columns.names), 0, 1)
        told = task_spec(self.queries, self.schema, self.columns, [part], several=self.several, settings=self.settings)
        self.told = {
            **told,
            "slots_folder": self.folder and str(self.folder),
            "bad_slot": 1,
            "pace": (self.pace.steps, self.pace.milliseconds),
        }
        self.serves = serves_of(work_from(told), part)
        self.store = Store()
        self.at = [Worker(self.counted) for _ in range(self.workers)]
        # All workers that may have the slot, whichever of them get tasks.
        self.known = list(self.at)
        # Rows by kind, of all attempts that counted.
        self.given: dict[str, list[pa.Table]] = {}

    @property
    def page(self) -> SlotCheckpoint:
        assert self.store.page is not None
        return SlotCheckpoint.from_bytes(self.store.page, self.serves)

    def rows(self, kind: str) -> list[str]:
        return sorted(text for table in self.given.get(kind, ()) for text in content(table))

    def number(self, kind: str) -> int:
        return sum(table.num_rows for table in self.given.get(kind, ()))

    # A micro-batch

    def batch(self, rows: pa.Table | None, milliseconds: int) -> list[tuple[str, pa.Table]]:
        """What a micro-batch gives, by the attempt that counted."""
        while True:
            worker = self.draw.choice(self.at)
            self._something_happens()
            ending = self.draw.choice(["dies", "stops", "is lost"]) if self.draw.random() < self.failing else None
            self.store.begin(lives=self.draw.randint(0, 12) if ending == "dies" else None)
            try:
                made = list(self._attempt(worker, rows, milliseconds, stops=ending == "stops"))
            except Gone:
                ending = ending or "dies"
            if ending is None:
                break
            self.counted[ending] += 1
            self.store.rollback()
        self.store.commit()
        for kind, table in made:
            self.given.setdefault(kind, []).append(table)
        if made:
            self._check(milliseconds, next(one for one in (*self.at, *self.known) if one.knows(self.page, 0)).last())
        return made

    def _something_happens(self) -> None:
        if self.failing and self.draw.random() < 0.1:
            # Spark starts again, from its checkpoint.
            for worker in self.at:
                worker.forget_all()
            processor._task.cache_clear()
            self.counted["restart"] += 1
        elif self.failing and self.draw.random() < 0.1:
            self.draw.choice(self.at).forget_all()

    def _attempt(
        self, worker: Worker, rows: pa.Table | None, milliseconds: int, *, stops: bool
    ) -> Iterator[tuple[str, pa.Table]]:
        """Input, then the timers that are due: Spark drops each when the slot has been told."""
        with mock.patch.object(processor, "_LIVE", worker):
            task: Any = SlotProcessor(self.told)
            now = Watermark(milliseconds)
            task.init(self.store)
            if rows is not None and rows.num_rows:
                yield from self._taken(task.handleInputRows(KEY, iter([self._frame(rows)]), now), stops)
            for timer in sorted(timer for timer in self.store.timers if timer <= milliseconds):
                yield from self._taken(task.handleExpiredTimer(KEY, now, Watermark(timer)), stops)
                self.store.timers.discard(timer)

    def _taken(self, frames: Iterator[Any], stops: bool) -> Iterator[tuple[str, pa.Table]]:
        for frame in frames:
            if stops:
                raise Gone
            for kind, rows in zip(frame["kind"], frame["rows"], strict=True):
                # What only counts has no rows.
                yield kind, pa.table({}) if rows is None else from_bytes(pa.py_buffer(rows))
        self.counted["updates"] += 1

    def _frame(self, rows: pa.Table) -> Any:
        numbered = rows.rename_columns([f"c{place}" for place in range(rows.num_columns)])
        cut = self.draw.randint(0, rows.num_rows)
        blobs = [to_bytes(part) for part in (numbered.slice(0, cut), numbered.slice(cut)) if part.num_rows]
        return pd.DataFrame({"slot": 0, "begin": 0, "events": blobs})

    def _check(self, milliseconds: int, live: LiveSlot) -> None:
        """What must hold after every batch that concerned the slot."""
        timer, watermark = self.page.timer, self.pace.watermark(milliseconds)
        assert self.store.timers == (set() if timer is None else {timer}), "Spark wakes the slot when it says"
        assert timer is None or timer > milliseconds, "a timer is not of the past"
        deadline = live.graph.deadline
        assert deadline is None or watermark is None or deadline > watermark
        assert self.metrics()["kept_bytes"] == self.store.nbytes, "a slot knows what is kept of it"

    def metrics(self) -> dict[str, int]:
        """What the last update told of itself."""
        row: dict[str, int] = self.given["metrics"][-1].to_pylist()[0]
        return row

    def every_metrics(self) -> list[dict[str, int]]:
        return [row for table in self.given.get("metrics", ()) for row in table.to_pylist()]


def slot_of(*texts: str, **options: Any) -> Slot:
    return Slot([Query(text) for text in texts], Schema(), events("").schema, **options)


def given_at(slot: Slot, kind: str, moments: Iterable[int]) -> list[int]:
    """The moments of Spark's at which time alone makes the slot give something."""
    return [now for now in moments if any(made == kind for made, _ in slot.batch(None, now))]


def fed(slot: Slot, batches: int, each: int, jitter: int = 5) -> Iterator[pa.Table]:
    """A long stream: so many events in each batch, ten steps on."""
    for number in range(batches):
        times = [10 * number + slot.draw.randint(0, 9 + jitter) for _ in range(each)]
        rows = events(" ".join(f"{slot.draw.choice('abc')}{time}/{slot.draw.randint(0, 3)}" for time in times))
        slot.batch(rows, max(0, 10 * (number - 1)))
        yield rows

"""The measures of a batch and of a stream since its start: our counts, and Spark's progress of the same batch.

Counts are part of the batch, so they are exact; what slots hold is what each said last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kleene.pattern.clock import Clock, ClockKind
from kleene.spark.streaming.event_time import Pace
from kleene.spark.streaming.heartbeats import is_heartbeats
from kleene.spark.streaming.live_slot import HELD

if TYPE_CHECKING:
    from kleene.spark.streaming.live import MicroBatch

# What only slots know; outputs are counted as they are written.
_DONE = ("events", "duplicates", "dropped", "plan_changes")
# The parts of Spark's progress that are reported: the rest says where things are, and is long.
_OF_SPARK = ("inputRowsPerSecond", "processedRowsPerSecond", "durationMs", "stateOperators")
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Counted:
    """The outputs of a batch, counted as they were written."""

    batch: int
    outputs: Mapping[str, Mapping[str, int]]
    late: int
    bad_rows: int
    done: Mapping[str, int]
    slots: Mapping[int, Mapping[str, int]]
    # By query, the types that it names of which events came.
    types: Mapping[str, Collection[str]] = field(default_factory=dict)

    @staticmethod
    def of(micro_batch: MicroBatch, batch: int) -> Counted:
        names = [query.name for query in micro_batch.queries]
        outputs = {
            kind: {name: micro_batch.number(kind, name) for name in names}
            for kind in ("matches", "timeouts", "compressed")
        }
        done: Counter[str] = Counter(dict.fromkeys(_DONE, 0))
        for slot in micro_batch.measured:
            done.update({name: slot.values[name] for name in _DONE})
        slots = {slot.slot: {name: slot.values[name] for name in HELD} for slot in micro_batch.measured}
        return Counted(
            batch, outputs, micro_batch.number("late"), micro_batch.number("bad"), done, slots, micro_batch.types
        )

    @property
    def something(self) -> bool:
        """Whether there is something to see."""
        return any(sum(of_query.values()) for of_query in self.outputs.values()) or bool(self.late + self.bad_rows)


@dataclass(frozen=True)
class BatchMeasures:
    """A batch that is done: the counts of its outputs, and Spark's progress in it."""

    counts: Counted
    progress: Mapping[str, Any]
    clock: Clock

    @property
    def rows(self) -> int:
        """How many rows the sources gave; heartbeats of an idle stream are none."""
        sources = [source for source in self.progress.get("sources", ()) if not is_heartbeats(source)]
        return sum(int(source.get("numInputRows", 0)) for source in sources)

    @property
    def seconds(self) -> float:
        return float(self.progress.get("durationMs", {}).get("triggerExecution", 0)) / 1000

    @property
    def rate(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def watermark(self) -> int | None:
        """In steps of the time column: no event before it is waited for."""
        text = self.progress.get("eventTime", {}).get("watermark")
        if text is None:
            return None
        milliseconds = round(datetime.fromisoformat(text).timestamp() * 1000)
        return Pace.of(self.clock).watermark(milliseconds)

    @property
    def watermark_seconds(self) -> float | None:
        """Since 1970, or since the first tick; None for ticks of unknown length."""
        if self.watermark is None or self.clock.nanoseconds is None:
            return None
        return float(self.watermark * self.clock.nanoseconds / _NANOSECONDS)

    @property
    def shown_watermark(self) -> str | int | None:
        seconds = self.watermark_seconds
        if seconds is None or self.clock.kind is not ClockKind.TIMESTAMP:
            return self.watermark
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def lag(self) -> float | None:
        """How far the watermark was behind the clock of the machine when the batch began, in seconds."""
        if self.clock.kind is not ClockKind.TIMESTAMP or self.watermark_seconds is None:
            return None
        return self._began.timestamp() - self.watermark_seconds

    @property
    def _began(self) -> datetime:
        return datetime.fromisoformat(str(self.progress["timestamp"]))

    def plain(self, totals: Totals) -> dict[str, Any]:
        """The batch as one object of a file of measures."""
        counted = self.counts
        return {
            "batch": counted.batch,
            "time": self.progress.get("timestamp"),
            "rows": self.rows,
            **counted.done,
            **{kind: dict(by_query) for kind, by_query in counted.outputs.items()},
            "late": counted.late,
            "bad_rows": counted.bad_rows,
            **totals.held,
            "watermark": self.shown_watermark,
            "lag_seconds": self.lag,
            "seconds": self.seconds,
            "spark": {name: _short(self.progress.get(name)) for name in _OF_SPARK},
        }


def _short(value: Any) -> Any:
    """The value without the dozens of measures of the state store."""
    if isinstance(value, list):
        return [_short(one) for one in value]
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if name != "customMetrics"}
    return value


@dataclass
class Totals:
    """The counts of a stream since it was started."""

    batches: int = 0
    rows: int = 0
    late: int = 0
    bad_rows: int = 0
    done: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_DONE, 0)))
    outputs: dict[str, Counter[str]] = field(default_factory=dict)
    slots: dict[int, Mapping[str, int]] = field(default_factory=dict)
    types: dict[str, set[str]] = field(default_factory=dict)

    def add(self, batch: BatchMeasures) -> None:
        counted = batch.counts
        self.batches += 1
        self.rows += batch.rows
        self.late += counted.late
        self.bad_rows += counted.bad_rows
        self.done.update(counted.done)
        for kind, by_query in counted.outputs.items():
            self.outputs.setdefault(kind, Counter()).update(by_query)
        self.slots.update(counted.slots)
        for name, types in counted.types.items():
            self.types.setdefault(name, set()).update(types)

    @property
    def held(self) -> dict[str, int]:
        """The sum of what all slots hold."""
        return {name: sum(slot[name] for slot in self.slots.values()) for name in HELD}

    def of(self, kind: str) -> Mapping[str, int]:
        """How many rows of an output there were, by query."""
        return self.outputs.get(kind, Counter())

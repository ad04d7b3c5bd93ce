"""What a simulated stream is given and is to do: files of events, what tasks are told, and which slot gets what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.spark.slot import SlotGroup, TaskContext
from kleene.spark.worker import TaskSpec

BAD = pa.schema([(name, pa.string()) for name in ("source", "place", "reason", "text")])


@dataclass(frozen=True)
class Input:
    """The rows of a file: events, and lines that are none."""

    events: Sequence[Mapping[str, Any]]
    bad: Sequence[str]


@dataclass(frozen=True)
class Planned:
    """A batch as it was planned: the files that it takes, and how far time had come."""

    files: tuple[str, ...]
    watermark: int


@dataclass(frozen=True)
class Job:
    """What a stream is to do, as tasks are told it, and what its slots are given.

    wanted   by part, the types that its queries read
    """

    work: TaskContext
    told: TaskSpec
    parts: Sequence[SlotGroup]
    wanted: Sequence[frozenset[str]]
    delay: int

    @property
    def bad_slot(self) -> int:
        return int(self.told["bad_slot"])

    def rows_by_slot(self, events: Sequence[Mapping[str, Any]], bad: Sequence[str]) -> dict[int, pa.Table]:
        """What the exchange gives to each slot, of those that are given something."""
        by_slot: dict[int, list[Mapping[str, Any]]] = {}
        for part, types in zip(self.parts, self.wanted, strict=True):
            for event in events:
                if event["type"] in types:
                    by_slot.setdefault(part.base + event["x"] % part.slots, []).append(event)
        tables = {slot: pa.Table.from_pylist(list(rows), self.work.columns) for slot, rows in by_slot.items()}
        if bad:
            rows = [{"source": "readings", "place": "", "reason": "no event", "text": line} for line in bad]
            tables[self.bad_slot] = pa.Table.from_pylist(rows, BAD)
        return tables

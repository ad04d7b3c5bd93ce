"""Events, their order and their partitions: the semantics page §1 and §3 Partition, read literally."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Any

Row = Mapping[str, Any]
TypeNames = Mapping[str, AbstractSet[str]]


class Nothing(Enum):
    """What a reference or an arithmetic operation gives when it gives no value; NULL is `None`."""

    MISSING = "the event's type has no such attribute, or the variable is absent from the match"
    UNDEFINED = "division by zero, overflow, or not a number"


@dataclass(frozen=True, slots=True, eq=False)
class BruteEvent:
    """A row of the input, known by its index; two equal rows are two events."""

    index: int
    type: str | None
    start: Any
    end: Any
    tie: Any
    row: Row


@dataclass(frozen=True, slots=True)
class BruteStream:
    """The events of the input in their order of consumption, and what the schema says of their types."""

    events: tuple[BruteEvent, ...]
    types: TypeNames | None
    common: frozenset[str]

    def type_has(self, name: str | None, attribute: str) -> bool:
        """A type that is not declared has every column (§1 Defaults), and so has an event of no type."""
        declared = self.types.get(name) if self.types is not None and name is not None else None
        return declared is None or attribute in declared or attribute in self.common

    def value(self, event: BruteEvent, attribute: str) -> Any:
        return event.row.get(attribute) if self.type_has(event.type, attribute) else Nothing.MISSING

    def key(self, event: BruteEvent, attributes: Sequence[str]) -> tuple[Any, ...] | None:
        """The event's partition; None when its type lacks the key or a part of the key is NULL (§3 Partition)."""
        values = tuple(self.value(event, attribute) for attribute in attributes)
        return None if any(value is None or value is Nothing.MISSING for value in values) else values

    def partition(self, attributes: Sequence[str], key: tuple[Any, ...]) -> tuple[BruteEvent, ...]:
        """The events of one partition; without a key the whole stream is one partition."""
        return tuple(event for event in self.events if self.key(event, attributes) == key)


def read_stream(
    rows: Sequence[Row], types: TypeNames | None, tie_breaker: str | None, start: str | None
) -> BruteStream:
    """Rows to events; a row whose time, tie-breaker or start is NULL, or that ends before it starts, is a bad row."""
    common = frozenset(name for name in ("type", "ts", tie_breaker, start) if name is not None)
    events = []
    for index, row in enumerate(rows):
        began = row.get(start) if start is not None else row.get("ts")
        tie = row.get(tie_breaker) if tie_breaker is not None else 0
        if row.get("ts") is None or began is None or tie is None or began > row["ts"]:
            continue
        events.append(BruteEvent(index, row.get("type"), began, row["ts"], tie, row))
    columns = sorted({name for row in rows for name in row} - common)
    return BruteStream(tuple(sorted(events, key=lambda event: canonical(event, columns))), types, common)


def canonical(event: BruteEvent, columns: Iterable[str]) -> tuple[Any, ...]:
    """The canonical order (§1): time, tie-breaker, then values; NULL comes first, equal rows go by their number."""
    values = tuple((name, _rank(event.row.get(name))) for name in columns)
    return (event.end, event.tie, event.start, event.type or "", values, event.index)


def _rank(value: Any) -> tuple[Any, ...]:
    return (0,) if value is None else (1, value)


def before(earlier: BruteEvent, later: BruteEvent) -> bool:
    """§1 Before: `x.end < y.start`, and the tie-breaker orders primitive events of equal time."""
    if earlier.end < later.start:
        return True
    primitive = earlier.start == earlier.end and later.start == later.end
    return primitive and earlier.end == later.end and bool(earlier.tie < later.tie)


def all_before(earlier: Iterable[BruteEvent], later: Iterable[BruteEvent]) -> bool:
    """A part of a pattern is before another when each of its events is before each event of the other."""
    right = tuple(later)
    return all(before(x, y) for x in earlier for y in right)


def step(event: BruteEvent) -> tuple[Any, Any]:
    """The group of simultaneous events that an event is offered with: equal end, equal tie-breaker."""
    return event.end, event.tie

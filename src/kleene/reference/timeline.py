"""A stream as the reference sees it: events in order, Before, steps of simultaneous events, positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from kleene.pattern.nodes import Component
from kleene.pattern.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceEvent:
    """One event; `index` is its row in the input.

    Times are whole steps of the schema's clock; timestamps and durations among the values are nanoseconds.
    """

    index: int
    type: str | None
    start: int
    end: int
    tie: Any
    values: Mapping[str, Any]
    # What a composite event is known by: its match id. Primitive events are known by their content.
    identity: str | None = None
    # The tie-breaker of a composite event's first event; None: its own.
    first_tie: Any = None

    def __repr__(self) -> str:
        return f"{self.type}{self.end}#{self.index}"


@dataclass(frozen=True)
class ReferenceTimeline:
    """All events of a query's input, in canonical order (the semantics page §1)."""

    schema: Schema
    events: tuple[ReferenceEvent, ...]
    # The values that order simultaneous events: the columns that the query reads or returns.
    columns: tuple[str, ...]
    partition: tuple[str, ...] = ()
    _positions: dict[int, int] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        events: Iterable[ReferenceEvent], schema: Schema, columns: Iterable[str], partition: tuple[str, ...] = ()
    ) -> ReferenceTimeline:
        names = tuple(sorted(columns))
        comparing = tuple(name for name in names if name not in schema.unordered)
        ordered = sorted(events, key=lambda event: _canonical(event, comparing))
        return ReferenceTimeline(schema, tuple(ordered), names, partition)

    @cached_property
    def rank(self) -> dict[ReferenceEvent, int]:
        """Each event's place in canonical order."""
        return {event: place for place, event in enumerate(self.events)}

    def before(self, left: ReferenceEvent, right: ReferenceEvent) -> bool:
        """left ends before right starts; primitive events of equal time go by the tie-breaker."""
        if left.end < right.start:
            return True
        if self.schema.tie_breaker is None or not left.start == left.end == right.start == right.end:
            return False
        return bool(left.tie < right.tie)

    def all_before(self, left: Iterable[ReferenceEvent], right: Iterable[ReferenceEvent]) -> bool:
        """Every event of one part is before every event of another."""
        later = tuple(right)
        return all(self.before(x, y) for x in left for y in later)

    @cached_property
    def steps(self) -> list[tuple[ReferenceEvent, ...]]:
        """Groups of simultaneous events: equal end, and equal tie-breaker where there is one."""
        tied = self.schema.tie_breaker is not None
        by_step = sorted(self.events, key=lambda event: (event.end, _comparable(event.tie) if tied else 0))
        groups = groupby(by_step, key=lambda event: (event.end, event.tie if tied else None))
        return [tuple(sorted(group, key=self.rank.__getitem__)) for _, group in groups]

    def has_attribute(self, event: ReferenceEvent, attribute: str) -> bool:
        """Whether the event's declared type has the attribute; otherwise it is missing, which is not NULL."""
        return self.schema.has(event.type, attribute)

    def key(self, event: ReferenceEvent) -> tuple[Any, ...] | None:
        """The event's partition; None when it is in no partition."""
        if not all(self.has_attribute(event, attribute) for attribute in self.partition):
            return None
        values = tuple(event.values.get(attribute) for attribute in self.partition)
        return None if any(value is None or value != value for value in values) else values

    def position(self, event: ReferenceEvent) -> int:
        """How many events of its partition (of the stream, when there is no partition) are before it."""
        if event.index not in self._positions:
            key = self.key(event)
            self._positions[event.index] = sum(
                1 for other in self.events if self.key(other) == key and self.before(other, event)
            )
        return self._positions[event.index]


def _canonical(event: ReferenceEvent, columns: tuple[str, ...]) -> tuple[Any, ...]:
    values = tuple(_comparable(event.values.get(name)) for name in columns)
    return event.end, _comparable(event.tie), event.start, _comparable(event.type), values, event.index


def _comparable(value: Any) -> tuple[Any, ...]:
    """A key that orders any two values: NULL first, then by kind, then by value."""
    if value is None:
        return (0,)
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, str):
        return 3, value
    if isinstance(value, dict | list):
        return 4, repr(value)
    return (2, value) if value == value else (2, float("-inf"))


def in_class(timeline: ReferenceTimeline, component: Component, event: ReferenceEvent) -> bool:
    """Whether the event is of one of the component's classes."""
    from kleene.reference.values import Environment, holds

    for event_class in component.classes:
        if event.type in event_class.types:
            environment = Environment(timeline, {"": (event,)})
            if all(holds(clause, environment) for clause in event_class.predicate):
                return True
    return False

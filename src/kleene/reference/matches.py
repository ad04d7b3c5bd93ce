"""A match: which events stand for which variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kleene.pattern.clock import LATEST
from kleene.pattern.nodes import Component, ComponentKind
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline


@dataclass(frozen=True)
class Match:
    """The events of every positive variable, in pattern order; an absent variable has none."""

    components: tuple[Component, ...]
    selected: Mapping[str, tuple[ReferenceEvent, ...]]
    # How many steps after its last event it ends (`E@d` of the stream algebra).
    later: int = 0

    @cached_property
    def events(self) -> tuple[ReferenceEvent, ...]:
        return tuple(event for component in self.components for event in self.selected.get(component.variable, ()))

    @property
    def start(self) -> int:
        return min(event.start for event in self.events)

    @property
    def end(self) -> int:
        return min(max(event.end for event in self.events) + self.later, LATEST)

    @property
    def bindings(self) -> dict[str, int | tuple[int, ...] | None]:
        """The rows of the input by variable: one, several for a closure, None when absent."""
        return {component.variable: self._rows(component) for component in self.components}

    def _rows(self, component: Component) -> int | tuple[int, ...] | None:
        rows = tuple(event.index for event in self.selected.get(component.variable, ()))
        if component.kind is not ComponentKind.SINGLE:
            return rows
        return rows[0] if rows else None

    @cached_property
    def identity(self) -> tuple[tuple[int, ...], ...]:
        """Runs that selected the same events under the same names are one."""
        return tuple(
            tuple(event.index for event in self.selected.get(component.variable, ())) for component in self.components
        )

    def order(self, timeline: ReferenceTimeline) -> tuple[tuple[int, ...], ...]:
        """Events in pattern order canonically, the shorter of two lists first."""
        return tuple(
            tuple(timeline.rank[event] for event in self.selected.get(component.variable, ()))
            for component in self.components
        )

    def first(self, timeline: ReferenceTimeline) -> ReferenceEvent:
        return min(self.events, key=lambda event: (event.start, timeline.rank[event]))

    def last(self, timeline: ReferenceTimeline) -> ReferenceEvent:
        return max(self.events, key=lambda event: (event.end, timeline.rank[event]))

    def key(self, timeline: ReferenceTimeline) -> tuple[Any, ...] | None:
        return timeline.key(self.events[0])

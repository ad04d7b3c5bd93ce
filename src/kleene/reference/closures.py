"""ZStream's closures by definition (semantics §3 ZStream's closure): groups around events that matched before.

Closures take their groups in the order of the text, each between its neighbours; closures side by side share one gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from kleene.pattern.closures import side_by_side
from kleene.pattern.nodes import Component, Leaf, Pattern, Sequence, components
from kleene.pattern.query import BoundQuery
from kleene.reference.automaton import within_window
from kleene.reference.matches import Match
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline, in_class
from kleene.reference.values import Environment, holds

Selected = dict[str, tuple[ReferenceEvent, ...]]
Events = tuple[ReferenceEvent, ...]


@dataclass(frozen=True, slots=True)
class Closures:
    """The closures of one alternative of a query."""

    query: BoundQuery
    pattern: Pattern
    timeline: ReferenceTimeline

    def complete(self, selected: Selected) -> list[Selected]:
        """An assignment of all other components with every closure's group: several where a closure slides."""
        assignments = [selected]
        for run in side_by_side(self.pattern):
            for place, closure in enumerate(run):
                following = run[place + 1 :]
                assignments = [each for one in assignments for each in self._with_group(closure, following, one)]
        return assignments

    def _with_group(
        self, closure: Component, following: tuple[Component, ...], selected: Selected
    ) -> Iterator[Selected]:
        """The assignment with a group of one closure; those that follow it side by side need members, too."""
        before, after = neighbours(self.pattern, closure, selected)
        members = self._members(closure, selected, before, after)
        members = tuple(event for event in members if self._leaves_enough((event,), following, selected, after))
        if closure.maximum is not None:
            for start in range(len(members) - closure.maximum + 1):
                yield {**selected, closure.variable: members[start : start + closure.maximum]}
            return
        if not before and not after:
            members = self._fitting_together(members, selected)
        if len(members) >= closure.minimum:
            yield {**selected, closure.variable: members}

    def _leaves_enough(
        self, before: Events, following: tuple[Component, ...], selected: Selected, after: Events
    ) -> bool:
        """Whether each of the closures that follow can have its fewest members after these events, in their order."""
        if not following:
            return True
        closure, *rest = following
        if not closure.minimum:
            return self._leaves_enough(before, tuple(rest), selected, after)
        members = self._members(closure, selected, before, after)
        return any(
            self._leaves_enough(chosen, tuple(rest), selected, after)
            for chosen in combinations(members, closure.minimum)
        )

    def _members(self, closure: Component, selected: Selected, before: Events, after: Events) -> Events:
        """The events between two parts that satisfy the conditions on a single member, in canonical order."""
        used = {event.index for events in selected.values() for event in events}
        conditions = self.query.conditions.members.get(closure.variable, ())

        def is_member(event: ReferenceEvent) -> bool:
            if event.index in used or self.timeline.key(event) is None or not in_class(self.timeline, closure, event):
                return False
            if not self.timeline.all_before(before, [event]) or not self.timeline.all_before([event], after):
                return False
            if not self._fits(event, selected, before, after):
                return False
            environment = Environment(self.timeline, selected, event)
            return all(holds(clause, environment) for clause in conditions)

        return tuple(filter(is_member, self.timeline.events))

    def _fits(self, event: ReferenceEvent, selected: Selected, before: Events, after: Events) -> bool:
        """Whether an event is in the window of the match so far, on a side where nothing else bounds it."""
        match = Match(self.query.positives, selected)
        first, last = match.first(self.timeline), match.last(self.timeline)
        return (
            (bool(before) or self._within(event, last))
            and (bool(after) or self._within(first, event))
            and (bool(before or after) or self._within(event, event))
        )

    def _fitting_together(self, members: Events, selected: Selected) -> Events:
        """The earliest event and all that fit the window with it: both ends of the group are open."""
        started = [*members, Match(self.query.positives, selected).first(self.timeline)]
        first = min(started, key=lambda event: (event.start, self.timeline.rank[event]))
        return tuple(event for event in members if self._within(first, event))

    def _within(self, first: ReferenceEvent, last: ReferenceEvent) -> bool:
        return within_window(self.query, self.timeline, first, last)


def neighbours(pattern: Pattern, component: Component, selected: Selected) -> tuple[Events, Events]:
    """The events of the nearest parts on both sides that are present: of its sequence, or of those around that."""
    if isinstance(pattern, Leaf):
        return (), ()
    place, part = next(
        (place, part) for place, part in enumerate(pattern.parts) if component in tuple(components(part))
    )
    before, after = neighbours(part, component, selected)
    if isinstance(pattern, Sequence):
        before = before or _nearest(selected, reversed(pattern.parts[:place]))
        after = after or _nearest(selected, pattern.parts[place + 1 :])
    return before, after


def _nearest(selected: Selected, parts: Iterable[Pattern]) -> Events:
    return next((events for part in parts if (events := _events(selected, part))), ())


def _events(selected: Selected, pattern: Pattern) -> Events:
    return tuple(event for component in components(pattern) for event in selected.get(component.variable, ()))

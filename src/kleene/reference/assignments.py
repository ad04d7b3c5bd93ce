"""Patterns that are not lines, by definition: every assignment of events that satisfies the structure and WHERE.

Conjunction, nesting and ZStream's closure exist under skip till any match only, where a match is whatever satisfies
the definition. Parts are combined from left to right; a clause is tested as soon as all its variables are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise

from kleene.pattern.closures import has_fixed
from kleene.pattern.conditions import iterated
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.nodes import Component, ComponentKind, Conjunction, Leaf, Pattern, Sequence, components
from kleene.pattern.query import BoundQuery
from kleene.reference.automaton import within_window
from kleene.reference.closures import Closures
from kleene.reference.limits import Limits
from kleene.reference.matches import Match
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline, in_class
from kleene.reference.values import Environment, holds

Selected = dict[str, tuple[ReferenceEvent, ...]]


class Assignments:
    """One alternative of a query, as a tree of sequences and conjunctions."""

    def __init__(self, query: BoundQuery, pattern: Pattern, timeline: ReferenceTimeline, limits: Limits) -> None:
        self.query = query
        self.pattern = pattern
        self.timeline = timeline
        self.limits = limits
        self.present = {component.variable for component in components(pattern) if not component.negated}
        self.closures = Closures(query, pattern, timeline)

    def run(self) -> list[Match]:
        matches = [
            Match(self.query.positives, complete)
            for selected in self.assign(self.pattern)
            for complete in self.closures.complete(selected)
            if self.is_match(complete)
        ]
        self.limits.check_matches(len(matches))
        return matches

    # Structure

    def assign(self, pattern: Pattern) -> list[Selected]:
        """Every way to give the pattern's places to events; closures are left for later."""
        if isinstance(pattern, Leaf):
            return [{pattern.component.variable: events} for events in self.leaf(pattern.component)]
        assert isinstance(pattern, Sequence | Conjunction)
        parts = [part for part in pattern.parts if has_fixed(part)]
        ordered = isinstance(pattern, Sequence)
        assignments: list[Selected] = [{}]
        previous: Pattern | None = None
        for part in parts:
            options = self.assign(part)
            assignments = [
                {**left, **right}
                for left in assignments
                for right in options
                if self.fits(left, right, previous if ordered else None)
            ]
            self.limits.check_runs(len(assignments))
            previous = part
        return assignments

    def fits(self, left: Selected, right: Selected, previous: Pattern | None) -> bool:
        """Whether two parts combine: no shared event, in order in a sequence, window and known conditions hold."""
        used = {event.index for events in left.values() for event in events}
        new = [event for events in right.values() for event in events]
        if any(event.index in used for event in new):
            return False
        if previous is not None and not self.timeline.all_before(_events(left, previous), new):
            return False
        together = {**left, **right}
        return (self.window_holds(together) or not self.window_tells_early) and self.known_clauses_hold(
            together, newly=set(right)
        )

    def leaf(self, component: Component) -> Iterator[tuple[ReferenceEvent, ...]]:
        candidates = [event for event in self.timeline.events if self.selectable(component, event)]
        if component.kind is ComponentKind.SINGLE:
            yield from ((event,) for event in candidates if self.holds_alone(component, (event,)))
            return
        longest = len(candidates) if component.maximum is None else min(component.maximum, len(candidates))
        for length in range(component.minimum, longest + 1):
            for events in combinations(candidates, length):
                if self.is_increasing(events) and self.holds_alone(component, events):
                    yield events

    def is_increasing(self, events: tuple[ReferenceEvent, ...]) -> bool:
        return all(self.timeline.before(x, y) for x, y in pairwise(events))

    def selectable(self, component: Component, event: ReferenceEvent) -> bool:
        return self.timeline.key(event) is not None and in_class(self.timeline, component, event)

    # Conditions

    def holds_alone(self, component: Component, events: tuple[ReferenceEvent, ...]) -> bool:
        return self.known_clauses_hold({component.variable: events}, newly={component.variable})

    def known_clauses_hold(self, selected: Selected, newly: set[str]) -> bool:
        known = set(selected)
        for clause in self.query.conditions.positive:
            needed = variables(clause) & self.present
            if needed <= known and (needed & newly or not needed) and not clause_holds(clause, selected, self.timeline):
                return False
        return True

    def window_holds(self, selected: Selected) -> bool:
        match = Match(self.query.positives, selected)
        return within_window(self.query, self.timeline, match.first(self.timeline), match.last(self.timeline))

    @property
    def window_tells_early(self) -> bool:
        """Whether a part of a match is never longer than the whole: of events that last, positions say nothing."""
        return not self.query.counts_events or self.query.schema.start is None

    def is_match(self, selected: Selected) -> bool:
        if not self.window_holds(selected):
            return False
        return all(clause_holds(clause, selected, self.timeline) for clause in self.query.conditions.positive)


def clause_holds(clause: Clause, selected: Selected, timeline: ReferenceTimeline) -> bool:
    """A clause on a complete assignment; one that names `a[i]` must hold for every i > 1."""
    iterating = iterated(clause)
    if iterating is None:
        return holds(clause, Environment(timeline, selected))
    events = selected.get(iterating, ())
    return all(
        holds(clause, Environment(timeline, {**selected, iterating: events[:place]}, events[place]))
        for place in range(1, len(events))
    )


def _events(selected: Selected, pattern: Pattern) -> list[ReferenceEvent]:
    return [event for component in components(pattern) for event in selected.get(component.variable, ())]


def neighbours(
    pattern: Pattern, component: Component, selected: Selected
) -> tuple[list[ReferenceEvent], list[ReferenceEvent]]:
    """The events of the nearest parts on both sides that are present in the match.

    In a group, and at an end of a nested sequence, they are the neighbours of what it is nested in.
    """
    if isinstance(pattern, Leaf):
        return [], []
    place, part = next(
        (place, part) for place, part in enumerate(pattern.parts) if any(c is component for c in components(part))
    )
    before, after = neighbours(part, component, selected)
    if isinstance(pattern, Sequence):
        before = before or _nearest(selected, reversed(pattern.parts[:place]))
        after = after or _nearest(selected, pattern.parts[place + 1 :])
    return before, after


def _nearest(selected: Selected, parts: Iterable[Pattern]) -> list[ReferenceEvent]:
    return next((events for part in parts if (events := _events(selected, part))), [])


def lies_between(
    query: BoundQuery,
    timeline: ReferenceTimeline,
    event: ReferenceEvent,
    before: list[ReferenceEvent],
    after: list[ReferenceEvent],
    selected: Selected,
) -> bool:
    """Near bounds go by Before; a far bound is the window's (the semantics page §3, Negation). A group may have two."""
    if not timeline.all_before(before, [event]) or not timeline.all_before([event], after):
        return False
    match = Match(query.positives, selected)
    if not before and not within_window(query, timeline, event, match.last(timeline)):
        return False
    return bool(after) or within_window(query, timeline, match.first(timeline), event)

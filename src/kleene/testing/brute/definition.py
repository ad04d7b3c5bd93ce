"""The definition of a match, tested on one assignment of events to the places of one alternative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations
from typing import Any

from kleene.lang.tree import SelectionStrategy
from kleene.testing.brute.conditions import Clause, Phase, holds
from kleene.testing.brute.pattern import BruteConjunction, BrutePlace, InOrder, Never, Shape, places
from kleene.testing.brute.question import Question
from kleene.testing.brute.runs import BruteRun
from kleene.testing.brute.stream import BruteEvent, all_before, before
from kleene.testing.brute.values import Assignment


def events_of(shape: Shape, chosen: Assignment) -> tuple[BruteEvent, ...]:
    return tuple(event for place in places(shape, negated=False) for event in chosen.get(place.name, ()))


def in_order(shape: Shape, chosen: Assignment) -> bool:
    """Sequences and lists keep Before (§1), as far as the places are assigned; `&` may pair simultaneous events."""
    match shape:
        case BrutePlace():
            events = chosen.get(shape.name, ())
            return not shape.is_list or all(before(x, y) for x, y in pairwise(events))
        case InOrder(parts):
            spans = [events for part in parts if (events := events_of(part, chosen))]
            following = all(all_before(x, y) for i, x in enumerate(spans) for y in spans[i + 1 :])
            return following and all(in_order(part, chosen) for part in parts)
        case BruteConjunction(parts):
            return all(in_order(part, chosen) for part in parts)
    return True


@dataclass(frozen=True)
class Candidate:
    """An assignment of events to the places of an alternative, with the questions that decide whether it is a match."""

    question: Question
    shape: Shape
    chosen: Assignment

    def is_match(self) -> bool:
        """§3: order, window, WHERE, strategy; then negation. Its closures have their groups (`BruteGroup`)."""
        return (
            in_order(self.shape, self.chosen)
            and self.fits_window()
            and self.satisfies_where()
            and self.follows_strategy()
            and not self.is_negated()
        )

    @cached_property
    def events(self) -> tuple[BruteEvent, ...]:
        return events_of(self.shape, self.chosen)

    @property
    def parts(self) -> tuple[Shape, ...]:
        """The top-level sequence; a pattern that is none is a sequence of one part."""
        return self.shape.parts if isinstance(self.shape, InOrder) else (self.shape,)

    # Window

    def distance(self, first: Sequence[BruteEvent], last: Sequence[BruteEvent]) -> Any:
        """From the smallest start to the largest end, in time or in positions (§3 Window)."""
        assert self.question.window is not None
        if self.question.window.counts_events:
            rank = self.question.stream.events.index
            latest = max(last, key=lambda event: (event.end, rank(event)))
            earliest = min(first, key=lambda event: (event.start, rank(event)))
            return self.position(latest) - self.position(earliest)
        return max(event.end for event in last) - min(event.start for event in first)

    def position(self, event: BruteEvent) -> int:
        """The number of the partition's events before it."""
        return sum(before(other, event) for other in self.partition)

    @cached_property
    def partition(self) -> tuple[BruteEvent, ...]:
        stream, attributes = self.question.stream, self.question.partition
        key = stream.key(self.events[0], attributes)
        return () if key is None else stream.partition(attributes, key)

    def fits_window(self) -> bool:
        window = self.question.window
        return window is None or window.admits(self.distance(self.events, self.events))

    # Conditions

    def satisfies_where(self) -> bool:
        """P₊ and the equivalence tests hold for the whole assignment."""
        pairs = ((event, self.events[:i]) for i, event in enumerate(self.events))
        return all(self.question.equivalent(event, others) for event, others in pairs) and all(
            self._holds_throughout(clause) for clause in self.question.positive_clauses
        )

    def _holds_throughout(self, clause: Clause) -> bool:
        """A conjunct with `a[i]` speaks of every i > 1, one on a closure's members of every member."""
        taken = {variable for variable, phase in self.question.identifiers.of(clause) if phase is Phase.TAKE}
        if not taken:
            return holds(clause, self.question.bind(self.chosen))
        (variable,) = taken
        events = self.chosen.get(variable, ())
        if variable in self.question.identifiers.closures:
            return all(holds(clause, self.question.bind({**self.chosen, variable: (event,)})) for event in events)
        return all(holds(clause, self.question.bind(self.chosen, turn)) for turn in range(1, len(events)))

    def _lies_between(self, event: BruteEvent, place: BrutePlace, chosen: Assignment) -> bool:
        """After the nearest events before the place and before those after it; at an end the window is the bound."""
        left, right = _neighbours(self.shape, place, chosen, (), ())
        return self._bounded(event, left, right, events_of(self.shape, chosen))

    def _bounded(
        self,
        event: BruteEvent,
        left: tuple[BruteEvent, ...],
        right: tuple[BruteEvent, ...],
        match: tuple[BruteEvent, ...],
    ) -> bool:
        """Near bounds go by Before; the far bounds are t_last − T and t_first + T (§3 Negation)."""
        if not (all_before(left, (event,)) and all_before((event,), right)):
            return False
        window = self.question.window
        if not left and not (window is not None and window.admits(self.distance((event,), match))):
            return False
        return bool(right) or (window is not None and window.admits(self.distance(match, (event,))))

    # Negation

    def is_negated(self) -> bool:
        """§3 Negation: something forbidden, of negated classes and satisfying P₋, lies between the neighbours."""
        return any(
            self._forbids(option, events)
            for never in _negations(self.shape)
            for option in never.options
            for events in permutations(self.question.stream.events, len(option))
        )

    def _forbids(self, option: tuple[BrutePlace, ...], events: tuple[BruteEvent, ...]) -> bool:
        names = {place.name: (event,) for place, event in zip(option, events, strict=True)}
        binding = self.question.bind({**self.chosen, **names})
        clauses = {clause for place in option for clause in self.question.negative_clauses(place.name)}
        return (
            all(before(x, y) for x, y in pairwise(events))
            and all(self.question.admits(place, event) for place, event in zip(option, events, strict=True))
            and all(self._lies_between(event, place, self.chosen) for place, event in zip(option, events, strict=True))
            and all(self.question.equivalent(event, (*self.events, *events[:i])) for i, event in enumerate(events))
            and all(holds(clause, binding) for clause in clauses)
        )

    # Strategy

    def follows_strategy(self) -> bool:
        """§3 Selection strategies: what lies between two selected events could be ignored."""
        if self.question.strategy is SelectionStrategy.SKIP_TILL_ANY_MATCH:
            return True
        return BruteRun(self.question, self.shape, self.parts, self.chosen).is_possible()


def _negations(shape: Shape) -> Iterator[Never]:
    match shape:
        case Never():
            yield shape
        case InOrder(parts) | BruteConjunction(parts):
            for part in parts:
                yield from _negations(part)


_Events = tuple[BruteEvent, ...]


def _neighbours(
    shape: Shape, place: BrutePlace, chosen: Assignment, left: _Events, right: _Events
) -> tuple[_Events, _Events]:
    """The nearest events before and after a place, which is below a shape between `left` and `right`.

    A part of a sequence is between the parts beside it; a member of a group stands where the group stands.
    """
    match shape:
        case InOrder(parts):
            for i, part in enumerate(parts):
                if place in places(part):
                    before_it = nearest(parts[:i][::-1], chosen) or left
                    return _neighbours(part, place, chosen, before_it, nearest(parts[i + 1 :], chosen) or right)
        case BruteConjunction(parts):
            for part in parts:
                if place in places(part):
                    return _neighbours(part, place, chosen, left, right)
    return left, right


def nearest(parts: Sequence[Shape], chosen: Assignment) -> _Events:
    """The events of the nearest part that has any: an absent component is no neighbour."""
    return next((events for part in parts if (events := events_of(part, chosen))), ())

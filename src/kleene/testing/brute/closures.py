"""ZStream's closures: whether an assignment gives each of them its group (the semantics page §3 ZStream's closure).

The page says who chooses first: all other components, then the closures in the order of the text. So a group is judged
by what is known before it: the events of the other components and of earlier closures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product

from kleene.testing.brute.conditions import Phase, holds
from kleene.testing.brute.definition import Candidate, nearest
from kleene.testing.brute.pattern import BrutePlace, InOrder, Never, Shape, places
from kleene.testing.brute.question import Question
from kleene.testing.brute.stream import BruteEvent, all_before
from kleene.testing.brute.values import Assignment

Events = tuple[BruteEvent, ...]


@dataclass(frozen=True)
class BruteGroup:
    """One closure of an alternative, and what is known when it takes its group."""

    question: Question
    shape: Shape
    closure: BrutePlace
    chosen: Assignment

    def is_right(self) -> bool:
        """Whether the closure has the group that the page says."""
        able = tuple(event for event in self._members(self.closure) if self._leaves_enough(event))
        group = self.chosen[self.closure.name]
        if self.closure.slides:
            return group in (able[i : i + self.closure.low] for i in range(len(able) - self.closure.low + 1))
        return group == self._together(able) and len(group) >= self.closure.low

    @cached_property
    def _known(self) -> Assignment:
        every = tuple(places(self.shape, negated=False))
        earlier = every[: every.index(self.closure)]
        return {p.name: self.chosen[p.name] for p in every if not p.is_closure or p in earlier}

    @cached_property
    def _so_far(self) -> Candidate:
        return Candidate(self.question, self.shape, self._known)

    @property
    def _match(self) -> Events:
        return self._so_far.events

    @cached_property
    def _neighbours(self) -> tuple[Events, Events]:
        """The nearest events before and after: in the closure's own sequence, else in the one around it, and so on."""
        before: Events = ()
        after: Events = ()
        for sequence, at in _around(self.shape, self.closure):
            before = before or nearest(sequence.parts[:at][::-1], self._known)
            after = after or nearest(sequence.parts[at + 1 :], self._known)
        return before, after

    @cached_property
    def _following(self) -> tuple[BrutePlace, ...]:
        """The closures that stand behind this one, side by side; negations between them or not."""
        for sequence, at in _around(self.shape, self.closure):
            following = []
            for part in sequence.parts[at + 1 :]:
                if isinstance(part, BrutePlace) and part.is_closure:
                    following.append(part)
                elif not isinstance(part, Never):
                    break
            return tuple(following) if sequence.parts[at] is self.closure else ()
        return ()

    def _members(self, closure: BrutePlace) -> Events:
        return tuple(event for event in self.question.stream.events if self._may_join(closure, event))

    def _may_join(self, closure: BrutePlace, event: BruteEvent) -> bool:
        before, after = self._neighbours
        if event in self._match or not self.question.admits(closure, event):
            return False
        if not (all_before(before, (event,)) and all_before((event,), after) and self._is_near(event)):
            return False
        choosing = (
            clause
            for clause in self.question.positive_clauses
            if (closure.name, Phase.TAKE) in self.question.identifiers.of(clause)
        )
        binding = self.question.bind({**self._known, closure.name: (event,)})
        return self.question.equivalent(event, self._match) and all(holds(clause, binding) for clause in choosing)

    # The window, where a neighbour is missing

    def _is_near(self, event: BruteEvent) -> bool:
        """In (t_last − T, …) without a neighbour before, in (…, t_first + T) without one after, of what is known."""
        before, after = self._neighbours
        if before and after:
            return True
        if before:
            return self._in_window(self._match, (event,))
        if after:
            return self._in_window((event,), self._match)
        return self._fit(event)

    def _fit(self, *events: BruteEvent) -> bool:
        whole = (*self._match, *events)
        return self._in_window(whole, whole)

    def _in_window(self, first: Events, last: Events) -> bool:
        assert self.question.window is not None
        return self.question.window.admits(self._so_far.distance(first, last))

    def _together(self, able: Events) -> Events:
        """All that are able; with neither neighbour the earliest, and those that fit with it, too."""
        if any(self._neighbours) or not able:
            return able
        earliest = min(able, key=lambda event: event.start)
        return tuple(event for event in able if self._fit(earliest, event))

    # Side by side

    def _leaves_enough(self, event: BruteEvent) -> bool:
        """Whether the closures that follow could have the fewest members that they need, all after the event."""
        needed = [(closure, closure.low) for closure in self._following if closure.low]
        for choice in product(*(combinations(self._members(closure), low) for closure, low in needed)):
            line: Sequence[Events] = ((event,), *choice)
            if all(all_before(x, y) for x, y in pairwise(line)):
                return True
        return False


def _around(shape: Shape, place: BrutePlace) -> Iterator[tuple[InOrder, int]]:
    """The sequences that a place stands in, the innermost first, and which of their parts has it."""
    if isinstance(shape, BrutePlace | Never):
        return
    for at, part in enumerate(shape.parts):
        if place in places(part):
            yield from _around(part, place)
            if isinstance(shape, InOrder):
                yield shape, at

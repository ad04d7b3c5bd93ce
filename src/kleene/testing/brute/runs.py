"""Runs of NFA^b, judged from what they selected: SASE+ §3.2 as the semantics page §3 Selection strategies reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from kleene.lang.tree import SelectionStrategy
from kleene.testing.brute.conditions import Clause, Clauses, Phase, holds
from kleene.testing.brute.pattern import BrutePlace, Shape
from kleene.testing.brute.question import Question, line_of
from kleene.testing.brute.stream import BruteEvent, before, step
from kleene.testing.brute.values import Assignment


@dataclass(frozen=True, slots=True)
class BruteSelection:
    """One begin or take move: the event, and the place in the line that it went to."""

    place: int
    event: BruteEvent


@dataclass(frozen=True)
class BruteRun:
    """The run that selected these events; its edges' formulas hold when WHERE does, so only ignoring is judged."""

    question: Question
    shape: Shape
    parts: Sequence[Shape]
    chosen: Assignment

    @cached_property
    def line(self) -> tuple[BrutePlace, ...]:
        return line_of(self.shape, self.parts)

    @cached_property
    def selections(self) -> tuple[BruteSelection, ...]:
        return tuple(BruteSelection(i, event) for i, place in enumerate(self.line) for event in self.chosen[place.name])

    def is_possible(self) -> bool:
        """Every group of simultaneous events that the run passed without moving let it stay, all of them (∀)."""
        return all(
            self.may_ignore(event, after=i)
            for i, (last, following) in enumerate(pairwise(self.selections))
            for event in self._passed(last.event, following.event)
        )

    def _passed(self, last: BruteEvent, following: BruteEvent) -> Iterator[BruteEvent]:
        """The events visible to the run in the steps between two selections.

        In the step in which the run moves, the others have no say (∃); what is not after its last event is invisible.
        """
        for event in self.question.stream.events:
            if before(last, event) and step(event) < step(following):
                yield event

    def may_ignore(self, event: BruteEvent, after: int) -> bool:
        """The ignore edge of the state that the run is in after its selection number `after`."""
        match self.question.strategy:
            case SelectionStrategy.STRICT_CONTIGUITY:
                return False
            case SelectionStrategy.PARTITION_CONTIGUITY:
                return not self._in_partition(event)
            case SelectionStrategy.SKIP_TILL_NEXT_MATCH:
                return not self._could_move(event, after)
        return True

    def _in_partition(self, event: BruteEvent) -> bool:
        stream, attributes = self.question.stream, self.question.partition
        return stream.key(event, attributes) == stream.key(self.selections[0].event, attributes)

    def _could_move(self, event: BruteEvent, after: int) -> bool:
        """The state's own take at p[i], its own begin elsewhere."""
        selected = self.selections[: after + 1]
        at = selected[-1].place
        if self.line[at].is_list:
            return self._fires(event, at, Phase.TAKE, selected)
        return self._fires(event, at + 1, Phase.BEGIN, selected)

    def _fires(self, event: BruteEvent, at: int, edge: Phase, selected: Sequence[BruteSelection]) -> bool:
        """Whether the formula of a begin or take edge holds for the event."""
        place = self.line[at]
        so_far = tuple(selection.event for selection in selected if selection.place == at)
        if edge is Phase.TAKE and place.high is not None and len(so_far) >= place.high:
            return False
        chosen = {
            other.name: tuple(selection.event for selection in selected if selection.place == i)
            for i, other in enumerate(self.line)
        }
        binding = self.question.bind({**chosen, place.name: (*so_far, event)}, turn=len(so_far))
        return (
            self.question.admits(place, event)
            and self.question.equivalent(event, [selection.event for selection in selected])
            and all(holds(clause, binding) for clause in self._formula(at, edge))
        )

    def _formula(self, at: int, edge: Phase) -> Clauses:
        """The conjuncts whose last identifier is instantiated on this edge (SASE+ §3.2 step 2)."""
        return tuple(clause for clause in self.question.positive_clauses if self._last_identifier(clause) == (at, edge))

    def _last_identifier(self, clause: Clause) -> tuple[int, Phase] | None:
        """Place and phase of a conjunct's last identifier; None where its variables or the `a` of `a[i]` are absent."""
        place_of = {place.name: i for i, place in enumerate(self.line)}
        named = self.question.identifiers.of(clause)
        if any(phase is Phase.TAKE and name not in place_of for name, phase in named):
            return None
        places = [(place_of[name], phase) for name, phase in named if name in place_of]
        return max(places, default=None)

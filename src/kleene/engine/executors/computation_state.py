"""The computation state V of a run (SASE+ §5.2): the slots of events and the aggregates that later edges read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.kernels.runs import ABSENT, CURRENT, NEGATED, PREVIOUS, RUN_SLOTS
from kleene.pattern.expressions import Aggregate, Agrees, Attribute, Clause, Which, references
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.plan.layout import Accumulator, Column, Identifier, Layout, accumulators_of
from kleene.plan.physical import Absence, AutomatonPlan

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ComputationState:
    """Slots of bindings and aggregates of one automaton, and which of them a run at each state still needs."""

    layout: Layout
    # [state]: the slot of its first event, and of its last one once it is left; −1 where no condition reads it.
    first: list[int]
    last: list[int]
    width: int
    keep: Flags
    keep_groups: Flags
    # [absence]: the slots of its neighbours; −1: the event taken last, and the one being taken.
    left: list[int]
    right: list[int]


def computation_state(query: BoundQuery, plan: AutomatonPlan, columns: Mapping[str, Column]) -> ComputationState:
    return _Planning(query, plan).state(columns)


@dataclass(frozen=True)
class _Need:
    """Identifiers and aggregates that are read when a run leaves a state, or enters the next."""

    # The last state at which a run needs them.
    until: int
    identifiers: frozenset[Identifier] = frozenset()
    accumulators: frozenset[Accumulator] = frozenset()


class _Planning:
    def __init__(self, query: BoundQuery, plan: AutomatonPlan) -> None:
        self.query, self.plan = query, plan
        self.numbers = {state.component.variable: number for number, state in enumerate(plan.states)}
        self.final = len(plan.states) - 1

    def state(self, columns: Mapping[str, Column]) -> ComputationState:
        needs = [*self._of_edges(), *self._of_absences()]
        wanted = sorted({identifier for need in needs for identifier in need.identifiers}, key=self._order)
        slots = {identifier: RUN_SLOTS + place for place, identifier in enumerate(wanted)}
        accumulators: dict[Accumulator, int] = {}
        for clause in self._clauses():
            for accumulator in _accumulators(clause):
                accumulators.setdefault(accumulator, len(accumulators))
        keep = np.zeros((self.final + 1, len(slots)), np.bool_)
        keep_groups = np.zeros((self.final + 1, len(accumulators)), np.bool_)
        for need in needs:
            for variable, which in need.identifiers:
                # The last event of a component is the run's own until it leaves it.
                begin = self.numbers[variable] + (which is Which.LAST)
                keep[begin : need.until + 1, slots[variable, which] - RUN_SLOTS] = True
            for accumulator in need.accumulators:
                keep_groups[: need.until + 1, accumulators[accumulator]] = True
        layout = Layout(self._identifiers(slots), columns, accumulators)
        return ComputationState(
            layout,
            [slots.get(self._first(number), -1) for number in range(self.final + 1)],
            [slots.get((state.component.variable, Which.LAST), -1) for state in self.plan.states],
            len(slots),
            keep,
            keep_groups,
            [self._slot(slots, self._left(absence)) for absence in self.plan.absences],
            [self._slot(slots, self._right(absence)) for absence in self.plan.absences],
        )

    # Needs

    def _clauses(self) -> Iterable[Clause]:
        for state in self.plan.states:
            yield from state.tests
        for absence in self.plan.absences:
            yield from absence.conditions

    def _of_edges(self) -> Iterable[_Need]:
        for number, state in enumerate(self.plan.states):
            # A begin edge is tested while the run is still at the state before.
            yield from (self._need(clause, number - 1) for clause in state.begin.tests)
            yield from (self._need(clause, number) for clause in (*state.take.tests, *state.proceed))

    def _of_absences(self) -> Iterable[_Need]:
        for absence in self.plan.absences:
            until = self.final if absence.at is None else absence.at - 1
            yield from (self._need(clause, until) for clause in absence.conditions)
            sides = [side for side in (self._left(absence), self._right(absence)) if side is not None]
            if absence.after == self.final:
                # Which window it lies in depends on the first event.
                sides.append(self._first(0))
            yield _Need(until, frozenset(sides))

    def _need(self, clause: Clause, until: int) -> _Need:
        identifiers = {
            (reference.variable, reference.which)
            for reference in references(clause)
            if isinstance(reference, Attribute)
            and reference.variable in self.numbers
            and reference.which in (Which.SINGLE, Which.FIRST, Which.LAST)
        }
        return _Need(until, frozenset(identifiers), frozenset(_accumulators(clause)))

    # Slots

    def _left(self, absence: Absence) -> Identifier | None:
        """The left neighbour, unless it is the event that the run has taken last."""
        if absence.after < 0 or absence.after == self.final or absence.at == absence.after + 1:
            return None
        component = self.plan.states[absence.after].component
        return component.variable, Which.SINGLE if component.kind is ComponentKind.SINGLE else Which.LAST

    def _right(self, absence: Absence) -> Identifier | None:
        """The right neighbour, unless it is the event that is being taken."""
        right = absence.after + 1
        if right > self.final or absence.at == right:
            return None
        alone = self.plan.states[right].component.kind is ComponentKind.SINGLE
        return None if absence.at is None and right == self.final and alone else self._first(right)

    def _first(self, number: int) -> Identifier:
        component = self.plan.states[number].component
        return component.variable, Which.SINGLE if component.kind is ComponentKind.SINGLE else Which.FIRST

    def _order(self, identifier: Identifier) -> tuple[int, str]:
        return self.numbers[identifier[0]], identifier[1].value

    @staticmethod
    def _slot(slots: Mapping[Identifier, int], identifier: Identifier | None) -> int:
        return -1 if identifier is None else slots[identifier]

    def _identifiers(self, slots: Mapping[Identifier, int]) -> dict[Identifier, int]:
        """The slot of every identifier of the query: in a run, of the event that is being taken, or absent."""
        known: dict[Identifier, int] = {}
        for component in self.query.components:
            name = component.variable
            known[name, Which.CURRENT], known[name, Which.PREVIOUS] = CURRENT, PREVIOUS
            for which in (Which.SINGLE, Which.FIRST, Which.LAST):
                known[name, which] = NEGATED if component.negated else ABSENT
            if not component.negated and name not in self.numbers:
                known[name, Which.CURRENT] = known[name, Which.PREVIOUS] = ABSENT
        return {**known, **slots}


def _accumulators(clause: Clause) -> Iterable[Accumulator]:
    for reference in references(clause):
        if isinstance(reference, Aggregate | Agrees):
            yield from accumulators_of(reference)

"""Conditions on records, compiled once per plan: on the whole record, or on each event of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kleene.codegen.aggregates import compile_aggregates
from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.linking import groups, link, link_aggregates
from kleene.engine.executors.trees.records import NamedRecords
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.intake.strings import StringPool
from kleene.kernels.expression import EventTest, Groups, Ints, ProgramScope, holds_each, room
from kleene.kernels.lists import FollowingTest, holds_along
from kleene.kernels.values import aggregate_each
from kleene.pattern.conditions import iterated
from kleene.pattern.expressions import Clause, Which
from kleene.plan.layout import Column, Identifier, Layout

Flags = npt.NDArray[np.bool_]


class CompiledCondition:
    """A conjunction of clauses on a record, and on one more event where `identifiers` names one."""

    def __init__(
        self,
        clauses: Sequence[Clause],
        columns: Mapping[str, Column],
        strings: StringPool,
        identifiers: Sequence[Identifier] = (),
    ) -> None:
        layout = Layout.of(clauses, columns)
        slots = dict(layout.identifiers)
        for identifier in identifiers:
            slots.setdefault(identifier, len(slots))
        self.layout = replace(layout, identifiers=slots)
        program = compile_clauses(clauses, self.layout)
        self.aggregates = compile_aggregates(self.layout)
        self.code, self.stack = link(program, strings), room(program.depth + 1)
        self.aggregation = link_aggregates(self.aggregates, strings)

    def slot(self, identifier: Identifier) -> int:
        return self.layout.identifiers[identifier]

    @property
    def slots(self) -> int:
        return max(len(self.layout.identifiers), 1)

    def bindings(self, bound: NamedRecords) -> Ints:
        """[record, slot]; what the records do not bind is absent."""
        bindings = np.full((len(bound), self.slots), -1, np.int64)
        for (variable, which), slot in self.layout.identifiers.items():
            bindings[:, slot] = bound.events(variable, which)
        return bindings

    def groups(self, bound: NamedRecords, at: Round, besides: str | None = None) -> Groups:
        """[record, aggregate]"""
        aggregates = groups(len(bound), max(len(self.layout.accumulators), 1))
        for variable, slots in self.aggregates.slots.items():
            if variable != besides:
                rows, begins = bound.covered(variable)
                aggregate_each(self.aggregation, slots, rows, begins.astype(np.int32), at.events, at.texts, aggregates)
        return aggregates

    def holds(self, bound: NamedRecords, at: Round) -> Flags:
        out = np.zeros(len(bound), np.bool_)
        if len(bound):
            holds_each(self.code, self.scope(bound, at), out)
        return out

    def scope(self, bound: NamedRecords, at: Round) -> ProgramScope:
        """A binding and a group for each record."""
        return at.scope(self.bindings(bound), self.groups(bound, at), self.stack)

    def event_test(self, identifier: Identifier) -> EventTest:
        """The condition as a test of the event that an identifier stands for."""
        return EventTest(self.code, self.slot(identifier))

    def along(self, variable: str, identifiers: Sequence[Identifier]) -> FollowingTest:
        """The condition as a test of each event of a list after its first."""
        slots = np.array([self.slot(identifier) for identifier in identifiers], np.int64)
        return FollowingTest(
            self.code, slots, self.aggregation, self.aggregates.slots.get(variable, np.zeros(0, np.int64))
        )


class Along(CompiledCondition):
    """Clauses on each event of a list after its first."""

    def __init__(
        self, variable: str, clauses: Sequence[Clause], columns: Mapping[str, Column], strings: StringPool
    ) -> None:
        self._variable = variable
        identifiers = (variable, Which.PREVIOUS), (variable, Which.CURRENT)
        super().__init__(clauses, columns, strings, identifiers)
        self._test = self.along(variable, identifiers)

    def holds(self, bound: NamedRecords, at: Round) -> Flags:
        out = np.zeros(len(bound), np.bool_)
        if len(bound):
            rows, begins = bound.covered(self._variable)
            aggregates = self.groups(bound, at, besides=self._variable)
            holds_along(rows, begins, self._test, at.scope(self.bindings(bound), aggregates, self.stack), out)
        return out


def conditions(
    clauses: Sequence[Clause], columns: Mapping[str, Column], strings: StringPool
) -> list[CompiledCondition]:
    """The compiled tests of all clauses."""
    plain = [clause for clause in clauses if iterated(clause) is None]
    tests = [CompiledCondition(plain, columns, strings)] if plain else []
    for name in dict.fromkeys(name for clause in clauses if (name := iterated(clause)) is not None):
        tests.append(Along(name, [clause for clause in clauses if iterated(clause) == name], columns, strings))
    return tests

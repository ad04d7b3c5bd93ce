"""The conditions of one operator as programs that test a left detection with a right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kleene.codegen.expression import compile_clauses
from kleene.engine.detections.arrays import no_detections
from kleene.engine.detections.events import HeldEvents
from kleene.engine.executors.linking import groups
from kleene.engine.executors.programs import depth_of, joined
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.memory import empty
from kleene.kernels.detections import (
    FIRST,
    LAST,
    MEMBER,
    PREVIOUS,
    DetectionArrays,
    Flags,
    PairTests,
    fill_slots,
    fits_each,
)
from kleene.kernels.expression import Ints, Programs, ProgramScope, Stack, room
from kleene.pattern.expressions import Attribute, Clause, Which, references
from kleene.plan.layout import Column, Layout
from kleene.plan.program import NotCompilable, Program

_KINDS = {
    Which.SINGLE: FIRST,
    Which.FIRST: FIRST,
    Which.LAST: LAST,
    Which.PREVIOUS: PREVIOUS,
    Which.MEMBER: MEMBER,
}


@dataclass(frozen=True, eq=False)
class CompiledTests:
    """Tests of one operator: the programs of each, and the slots that they read."""

    programs: tuple[Program, ...]
    # [test, 2]: its first program, and the one after its last.
    ranges: Ints
    # [program]: the alias of ALL, or −1, and the slot of its event.
    members: Ints
    member_slots: Ints
    # [slot, 2]: an alias, and which of its events.
    slots: Ints

    @staticmethod
    def of(
        tests: Sequence[tuple[Clause, ...]], columns: Mapping[str, Column], aliases: Mapping[str, int]
    ) -> CompiledTests:
        """`NotCompilable` where a condition has no program."""
        layout = Layout.of([clause for test in tests for clause in test], columns)
        programs: list[Program] = []
        ranges, members, member_slots = [], [], []
        for test in tests:
            first = len(programs)
            plain = [clause for clause in test if not _of_all(clause)]
            if plain:
                programs.append(compile_clauses(plain, layout))
                members.append(-1)
                member_slots.append(0)
            for clause in test:
                named = _of_all(clause)
                if not named:
                    continue
                if sum(any(each in references(literal) for each in named) for literal in clause.literals) > 1:
                    raise NotCompilable("two conditions on ALL in one OR")
                programs.append(compile_clauses([clause], layout))
                members.append(aliases[named[0].variable])
                member_slots.append(layout.identifiers[named[0].variable, Which.MEMBER])
            ranges.append((first, len(programs)))
        if not programs:
            programs.append(compile_clauses([], layout))
            members.append(-1)
            member_slots.append(0)
        slots = [(aliases[variable], _KINDS[which]) for variable, which in layout.identifiers]
        return CompiledTests(
            tuple(programs),
            np.array(ranges, np.int64).reshape(-1, 2),
            np.array(members, np.int64),
            np.array(member_slots, np.int64),
            np.array(slots, np.int64).reshape(-1, 2),
        )

    def linked(self, strings: StringPool) -> LinkedTests:
        return LinkedTests(self, joined(self.programs, strings), room(depth_of(self.programs)))


@dataclass(frozen=True, eq=False)
class LinkedTests:
    """Tests that run on the strings of one pool."""

    tests: CompiledTests
    programs: Programs
    stack: Stack

    def on(self, lefts: DetectionArrays, rights: DetectionArrays) -> PairTests:
        """The tests of these detections."""
        tests = self.tests
        return PairTests(
            self.programs,
            tests.ranges,
            tests.members,
            tests.member_slots,
            np.ascontiguousarray(tests.slots[:, 1]),
            self._slots(lefts, newest=False),
            self._slots(rights, newest=True),
        )

    def _slots(self, detections: DetectionArrays, *, newest: bool) -> Ints:
        rows = empty((len(detections.ends), len(self.tests.slots)), np.int64)
        fill_slots(detections, self.tests.slots, newest, rows)
        return rows

    def scope(self, events: HeldEvents, strings: StringPool) -> ProgramScope:
        bindings = np.zeros((1, max(1, len(self.tests.slots))), np.int64)
        return ProgramScope(events.columns, strings.arrays(), bindings, groups(1, 0), self.stack)


class SingleTests:
    """Conditions on detections by themselves."""

    def __init__(
        self,
        tests: Sequence[tuple[Clause, ...]],
        events: HeldEvents,
        strings: StringPool,
        aliases: Mapping[str, int],
    ) -> None:
        self._events, self._strings = events, strings
        self._tests = CompiledTests.of(tests, events.layout, aliases).linked(strings)

    def passed(self, detections: DetectionArrays, test: int = 0) -> Flags:
        """[detection]: whether it satisfies a test."""
        passed = np.zeros(len(detections.ends), np.bool_)
        scope = self._tests.scope(self._events, self._strings)
        fits_each(self._tests.on(no_detections(), detections), test, scope, detections, passed)
        return passed


def _of_all(clause: Clause) -> list[Attribute]:
    return [each for each in references(clause) if isinstance(each, Attribute) and each.which is Which.MEMBER]

"""Tests that a pair of records must pass to be joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.linking import groups, link
from kleene.engine.executors.trees.operators import Operator, Setting
from kleene.engine.executors.trees.records import taken
from kleene.engine.executors.trees.rounds import Round
from kleene.kernels import opcodes as op
from kleene.kernels.expression import Code, ProgramScope, room
from kleene.kernels.joins import (
    INNER,
    INNER_PLACE,
    INNER_STATE,
    OF_REALS,
    OUTCOMES,
    OUTER,
    OUTER_PLACE,
    OUTER_STATE,
    QUICK,
    PairTest,
    Records,
)
from kleene.pattern.expressions import Aggregate, Agrees, Clause, Which, references, variables
from kleene.pattern.nodes import Component
from kleene.plan.layout import Column, Layout
from kleene.plan.trees import bound

_MIRRORED = {op.LESS: op.GREATER, op.GREATER: op.LESS}


def is_simple(clause: Clause, setting: Setting) -> bool:
    """Whether a clause is on single events only."""
    return not variables(clause) & set(setting.pools) and not any(
        isinstance(reference, Aggregate | Agrees) for reference in references(clause)
    )


class PairTests:
    """The tests of a join, for either side as the inner one."""

    def __init__(
        self, clauses: Sequence[Clause], apart: Sequence[tuple[int, int]], join_: Operator, setting: Setting
    ) -> None:
        quick, slow = [], []
        for clause in clauses:
            comparison = _quick(clause, join_, setting.columns)
            if comparison is None:
                slow.append(clause)
            else:
                quick.append(comparison)
        layout = Layout.of(slow, setting.columns)
        program = compile_clauses(slow, layout)
        self._code: Code = link(program, setting.strings)
        self._stack = room(program.depth + 1)
        self._groups = groups(1, 1)
        self._bindings = np.full((1, max(len(layout.identifiers), 1)), -1, np.int64)
        sides = []
        for operator in join_.below:
            slots = [
                (slot, operator.columns[name])
                for (name, _), slot in layout.identifiers.items()
                if name in operator.columns
            ]
            sides.append(np.array(slots, np.int64).reshape(-1, 2))
        self._tests = []
        for inner_side in (0, 1):
            outer_side = 1 - inner_side
            rows = np.zeros((len(quick), QUICK), np.int64)
            for place, (outcomes, of_reals, reads) in enumerate(quick):
                # As compared from the left side's value to the right side's.
                rows[place, OUTCOMES] = outcomes if outer_side == 0 else _mirrored(outcomes)
                rows[place, OF_REALS] = of_reals
                rows[place, [OUTER, OUTER_PLACE, OUTER_STATE]] = reads[outer_side]
                rows[place, [INNER, INNER_PLACE, INNER_STATE]] = reads[inner_side]
            pairs = [(one, other) if outer_side == 0 else (other, one) for one, other in apart]
            self._tests.append(
                PairTest(
                    np.array(pairs, np.int64).reshape(-1, 2),
                    rows,
                    self._code,
                    sides[outer_side],
                    sides[inner_side],
                )
            )

    def test(self, inner_side: int) -> PairTest:
        return self._tests[inner_side]

    def scope(self, at: Round) -> ProgramScope:
        return at.scope(self._bindings, self._groups, self._stack)


_Read = tuple[int, int, int]


def _quick(
    clause: Clause, join_: Operator, columns: Mapping[str, Column]
) -> tuple[int, bool, tuple[_Read, _Read]] | None:
    """A comparison of one attribute on each side: its outcomes, whether of reals, and what it reads on each side."""
    layout = Layout.of([clause], columns)
    words = compile_clauses([clause], layout).code.reshape(-1, op.WIDTH).tolist()
    if [word[0] for word in words] not in _QUICK_PROGRAMS:
        return None
    names = {slot: name for (name, which), slot in layout.identifiers.items() if which is Which.SINGLE}
    reads: dict[int, _Read] = {}
    for side, operator in enumerate(join_.below):
        for _, slot, place, column in words[:2]:
            if names.get(slot) in operator.columns:
                reads[side] = operator.columns[names[slot]], place, column
    if len(reads) < 2 or words[0][1] == words[1][1]:
        return None
    first_is_left = names[words[0][1]] in join_.below[0].columns
    outcomes = words[2][2] if first_is_left else _mirrored(words[2][2])
    return outcomes, words[2][0] == op.COMPARE_REAL, (reads[0], reads[1])


_QUICK_PROGRAMS = (
    [op.LOAD_INT, op.LOAD_INT, op.COMPARE_INT, op.FAIL],
    [op.LOAD_REAL, op.LOAD_REAL, op.COMPARE_REAL, op.FAIL],
)


def _mirrored(outcomes: int) -> int:
    """The outcomes with the sides exchanged."""
    mirror = outcomes & op.EQUAL
    for outcome, other in _MIRRORED.items():
        mirror |= other if outcomes & outcome else 0
    return mirror


def clashes(left: Operator, right: Operator, setting: Setting) -> list[tuple[int, int]]:
    """Columns of single variables that could hold the same event."""
    return [
        (left.columns[one.variable], right.columns[other.variable])
        for one, other in _overlapping(left, right)
        if one.variable not in setting.pools and other.variable not in setting.pools
    ]


def lists_clash(left: Operator, right: Operator, setting: Setting) -> bool:
    return any(
        one.variable in setting.pools or other.variable in setting.pools for one, other in _overlapping(left, right)
    )


def _overlapping(left: Operator, right: Operator) -> list[tuple[Component, Component]]:
    return [
        (one, other) for one in bound(left.node) for other in bound(right.node) if set(one.types) & set(other.types)
    ]


def with_distinct(records: Records, operator: Operator) -> Records:
    """The records in which no event fills two places."""
    events, offsets, _ = operator.bound(records).references(operator.variables)
    whose = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((events, whose))
    events, whose = events[order], whose[order]
    twice = (events[1:] == events[:-1]) & (whose[1:] == whose[:-1])
    if not twice.any():
        return records
    survivors = np.ones(len(records.times), np.bool_)
    survivors[whose[1:][twice]] = False
    return taken(records, survivors)

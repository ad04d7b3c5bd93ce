"""SEQ, CONJ and NSEQ (ZStream §4.4.1–4.4.3): two buffers, joined by what is new in either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kleene.engine.growing import Growing, with_room
from kleene.engine.linking import groups, link
from kleene.engine.memory import empty
from kleene.engine.trees.conditions import Condition, conditions
from kleene.engine.trees.lookup import Lookup, SideIndex, fits_lookup
from kleene.engine.trees.operators import ClosureEvents, Operator, Setting, kept_by
from kleene.engine.trees.records import taken, together
from kleene.engine.trees.rounds import Round
from kleene.kernels import opcodes as op
from kleene.kernels.expression import Code, Ints, room
from kleene.kernels.trees import (
    BEFORE,
    COUNTED,
    EARLIER,
    END,
    FAR,
    FIRST,
    INNER,
    INNER_PLACE,
    INNER_STATE,
    LEFT,
    OF_REALS,
    OUTCOMES,
    OUTER,
    OUTER_PLACE,
    OUTER_STATE,
    QUICK,
    RIGHT,
    TIMES,
    TRIED,
    UP_TO,
    Records,
    Tests,
    first_negating,
    join,
    last_negating,
)
from kleene.optimize.compile_expression import compile_clauses
from kleene.pattern.expressions import Aggregate, Agrees, Clause, Which, references, variables
from kleene.pattern.nodes import Component
from kleene.plan.layout import Column, Layout
from kleene.plan.trees import Join, JoinNode, Side, TreeAbsence, bound

_MIRRORED = {op.LESS: op.GREATER, op.GREATER: op.LESS}
_NONE = np.zeros(0, np.int64)


class JoinOperator(Operator):
    def __init__(self, node: JoinNode, left: Operator, right: Operator, setting: Setting) -> None:
        super().__init__(node, [*left.variables, *right.variables], setting)
        self._left, self._right, self._ordered = left, right, node.kind is Join.SEQ
        usable = [clause for clause in node.equalities if fits_lookup(clause, setting.columns)]
        self._lookup = Lookup(usable, (left.columns, right.columns), setting.columns, keyed=setting.keyed)
        self._indices = SideIndex(0, self._lookup), SideIndex(1, self._lookup)
        others = [clause for clause in (*node.equalities, *node.tests) if clause not in usable]
        simple = [clause for clause in others if _is_simple(clause, setting)]
        self._tests = conditions(
            [clause for clause in others if clause not in simple], setting.columns, setting.strings
        )
        clashes = [] if self._ordered else _clashes(left, right, setting)
        self._pairs = _PairTests(simple, clashes, self, setting)
        # Lists can clash as well, which only whole records show.
        self._apart = not self._ordered and _lists_clash(left, right, setting)
        self.pushed = [
            (_AfterLeft if side is Side.LEFT else _BeforeRight)(absence, setting) for side, absence in node.pushed
        ]

    @property
    def below(self) -> tuple[Operator, ...]:
        return self._left, self._right

    def assemble(self, at: Round) -> None:
        self._left.assemble(at)
        self._right.assemble(at)
        left, right = self._left.buffer, self._right.buffer
        if left.size > left.fresh:
            self._indices[0].take(left, left.fresh, at)
        made = []
        if self._ordered:
            before = [pushed for pushed in self.pushed if isinstance(pushed, _AfterLeft)]
            for pushed in before:
                pushed.look(self._left, at)
            if right.size > right.fresh and left.size and self._emits(at):
                made.append(self._joined(0, right.delta, BEFORE, at))
            right.clear()
        else:
            if right.size > right.fresh:
                self._indices[1].take(right, right.fresh, at)
            if right.size > right.fresh and left.size and self._emits(at):
                made.append(self._joined(0, right.delta, UP_TO, at))
            if left.size > left.fresh and right.size and self._emits(at):
                made.append(self._joined(1, left.delta, EARLIER, at))
            right.fresh = right.size
        left.fresh = left.size
        self._clear(at)
        if made:
            records = together(made)
            if self._apart:
                records = _with_distinct(records, self)
            records = kept_by(self._tests, self.bound(records), at)
            self.counts.made += len(records.times)
            self.buffer.append(records)

    def _emits(self, at: Round) -> bool:
        return at.emits or not self.is_root

    is_root = False

    def _joined(self, inner_side: int, outer: Records, order: int, at: Round) -> Records:
        """New records of one side with all of the other."""
        inner = (self._left, self._right)[inner_side].buffer
        codes = self._lookup.codes(1 - inner_side, outer, at)
        floors, ceilings = _NONE, _NONE
        for pushed in self.pushed:
            if isinstance(pushed, _BeforeRight):
                found = pushed.floors(self._right, outer, at)
                floors = found if not len(floors) else np.maximum(floors, found)
            else:
                known = pushed.ceilings
                ceilings = known if not len(ceilings) else np.minimum(ceilings, known)
        most = at.accounts.matches_per_event
        tests, stack = self._pairs.tests(inner_side), self._pairs.stack
        counts, written = np.zeros(COUNTED, np.int64), np.zeros(1, np.int64)
        made = _room(max(1024, 2 * len(codes)), len(self.variables))
        done = 0
        while True:
            done = join(
                done,
                outer,
                codes,
                inner.all,
                inner.size,
                self._indices[inner_side].links,
                order,
                inner_side == 1,
                floors,
                ceilings,
                at.window,
                at.starts,
                at.time,
                tests,
                at.events,
                at.texts,
                self._pairs.groups,
                stack,
                most,
                made,
                written,
                counts,
            )
            if done == len(codes):
                break
            if len(made.times) - written[0] > most:
                at.accounts.too_many_matches(at.store, int(outer.times[done, 5]))
            made = Records(with_room(made.refs, 2 * len(made.refs)), with_room(made.times, 2 * len(made.times)))
        self.counts.tried += int(counts[TRIED])
        return Records(made.refs[: written[0]], made.times[: written[0]])

    def _clear(self, at: Round) -> None:
        """Drop what the window has left behind."""
        if at.window.earliest <= -FAR:
            return
        sides = (self._left,) if self._ordered else (self._left, self._right)
        cleared = [side.buffer.clear_before(at.window.earliest) for side in sides]
        if not any(cleared):
            return
        self._lookup.forget()
        for index, side in zip(self._indices, sides, strict=False):
            index.forget()
            index.take(side.buffer, 0, at)
        for pushed in self.pushed:
            if isinstance(pushed, _AfterLeft):
                pushed.again(self._left, at)

    @property
    def nbytes(self) -> int:
        pushed = sum(each.candidates.linked.nbytes for each in self.pushed)
        return super().nbytes + sum(index.nbytes for index in self._indices) + pushed


def _is_simple(clause: Clause, setting: Setting) -> bool:
    """Whether it speaks of single events alone."""
    return not variables(clause) & set(setting.pools) and not any(
        isinstance(reference, Aggregate | Agrees) for reference in references(clause)
    )


def _room(size: int, columns: int) -> Records:
    return Records(empty((size, columns), np.int32), empty((size, TIMES), np.int64))


# What a pair must satisfy --------------------------------------------------------------------------------------------


class _PairTests:
    """The tests of a join, for either side as the inner one."""

    def __init__(
        self, clauses: Sequence[Clause], clashes: Sequence[tuple[int, int]], join_: JoinOperator, setting: Setting
    ) -> None:
        quick, slow = [], []
        for clause in clauses:
            found = _quick(clause, join_, setting.columns)
            if found is None:
                slow.append(clause)
            else:
                quick.append(found)
        layout = Layout.of(slow, setting.columns)
        program = compile_clauses(slow, layout)
        self._code: Code = link(program, setting.strings)
        self.stack = room(program.depth + 1)
        self.groups = groups(1, 1)
        chosen = np.full((1, max(len(layout.identifiers), 1)), -1, np.int64)
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
            pairs = [(one, other) if outer_side == 0 else (other, one) for one, other in clashes]
            self._tests.append(
                Tests(
                    rows,
                    self._code,
                    sides[outer_side],
                    sides[inner_side],
                    chosen,
                    np.array(pairs, np.int64).reshape(-1, 2),
                )
            )

    def tests(self, inner_side: int) -> Tests:
        return self._tests[inner_side]


_Read = tuple[int, int, int]


def _quick(
    clause: Clause, join_: JoinOperator, columns: Mapping[str, Column]
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
    kept = outcomes & op.EQUAL
    for outcome, other in _MIRRORED.items():
        kept |= other if outcomes & outcome else 0
    return kept


def _clashes(left: Operator, right: Operator, setting: Setting) -> list[tuple[int, int]]:
    """Columns of single variables that could hold the same event."""
    return [
        (left.columns[one.variable], right.columns[other.variable])
        for one, other in _overlapping(left, right)
        if one.variable not in setting.pools and other.variable not in setting.pools
    ]


def _lists_clash(left: Operator, right: Operator, setting: Setting) -> bool:
    return any(
        one.variable in setting.pools or other.variable in setting.pools for one, other in _overlapping(left, right)
    )


def _overlapping(left: Operator, right: Operator) -> list[tuple[Component, Component]]:
    return [
        (one, other) for one in bound(left.node) for other in bound(right.node) if set(one.types) & set(other.types)
    ]


def _with_distinct(records: Records, operator: Operator) -> Records:
    """An event fills one place."""
    events, offsets, _ = operator.bound(records).references(operator.variables)
    whose = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((events, whose))
    events, whose = events[order], whose[order]
    twice = (events[1:] == events[:-1]) & (whose[1:] == whose[:-1])
    if not twice.any():
        return records
    kept = np.ones(len(records.times), np.bool_)
    kept[whose[1:][twice]] = False
    return taken(records, kept)


# NSEQ ----------------------------------------------------------------------------------------------------------------


class _Pushed:
    """What is negated between the sides of a join, with conditions on one of them only."""

    def __init__(self, absence: TreeAbsence, setting: Setting) -> None:
        variable = absence.scan.component.variable
        self.setting = setting
        self.candidates = ClosureEvents(absence.scan.component, keyed=setting.keyed)
        self.condition = Condition(absence.conditions, setting.columns, setting.strings, [(variable, Which.SINGLE)])
        self.slot = self.condition.slot((variable, Which.SINGLE))

    def codes(self, records: Records, at: Round) -> Ints:
        times = records.times
        return at.time.keys[times[:, FIRST]] if self.setting.keyed else np.zeros(len(times), np.int64)


class _BeforeRight(_Pushed):
    """For each new record of the right side, the last negated event before it: what ends before that is forbidden."""

    def floors(self, side: Operator, records: Records, at: Round) -> Ints:
        linked, condition = self.candidates.linked, self.condition
        out = np.full(len(records.times), -1, np.int64)
        if linked.size:
            whole = side.bound(records)
            last_negating(
                condition.bindings(whole),
                condition.groups(whole, at),
                np.ascontiguousarray(records.times[:, LEFT]),
                self.codes(records, at),
                np.ascontiguousarray(records.times[:, END]),
                linked.events,
                linked.linked.heads,
                linked.linked.previous,
                at.time,
                at.window,
                at.lasting,
                condition.code,
                at.events,
                at.texts,
                condition.stack,
                self.slot,
                out,
            )
        return out


class _AfterLeft(_Pushed):
    """For each record of the left side, the first negated event after it: what starts after that is forbidden."""

    def __init__(self, absence: TreeAbsence, setting: Setting) -> None:
        super().__init__(absence, setting)
        self._ceilings = Growing(np.zeros(0, np.int64))
        self._looked = 0

    @property
    def ceilings(self) -> Ints:
        known: Ints = self._ceilings.array
        return known

    def look(self, side: Operator, at: Round) -> None:
        """Look for new negated events after all records, and for all of them after new records."""
        buffer, linked = side.buffer, self.candidates.linked
        known = self._ceilings.size
        if buffer.size > known:
            self._ceilings.append(np.full(buffer.size - known, FAR, np.int64))
        if linked.size > self._looked and known:
            still = np.flatnonzero(self._ceilings.used[:known] == FAR)
            self._find(side, still, self._looked, at)
        if buffer.size > known:
            self._find(side, np.arange(known, buffer.size), 0, at)
        self._looked = linked.size

    def again(self, side: Operator, at: Round) -> None:
        """Records have other numbers now."""
        self._ceilings = Growing(np.zeros(0, np.int64))
        self.look(side, at)

    def _find(self, side: Operator, places: Ints, begin: int, at: Round) -> None:
        linked, condition = self.candidates.linked, self.condition
        if not len(places) or not linked.size:
            return
        whole = side.bound(taken(side.buffer.all, places))
        out = self._ceilings.array[places]
        first_negating(
            condition.bindings(whole),
            condition.groups(whole, at),
            np.ascontiguousarray(whole.records.times[:, RIGHT]),
            self.codes(whole.records, at),
            begin,
            linked.events,
            linked.linked.heads,
            linked.linked.previous,
            at.time,
            condition.code,
            at.events,
            at.texts,
            condition.stack,
            self.slot,
            out,
        )
        self._ceilings.array[places] = out

"""SEQ and CONJ (ZStream §4.4.1, §4.4.3): joins the new records of two buffers with those of the other."""

from __future__ import annotations

import numpy as np

from kleene.engine.executors.trees.conditions import conditions
from kleene.engine.executors.trees.lookup import Lookup, SideIndex
from kleene.engine.executors.trees.negations import AfterLeft, BeforeRight
from kleene.engine.executors.trees.operators import Operator, Setting, kept_by
from kleene.engine.executors.trees.pair_tests import PairTests, clashes, is_simple, lists_clash, with_distinct
from kleene.engine.executors.trees.records import together
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.kernels.joins import (
    BEFORE,
    EARLIER,
    LAST,
    TIMES,
    UP_TO,
    CodedRecords,
    LinkedRecords,
    Pairing,
    Pairs,
    Records,
    join,
)
from kleene.kernels.timeline import EARLIEST
from kleene.plan.trees import Join, JoinNode, Side

_NONE = np.zeros(0, np.int64)


class JoinOperator(Operator):
    def __init__(self, node: JoinNode, left: Operator, right: Operator, setting: Setting) -> None:
        super().__init__(node, [*left.variables, *right.variables], setting)
        self._left, self._right, self._ordered = left, right, node.kind is Join.SEQ
        equalities, untold = setting.looked_up(node.equalities, left.columns)
        self._lookup = Lookup(equalities, keyed=setting.keyed)
        self._indices = SideIndex(0, self._lookup), SideIndex(1, self._lookup)
        others = [*untold, *node.tests]
        simple = [clause for clause in others if is_simple(clause, setting)]
        self._tests = conditions(
            [clause for clause in others if clause not in simple], setting.columns, setting.strings
        )
        apart = [] if self._ordered else clashes(left, right, setting)
        self._pairs = PairTests(simple, apart, self, setting)
        # A join is expected to make about as many records as the last one.
        self._records_before = 0
        # Lists can clash as well, which only whole records show.
        self._apart = not self._ordered and lists_clash(left, right, setting)
        self.pushed = [
            (AfterLeft if side is Side.LEFT else BeforeRight)(absence, setting) for side, absence in node.pushed
        ]

    @property
    def below(self) -> tuple[Operator, ...]:
        return self._left, self._right

    def assemble(self, at: Round) -> None:
        self._left.assemble(at)
        self._right.assemble(at)
        left, right = self._left.buffer, self._right.buffer
        if left.size > left.fresh:
            self._indices[0].take(left.fresh, self._left.bound(left.delta), at)
        parts = []
        if self._ordered:
            before = [pushed for pushed in self.pushed if isinstance(pushed, AfterLeft)]
            for pushed in before:
                pushed.look(self._left, at)
            if right.size > right.fresh and left.size and self._emits(at):
                parts.append(self._joined(0, right.delta, BEFORE, at))
            right.clear()
        else:
            if right.size > right.fresh:
                self._indices[1].take(right.fresh, self._right.bound(right.delta), at)
            if right.size > right.fresh and left.size and self._emits(at):
                parts.append(self._joined(0, right.delta, UP_TO, at))
            if left.size > left.fresh and right.size and self._emits(at):
                parts.append(self._joined(1, left.delta, EARLIER, at))
            right.fresh = right.size
        left.fresh = left.size
        self._clear(at)
        if parts:
            records = together(parts)
            if self._apart:
                records = with_distinct(records, self)
            records = kept_by(self._tests, self.bound(records), at)
            self.counts.records += len(records.times)
            self.buffer.append(records)

    def _emits(self, at: Round) -> bool:
        return at.emits or not self.is_root

    is_root = False

    def _joined(self, inner_side: int, outer: Records, order: int, at: Round) -> Records:
        """Join new records of one side with all of the other."""
        inner = (self._left, self._right)[inner_side].buffer
        codes = self._lookup.of_records(1 - inner_side, (self._left, self._right)[1 - inner_side].bound(outer), at)
        floors, ceilings = _NONE, _NONE
        for pushed in self.pushed:
            if isinstance(pushed, BeforeRight):
                new_floors = pushed.floors(self._right, outer, at)
                floors = new_floors if not len(floors) else np.maximum(floors, new_floors)
            else:
                known = pushed.ceilings
                ceilings = known if not len(ceilings) else np.minimum(ceilings, known)
        most, swapped = at.accounts.matches_per_event, inner_side == 1
        pairing = Pairing(order, swapped, self._pairs.test(inner_side), floors, ceilings, at.starts, most)
        coded = CodedRecords(*outer, codes)
        linked = LinkedRecords(*inner.all, inner.size, self._indices[inner_side].links)
        out = room_for(max(1024, 2 * len(codes), self._records_before), len(self.variables))
        done = 0
        while True:
            done = join(done, coded, linked, pairing, at.window, at.time, self._pairs.scope(at), out)
            if done == len(codes):
                break
            if len(out.times) - out.number[0] > most:
                at.accounts.too_many_matches(at.store, int(outer.times[done, LAST]))
            room = 2 * len(out.times)
            out = out._replace(refs=with_room(out.refs, room), times=with_room(out.times, room))
        self.counts.tried += int(out.tried[0])
        number = int(out.number[0])
        self._records_before = number + number // 8
        return Records(out.refs[:number], out.times[:number])

    def _clear(self, at: Round) -> None:
        """Drop the records that the window has left behind."""
        if at.window.earliest == EARLIEST:
            return
        sides = (self._left,) if self._ordered else (self._left, self._right)
        cleared = [side.buffer.clear_before(at.window.earliest) for side in sides]
        if not any(cleared):
            return
        self._lookup.forget()
        for index, side in zip(self._indices, sides, strict=False):
            index.forget()
            index.take(0, side.bound(side.buffer.used), at)
        for pushed in self.pushed:
            if isinstance(pushed, AfterLeft):
                pushed.again(self._left, at)

    @property
    def nbytes(self) -> int:
        pushed = sum(each.candidates.linked.nbytes for each in self.pushed)
        return super().nbytes + sum(index.nbytes for index in self._indices) + pushed


def room_for(size: int, columns: int) -> Pairs:
    refs, times = empty((size, columns), np.int32), empty((size, TIMES), np.int64)
    return Pairs(refs, times, np.zeros(1, np.int64), np.zeros(1, np.int64))

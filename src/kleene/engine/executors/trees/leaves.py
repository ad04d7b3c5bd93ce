"""Leaf buffers (ZStream §4.2): events, or the lists that a Kleene component makes of them."""

from __future__ import annotations

import numpy as np

from kleene.engine.executors.linking import groups
from kleene.engine.executors.trees.conditions import CompiledCondition, conditions
from kleene.engine.executors.trees.operators import Operator, Setting, kept_by
from kleene.engine.executors.trees.records import ListPool
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.kernels.expression import Groups, Ints
from kleene.kernels.joins import END, FIRST, LAST, LEFT, RIGHT, START, TIMES, Records
from kleene.kernels.lists import Lists, grow, spelled_out
from kleene.kernels.timeline import Timeline
from kleene.pattern.conditions import iterated
from kleene.pattern.expressions import Which
from kleene.pattern.nodes import ComponentKind
from kleene.plan.trees import LeafNode


def records_of(events: Ints, at: Round) -> Records:
    """Events as records of one column."""
    time = at.time
    times = np.empty((len(events), TIMES), np.int64)
    times[:, LEFT], times[:, RIGHT] = time.lefts[events], time.rights[events]
    times[:, START], times[:, END] = time.starts[events], time.ends[events]
    times[:, FIRST] = times[:, LAST] = events
    refs = events.astype(np.int32).reshape(-1, 1)
    right = times[:, RIGHT]
    if at.lasting and not np.all(right[1:] >= right[:-1]):
        order = np.argsort(right, kind="stable")
        return Records(refs[order], times[order])
    return Records(refs, times)


class LeafOperator(Operator):
    """A leaf buffer: events wait in it until there is something to assemble."""

    def __init__(self, node: LeafNode, setting: Setting) -> None:
        super().__init__(node, [node.scan.component.variable], setting)
        self._waiting: list[Ints] = []

    @property
    def below(self) -> tuple[Operator, ...]:
        return ()

    def offer(self, events: Ints) -> None:
        if len(events):
            self._waiting.append(events)

    def assemble(self, at: Round) -> None:
        if not self._waiting:
            return
        events = np.concatenate(self._waiting)
        self._waiting = []
        self.counts.tried += len(events)
        if at.window.within.size >= 0:
            events = events[at.time.starts[events] >= at.window.earliest]
        self.counts.records += len(events)
        self.buffer.append(records_of(events, at))


class KleeneLeaf(LeafOperator):
    """A leaf buffer of lists: every list of successive events of a Kleene component (`A+ a[]`)."""

    def __init__(self, node: LeafNode, setting: Setting) -> None:
        super().__init__(node, setting)
        component = node.scan.component
        self._component, self._pool = component, setting.pools.setdefault(component.variable, ListPool())
        identifiers = [(component.variable, which) for which in (Which.PREVIOUS, Which.CURRENT, Which.FIRST)]
        following = [clause for clause in node.tests if iterated(clause) is not None]
        self._following = CompiledCondition(following, setting.columns, setting.strings, identifiers)
        self._test = self._following.along(component.variable, identifiers)
        whole = [clause for clause in node.tests if iterated(clause) is None]
        self._tests = conditions(whole, setting.columns, setting.strings)
        nothing = np.zeros(0, np.int32)
        self._lists = Lists(nothing, nothing.copy(), nothing.copy(), nothing.copy(), np.zeros(1, np.int64))
        self._groups = groups(0, max(len(self._following.layout.accumulators), 1))

    def assemble(self, at: Round) -> None:
        if not self._waiting:
            return
        events = np.concatenate(self._waiting)
        self._waiting = []
        if at.window.within.size >= 0:
            events = events[at.time.starts[events] >= at.window.earliest]
        begin = int(self._lists.number[0])
        self._grow(events, at)
        new_lists = np.arange(begin, int(self._lists.number[0]))
        self.counts.tried += len(new_lists)
        new_lists = new_lists[self._lists.length[new_lists] >= self._component.minimum]
        if at.lasting:
            new_lists = new_lists[np.argsort(at.time.rights[self._lists.event[new_lists]], kind="stable")]
        offsets = np.zeros(len(new_lists) + 1, np.int64)
        np.cumsum(self._lists.length[new_lists], out=offsets[1:])
        rows = empty(int(offsets[-1]), np.int32)
        spelled_out(self._lists, new_lists, offsets, rows)
        first, last = (array[new_lists].astype(np.int64) for array in (self._lists.first, self._lists.event))
        times = np.empty((len(new_lists), TIMES), np.int64)
        times[:, LEFT], times[:, RIGHT] = at.time.lefts[first], at.time.rights[last]
        times[:, START], times[:, END] = at.time.starts[first], at.time.ends[last]
        times[:, FIRST], times[:, LAST] = first, last
        refs = self._pool.add(np.diff(offsets), rows).reshape(-1, 1)
        records = kept_by(self._tests, self.bound(Records(refs, times)), at)
        self.counts.records += len(records.times)
        self.buffer.append(records)

    def forget_before(self, earliest: int, time: Timeline) -> None:
        """Drop lists that start too early to grow; a list starts with the one that it extends."""
        number = int(self._lists.number[0])
        live = np.flatnonzero(time.starts[self._lists.first[:number]] >= earliest)
        places = np.full(number + 1, -1, np.int32)
        places[live] = np.arange(len(live), dtype=np.int32)
        parent, event, first, length, _ = self._lists
        # −1, the parent of a list's first event, stands at the end of `places`.
        self._lists = Lists(
            places[parent[live]], event[live], first[live], length[live], np.array([len(live)], np.int64)
        )
        ints, reals, states = self._groups
        self._groups = Groups(ints[live], reals[live], states[live])

    def _grow(self, events: Ints, at: Round) -> None:
        condition = self._following
        maximum = -1 if self._component.maximum is None else self._component.maximum
        bindings = np.full((1, condition.slots), -1, np.int64)
        most = at.accounts.budget.runs_per_partition
        done = 0
        while True:
            scope = at.scope(bindings, self._groups, condition.stack)
            done = grow(done, events, self._lists, maximum, at.window, at.time, self._test, scope)
            if done == len(events):
                return
            room = len(self._lists.event)
            if room > most:
                at.accounts.too_many_runs(at.store, int(events[done]))
            more = max(1024, 2 * room)
            parent, event, first, length, number = self._lists
            self._lists = Lists(
                with_room(parent, more), with_room(event, more), with_room(first, more), with_room(length, more), number
            )
            self._groups = Groups(*(with_room(array, more) for array in self._groups))

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(int(array.nbytes) for array in (*self._lists, *self._groups))


def is_kleene(node: LeafNode) -> bool:
    return node.scan.component.kind is ComponentKind.KLEENE

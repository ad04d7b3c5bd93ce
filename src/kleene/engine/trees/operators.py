"""The operators of a tree: leaves, DISJ, KSEQ and NEG. Joins are in `joins`.

In a round an operator lets those below it work first, then adds to its buffer what is new.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.engine.growing import with_room
from kleene.engine.linking import groups
from kleene.engine.memory import empty
from kleene.engine.strings import StringPool
from kleene.engine.trees.conditions import Condition, conditions, iterated
from kleene.engine.trees.lookup import LinkedEvents
from kleene.engine.trees.records import Bound, ListPool, RecordBuffer, taken, together
from kleene.engine.trees.rounds import Round
from kleene.kernels.expression import Groups, Ints
from kleene.kernels.negation import forbidden
from kleene.kernels.timeline import Timeline
from kleene.kernels.trees import (
    END,
    FAR,
    FIRST,
    LAST,
    LEFT,
    RIGHT,
    START,
    TIMES,
    Lists,
    Numbers,
    Records,
    grow,
    members,
    spelled_out,
)
from kleene.pattern.expressions import Clause, Which
from kleene.pattern.nodes import Component, Kind
from kleene.plan.layout import Column
from kleene.plan.trees import Gap, GroupNode, LeafNode, Node, TreeAbsence

Flags = npt.NDArray[np.bool_]


@dataclass
class Counts:
    """What an operator did: pairs or records that it looked at, and records that it made."""

    tried: int = 0
    made: int = 0


@dataclass(frozen=True, eq=False)
class Setting:
    """What operators are made with."""

    columns: Mapping[str, Column]
    strings: StringPool
    # By variable: the lists of closures and of Kleene components.
    pools: dict[str, ListPool]
    # Whether records of different partitions never meet.
    keyed: bool


class Operator(ABC):
    def __init__(self, node: Node, variables: Sequence[str], setting: Setting) -> None:
        self.node, self.variables, self.setting = node, tuple(variables), setting
        self.columns = {variable: place for place, variable in enumerate(variables)}
        self.buffer = RecordBuffer(len(variables))
        self.counts = Counts()

    @property
    @abstractmethod
    def below(self) -> tuple[Operator, ...]: ...

    @abstractmethod
    def assemble(self, at: Round) -> None:
        """Let those below work, then add what is new."""

    def bound(self, records: Records) -> Bound:
        return Bound(records, self.columns, self.setting.pools)

    def consume(self) -> Records:
        """What is new, for a parent that keeps it itself."""
        delta = self.buffer.delta
        self.buffer.clear()
        return delta

    def everything(self) -> list[Operator]:
        return [*(each for operator in self.below for each in operator.everything()), self]

    @property
    def nbytes(self) -> int:
        return self.buffer.nbytes


def kept_by(tests: Sequence[Condition], bound: Bound, at: Round) -> Records:
    """The records that satisfy everything."""
    records = bound.records
    for test in tests:
        kept = test.holds(Bound(records, bound.columns, bound.pools), at)
        if not kept.all():
            records = taken(records, kept)
    return records


# Leaves --------------------------------------------------------------------------------------------------------------


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


class Leaf(Operator):
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
        if at.window.size >= 0:
            events = events[at.time.starts[events] >= at.window.earliest]
        self.counts.made += len(events)
        self.buffer.append(records_of(events, at))


class KleeneLeaf(Leaf):
    """Every list of events, one after the other, of a Kleene component (`A+ a[]`)."""

    def __init__(self, node: LeafNode, setting: Setting) -> None:
        super().__init__(node, setting)
        component = node.scan.component
        self._component, self._pool = component, setting.pools.setdefault(component.variable, ListPool())
        asked = [(component.variable, which) for which in (Which.FIRST, Which.PREVIOUS, Which.CURRENT)]
        following = [clause for clause in node.tests if iterated(clause) is not None]
        self._following = Condition(following, setting.columns, setting.strings, asked)
        self._slots = np.array([self._following.slot(identifier) for identifier in asked], np.int64)
        whole = [clause for clause in node.tests if iterated(clause) is None]
        self._tests = conditions(whole, setting.columns, setting.strings)
        self._kept = self._following.aggregates.slots.get(component.variable, np.zeros(0, np.int64))
        nothing = np.zeros(0, np.int32)
        self._lists = Lists(nothing, nothing.copy(), nothing.copy(), nothing.copy(), np.zeros(1, np.int64))
        self._groups = groups(0, max(len(self._following.layout.accumulators), 1))

    def assemble(self, at: Round) -> None:
        if not self._waiting:
            return
        events = np.concatenate(self._waiting)
        self._waiting = []
        if at.window.size >= 0:
            events = events[at.time.starts[events] >= at.window.earliest]
        begin = int(self._lists.number[0])
        self._grow(events, at)
        made = np.arange(begin, int(self._lists.number[0]))
        self.counts.tried += len(made)
        made = made[self._lists.length[made] >= self._component.minimum]
        if at.lasting:
            made = made[np.argsort(at.time.rights[self._lists.event[made]], kind="stable")]
        offsets = np.zeros(len(made) + 1, np.int64)
        np.cumsum(self._lists.length[made], out=offsets[1:])
        rows = empty(int(offsets[-1]), np.int32)
        spelled_out(self._lists, made, offsets, rows)
        first, last = (array[made].astype(np.int64) for array in (self._lists.first, self._lists.event))
        times = np.empty((len(made), TIMES), np.int64)
        times[:, LEFT], times[:, RIGHT] = at.time.lefts[first], at.time.rights[last]
        times[:, START], times[:, END] = at.time.starts[first], at.time.ends[last]
        times[:, FIRST], times[:, LAST] = first, last
        refs = self._pool.add(np.diff(offsets), rows).reshape(-1, 1)
        records = kept_by(self._tests, self.bound(Records(refs, times)), at)
        self.counts.made += len(records.times)
        self.buffer.append(records)

    def forget_before(self, earliest: int, time: Timeline) -> None:
        """Drop lists that start too early to grow; what a list goes on from starts with it."""
        number = int(self._lists.number[0])
        kept = np.flatnonzero(time.starts[self._lists.first[:number]] >= earliest)
        places = np.full(number + 1, -1, np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        parent, event, first, length, _ = self._lists
        # −1, the parent of a list's first event, stands at the end of `places`.
        self._lists = Lists(
            places[parent[kept]], event[kept], first[kept], length[kept], np.array([len(kept)], np.int64)
        )
        ints, reals, states = self._groups
        self._groups = Groups(ints[kept], reals[kept], states[kept])

    def _grow(self, events: Ints, at: Round) -> None:
        condition, maximum = self._following, self._component.maximum
        chosen = np.full((1, condition.slots), -1, np.int64)
        most = at.accounts.budget.runs_per_partition
        done = 0
        while True:
            done = grow(
                done,
                events,
                self._lists,
                -1 if maximum is None else maximum,
                at.window,
                at.time,
                condition.code,
                chosen,
                self._slots,
                condition.aggregation,
                self._kept,
                self._groups,
                at.events,
                at.texts,
                condition.stack,
            )
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


# DISJ ----------------------------------------------------------------------------------------------------------------


class Union(Operator):
    def __init__(self, node: Node, parts: Sequence[Operator], tests: Sequence[Clause], setting: Setting) -> None:
        super().__init__(node, [name for part in parts for name in part.variables], setting)
        self._parts = tuple(parts)
        self._tests = conditions(tests, setting.columns, setting.strings)

    @property
    def below(self) -> tuple[Operator, ...]:
        return self._parts

    def assemble(self, at: Round) -> None:
        made = []
        first = 0
        for part in self._parts:
            part.assemble(at)
            delta = part.consume()
            if len(delta.times):
                refs = np.full((len(delta.times), len(self.variables)), -1, np.int32)
                refs[:, first : first + len(part.variables)] = delta.refs
                made.append(Records(refs, delta.times))
            first += len(part.variables)
        if not made:
            return
        self.counts.tried += sum(len(records.times) for records in made)
        records = kept_by(self._tests, self.bound(together(made)), at)
        self.counts.made += len(records.times)
        self.buffer.append(records)


# KSEQ ----------------------------------------------------------------------------------------------------------------


class ClosureEvents:
    """The events that can be members of a closure, or of a negated class."""

    def __init__(self, component: Component, *, keyed: bool) -> None:
        self.component, self.keyed = component, keyed
        self.linked = LinkedEvents()

    def offer(self, events: Ints, at: Round) -> None:
        self.linked.append(events, at, keyed=self.keyed)


def bounds(gap: Gap, bound: Bound, at: Round) -> tuple[Ints, Ints]:
    """[record]: the right of what is before a gap, −1 at the start; the left of what is after it, FAR at the end."""
    floors, ceilings = np.full(len(bound), -1, np.int64), np.full(len(bound), FAR, np.int64)
    if gap.before:
        events, offsets, _ = bound.references(gap.before)
        floors = _of_each(np.maximum, at.time.rights[events], offsets, -1)
    if gap.after:
        events, offsets, _ = bound.references(gap.after)
        ceilings = _of_each(np.minimum, at.time.lefts[events], offsets, int(FAR))
    return floors, ceilings


def elsewhere(gap: Gap, bound: Bound) -> Flags:
    """Which records are of another branch of a disjunction: of what stands beside the gap they have nothing."""
    _, offsets, _ = bound.references((*gap.before, *gap.after))
    return np.asarray(offsets[1:] == offsets[:-1])


def _of_each(choose: np.ufunc, values: Ints, offsets: Ints, nothing: int) -> Ints:
    made = np.full(len(offsets) - 1, nothing, np.int64)
    some = offsets[1:] > offsets[:-1]
    if some.any():
        made[some] = choose.reduceat(values, offsets[:-1][some])
    return made


class Grouping:
    """The closure of each record: its members between two parts, all of them or so many in a row (Algorithm 4)."""

    def __init__(self, node: GroupNode, setting: Setting) -> None:
        self.component, self._gap, self._setting = node.scan.component, node.gap, setting
        variable = self.component.variable
        self.candidates = ClosureEvents(self.component, keyed=setting.keyed)
        self._pool = setting.pools.setdefault(variable, ListPool())
        self._member = Condition(node.members, setting.columns, setting.strings, [(variable, Which.MEMBER)])
        self._tests = conditions(node.tests, setting.columns, setting.strings)
        self.counts = Counts()

    def grouped(self, bound: Bound, at: Round) -> Records:
        """Records with one column more: the number of the group."""
        number = len(bound)
        self.counts.tried += number
        other = elsewhere(self._gap, bound)
        if other.any():
            return self._beside(bound, other, at)
        rows, sizes = self._members(bound, at)
        offsets = np.zeros(number + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        # They come latest first.
        backwards = np.repeat(offsets[1:] + offsets[:-1] - 1, sizes) - np.arange(len(rows))
        rows = rows[backwards]
        length, most = self.component.minimum, self.component.maximum
        if most is None:
            chosen = np.flatnonzero(sizes >= length)
            begins, lengths = offsets[:-1][chosen], sizes[chosen]
        else:
            windows = np.maximum(sizes - most + 1, 0)
            chosen = np.repeat(np.arange(number), windows)
            first = np.concatenate([[0], np.cumsum(windows)])[:-1]
            begins = offsets[:-1][chosen] + np.arange(len(chosen)) - first[chosen]
            lengths = np.full(len(chosen), most)
        ends = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=ends[1:])
        taken_rows = rows[np.repeat(begins - ends[:-1], lengths) + np.arange(ends[-1])]
        numbers = self._pool.add(lengths, taken_rows)
        records = taken(bound.records, chosen)
        made = Records(np.column_stack([records.refs, numbers]).astype(np.int32, copy=False), records.times)
        if not self._gap.before or not self._gap.after:
            self._extend(made.times, taken_rows, ends, at)
        columns = {**bound.columns, self.component.variable: len(bound.columns)}
        made = kept_by(self._tests, Bound(made, columns, bound.pools), at)
        self.counts.made += len(made.times)
        return made

    def _beside(self, bound: Bound, other: Flags, at: Round) -> Records:
        """Records of another branch have no such group."""
        apart = taken(bound.records, other)
        absent = np.full((len(apart.times), 1), -1, np.int32)
        untouched = Bound(
            Records(np.hstack([apart.refs, absent]), apart.times),
            {**bound.columns, self.component.variable: len(bound.columns)},
            bound.pools,
        )
        grouped = self.grouped(Bound(taken(bound.records, ~other), bound.columns, bound.pools), at)
        return together([kept_by(self._tests, untouched, at), grouped])

    def _members(self, bound: Bound, at: Round) -> tuple[Numbers, Ints]:
        condition, linked = self._member, self.candidates.linked
        slot = condition.slot((self.component.variable, Which.MEMBER))
        floors, ceilings = bounds(self._gap, bound, at)
        used, offsets, _ = bound.references(list(bound.columns))
        times = np.ascontiguousarray(bound.records.times)
        codes = at.time.keys[times[:, FIRST]] if self._setting.keyed else np.zeros(len(bound), np.int64)
        bindings, made = condition.bindings(bound), condition.groups(bound, at)
        sizes = np.zeros(len(bound), np.int64)
        out, written = empty(max(1024, 2 * len(bound)), np.int32), np.zeros(1, np.int64)
        done = 0
        while True:
            done = members(
                done,
                bindings,
                made,
                floors,
                ceilings,
                codes,
                times,
                used,
                offsets,
                linked.events,
                linked.linked.heads,
                linked.linked.previous,
                at.time,
                at.size,
                at.inclusive,
                condition.code,
                at.events,
                at.texts,
                condition.stack,
                slot,
                out,
                sizes,
                written,
            )
            if done == len(bound):
                return out[: written[0]], sizes
            out = with_room(out, 2 * len(out))

    def _extend(self, times: Ints, rows: Numbers, offsets: Ints, at: Round) -> None:
        """A group at an end makes its record longer."""
        some = np.flatnonzero(offsets[1:] > offsets[:-1])
        if not len(some):
            return
        begins = offsets[:-1][some]
        times[some, LEFT] = np.minimum(times[some, LEFT], np.minimum.reduceat(at.time.lefts[rows], begins))
        times[some, RIGHT] = np.maximum(times[some, RIGHT], np.maximum.reduceat(at.time.rights[rows], begins))
        times[some, LAST] = np.maximum(times[some, LAST], np.maximum.reduceat(rows, begins))
        # The smallest start, then the smallest number.
        whose = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.lexsort((rows, at.starts[rows], whose))
        first = rows[order][begins].astype(np.int64)
        own = times[some, FIRST]
        earlier = (at.starts[first] < at.starts[own]) | ((at.starts[first] == at.starts[own]) & (first < own))
        times[some, FIRST] = np.where(earlier, first, own)
        times[some, START], times[some, END] = at.time.starts[times[some, FIRST]], at.time.ends[times[some, LAST]]


class Group(Operator):
    def __init__(self, node: GroupNode, child: Operator, setting: Setting) -> None:
        super().__init__(node, [*child.variables, node.scan.component.variable], setting)
        self._child = child
        self.grouping = Grouping(node, setting)
        self.counts = self.grouping.counts

    @property
    def below(self) -> tuple[Operator, ...]:
        return (self._child,)

    def assemble(self, at: Round) -> None:
        self._child.assemble(at)
        delta = self._child.consume()
        if len(delta.times):
            self.buffer.append(self.grouping.grouped(self._child.bound(delta), at))


# NEG -----------------------------------------------------------------------------------------------------------------


class Forbidding:
    """Drops records that an event of a negated class forbids."""

    def __init__(self, absence: TreeAbsence, setting: Setting) -> None:
        self._gap, self._setting = absence.gap, setting
        variable = absence.scan.component.variable
        self.candidates = ClosureEvents(absence.scan.component, keyed=setting.keyed)
        self._condition = Condition(absence.conditions, setting.columns, setting.strings, [(variable, Which.SINGLE)])
        self._slot = self._condition.slot((variable, Which.SINGLE))
        self.counts = Counts()

    def kept(self, bound: Bound, at: Round) -> Records:
        self.counts.tried += len(bound)
        linked, condition = self.candidates.linked, self._condition
        out = np.zeros(len(bound), np.bool_)
        if len(bound) and linked.size:
            floors, ceilings = bounds(self._gap, bound, at)
            floors[elsewhere(self._gap, bound)] = FAR
            times = bound.records.times
            others = self._reachable(linked.events[: linked.size], floors, times, at)
            begin = np.array([0, len(others)], np.int64)
            keys = np.zeros(len(bound), np.int64)
            if self._setting.keyed:
                of_key = at.time.keys[others]
                order = np.argsort(of_key, kind="stable")
                order = order[np.searchsorted(of_key[order], 0) :]
                if not len(order):
                    return self._all(bound)
                others, of_key = others[order], of_key[order]
                # Only of the partitions that there are events of.
                known, begins = np.unique(of_key, return_index=True)
                begin = np.append(begins, len(others)).astype(np.int64)
                own = at.time.keys[times[:, FIRST]]
                keys = np.searchsorted(known, own)
                keys[known[np.minimum(keys, len(known) - 1)] != own] = -1
            forbidden(
                condition.bindings(bound),
                condition.groups(bound, at),
                np.arange(len(bound)),
                keys,
                floors,
                ceilings,
                np.ascontiguousarray(times[:, FIRST]),
                np.ascontiguousarray(times[:, LAST]),
                begin,
                np.ascontiguousarray(others),
                at.time,
                at.size,
                at.inclusive,
                condition.code,
                at.events,
                at.texts,
                condition.stack,
                self._slot,
                out,
            )
        records = taken(bound.records, ~out) if out.any() else bound.records
        self.counts.made += len(records.times)
        return records

    def _all(self, bound: Bound) -> Records:
        self.counts.made += len(bound)
        return bound.records

    def _reachable(self, others: Ints, floors: Ints, times: Ints, at: Round) -> Ints:
        """Those that are not before everything that the records could be forbidden by."""
        if int(floors.min()) < 0:
            lowest = int(times[:, START].min()) - max(at.size, 0)
            usable = at.size >= 0 and at.by_time
            first = int(np.searchsorted(at.time.ends[others], lowest)) if usable else 0
        else:
            first = int(np.searchsorted(at.time.steps[others], int(floors.min()), side="right"))
        return others[first:]


class Neg(Operator):
    def __init__(self, node: Node, child: Operator, absence: TreeAbsence, setting: Setting) -> None:
        super().__init__(node, child.variables, setting)
        self._child = child
        self.forbidding = Forbidding(absence, setting)
        self.counts = self.forbidding.counts

    @property
    def below(self) -> tuple[Operator, ...]:
        return (self._child,)

    def assemble(self, at: Round) -> None:
        self._child.assemble(at)
        delta = self._child.consume()
        if len(delta.times):
            self.buffer.append(self.forbidding.kept(self._child.bound(delta), at))


def is_kleene(node: LeafNode) -> bool:
    return node.scan.component.kind is Kind.KLEENE

"""KSEQ (ZStream §4.4.5): each record with the closure between two of its parts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.trees.conditions import CompiledCondition, conditions
from kleene.engine.executors.trees.operators import Setting, Step, kept_by
from kleene.engine.executors.trees.records import ListPool, NamedRecords, taken, together
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.kernels.closures import BoundEvents, Members, members
from kleene.kernels.expression import Ints
from kleene.kernels.joins import END, FIRST, LAST, LEFT, RIGHT, START, Numbers, Records
from kleene.kernels.negation import OPEN, Gaps
from kleene.kernels.timeline import LATEST, WindowLength, shifted
from kleene.plan.trees import Gap, GroupNode, Site

Flags = npt.NDArray[np.bool_]


def bounds(gap: Gap, bound: NamedRecords, at: Round) -> tuple[Ints, Ints]:
    """[record]: the right of what is before a gap, −1 at the start; the left of what is after it, OPEN at the end."""
    floors, ceilings = np.full(len(bound), -1, np.int64), np.full(len(bound), OPEN, np.int64)
    if gap.before:
        events, offsets, _ = bound.references(gap.before)
        floors = _of_each(np.maximum, at.time.rights[events], offsets, -1)
    if gap.after:
        events, offsets, _ = bound.references(gap.after)
        ceilings = _of_each(np.minimum, at.time.lefts[events], offsets, int(OPEN))
    return floors, ceilings


def elsewhere(gap: Gap, bound: NamedRecords) -> Flags:
    """Which records are of another branch of a disjunction: they bind nothing of what the gap is in."""
    beside = (*gap.before, *gap.after)
    # What is in no pattern with events of its own stands where its neighbours do; without any it stands in no branch.
    names = [name for name in gap.own or beside if name in bound.columns]
    if not gap.own and not beside:
        return np.zeros(len(bound), np.bool_)
    _, offsets, _ = bound.references(names)
    return np.asarray(offsets[1:] == offsets[:-1])


def _of_each(choose: np.ufunc, values: Ints, offsets: Ints, nothing: int) -> Ints:
    extremes = np.full(len(offsets) - 1, nothing, np.int64)
    some = offsets[1:] > offsets[:-1]
    if some.any():
        extremes[some] = choose.reduceat(values, offsets[:-1][some])
    return extremes


def outside(ends: Ints, starts: Ints, within: WindowLength) -> Flags:
    """Which of these are further apart than a window allows, for times anywhere in 64 bits."""
    last = shifted(starts, within.size)
    closed = starts <= LATEST - within.size
    return np.asarray(closed & ((ends > last) | ((ends == last) & (not within.inclusive))))


class GroupMembers:
    """Finds the events between two parts of each record that may be members of one closure."""

    def __init__(self, site: Site, setting: Setting) -> None:
        self.fewest = site.scan.component.minimum
        self.candidates = setting.members_of(site)
        identifier = self.candidates.identifier
        self._condition = CompiledCondition(self.candidates.tests, setting.columns, setting.strings, [identifier])
        self._test = self._condition.event_test(identifier)

    def between(self, floors: Ints, ceilings: Ints, bound: NamedRecords, at: Round) -> tuple[Numbers, Ints]:
        """The members of each record, the latest first, and how many each has."""
        first, last = (np.ascontiguousarray(bound.records.times[:, place]) for place in (FIRST, LAST))
        gaps = Gaps(self.candidates.codes_of(bound, at), floors, ceilings, first, last, at.within)
        events, offsets, _ = bound.references(list(bound.columns))
        scope, linked = self._condition.scope(bound, at), self.candidates.linked.arrays
        out = Members(empty(max(1024, 2 * len(bound)), np.int32), np.zeros(len(bound), np.int64), np.zeros(1, np.int64))
        done = 0
        while True:
            done = members(done, gaps, BoundEvents(events, offsets), linked, at.time, self._test, scope, out)
            if done == len(bound):
                return out.events[: out.number[0]], out.sizes
            out = out._replace(events=with_room(out.events, 2 * len(out.events)))

    def reserve(self, floors: Ints, ceilings: Ints, bound: NamedRecords, at: Round) -> Ints:
        """[record]: before here an event leaves the closure its fewest members; −1: there are not so many."""
        if not self.fewest:
            return ceilings
        rows, sizes = self.between(floors, ceilings, bound, at)
        reserved = np.full(len(bound), -1, np.int64)
        enough = sizes >= self.fewest
        lefts = at.time.lefts[rows]
        # By record, then from the last left back: the fewest members that are needed begin with that of this number.
        order = np.lexsort((-lefts, np.repeat(np.arange(len(bound)), sizes)))
        begins = np.cumsum(sizes) - sizes
        reserved[enough] = lefts[order[begins[enough] + self.fewest - 1]]
        return reserved


class ClosureStep(Step):
    """The closure of each record: its members between two parts, all of them or so many in a row (Algorithm 4)."""

    def __init__(self, node: GroupNode, setting: Setting) -> None:
        self._members = GroupMembers(node.site, setting)
        super().__init__(self._members.candidates, setting)
        self._gap = node.gap
        # The closures that follow it side by side, from the last one back.
        self._following = [GroupMembers(site, setting) for site in reversed(node.leaves)]
        variable = self.component.variable
        self.added = (variable,)
        self._pool = setting.pools.setdefault(variable, ListPool())
        self._tests = conditions(node.tests, setting.columns, setting.strings)

    def apply(self, bound: NamedRecords, at: Round) -> Records:
        """Records with one column more: the number of the group."""
        number = len(bound)
        self.counts.tried += number
        other = elsewhere(self._gap, bound)
        if other.any():
            return self._beside(bound, other, at)
        floors, ceilings = bounds(self._gap, bound, at)
        is_open = bool((floors < 0).any() or (ceilings == OPEN).any())
        rows, sizes = self._members_in_order(floors, ceilings, bound, at)
        offsets = np.zeros(number + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
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
        group_records = Records(np.column_stack([records.refs, numbers]).astype(np.int32, copy=False), records.times)
        if is_open:
            self._extend(group_records.times, taken_rows, ends, at)
        if most is not None and not self._gap.before and not self._gap.after:
            times = group_records.times
            group_records = taken(group_records, ~outside(times[:, END], times[:, START], at.within))
        columns = {**bound.columns, self.component.variable: len(bound.columns)}
        group_records = kept_by(self._tests, NamedRecords(group_records, columns, bound.pools), at)
        self.counts.records += len(group_records.times)
        return group_records

    def _members_in_order(self, floors: Ints, ceilings: Ints, bound: NamedRecords, at: Round) -> tuple[Numbers, Ints]:
        """The members of each record, the earliest first, and how many each has."""
        for following in self._following:
            ceilings = following.reserve(floors, ceilings, bound, at)
        rows, sizes = self._members.between(floors, ceilings, bound, at)
        ends = np.cumsum(sizes)
        rows = rows[np.repeat(2 * ends - sizes - 1, sizes) - np.arange(len(rows))]
        if self._gap.before or self._gap.after or not len(rows):
            return rows, sizes
        return self._fitting(rows, sizes, bound, at)

    def _fitting(self, rows: Numbers, sizes: Ints, bound: NamedRecords, at: Round) -> tuple[Numbers, Ints]:
        """With neither neighbour: members that fit by themselves, or for a maximal group with the earliest, too."""
        starts, ends = at.time.starts[rows], at.time.ends[rows]
        whose = np.repeat(np.arange(len(sizes)), sizes)
        fits = ~outside(ends, starts, at.within)
        if self.component.maximum is None:
            begin = at.time.starts[bound.records.times[:, FIRST]]
            np.minimum.at(begin, whose[fits], starts[fits])
            fits &= ~outside(ends, begin[whose], at.within)
        return rows[fits], np.bincount(whose[fits], minlength=len(sizes)).astype(np.int64)

    def _beside(self, bound: NamedRecords, other: Flags, at: Round) -> Records:
        """Add no group to the records of another branch."""
        apart = taken(bound.records, other)
        absent = np.full((len(apart.times), 1), -1, np.int32)
        untouched = NamedRecords(
            Records(np.hstack([apart.refs, absent]), apart.times),
            {**bound.columns, self.component.variable: len(bound.columns)},
            bound.pools,
        )
        grouped = self.apply(NamedRecords(taken(bound.records, ~other), bound.columns, bound.pools), at)
        return together([kept_by(self._tests, untouched, at), grouped])

    def _extend(self, times: Ints, rows: Numbers, offsets: Ints, at: Round) -> None:
        """Extend the times of records whose group is at an end."""
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

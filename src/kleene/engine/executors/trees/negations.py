"""NEG and NSEQ (ZStream §4.4.2): events of a negated class forbid records, or pairs before they are joined."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.trees.closures import bounds, elsewhere
from kleene.engine.executors.trees.conditions import CompiledCondition
from kleene.engine.executors.trees.operators import ClassEvents, Operator, Setting, Step
from kleene.engine.executors.trees.records import NamedRecords, taken
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.state.growing import Growing
from kleene.kernels.expression import Ints
from kleene.kernels.joins import FIRST, LAST, START, CodedRecords, Records
from kleene.kernels.negation import OPEN, EventsByKey, Gaps, forbidden
from kleene.kernels.pushed_negation import first_negating, last_negating
from kleene.plan.trees import Site

Flags = npt.NDArray[np.bool_]


class Forbidding(Step):
    """Drops records that an event of a negated class forbids."""

    def __init__(self, absence: Site, setting: Setting) -> None:
        super().__init__(ClassEvents.of(absence, setting), setting)
        self._gap = absence.gap
        identifier = self.candidates.identifier
        self._condition = CompiledCondition(self.candidates.tests, setting.columns, setting.strings, [identifier])
        self._test = self._condition.event_test(identifier)

    def apply(self, bound: NamedRecords, at: Round) -> Records:
        self.counts.tried += len(bound)
        linked, condition = self.candidates.linked, self._condition
        out = np.zeros(len(bound), np.bool_)
        if len(bound) and linked.size:
            floors, ceilings = bounds(self._gap, bound, at)
            floors[elsewhere(self._gap, bound)] = OPEN
            times = bound.records.times
            reachable = self._reachable(linked.events[: linked.size], floors, times, at)
            others = linked.events[reachable : linked.size]
            begin = np.array([0, len(others)], np.int64)
            keys = np.zeros(len(bound), np.int64)
            if not linked.lookup.is_trivial:
                of_key = linked.codes_from(reachable, at)
                order = np.argsort(of_key, kind="stable")
                order = order[np.searchsorted(of_key[order], 0) :]
                if not len(order):
                    return self._all(bound)
                others, of_key = others[order], of_key[order]
                # Only the codes that negated events have.
                known, begins = np.unique(of_key, return_index=True)
                begin = np.append(begins, len(others)).astype(np.int64)
                own = self.candidates.codes_of(bound, at)
                keys = np.searchsorted(known, own)
                keys[known[np.minimum(keys, len(known) - 1)] != own] = -1
            first, last = (np.ascontiguousarray(times[:, place]) for place in (FIRST, LAST))
            gaps = Gaps(keys, floors, ceilings, first, last, at.within)
            negated = EventsByKey(begin, np.ascontiguousarray(others))
            scope = condition.scope(bound, at)
            forbidden(gaps, negated, at.time, self._test, scope, np.arange(len(bound)), out)
        records = taken(bound.records, ~out) if out.any() else bound.records
        self.counts.records += len(records.times)
        return records

    def _all(self, bound: NamedRecords) -> Records:
        self.counts.records += len(bound)
        return bound.records

    def _reachable(self, others: Ints, floors: Ints, times: Ints, at: Round) -> int:
        """The place of the first negated event that is not too early to forbid any of the records."""
        if int(floors.min()) < 0:
            lowest = int(times[:, START].min()) - max(at.within.size, 0)
            usable = at.within.size >= 0 and at.by_time
            return int(np.searchsorted(at.time.ends[others], lowest)) if usable else 0
        return int(np.searchsorted(at.time.steps[others], int(floors.min()), side="right"))


# NSEQ ----------------------------------------------------------------------------------------------------------------


class Pushed:
    """A negation between the sides of a join, with conditions on one of them only."""

    def __init__(self, absence: Site, setting: Setting) -> None:
        self.candidates = ClassEvents.of(absence, setting)
        identifier = self.candidates.identifier
        self.condition = CompiledCondition(self.candidates.tests, setting.columns, setting.strings, [identifier])
        self.test = self.condition.event_test(identifier)

    def coded(self, bound: NamedRecords, at: Round) -> CodedRecords:
        refs, times = map(np.ascontiguousarray, bound.records)
        return CodedRecords(refs, times, self.candidates.codes_of(bound, at))


class BeforeRight(Pushed):
    """For each new record of the right side, the last negated event before it: what ends before that is forbidden."""

    def floors(self, side: Operator, records: Records, at: Round) -> Ints:
        linked = self.candidates.linked
        out = np.full(len(records.times), -1, np.int64)
        if linked.size:
            bound = side.bound(records)
            coded, scope = self.coded(bound, at), self.condition.scope(bound, at)
            last_negating(coded, linked.arrays, at.time, at.window, at.lasting, self.test, scope, out)
        return out


class AfterLeft(Pushed):
    """For each record of the left side, the first negated event after it: what starts after that is forbidden."""

    def __init__(self, absence: Site, setting: Setting) -> None:
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
            self._ceilings.append(np.full(buffer.size - known, OPEN, np.int64))
        if linked.size > self._looked and known:
            still = np.flatnonzero(self._ceilings.used[:known] == OPEN)
            self._find(side, still, self._looked, at)
        if buffer.size > known:
            self._find(side, np.arange(known, buffer.size), 0, at)
        self._looked = linked.size

    def again(self, side: Operator, at: Round) -> None:
        """Look again, after the records were renumbered."""
        self._ceilings = Growing(np.zeros(0, np.int64))
        self.look(side, at)

    def _find(self, side: Operator, places: Ints, begin: int, at: Round) -> None:
        linked = self.candidates.linked
        if not len(places) or not linked.size:
            return
        whole = side.bound(taken(side.buffer.all, places))
        out = self._ceilings.array[places]
        coded, scope = self.coded(whole, at), self.condition.scope(whole, at)
        first_negating(coded, linked.arrays, begin, at.time, self.test, scope, out)
        self._ceilings.array[places] = out

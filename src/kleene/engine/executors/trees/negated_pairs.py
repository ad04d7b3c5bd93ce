"""NEG of a pair, `!(B b ; C c)`: drops records in whose gap an event of B is followed by one of C (ZStream §4.4.2)."""

from __future__ import annotations

import numpy as np

from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.linking import link
from kleene.engine.executors.trees.closures import bounds, elsewhere
from kleene.engine.executors.trees.conditions import CompiledCondition
from kleene.engine.executors.trees.operators import ClassEvents, Setting, Step
from kleene.engine.executors.trees.records import NamedRecords, taken
from kleene.engine.executors.trees.rounds import Round
from kleene.kernels.expression import Ints
from kleene.kernels.joins import FIRST, LAST, Records
from kleene.kernels.negated_pairs import PairTest, forbidden_by_pairs
from kleene.kernels.negation import EventsByKey, Gaps
from kleene.pattern.expressions import Which, variables
from kleene.plan.trees import Site


class ForbiddingPairs(Step):
    """Drops records that a negated pair forbids."""

    def __init__(self, absence: Site, setting: Setting) -> None:
        super().__init__(ClassEvents.of(absence, setting), setting)
        opener = self.component.preceded_by
        assert opener is not None, "a single negated class is `Forbidding`"
        self._gap = absence.gap
        self.takers = (ClassEvents(opener, (), (), keyed=setting.keyed), self.candidates)
        first, second = (opener.variable, Which.SINGLE), (self.component.variable, Which.SINGLE)
        condition = CompiledCondition(absence.conditions, setting.columns, setting.strings, [first, second])
        alone = [clause for clause in absence.conditions if second[0] not in variables(clause)]
        together = [clause for clause in absence.conditions if {first[0], second[0]} <= variables(clause)]
        opening = link(compile_clauses(alone, condition.layout), setting.strings)
        self._condition = condition
        self._test = PairTest(
            opening, condition.code, condition.slot(first), condition.slot(second), apart=not together
        )

    def apply(self, bound: NamedRecords, at: Round) -> Records:
        self.counts.tried += len(bound)
        out = np.zeros(len(bound), np.bool_)
        firsts, seconds = (taker.linked.events[: taker.linked.size] for taker in self.takers)
        if len(bound) and len(firsts) and len(seconds):
            first, last = (np.ascontiguousarray(bound.records.times[:, place]) for place in (FIRST, LAST))
            known = np.unique(at.time.keys[firsts]) if self.setting.keyed else np.zeros(1, np.int64)
            keys = _places(known, at.time.keys[first]) if self.setting.keyed else np.zeros(len(bound), np.int64)
            keys[elsewhere(self._gap, bound)] = -1
            gaps = Gaps(keys, *bounds(self._gap, bound, at), first, last, at.within)
            openers = _by_key(firsts, known, at, keyed=self.setting.keyed)
            followers = _by_key(seconds, known, at, keyed=self.setting.keyed)
            scope = self._condition.scope(bound, at)
            forbidden_by_pairs(gaps, openers, followers, at.time, self._test, scope, np.arange(len(bound)), out)
        records = taken(bound.records, ~out) if out.any() else bound.records
        self.counts.records += len(records.times)
        return records


def _by_key(events: Ints, known: Ints, at: Round, *, keyed: bool) -> EventsByKey:
    """Events by the place of their key among the known ones; an event without a key is of none."""
    if not keyed:
        return EventsByKey(np.array([0, len(events)], np.int64), np.ascontiguousarray(events))
    of_key = _places(known, at.time.keys[events])
    order = np.argsort(of_key, kind="stable")
    begins = np.searchsorted(of_key[order], np.arange(len(known) + 1))
    return EventsByKey(begins.astype(np.int64), np.ascontiguousarray(events[order]))


def _places(known: Ints, keys: Ints) -> Ints:
    """The places of keys among the known ones; −1 for others, and for what has no key."""
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where((known[places] == keys) & (keys >= 0), places, -1).astype(np.int64)

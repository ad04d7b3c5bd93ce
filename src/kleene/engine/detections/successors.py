"""The first detections after each left one: what `;` and `+` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kleene.algebra.detections import Expiry, Failing
from kleene.engine.detections.arrays import in_history_order, size_of, taken, together
from kleene.engine.detections.batches import Failures
from kleene.engine.detections.counts import OperatorCounts
from kleene.engine.detections.events import HeldEvents
from kleene.engine.detections.pair_tests import CompiledTests, LinkedTests, SingleTests
from kleene.engine.intake.keys import Interner
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.memory import empty
from kleene.kernels import next_detections as kernel
from kleene.kernels.detections import FIRST, DetectionArrays, fill_slots
from kleene.kernels.expression import Ints
from kleene.kernels.opcodes import VALUE
from kleene.kernels.timeline import shifted
from kleene.pattern.expressions import Attribute, Clause, variables
from kleene.plan.detections import KeyPart

NEVER = np.iinfo(np.int64).max
# Of a failed detection: it is seen under every key.
_EVERY_KEY = -2
_FIRST_ROOM = 1 << 12


@dataclass(frozen=True, eq=False)
class SuccessorPlan:
    """The conditions of an operator that looks for what comes next.

    coming           the aliases of what comes that nothing which waits has bound
    failing_fields   for each exception: the fields of its events that the key is compared with; None: λ looks at all
    """

    coming: frozenset[str]
    keys: tuple[KeyPart, ...]
    residual: tuple[Clause, ...]
    condition: tuple[Clause, ...]
    failing: tuple[Failing, ...]
    failing_fields: tuple[tuple[Attribute, ...] | None, ...]
    expiry: tuple[Expiry, ...]

    def of_coming(self, clauses: Iterable[Clause]) -> tuple[Clause, ...]:
        """The clauses that name only what comes: they are tested once for each right detection."""
        return tuple(clause for clause in clauses if variables(clause) <= self.coming)

    def of_pairs(self, clauses: Iterable[Clause]) -> tuple[Clause, ...]:
        return tuple(clause for clause in clauses if not variables(clause) <= self.coming)


@dataclass(frozen=True, eq=False)
class Succeeded:
    """What came of some left detections.

    pairs      [pair, 2]: a left detection and the right one that it is output with
    failures   [pair, 2]: a left detection and the failed one that it has seen
    waiting    [left]: those that still wait
    ended      how many died with a failed detection
    looks      how many times one of them was looked at
    """

    rights: DetectionArrays
    exceptions: Ints
    pairs: Ints
    failures: Ints
    waiting: Ints
    ended: int
    looks: int

    def count(self, lefts: int, counts: OperatorCounts) -> None:
        """Add what became of so many left detections."""
        served = np.zeros(lefts, np.bool_)
        served[self.pairs[:, 0]] = True
        number = int(np.count_nonzero(served))
        counts.served += number
        counts.ended += self.ended
        counts.failed += lefts - len(self.waiting) - self.ended - number
        counts.looks += self.looks


class Successors:
    """Looks for the first right detections after left ones."""

    def __init__(
        self, plan: SuccessorPlan, events: HeldEvents, strings: StringPool, aliases: Mapping[str, int]
    ) -> None:
        self._plan, self._events, self._strings, self._aliases = plan, events, strings, aliases
        pairs = [plan.of_pairs(plan.residual), plan.of_pairs(plan.condition)]
        tests = [*pairs, *(each.condition for each in plan.failing)]
        self._scans = bool(pairs[0])
        self.tests: LinkedTests = CompiledTests.of(tests, events.layout, aliases).linked(strings)
        self._of_coming = [plan.of_coming(plan.residual), plan.of_coming(plan.condition)]
        self._own = SingleTests(self._of_coming, events, strings, aliases)
        self._levels = [Interner() for _ in plan.keys]
        self._numbers = {each.exception: number for number, each in enumerate(plan.failing)}
        self._effects = np.array([_effect(each) for each in plan.failing], np.int64)

    @property
    def nbytes(self) -> int:
        return sum(level.nbytes for level in self._levels)

    # Keys

    def left_keys(self, lefts: DetectionArrays) -> Ints:
        return self._keys(lefts, [part.left for part in self._plan.keys])

    def _keys(self, detections: DetectionArrays, fields: Sequence[Attribute]) -> Ints:
        """The key of each detection; −1 where one of the fields has no value."""
        codes = np.zeros(size_of(detections), np.int64)
        for field, level in zip(fields, self._levels, strict=True):
            column = self._events.layout[field.attribute]
            rows = self._first_rows(detections, field.variable) + 1
            states = self._events.columns.states[column.index, rows]
            codes = level.codes(codes, self._events.columns.ints[column.place, rows], states != VALUE)
        return codes

    def _first_rows(self, detections: DetectionArrays, alias: str) -> Ints:
        """The row of an alias' first event in each detection; −1 where it is absent."""
        rows = empty((size_of(detections), 1), np.int64)
        fill_slots(detections, np.array([[self._aliases[alias], FIRST]], np.int64), False, rows)
        return rows[:, 0]

    # Time

    def expires(self, lefts: DetectionArrays) -> Ints:
        """The last moment at which each left detection still waits."""
        moments = np.full(size_of(lefts), NEVER)
        for expiry in self._plan.expiry:
            begun = np.full(size_of(lefts), NEVER)
            for alias in expiry.aliases:
                rows = self._first_rows(lefts, alias)
                there = rows >= 0
                starts = self._events.points.starts[rows[there]]
                begun[there] = np.minimum(begun[there], starts)
            there = begun < NEVER
            begun[there] = shifted(begun[there], expiry.most)
            moments = np.minimum(moments, begun)
        return moments

    # What comes next

    def run(self, lefts: DetectionArrays, left_keys: Ints, rights: DetectionArrays, failures: Failures) -> Succeeded:
        """lefts, rights, failures   each by their ends"""
        failures = self._effective(failures)
        if self._of_coming[kernel.FIRST_OF]:
            rights = taken(rights, np.flatnonzero(self._own.passed(rights, kernel.FIRST_OF)))
        size, number = size_of(rights), failures.size
        right_keys = self._keys(rights, [part.right for part in self._plan.keys])
        order, ranks = in_history_order(rights, self._events.points)
        failed = np.full(size + number, -1, np.int64)
        if number:
            failed[size:] = [self._numbers[each] for each in failures.exceptions.tolist()]
            right_keys = np.concatenate([right_keys, self._failure_keys(failures)])
            ranks = np.concatenate([ranks, np.arange(size, size + number)])
            rights = together([rights, failures.detections])
        passes = np.ones(size + number, np.bool_)
        if self._of_coming[kernel.CONDITION]:
            passes[:size] = self._own.passed(taken(rights, np.arange(size)) if number else rights, kernel.CONDITION)
        keyed = bool(self._plan.keys)
        if number:
            order = np.lexsort((right_keys, ranks, failed >= 0, rights.end_ties, rights.ends))
        elif keyed:
            order = _by_key(order, ranks, right_keys)
        groups = ranks[order]
        if keyed and len(order):
            changes = (groups[1:] != groups[:-1]) | (right_keys[order][1:] != right_keys[order][:-1])
            groups = np.concatenate([[0], np.cumsum(changes)])
        left_keys, right_keys, heads = _dense(left_keys, right_keys)
        gone = np.zeros(size_of(lefts), np.uint8)
        waiting = kernel.Waiting(
            left_keys,
            self.expires(lefts),
            gone,
            np.full(size_of(lefts), -1, np.int64),
            np.full(heads, -1, np.int64),
            np.full(heads, -1, np.int64),
            np.zeros(heads, np.int64),
        )
        awaited = kernel.Awaited(order, groups, right_keys, failed, self._effects, passes)
        scope = self.tests.scope(self._events, self._strings)
        given = kernel.NextInput(lefts, waiting, rights, awaited, self.tests.on(lefts, rights), scope)
        pairs, seen, looks = self._advance(given)
        exceptions = np.concatenate([np.full(size, -1, np.int64), failures.exceptions])
        ended = int(np.count_nonzero(self._effects[failed[seen[:, 1]]] == kernel.KILLS))
        return Succeeded(rights, exceptions, pairs, seen, np.flatnonzero(gone == 0), ended, looks)

    def _advance(self, given: kernel.NextInput) -> tuple[Ints, Ints, int]:
        progress = np.zeros(kernel.PROGRESS, np.int64)
        pairs = empty((max(_FIRST_ROOM, len(given.lefts.ends)), 2), np.int64)
        failed = bool(np.any(given.awaited.failed >= 0))
        failures = empty((max(_FIRST_ROOM, 2 * len(given.lefts.ends)) if failed else 0, 2), np.int64)
        while not kernel.advance(given, self._scans, kernel.NextResults(pairs, failures, progress)):
            if progress[kernel.FAILURES] + progress[kernel.ADDED] > len(failures) and failed:
                failures = _longer(failures, int(progress[kernel.FAILURES] + progress[kernel.ADDED]))
            pairs = _longer(pairs, int(progress[kernel.PAIRS]) + self._most_pairs(given, int(progress[kernel.AT])))
        looks = int(progress[kernel.LOOKS])
        return pairs[: progress[kernel.PAIRS]], failures[: progress[kernel.FAILURES]], looks

    @staticmethod
    def _most_pairs(given: kernel.NextInput, at: int) -> int:
        """As many pairs as the rights at this place could make."""
        groups, key = given.awaited.groups, int(given.awaited.keys[given.awaited.order[at]])
        return int(np.count_nonzero(groups == groups[at])) * int(given.waiting.sizes[key])

    def _effective(self, failures: Failures) -> Failures:
        """The failed detections that do something to what waits here."""
        if not failures.size:
            return failures
        return failures.take(np.flatnonzero(np.isin(failures.exceptions, list(self._numbers))))

    def _failure_keys(self, failures: Failures) -> Ints:
        # Without a key there is one queue.
        keys = np.full(failures.size, _EVERY_KEY if self._plan.keys else 0, np.int64)
        for each, fields in zip(self._plan.failing, self._plan.failing_fields, strict=True):
            if fields is not None:
                own = np.flatnonzero(failures.exceptions == each.exception)
                keys[own] = self._keys(taken(failures.detections, own), fields)
        return keys


def _effect(failing: Failing) -> int:
    return kernel.KILLS if failing.kills else kernel.PASSES


def _by_key(order: Ints, ranks: Ints, keys: Ints) -> Ints:
    """Detections in an order of ranks, those of one rank by key."""
    ordered = ranks[order]
    if not np.any(ordered[1:] == ordered[:-1]):
        return order
    # Nearly sorted, which a stable sort makes use of. No key is less than −2.
    places = np.argsort(ordered * (int(keys.max(initial=0)) + 3) + keys[order], kind="stable")
    return order[places]


def _dense(lefts: Ints, rights: Ints) -> tuple[Ints, Ints, int]:
    """Keys as small numbers: as many queues as there are keys now, not as there ever were."""
    most = 1 + max(int(lefts.max(initial=0)), int(rights.max(initial=0)))
    if most <= 4 * (len(lefts) + len(rights)) + _FIRST_ROOM:
        return lefts, rights, most
    both = np.concatenate([lefts, rights])
    known = both >= 0
    codes, places = np.unique(both[known], return_inverse=True)
    both[known] = places
    return both[: len(lefts)], both[len(lefts) :], len(codes)


def _longer(pairs: Ints, needed: int) -> Ints:
    longer = empty((max(needed, 2 * len(pairs)), 2), np.int64)
    longer[: len(pairs)] = pairs
    return longer

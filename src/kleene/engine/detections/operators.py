"""The operators of EQL (NEXT §3.4), each for whole batches.

An operator is advanced after those that it reads. It is given everything that ends before the watermark and gives all
its own detections that end before it, by their ends; what must wait for more, it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kleene.algebra.detections import (
    Delay,
    DetectionFilter,
    DetectionSource,
    Failing,
    Iteration,
    NextDetection,
    Unless,
    aliases,
)
from kleene.engine.detections.arrays import joined, merged, no_detections, of_events, size_of, taken, together
from kleene.engine.detections.batches import DetectionBatch, Failures
from kleene.engine.detections.counts import OperatorCounts
from kleene.engine.detections.events import HeldEvents, NewEvents
from kleene.engine.detections.pair_tests import CompiledTests, SingleTests
from kleene.engine.detections.successors import NEVER, SuccessorPlan, Successors
from kleene.engine.intake.strings import StringPool
from kleene.kernels.detections import DetectionArrays
from kleene.kernels.exceptions import cancelled
from kleene.kernels.expression import Ints
from kleene.kernels.timeline import in_time, shifted
from kleene.pattern.expressions import Attribute, Clause, Which, references
from kleene.plan.detections import NextPlan, UnlessPlan
from kleene.plan.program import NotCompilable


@dataclass(frozen=True, eq=False)
class OperatorContext:
    """What all operators of a query share."""

    events: HeldEvents
    strings: StringPool
    # The number of each alias.
    aliases: Mapping[str, int]

    def tests(self, *tests: tuple[Clause, ...]) -> SingleTests:
        return SingleTests(tests, self.events, self.strings, self.aliases)


class Operator(Protocol):
    """One node of a query."""

    # What it holds; None for an operator that holds nothing.
    waiting: DetectionArrays | None = None
    # What came of the detections so far. The network counts those that come and are given, an operator the rest.
    counts: OperatorCounts = OperatorCounts()

    def advance(self, new: NewEvents, inputs: Sequence[DetectionBatch], until: int | None) -> DetectionBatch:
        """Take in what its operands give; `until` is the watermark, None: the end of time."""

    def first_due(self) -> int | None:
        """The first moment at which something that it holds is given without further events; None: there is none."""
        return None

    def last_use(self) -> int | None:
        """The last moment at which what it holds may be of use; None: it may always be."""
        return None


class SourceOperator(Operator):
    def __init__(self, node: DetectionSource, context: OperatorContext) -> None:
        self._component, self._context = node.component, context
        self._alias = context.aliases[node.component.variable]

    def advance(self, new: NewEvents, inputs: Sequence[DetectionBatch], until: int | None) -> DetectionBatch:
        rows = new.member[self._component]
        return DetectionBatch(of_events(rows, self._alias, self._context.events.points))


class FilterOperator(Operator):
    def __init__(self, node: DetectionFilter, context: OperatorContext) -> None:
        self._tests = context.tests(node.condition)

    def advance(self, new: NewEvents, inputs: Sequence[DetectionBatch], until: int | None) -> DetectionBatch:
        detections = inputs[0].detections
        return DetectionBatch(taken(detections, np.flatnonzero(self._tests.passed(detections))), inputs[0].failures)


class UnionOperator(Operator):
    """One merge of all parts."""

    def advance(self, new: NewEvents, inputs: Sequence[DetectionBatch], until: int | None) -> DetectionBatch:
        return DetectionBatch(
            merged([each.detections for each in inputs]), Failures.together([each.failures for each in inputs])
        )


class DelayOperator(Operator):
    """Holds detections until their time has come."""

    def __init__(self, node: Delay, context: OperatorContext) -> None:
        self._steps = node.steps
        self.waiting: DetectionArrays = no_detections()

    def advance(self, new: NewEvents, inputs: Sequence[DetectionBatch], until: int | None) -> DetectionBatch:
        every = together([self.waiting, _delayed(inputs[0].detections, self._steps)])
        due = len(every.ends) if until is None else int(np.searchsorted(every.ends, until))
        places = np.arange(len(every.ends))
        self.waiting = taken(every, places[due:])
        return DetectionBatch(taken(every, places[:due]), inputs[0].failures)

    def first_due(self) -> int | None:
        return int(self.waiting.ends[0]) if len(self.waiting.ends) else None

    def last_use(self) -> int | None:
        return int(self.waiting.ends.max(initial=-NEVER))


def _delayed(detections: DetectionArrays, steps: int) -> DetectionArrays:
    ends = shifted(detections.ends, steps)
    later = detections.later.copy()
    lasts = detections.offsets[1:] - 1
    later[lasts] += ends - detections.ends
    return detections._replace(ends=ends, later=later)


class NextOperator(Operator):
    def __init__(self, node: NextDetection, plan: NextPlan, context: OperatorContext) -> None:
        self._node = node
        successor = SuccessorPlan(
            frozenset(aliases(node.right)),
            plan.keys,
            plan.residual,
            node.condition,
            node.failing,
            plan.failing,
            node.expiry,
        )
        self.successors = Successors(successor, context.events, context.strings, context.aliases)
        self.waiting: DetectionArrays = no_detections()
        self.keys = np.zeros(0, np.int64)
        self._killing = {each.exception for each in node.failing if each.kills}

    def advance(self, new: NewEvents, inputs: Sequence[DetectionBatch], until: int | None) -> DetectionBatch:
        left, right = inputs
        lefts = together([self.waiting, left.detections])
        keys = np.concatenate([self.keys, self.successors.left_keys(left.detections)])
        ran = self.successors.run(lefts, keys, right.detections, right.failures)
        ran.count(size_of(lefts), self.counts)
        output = joined(lefts, ran.rights, ran.pairs)
        failures = [left.failures, self._seen(lefts, ran.rights, ran.exceptions, ran.failures)]
        self._hold(lefts, keys, ran.waiting, until)
        return DetectionBatch(output, Failures.together(failures))

    def _seen(self, lefts: DetectionArrays, rights: DetectionArrays, exceptions: Ints, pairs: Ints) -> Failures:
        """What left detections have seen goes on: where they died once, otherwise with the events of each."""
        if not len(pairs):
            return Failures()
        numbers = exceptions[pairs[:, 1]]
        kills = np.isin(numbers, list(self._killing))
        _, first = np.unique(pairs[:, 1], return_index=True)
        once = np.zeros(len(pairs), np.bool_)
        once[first] = True
        chosen = np.flatnonzero(~kills | once)
        return Failures(joined(lefts, rights, pairs[chosen]), numbers[chosen])

    def _hold(self, lefts: DetectionArrays, keys: Ints, waiting: Ints, until: int | None) -> None:
        if not self._node.failing:
            # Without a key nothing is ever next.
            keyed = waiting[keys[waiting] >= 0]
            self.counts.unkeyed += len(waiting) - len(keyed)
            waiting = keyed
        before = len(waiting)
        if until is None:
            waiting = waiting[:0]
            self.counts.left += before
        elif self._node.expiry:
            waiting = waiting[self.successors.expires(lefts)[waiting] >= until]
            self.counts.expired += before - len(waiting)
        self.waiting, self.keys = taken(lefts, waiting), keys[waiting]

    def last_use(self) -> int | None:
        latest = int(self.successors.expires(self.waiting).max(initial=-NEVER))
        return None if latest == NEVER else latest

    def put(self, waiting: DetectionArrays) -> None:
        """Let the detections of a snapshot wait."""
        self.waiting, self.keys = waiting, self.successors.left_keys(waiting)


class IterationOperator(Operator):
    """Runs are extended again and again: each round is a `;` of what the one before gave with the operand."""

    def __init__(self, node: Iteration, context: OperatorContext) -> None:
        failing = tuple(Failing(number, (), True) for number in node.failing)
        plan = SuccessorPlan(
            frozenset(), (), node.first_of, node.condition, failing, (None,) * len(failing), node.expiry
        )
        self.successors = Successors(plan, context.events, context.strings, context.aliases)
        self._tests = context.tests((*node.first_of, *node.condition))
        self._expires = bool(node.expiry)
        self.waiting: DetectionArrays = no_detections()

    def advance(self, new: NewEvents, inputs: Sequence[DetectionBatch], until: int | None) -> DetectionBatch:
        operand = inputs[0]
        begun = taken(operand.detections, np.flatnonzero(self._tests.passed(operand.detections)))
        runs = together([self.waiting, begun])
        given, waiting = [begun], []
        while size_of(runs):
            keys = np.zeros(size_of(runs), np.int64)
            ran = self.successors.run(runs, keys, operand.detections, operand.failures)
            ran.count(size_of(runs), self.counts)
            waiting.append(taken(runs, ran.waiting))
            runs = joined(runs, ran.rights, ran.pairs)
            given.append(runs)
        self._hold(merged(waiting), until)
        return DetectionBatch(merged(given), operand.failures)

    def _hold(self, waiting: DetectionArrays, until: int | None) -> None:
        before = size_of(waiting)
        if until is None:
            waiting = no_detections()
            self.counts.left += before
        elif self._expires:
            waiting = taken(waiting, np.flatnonzero(self.successors.expires(waiting) >= until))
            self.counts.expired += before - size_of(waiting)
        self.waiting = waiting

    def last_use(self) -> int | None:
        latest = int(self.successors.expires(self.waiting).max(initial=-NEVER))
        return None if latest == NEVER else latest


class UnlessOperator(Operator):
    """Exceptions are looked up by their ends: of those that nothing is compared with, only the last one is held."""

    def __init__(self, node: Unless, plan: UnlessPlan, context: OperatorContext) -> None:
        self._node, self._context, self._longest = node, context, plan.longest
        if _looks_back(node):
            raise NotCompilable("PREV or ALL of what an exception cancels")
        self._tests = CompiledTests.of([node.condition], context.events.layout, context.aliases).linked(context.strings)
        self.waiting: DetectionArrays = no_detections()

    def advance(self, new: NewEvents, inputs: Sequence[DetectionBatch], until: int | None) -> DetectionBatch:
        operand, exceptions = inputs[0], inputs[1].detections
        known = together([self.waiting, exceptions])
        detections = operand.detections
        if not self._node.deferred:
            out = np.zeros(size_of(detections), np.bool_)
            scope = self._tests.scope(self._context.events, self._context.strings)
            tests = self._tests.on(detections, known)
            cancelled(detections, known, tests, scope, bool(self._node.condition), out)
            detections = taken(detections, np.flatnonzero(~out))
            self.counts.ended += size_of(operand.detections) - size_of(detections)
        self._hold(known, until)
        failures = operand.failures
        if not self._node.condition:
            numbers = np.full(size_of(exceptions), self._node.number, np.int64)
            failures = Failures.together([failures, Failures(exceptions, numbers)])
        return DetectionBatch(detections, failures)

    def _hold(self, known: DetectionArrays, until: int | None) -> None:
        if until is None or self._node.deferred:
            known = no_detections()
        elif not self._node.condition:
            known = taken(known, np.arange(max(0, size_of(known) - 1), size_of(known)))
        elif self._longest is not None:
            # What ends from now on began no earlier.
            known = taken(known, np.flatnonzero(known.ends >= in_time(until - self._longest)))
        self.waiting = known

    def last_use(self) -> int | None:
        if self._longest is None:
            return None
        return min(int(self.waiting.ends.max(initial=-NEVER)) + self._longest, NEVER - 1)


def _looks_back(node: Unless) -> bool:
    """Whether λ reads earlier events of what it cancels, some of which may be later than the exception."""
    bound = aliases(node.operand)
    named = [each for clause in node.condition for each in references(clause) if isinstance(each, Attribute)]
    return any(each.which in (Which.PREVIOUS, Which.MEMBER) and each.variable in bound for each in named)

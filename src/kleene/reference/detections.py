"""What the operators of EQL mean (semantics §4 EQL; NEXT §3.2–3.4), computed slowly and literally.

A stream is evaluated as a whole: its detections, and its failed detections ∅. Nothing here waits or dies in time; what
a run would have lived to see is a comparison of points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kleene.algebra.detections import (
    FIRST_MOMENT,
    LAST_MOMENT,
    Delay,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Expiry,
    Iteration,
    NextDetection,
    Unless,
)
from kleene.pattern.clock import LATEST
from kleene.pattern.expressions import Aggregate, Attribute, Clause, Elapsed, Literal, Which, references
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline, in_class
from kleene.reference.values import MISSING, literal_holds

# A moment, and the tie-breaker where one is declared.
Point = tuple[Any, ...]
_AFTER_ALL: Point = (math.inf,)
Bound = tuple[tuple[str, ReferenceEvent], ...]


@dataclass(frozen=True, eq=False)
class Detected:
    """Events under their aliases in the order of time, and the points at which they start and end: the history."""

    events: Bound
    history: tuple[Point, ...]

    @property
    def start(self) -> Point:
        return self.history[0]

    @property
    def end(self) -> Point:
        return self.history[-1]

    @cached_property
    def order(self) -> tuple[Point, ...]:
        """§3.2: points are compared from the end; where one history is a suffix of another, the longer one is first."""
        return (*reversed(self.history), _AFTER_ALL)

    def followed_by(self, other: Detected) -> Detected:
        return Detected((*self.events, *other.events), (*self.history, *other.history))


@dataclass(frozen=True, eq=False)
class Failed:
    """∅: when an exception occurred, which one, and the events that its λ may still be tested on."""

    at: Point
    exception: int
    # The last of them is the exception's own last event.
    events: Bound


@dataclass(frozen=True, slots=True)
class DetectionStream:
    detections: list[Detected]
    failures: list[Failed] = field(default_factory=list)


@dataclass(frozen=True)
class DetectionEvaluator:
    """Evaluates nodes over the events of one input."""

    timeline: ReferenceTimeline

    def evaluate(self, node: Detection) -> DetectionStream:
        match node:
            case DetectionSource(component):
                events = [event for event in self.timeline.events if in_class(self.timeline, component, event)]
                return DetectionStream([self._primitive(component.variable, event) for event in events])
            case DetectionFilter(operand, condition):
                below = self.evaluate(operand)
                return DetectionStream(
                    [each for each in below.detections if self._holds(condition, each.events)],
                    below.failures,
                )
            case DetectionUnion(parts):
                streams = [self.evaluate(part) for part in parts]
                return DetectionStream(
                    [each for stream in streams for each in stream.detections],
                    [each for stream in streams for each in stream.failures],
                )
            case Delay(operand, steps):
                below = self.evaluate(operand)
                return DetectionStream([_later(each, steps) for each in below.detections], below.failures)
            case NextDetection():
                return self._next(node)
            case Iteration():
                return self._iteration(node)
            case Unless():
                return self._exception(node)

    def _primitive(self, alias: str, event: ReferenceEvent) -> Detected:
        return Detected(((alias, event),), (_first_point(event, self.timeline), _last_point(event, self.timeline)))

    # next

    def _next(self, node: NextDetection) -> DetectionStream:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        detections: list[Detected] = []
        failures = list(left.failures)
        killing = {each.exception for each in node.failing if each.kills}
        conditions = {each.exception: each.condition for each in node.failing}
        for run in left.detections:
            seen = [
                each
                for each in right.failures
                if run.end < each.at
                and each.at[0] <= _expiry(run, node.expiry)
                and self._holds(conditions[each.exception], (*run.events, *each.events))
            ]
            first = self._first(run, right.detections, node.first_of)
            # What ends at the moment of a failure survives it.
            deaths = [each.at for each in seen if each.exception in killing]
            death = min(deaths, default=_AFTER_ALL)
            used = first[0].end if first and first[0].end <= death else _AFTER_ALL
            if used < _AFTER_ALL:
                detections += [run.followed_by(each) for each in first if self._follows(node.condition, run, each)]
            for each in seen:
                if each.at < used and each.at <= death:
                    failures.append(Failed(each.at, each.exception, (*run.events, *each.events)))
        return DetectionStream(detections, failures)

    def _first(self, run: Detected, right: Iterable[Detected], first_of: tuple[Clause, ...]) -> list[Detected]:
        """SUCC (§3.2): the first detections after a run among those that satisfy φ; all of one history."""
        after = [each for each in right if run.end < each.start and self._follows(first_of, run, each)]
        first = min((each.order for each in after), default=None)
        return [each for each in after if each.order == first]

    def _follows(self, condition: tuple[Clause, ...], run: Detected, other: Detected) -> bool:
        return self._holds(condition, (*run.events, *other.events))

    # iteration

    def _iteration(self, node: Iteration) -> DetectionStream:
        below = self.evaluate(node.operand)
        deaths = sorted(each.at for each in below.failures if each.exception in node.failing)
        both = (*node.first_of, *node.condition)
        rounds = [each for each in below.detections if self._holds(both, each.events)]
        results: list[Detected] = []
        while rounds:
            results += rounds
            rounds = [
                run.followed_by(each)
                for run in rounds
                for each in self._first(run, below.detections, node.first_of)
                if not any(run.end < at < each.end for at in deaths) and self._follows(node.condition, run, each)
            ]
        return DetectionStream(results, below.failures)

    # exception

    def _exception(self, node: Unless) -> DetectionStream:
        below, exceptions = self.evaluate(node.operand), self.evaluate(node.exception).detections
        survivors = below.detections
        if not node.deferred:
            survivors = [each for each in survivors if not any(self._cancels(node, each, one) for one in exceptions)]
        failures = list(below.failures)
        if not node.condition:
            failures += [Failed(one.end, node.number, one.events) for one in exceptions]
        return DetectionStream(survivors, failures)

    def _cancels(self, node: Unless, detected: Detected, one: Detected) -> bool:
        if not detected.start <= one.end < detected.end:
            return False
        # What was bound when the exception occurred; what came later is there for all that is not PREV or ALL.
        before = sum(_last_point(event, self.timeline) < one.end for _, event in detected.events)
        return self._holds(node.condition, (*detected.events, *one.events), before)

    # conditions

    def _holds(self, condition: tuple[Clause, ...], events: Bound, before: int | None = None) -> bool:
        """Whether all clauses hold of some events, the last of which is tested.

        before   how many of them PREV and ALL may speak of; None: all but the last
        """
        bindings = DetectionBindings(self.timeline, events, events[: len(events) - 1 if before is None else before])
        return all(any(_literal_holds(literal, bindings) for literal in clause.literals) for clause in condition)


@dataclass(frozen=True, slots=True)
class DetectionBindings:
    """What the names of a condition stand for.

    earlier   the events that PREV and ALL speak of: those that were bound before the one being tested
    member    the event that ALL stands for, one at a time
    """

    timeline: ReferenceTimeline
    events: Bound
    earlier: Bound
    member: ReferenceEvent | None = None

    def read(self, reference: Attribute | Aggregate | Elapsed) -> Any:
        """A value; what an alias or a type lacks is NULL, so that a comparison with it is false."""
        assert isinstance(reference, Attribute), "EQL has no aggregates in conditions"
        event = self._event(reference.variable, reference.which)
        if event is None:
            return MISSING if reference.which is Which.PREVIOUS else None
        if reference.attribute in (FIRST_MOMENT, LAST_MOMENT):
            return event.start if reference.attribute == FIRST_MOMENT else event.end
        known = self.timeline.has_attribute(event, reference.attribute)
        return event.values.get(reference.attribute) if known else None

    def _event(self, alias: str, which: Which) -> ReferenceEvent | None:
        if which is Which.MEMBER:
            return self.member
        bound = self.earlier if which is Which.PREVIOUS else self.events
        events = [event for name, event in bound if name == alias]
        if not events:
            return None
        return events[0] if which in (Which.SINGLE, Which.FIRST) else events[-1]

    def covered(self, variable: str, attribute: str) -> list[Any]:
        raise TypeError("EQL has no equivalence tests")


def _literal_holds(literal: Literal, bindings: DetectionBindings) -> bool:
    """Whether a literal is true; one on ALL of each event before, and of none it is."""
    members = [each for each in references(literal) if isinstance(each, Attribute) and each.which is Which.MEMBER]
    if not members:
        return literal_holds(literal, bindings)
    return all(
        literal_holds(literal, DetectionBindings(bindings.timeline, bindings.events, bindings.earlier, event))
        for alias, event in bindings.earlier
        if alias == members[0].variable
    )


def _first_point(event: ReferenceEvent, timeline: ReferenceTimeline) -> Point:
    if timeline.schema.tie_breaker is None:
        return (event.start,)
    return event.start, event.tie if event.first_tie is None else event.first_tie


def _last_point(event: ReferenceEvent, timeline: ReferenceTimeline) -> Point:
    return (event.end,) if timeline.schema.tie_breaker is None else (event.end, event.tie)


def _later(detected: Detected, steps: int) -> Detected:
    """E@d: the same events, until so many steps later; the tie-breaker of the end stays."""
    moment, *tie = detected.end
    return Detected(detected.events, (*detected.history[:-1], (min(moment + steps, LATEST), *tie)))


def _expiry(run: Detected, expiries: Iterable[Expiry]) -> int | float:
    """The last moment at which a run still waits."""
    moments = [
        min(event.start for alias, event in run.events if alias in each.aliases) + each.most
        for each in expiries
        if any(alias in each.aliases for alias, _ in run.events)
    ]
    return min(moments, default=math.inf)

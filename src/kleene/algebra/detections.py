"""Nodes of the stream algebra whose events are detections with their histories (NEXT §3.4; EQL writes them).

A detection binds events to aliases. Its history is the start and end points of these events in the order of time. A
failed detection ∅ is no event: it says when an exception occurred, and ends what waits for the operand that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kleene.pattern.expressions import Clause
from kleene.pattern.interning import Interned
from kleene.pattern.nodes import Component
from kleene.pattern.schema import private

# Attributes of every event that no query can name: its first and its last moment, in steps of the time column.
FIRST_MOMENT = private("first_moment")
LAST_MOMENT = private("last_moment")


@dataclass(frozen=True, slots=True, eq=False)
class DetectionSource(Interned):
    """The events of a component, each a detection of its own."""

    component: Component


@dataclass(frozen=True, slots=True, eq=False)
class DetectionFilter(Interned):
    """`E_θ`: the detections that satisfy all clauses."""

    operand: Detection
    condition: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DetectionUnion(Interned):
    """`E1 | E2 | …`: the detections of all parts."""

    parts: tuple[Detection, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Expiry(Interned):
    """A run is gone when more than `most` steps have passed since the first of the events of these aliases began."""

    aliases: tuple[str, ...]
    most: int


@dataclass(frozen=True, slots=True, eq=False)
class Failing(Interned):
    """What a failed detection does to the runs that wait for the operand that failed.

    exception   the number of the exception that failed
    condition   the clauses of its λ that name aliases of the run
    kills       whether the whole λ is known here: the runs that satisfy it die, and ∅ goes on. Otherwise they live, and
                ∅ goes on with the events of each of these runs
    """

    exception: int
    condition: tuple[Clause, ...]
    kills: bool


@dataclass(frozen=True, slots=True, eq=False)
class NextDetection(Interned):
    """`E1 ; E2_{φ,θ}`: each left detection with the first of the right ones after it that satisfy φ, if they satisfy θ.

    first_of   φ, which the right detections that it skips do not satisfy
    condition  θ
    """

    left: Detection
    right: Detection
    first_of: tuple[Clause, ...] = ()
    condition: tuple[Clause, ...] = ()
    failing: tuple[Failing, ...] = ()
    expiry: tuple[Expiry, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Iteration(Interned):
    """`E+_{φ,θ}`: one detection, then again and again the next one; every prefix is a detection.

    failing   the numbers of the exceptions in the operand whose failed detections end all runs
    """

    operand: Detection
    first_of: tuple[Clause, ...] = ()
    condition: tuple[Clause, ...] = ()
    failing: tuple[int, ...] = ()
    expiry: tuple[Expiry, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Unless(Interned):
    r"""`E1 \ E2_λ`: the left detections, but for those in whose time a right one ends.

    number     names this exception among those of its query
    condition  the clauses of λ that name aliases of both sides; with any, ∅ is of no use to others, and there is none
    deferred   whether λ names aliases that were bound before: they are known where runs wait (`Failing`), not here
    """

    operand: Detection
    exception: Detection
    number: int
    condition: tuple[Clause, ...] = ()
    deferred: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Delay(Interned):
    """`E@d`: the detections of E, each lasting so many steps longer."""

    operand: Detection
    steps: int


Detection = DetectionSource | DetectionFilter | DetectionUnion | NextDetection | Iteration | Unless | Delay


def operands(node: Detection) -> tuple[Detection, ...]:
    """The nodes that a node reads."""
    match node:
        case DetectionSource():
            return ()
        case DetectionUnion(parts):
            return parts
        case NextDetection(left, right):
            return left, right
        case Unless(operand, exception):
            return operand, exception
    return (node.operand,)


def walk_detections(node: Detection) -> Iterator[Detection]:
    """Every node, those below before those above."""
    for operand in operands(node):
        yield from walk_detections(operand)
    yield node


def aliases(node: Detection) -> tuple[str, ...]:
    """The aliases that detections of a node may bind; those of an exception are never bound."""
    match node:
        case DetectionSource(component):
            return (component.variable,)
        case Unless(operand):
            return aliases(operand)
    return tuple(name for operand in operands(node) for name in aliases(operand))


def repeats_iterations(node: Detection) -> bool:
    """Whether one iteration lies in another: then the same events may be a detection in several ways."""
    iterations = (each for each in walk_detections(node) if isinstance(each, Iteration))
    return any(isinstance(below, Iteration) for each in iterations for below in walk_detections(each.operand))


def last_aliases(node: Detection) -> dict[str, int]:
    """The aliases whose event ends a detection that has one, and how many steps later the detection itself ends."""
    match node:
        case DetectionSource(component):
            return {component.variable: 0}
        case DetectionUnion(parts):
            return {name: later for part in parts for name, later in last_aliases(part).items()}
        case NextDetection(right=right):
            return last_aliases(right)
        case Delay(operand, steps):
            return {name: later + steps for name, later in last_aliases(operand).items()}
    return last_aliases(node.operand)


def said(node: Detection, time: Callable[[int], str] = str) -> str:
    """A node as EQL writes it, without conditions; `time` writes steps of the clock."""

    def beside(part: Detection, *plain: type[Detection]) -> str:
        """An operand, in parentheses where it is of no kind that needs none."""
        while isinstance(part, DetectionFilter):
            part = part.operand
        text = said(part, time)
        return text if isinstance(part, (DetectionSource, *plain)) else f"({text})"

    match node:
        case DetectionSource(component):
            name = component.classes[0].name
            return name if component.variable == name else f"{name} {component.variable}"
        case DetectionFilter(operand):
            return said(operand, time)
        case DetectionUnion(parts):
            return " | ".join(beside(part, Iteration, Delay) for part in parts)
        case NextDetection(left, right):
            tighter = Iteration, Delay, DetectionUnion
            return f"{beside(left, NextDetection, *tighter)} ; {beside(right, *tighter)}"
        case Iteration(operand):
            return f"{beside(operand)}+"
        case Unless(operand, exception):
            return f"{beside(operand, Iteration, Delay)} \\ {beside(exception, Iteration, Delay)}"
        case Delay(operand, steps):
            return f"{beside(operand, Iteration)} @ {time(steps)}"

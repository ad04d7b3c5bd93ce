"""How long the detections of a query can last, where OCCURS WITHIN bounds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kleene.algebra.detections import (
    Delay,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Iteration,
    NextDetection,
    Unless,
    last_aliases,
    walk_detections,
)
from kleene.algebra.eql_query import BoundEqlQuery


@dataclass(frozen=True, slots=True)
class Reach:
    """How many steps a detection lasts at most, and how many before its start an exception that ends it may begin."""

    length: int
    before: int = 0


def reach(query: BoundEqlQuery) -> Reach | None:
    """How far around its start a detection of a query can depend on events; None: any number of steps."""
    length = length_of(query.root, lasting=query.schema.start is not None)
    # What an exception is made of may end before what it cancels begins.
    exceptions = [node.exception for node in walk_detections(query.root) if isinstance(node, Unless)]
    before = _greatest(length_of(each, lasting=False) for each in exceptions)
    return None if length is None or before is None else Reach(length, before * len(exceptions))


def length_of(node: Detection, *, lasting: bool) -> int | None:
    """How many steps a detection lasts at most; `lasting`: each event may last by itself."""
    match node:
        case DetectionSource():
            return None if lasting else 0
        case DetectionFilter(operand) | Unless(operand):
            return length_of(operand, lasting=lasting)
        case DetectionUnion(parts):
            return _greatest(length_of(part, lasting=lasting) for part in parts)
        case Delay(operand, steps):
            length = length_of(operand, lasting=lasting)
            return None if length is None else length + steps
        case Iteration() | NextDetection():
            # An OCCURS WITHIN from the first event on bounds whatever is inside.
            firsts = first_aliases(node)
            bounds = [each.most for each in node.expiry if firsts <= frozenset(each.aliases)]
            return min(bounds) + max(last_aliases(node).values()) if bounds else None


def _greatest(lengths: Iterable[int | None]) -> int | None:
    known = list(lengths)
    some = [each for each in known if each is not None]
    return max(some, default=0) if len(some) == len(known) else None


def first_aliases(node: Detection) -> frozenset[str]:
    """The aliases whose event begins a detection that has one."""
    match node:
        case DetectionSource(component):
            return frozenset({component.variable})
        case DetectionUnion(parts):
            return frozenset().union(*map(first_aliases, parts))
        case NextDetection(left=left):
            return first_aliases(left)
        case Unless(operand) | Iteration(operand) | Delay(operand) | DetectionFilter(operand):
            return first_aliases(operand)

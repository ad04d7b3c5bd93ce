"""What pairs of a query in EQL and its events are like: so that a test knows that it tried everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kleene.algebra.detections import (
    FIRST_MOMENT,
    Delay,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Failing,
    Iteration,
    NextDetection,
    Unless,
    walk_detections,
)
from kleene.algebra.eql_query import BoundEqlQuery, clauses_of_detection
from kleene.optimize.detections.planning import plan_detections
from kleene.pattern.expressions import Attribute, Which, references
from kleene.reference.detections import Detected, DetectionEvaluator
from kleene.reference.evaluator import events_of
from kleene.reference.timeline import ReferenceTimeline

_OPERATORS = {
    NextDetection: "next",
    DetectionUnion: "union",
    Iteration: "iteration",
    Unless: "exception",
    Delay: "timer",
    DetectionFilter: "filter",
}


def traits_of_query(query: BoundEqlQuery) -> set[str]:
    """What a query has, whatever its events."""
    nodes = list(walk_detections(query.root))
    traits = {_OPERATORS[type(node)] for node in nodes if not isinstance(node, DetectionSource)}
    looking = [node for node in nodes if isinstance(node, NextDetection | Iteration)]
    exceptions = [node for node in nodes if isinstance(node, Unless)]
    plan = plan_detections(query)
    named = [each for clause in clauses_of_detection(query.root) for each in references(clause)]
    fields = [each for each in named if isinstance(each, Attribute)]
    failing = Counter(each.exception for node in nodes if isinstance(node, NextDetection) for each in node.failing)
    known = {
        "φ": any(node.first_of for node in looking),
        "θ": any(node.condition for node in looking),
        "keys": any(each.keys for each in plan.nexts),
        "residual φ": any(each.residual for each in plan.nexts),
        "residual φ beside a key": any(each.residual and each.keys for each in plan.nexts),
        "PREV": any(each.which is Which.PREVIOUS for each in fields),
        "ALL": any(each.which is Which.MEMBER for each in fields),
        "OCCURS WITHIN": any(each.attribute == FIRST_MOMENT for each in fields),
        "λ on E1": any(node.condition for node in exceptions),
        "λ on what was bound before": any(node.deferred for node in exceptions),
        "no λ": any(not node.condition and not node.deferred for node in exceptions),
        "∅ by the key": any(fields is not None for each in plan.nexts for fields in each.failing),
        "∅ through another `;`": any(times > 1 for times in failing.values()),
        "start column": query.schema.start is not None,
        "tie-breaker": query.schema.tie_breaker is not None,
    }
    return traits | {name for name, holds in known.items() if holds}


def traits_of_pair(query: BoundEqlQuery, table: pa.Table, matches: int) -> Iterator[str]:
    """What a query and its events have together."""
    rows: list[dict[str, Any]] = table.to_pylist()
    points = Counter((row["ts"], row.get(query.schema.tie_breaker or "")) for row in rows)
    if max(points.values()) > 1:
        yield "simultaneous"
    if any(value is None for row in rows for value in row.values()):
        yield "NULL"
    if len(rows) >= 30:
        yield "long"
    events, _ = events_of(table, query.schema)
    evaluator = DetectionEvaluator(ReferenceTimeline.of(events, query.schema, table.column_names))
    nodes = list(walk_detections(query.root))
    awaited = [node.right for node in nodes if isinstance(node, NextDetection)]
    awaited += [node.operand for node in nodes if isinstance(node, Iteration)]
    several = [node for node in awaited if len(_lengths(node)) > 1]
    if any(_ties_with_another_length(evaluator.evaluate(node).detections) for node in several):
        yield "ties of other lengths"
    exceptions = [node for node in nodes if isinstance(node, Unless)]
    if exceptions and len(evaluator.evaluate(_without_failures(query.root)).detections) > matches:
        yield "prevented by ∅"
    here = [node for node in exceptions if not node.deferred]
    for node in here:
        if len(evaluator.evaluate(node.operand).detections) > len(evaluator.evaluate(node).detections):
            yield "cancelled"
            break


def _lengths(node: Detection) -> set[int]:
    """How many events detections of a node may have; of an iteration 0 stands for more."""
    match node:
        case DetectionSource():
            return {1}
        case DetectionUnion(parts):
            return set().union(*map(_lengths, parts))
        case NextDetection(left, right):
            return {one + other for one in _lengths(left) for other in _lengths(right)}
        case Iteration(operand):
            return _lengths(operand) | {0}
        case DetectionFilter(operand) | Unless(operand) | Delay(operand):
            return _lengths(operand)


def _ties_with_another_length(detections: list[Detected]) -> bool:
    lengths: dict[tuple[Any, ...], set[int]] = {}
    for each in detections:
        lengths.setdefault(each.end, set()).add(len(each.history))
    return any(len(known) > 1 for known in lengths.values())


def _without_failures(node: Detection) -> Detection:
    """A node in which failed detections end nothing."""
    match node:
        case DetectionSource():
            return node
        case DetectionUnion(parts):
            return DetectionUnion(tuple(map(_without_failures, parts)))
        case NextDetection(left, right):
            ignored = tuple(Failing(each.exception, (), False) for each in node.failing)
            return replace(node, left=_without_failures(left), right=_without_failures(right), failing=ignored)
        case Iteration(operand):
            return replace(node, operand=_without_failures(operand), failing=())
        case DetectionFilter(operand) | Unless(operand) | Delay(operand):
            return replace(node, operand=_without_failures(operand))

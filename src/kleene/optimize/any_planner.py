"""The plan of a query, in either algebra."""

from __future__ import annotations

from dataclasses import replace

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.optimize.detections.planning import plan_detections
from kleene.optimize.planner import plan_query
from kleene.optimize.streams.automaton import plan_stream
from kleene.plan.any_plan import AnyPlan
from kleene.plan.physical import Plan
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery


def plan_of(query: AnyBoundQuery, settings: Settings | None = None) -> AnyPlan:
    """How a query runs, as far as that is known before its events.

    >>> from kleene.queries.any_query import read_query
    >>> texts = "PATTERN A a ; B b", "A a ; B b", "SELECT * FROM A a ; B b"
    >>> [type(plan_of(read_query(text).bind())).__name__ for text in texts]
    ['Plan', 'StreamPlan', 'DetectionPlan']
    """
    if isinstance(query, BoundStreamQuery):
        return plan_stream(query)
    if isinstance(query, BoundEqlQuery):
        return plan_detections(query)
    return plan_query(query, settings)


def plan_on_reference(query: AnyBoundQuery, reason: str) -> AnyPlan:
    """The plan of a query that only the reference evaluator runs."""
    if isinstance(query, BoundStreamQuery):
        return replace(plan_stream(query), why_on_reference=reason)
    if isinstance(query, BoundEqlQuery):
        return replace(plan_detections(query), why_on_reference=reason)
    return Plan.on_reference(query, reason)

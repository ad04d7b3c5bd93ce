"""The engine of a query, in either algebra."""

from __future__ import annotations

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.engine import engine as patterns
from kleene.engine.detections.engine import DetectionEngine
from kleene.engine.engine import Engine
from kleene.engine.streams import engine as streams
from kleene.engine.streams.engine import StreamEngine
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery

AnyEngine = Engine | StreamEngine | DetectionEngine


def check_bounded(query: AnyBoundQuery, settings: Settings) -> None:
    """Refuse a query whose state could grow for ever on a stream."""
    if isinstance(query, BoundStreamQuery):
        streams.check_bounded(query, StreamEngine(query, settings).plan)
    elif isinstance(query, BoundEqlQuery):
        DetectionEngine(query, settings).check_bounded()
    else:
        patterns.check_bounded(query, has_negated_end=Engine(query, settings).plan.has_negated_end)


def engine_for(query: AnyBoundQuery, settings: Settings | None = None, snapshot: bytes | None = None) -> AnyEngine:
    """An engine that has seen nothing, or that goes on where a snapshot was taken.

    `NotCompilable` when the query needs the reference evaluator.
    """
    if isinstance(query, BoundStreamQuery):
        return StreamEngine(query, settings) if snapshot is None else StreamEngine.restore(query, snapshot, settings)
    if isinstance(query, BoundEqlQuery):
        if snapshot is None:
            return DetectionEngine(query, settings)
        return DetectionEngine.restore(query, snapshot, settings)
    return Engine(query, settings) if snapshot is None else Engine.restore(query, snapshot, settings)

"""Which events of a stream a query counts: every event, or only those that it can use."""

from __future__ import annotations

from kleene.lang.tree import SelectionStrategy
from kleene.pattern.query import BoundQuery


def counts_by_step(query: BoundQuery) -> bool:
    """Whether contiguity is judged by steps: events that do not last are contiguous when their steps are."""
    return query.strategy is SelectionStrategy.STRICT_CONTIGUITY and query.schema.start is None


def counts_in_stream(query: BoundQuery) -> bool:
    """Whether contiguity is judged among the events of the whole stream."""
    return query.strategy is SelectionStrategy.STRICT_CONTIGUITY and query.schema.start is not None


def counts_all(query: BoundQuery) -> bool:
    """Whether places in the partition matter, so that every event is counted, irrelevant ones included."""
    in_partition = query.strategy is SelectionStrategy.PARTITION_CONTIGUITY
    return query.counts_events or counts_in_stream(query) or in_partition


def keeps_past(query: BoundQuery) -> bool:
    """Whether the ends of all past events are kept: windows of positions over events that last need them."""
    return query.counts_events and query.schema.start is not None

"""What a query of the stream algebra gives: its events, their ids, and the composite events that others read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kleene.algebra.query import BoundStreamQuery
from kleene.frames.identity import match_id, value_hash
from kleene.frames.results import times, value_column
from kleene.frames.rows import BadRow
from kleene.frames.stream_columns import attribute_types, result_column, stream_result_schema
from kleene.pattern.clock import ClockKind
from kleene.pattern.schema import FIRST_TIE, LAST_TIE, Schema
from kleene.reference.stream_values import Point, StreamEvent
from kleene.reference.streams import StreamEvaluator
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline


@dataclass(frozen=True)
class StreamResult:
    """The events of one query, by end, start and id."""

    query: BoundStreamQuery
    events: list[StreamEvent]
    ids: list[str]
    bad_rows: list[BadRow] = field(default_factory=list)
    # When it makes a stream: the row number of the first composite event.
    first_made: int | None = None


def evaluate_stream(query: BoundStreamQuery, events: Iterable[ReferenceEvent], bad: list[BadRow]) -> StreamResult:
    """One bound query over its events, by the definitions."""
    stream = list(events)
    names = {name for event in stream for name in event.values}
    timeline = ReferenceTimeline.of(stream, query.schema, names)
    results = StreamEvaluator(timeline).evaluate(query.root)
    identified = sorted((event.end, event.start, stream_id(query, event), event) for event in results)
    return StreamResult(query, [event for *_, event in identified], [each[2] for each in identified], bad)


def stream_id(query: BoundStreamQuery, event: StreamEvent) -> str:
    """The id of a result: a hash of the query, of its interval, and of its values in their order."""
    moments = [_nanoseconds(point[0], query.schema) for point in (event.start, event.end)]
    ties = [tie for point in (event.start, event.end) for tie in point[1:]]
    return match_id(query.digest, [[value_hash(each)] for each in (*moments, *ties, *event.values.values())])


def _nanoseconds(step: int, schema: Schema) -> int:
    """A moment as ids have it: a step of integer ticks, or nanoseconds."""
    clock = schema.clock
    return step if clock.kind is not ClockKind.TIMESTAMP else step * int(clock.nanoseconds or 1)


def composites_of(result: StreamResult, schema: Schema, first: int) -> list[ReferenceEvent]:
    """The composite events that a query makes: its results, with their attributes by name."""
    query = result.query
    assert query.publish is not None
    composites = []
    for place, (event, identity) in enumerate(zip(result.events, result.ids, strict=True)):
        values: dict[str, Any] = {column: event.values[attribute] for attribute, column in query.made_columns}
        values |= {schema.type: query.publish, schema.time: _nanoseconds(event.end[0], schema)}
        if schema.start is not None:
            values[schema.start] = _nanoseconds(event.start[0], schema)
        first_tie, last_tie = _tie(event.start), _tie(event.end)
        if schema.tie_breaker is not None:
            values[schema.tie_breaker] = last_tie
        span = event.start[0], event.end[0]
        composites.append(ReferenceEvent(first + place, query.publish, *span, last_tie, values, identity, first_tie))
    return composites


def _tie(point: Point) -> Any:
    return point[1] if len(point) > 1 else None


def stream_table(result: StreamResult, columns: pa.Schema) -> pa.Table:
    """The results as a table, over events with these columns."""
    query, events = result.query, result.events
    schema, types = stream_result_schema(query, columns), attribute_types(query.root, columns)
    arrays: dict[str, Any] = {
        "match_id": pa.array(result.ids, pa.string()),
        "query": pa.array([query.name] * len(events), pa.string()),
    }
    for name, points in (("start", [event.start for event in events]), ("end", [event.end for event in events])):
        arrays[name] = times([point[0] for point in points], schema.field(name).type)
    if FIRST_TIE in schema.names:
        tie = schema.field(FIRST_TIE).type
        arrays[FIRST_TIE] = _tie_column([event.start for event in events], tie)
        arrays[LAST_TIE] = _tie_column([event.end for event in events], tie)
    values = {
        name: value_column([event.values[name] for event in events], types[name]) for name in query.root.schema.names
    }
    arrays |= {name: result_column(listed, values) for name, listed in query.result_columns.items()}
    return pa.table([arrays[name] for name in schema.names], schema=schema)


def _tie_column(points: Sequence[Point], kind: pa.DataType) -> pa.Array:
    return value_column([_tie(point) for point in points], kind)

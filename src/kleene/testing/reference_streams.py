"""The stream algebra on bounded input, by definition: the face of `reference.streams` for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kleene.algebra.cutting import cut
from kleene.algebra.query import BoundStreamQuery, StreamQuery
from kleene.frames.arrow import schema_on
from kleene.frames.streams import to_table
from kleene.pattern.schema import Schema
from kleene.reference.evaluator import events_of
from kleene.reference.stream_automaton import EventAutomaton
from kleene.reference.stream_results import StreamResult, composites_of
from kleene.reference.stream_values import StreamEvent
from kleene.reference.streams import StreamEvaluator
from kleene.reference.timeline import ReferenceTimeline


def reference_stream(
    events: Any,
    query: str | StreamQuery,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    by_automaton: bool = False,
) -> list[dict[str, Any]]:
    """The events of a stream expression, by end, start and values: a dict of values for each stream id.

    by_automaton   as Algorithm 1 finds them (CESAR §3.2) instead of by the definitions; what is not linear-plus is cut
                   into several automata, of which one reads what another makes (CESAR §3.5)

    >>> rows = [{"type": "Stock", "ts": 1, "price": 10}, {"type": "Stock", "ts": 2, "price": 19}]
    >>> reference_stream(rows, "σ{b.price > a.price}(Stock a ; Stock b)")
    [{'start': 1, 'end': 2, 'a': {'price': 10}, 'b': {'price': 19}}]
    """
    parsed = query if isinstance(query, StreamQuery) else StreamQuery(query, params=dict(params or {}))
    table, typed = to_table(events, (schema or Schema()).declaring(parsed.tree.declarations))
    known = schema_on(table.schema, typed)
    bound = parsed.bind(known)
    primitive, _ = events_of(table, known)
    timeline = ReferenceTimeline.of(primitive, known, table.column_names)
    return [row_of(event) for event in stream_events(bound, timeline, by_automaton=by_automaton)]


def stream_events(
    query: BoundStreamQuery, timeline: ReferenceTimeline, *, by_automaton: bool = False
) -> list[StreamEvent]:
    """The events of a bound expression over those of a timeline."""
    if not by_automaton:
        return StreamEvaluator(timeline).evaluate(query.root)
    *parts, rest = cut(query)
    for part in parts:
        results = EventAutomaton.of(part.root).run(timeline)
        composites = composites_of(StreamResult(part, results, [""] * len(results)), part.schema, len(timeline.events))
        timeline = ReferenceTimeline.of([*timeline.events, *composites], part.schema, timeline.columns)
    return EventAutomaton.of(rest.root).run(timeline)


def row_of(event: StreamEvent) -> dict[str, Any]:
    """Its moments, a dict for each stream id, and what was renamed or computed by name."""
    row: dict[str, Any] = {"start": event.start[0], "end": event.end[0]}
    for (stream, name), value in event.values.items():
        if stream:
            row.setdefault(stream, {})[name] = value
        else:
            row[name] = value
    return row

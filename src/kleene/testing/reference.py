"""The reference evaluator: what a query means, computed slowly and literally.

Every executor is tested against this one. Lines run as NFA^b (`automaton`), everything else by trying assignments
(`assignments`); negation, selection and output come after (`selection`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kleene.errors import CompositionCycle, UnknownKind
from kleene.frames.arrow import schema_on
from kleene.frames.rows import BadRow, Row, rows_of
from kleene.frames.streams import reads, to_table
from kleene.lang.tree import OutputMode
from kleene.pattern.conditions import place
from kleene.pattern.nodes import Pattern, components, is_line
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.testing.assignments import Assignments
from kleene.testing.automaton import Automaton, Run
from kleene.testing.compressing import Compressed, compress
from kleene.testing.identity import event_hashes, match_ids
from kleene.testing.limits import Limits
from kleene.testing.matches import Match
from kleene.testing.selection import in_order, non_overlapping, returned, survives_negation, timeouts
from kleene.testing.timeline import Event, Timeline


@dataclass(frozen=True)
class Result:
    """What one query found. Events carry the row numbers of the input."""

    query: BoundQuery
    matches: list[Match]
    ids: list[str]
    # With RETURN: one row a match.
    returned: list[dict[str, Any]] = field(default_factory=list)
    # With OUTPUT COMPRESSED: (completing row, number of matches), and their graphs.
    compressed: list[tuple[int, int]] = field(default_factory=list)
    shared: Compressed | None = None
    timeouts: list[Match] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    # All events that the query saw, by row; rows past the input are composite events of other queries.
    events: list[Event] = field(default_factory=list)
    # The row number of the first composite event that this query made, when it makes a stream.
    first_made: int | None = None


def reference_match(
    events: Any,
    query: str | Query | Sequence[str | Query],
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    limits: Limits | None = None,
) -> Result:
    """Evaluate a query on bounded input, by definition.

    events   rows as dicts, a pyarrow table, or a dict of streams
    query    a query, or several that feed each other by RETURN … INTO; the last one's result is returned

    >>> rows = [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}, {"type": "B", "ts": 3}]
    >>> [match.bindings for match in reference_match(rows, "PATTERN SEQ(A a, B b) WITHIN 2").matches]
    [{'a': 0, 'b': 1}]
    """
    given = [query] if isinstance(query, str | Query) else list(query)
    queries = [item if isinstance(item, Query) else Query(item, params=dict(params or {})) for item in given]
    return reference_results(events, queries, schema=schema, limits=limits)[-1]


def reference_results(
    events: Any, queries: Sequence[Query], *, schema: Schema | None = None, limits: Limits | None = None
) -> list[Result]:
    """Evaluate several queries, those that make a stream before those that read it."""
    if not queries:
        raise UnknownKind("no query was given", hint="pass a query, or a list of at least one")
    declarations = [declaration for query in queries for declaration in query.tree.declarations]
    declared = (schema or Schema()).declaring(declarations)
    table, given = to_table(events, declared, reads(queries, declared))
    known = schema_on(table.schema, given)
    good, bad = rows_of(table, known)
    primitive = [_event(row) for row in good]
    composites: dict[str, list[Event]] = {}
    made_types: dict[str, dict[str, ValueType]] = {}
    results: dict[int, Result] = {}
    following = table.num_rows
    for place_, query in _in_dependency_order(queries):
        bound = query.bind(known.adding_types(made_types))
        read = [event for name in bound.types for event in composites.get(name, ())]
        result = evaluate(bound, [*primitive, *read], limits or Limits(), bad)
        if bound.into is not None:
            result = replace(result, first_made=following)
            made = _composites(result, known, following)
            following += len(made)
            composites.setdefault(bound.into, []).extend(made)
            made_types[bound.into] = {column.name: column.value.type for column in bound.returns or ()}
        results[place_] = result
    return [results[number] for number in range(len(queries))]


def evaluate(query: BoundQuery, events: Iterable[Event], limits: Limits, bad: list[BadRow]) -> Result:
    """One bound query over its events."""
    stream = list(events)
    columns = query.columns_read
    names = columns if columns is not None else {name for event in stream for name in event.values}
    timeline = Timeline.of(stream, query.schema, names, query.partition)
    found: dict[Any, Match] = {}
    histories: list[tuple[tuple[str, ...], Run]] = []
    for pattern in query.alternatives:
        matches, runs = _positive_matches(query, pattern, timeline, limits)
        histories += runs
        for match in matches:
            if survives_negation(query, pattern, match, timeline):
                found.setdefault(match.identity, match)
    every = in_order(found.values(), timeline)
    chosen = non_overlapping(query, every, timeline) if query.output is OutputMode.NON_OVERLAP else every
    hashes = event_hashes(timeline)
    shared = compress(chosen, timeline, hashes) if query.output is OutputMode.COMPRESSED else None
    return Result(
        query,
        chosen,
        match_ids(query, chosen, hashes),
        [returned(query, match, timeline) for match in chosen] if query.returns is not None else [],
        [] if shared is None else [(event.index, len(places)) for event, places in shared.groups],
        shared,
        timeouts(query, histories, every, timeline) if query.timeouts is not None else [],
        bad,
        stream,
    )


def _positive_matches(
    query: BoundQuery, pattern: Pattern, timeline: Timeline, limits: Limits
) -> tuple[list[Match], list[tuple[tuple[str, ...], Run]]]:
    if not is_line(pattern):
        return Assignments(query, pattern, timeline, limits).run(), []
    line = place(tuple(components(pattern)), query.conditions.positive)
    automaton = Automaton(query, line, timeline, limits)
    matches = automaton.run()
    names = tuple(state.component.variable for state in line.states)
    return matches, [(names, run) for run in automaton.history]


def _event(row: Row) -> Event:
    return Event(row.index, row.type, row.start, row.end, row.tie, row.values)


def _composites(result: Result, schema: Schema, first: int) -> list[Event]:
    """The composite events that a query makes: type S, the RETURN columns, start and end of its positive events."""
    assert result.query.into is not None
    made = []
    for place_, (match, identity, values) in enumerate(zip(result.matches, result.ids, result.returned, strict=True)):
        last = max(match.events, key=lambda event: event.end)
        own = {schema.type: result.query.into, schema.time: last.values.get(schema.time)}
        if schema.start is not None:
            own[schema.start] = min(match.events, key=lambda event: event.start).values.get(schema.start)
        if schema.tie_breaker is not None:
            own[schema.tie_breaker] = last.tie
        made.append(
            Event(first + place_, result.query.into, match.start, match.end, last.tie, {**own, **values}, identity)
        )
    return made


def _in_dependency_order(queries: Sequence[Query]) -> list[tuple[int, Query]]:
    """Makers before readers; a cycle is an error that names it."""
    makers: dict[str, list[int]] = {}
    for number, query in enumerate(queries):
        if query.tree.returns is not None and query.tree.returns.into is not None:
            makers.setdefault(query.tree.returns.into, []).append(number)
    order: dict[int, None] = {}
    path: list[int] = []

    def visit(number: int) -> None:
        if number in order:
            return
        if number in path:
            names = " → ".join(str(queries[step].tree.returns.into) for step in [*path[path.index(number) :], number])  # type: ignore[union-attr]
            raise CompositionCycle(f"queries feed each other in a cycle: {names}")
        path.append(number)
        for name in queries[number].inputs:
            for maker in makers.get(name, ()):
                visit(maker)
        path.pop()
        order[number] = None

    for number in range(len(queries)):
        visit(number)
    return [(number, queries[number]) for number in order]

"""The reference evaluator: what a query means, computed slowly and literally.

Every executor is tested against this one. Lines run as NFA^b (`automaton`), everything else by trying assignments
(`assignments`); negation, selection and output come after (`selection`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.errors import UnknownKind
from kleene.frames.arrow import python_values, schema_on
from kleene.frames.rows import BadRow, Row, rows_of
from kleene.frames.streams import reads, to_table
from kleene.lang.tree import OutputMode
from kleene.pattern.clock import ClockKind
from kleene.pattern.conditions import assign_edges
from kleene.pattern.nodes import Pattern, components, is_linear
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import FIRST_TIE, IDENTITY, START, STREAM, TYPE, Schema
from kleene.queries.any_query import AnyBoundQuery, AnyQuery, read_query
from kleene.queries.feeding import bound_in_order, declared_together, in_dependency_order
from kleene.reference.assignments import Assignments
from kleene.reference.automaton import Automaton, Run
from kleene.reference.compressing import Compressed, compress
from kleene.reference.detections import DetectionEvaluator
from kleene.reference.identity import event_hashes, match_ids
from kleene.reference.limits import Limits
from kleene.reference.matches import Match
from kleene.reference.selection import closed_at, in_order, non_overlapping, returned, survives_negation, timeouts
from kleene.reference.stream_results import StreamResult, composites_of, evaluate_stream
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline


@dataclass(frozen=True)
class Timeout:
    """A run that never became a match: how far it came, and when its window closed (None: the input ended before)."""

    prefix: Match
    closed: int | None
    identity: str
    last: ReferenceEvent


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
    late: list[Timeout] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    # All events that the query saw, by row; rows past the input are composite events of other queries.
    events: list[ReferenceEvent] = field(default_factory=list)
    # When it makes a stream: the last event of each match, and the row number of the first composite event.
    lasts: list[ReferenceEvent] = field(default_factory=list)
    first_made: int | None = None
    # When others read its timeouts: the row number of the first timeout event.
    first_late: int | None = None

    @property
    def timeouts(self) -> list[Match]:
        """The longest prefix of each run that never became a match."""
        return [timeout.prefix for timeout in self.late]


AnyResult = Result | StreamResult


def reference_match(
    events: Any,
    query: str | AnyQuery | Sequence[str | AnyQuery],
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
    listed = [query] if isinstance(query, str | AnyQuery) else list(query)
    queries = [item if isinstance(item, AnyQuery) else read_query(item, params=params) for item in listed]
    result = all_results(events, queries, schema=schema, limits=limits)[-1]
    if isinstance(result, StreamResult):
        raise UnknownKind("this query is one of streams", hint="`reference_stream` evaluates it")
    return result


def reference_results(
    events: Any, queries: Sequence[AnyQuery], *, schema: Schema | None = None, limits: Limits | None = None
) -> list[Result]:
    """Evaluate several queries of patterns, those that make a stream before those that read it."""
    results = all_results(events, queries, schema=schema, limits=limits)
    return [result for result in results if isinstance(result, Result)]


def all_results(
    events: Any, queries: Sequence[AnyQuery], *, schema: Schema | None = None, limits: Limits | None = None
) -> list[AnyResult]:
    """Evaluate several queries, of patterns and of streams, those that make a stream before those that read it."""
    declared = declared_together(schema or Schema(), queries)
    order = in_dependency_order(queries, declared)
    table, typed = to_table(events, declared, reads(queries, declared))
    known = schema_on(table.schema, typed)
    primitive, bad = events_of(table, known)
    labels = table.column(STREAM).to_pylist() if known.streams else []
    composites: dict[str, list[ReferenceEvent]] = {}
    results: dict[int, AnyResult] = {}
    following = table.num_rows
    placed = bound_in_order(order, known)
    wanted = {name for _, bound in placed for name in bound.types}
    for place_, bound in placed:
        read = [event for name in bound.types for event in composites.get(name, ())]
        lasting = any(name in composites for name in bound.types)
        own = _input(bound, primitive, labels)
        if isinstance(bound, BoundStreamQuery):
            stream = evaluate_stream(bound, [*own, *read], bad)
            if bound.publish is not None:
                stream = replace(stream, first_made=following)
                new_events = composites_of(stream, known, following)
                following += len(new_events)
                composites.setdefault(bound.publish, []).extend(new_events)
            results[place_] = stream
            continue
        result = evaluate(bound, [*own, *read], limits or Limits(), bad, lasting=lasting)
        if bound.into is not None:
            result = replace(result, first_made=following)
            new_events = _composites(result, known, following)
            following += len(new_events)
            composites.setdefault(bound.into, []).extend(new_events)
        if bound.timeouts in wanted:
            result = replace(result, first_late=following)
            new_events = _timeout_events(result, known, following)
            following += len(new_events)
            composites.setdefault(str(bound.timeouts), []).extend(new_events)
        results[place_] = result
    return [results[number] for number in range(len(queries))]


def _input(
    query: AnyBoundQuery, events: Sequence[ReferenceEvent], labels: Sequence[str | None]
) -> list[ReferenceEvent]:
    """The events of the streams that the query reads, with the columns of these streams only."""
    if not labels:
        return list(events)
    own = query.schema.columns or {}
    names = {name for name, _ in query.schema.streams}
    return [
        replace(event, values={name: value for name, value in event.values.items() if name in own})
        for event in events
        if labels[event.index] in names
    ]


def events_of(table: pa.Table, schema: Schema, first: int = 0) -> tuple[list[ReferenceEvent], list[BadRow]]:
    """The events of a table, numbered from `first`, and the rows that are none."""
    good, bad = rows_of(table, schema)
    private = [_private(table, name) for name in (IDENTITY, FIRST_TIE)]
    return [_event(row, first, *(column[row.index] for column in private)) for row in good], bad


def _private(table: pa.Table, name: str) -> list[Any]:
    return python_values(table.column(name)) if name in table.column_names else [None] * table.num_rows


def evaluate(
    query: BoundQuery, events: Iterable[ReferenceEvent], limits: Limits, bad: list[BadRow], *, lasting: bool = False
) -> Result:
    """One bound query over its events; `lasting`: it reads composite events, which last."""
    stream = list(events)
    names = query.columns_compared({name for event in stream for name in event.values})
    timeline = ReferenceTimeline.of(stream, query.schema, names, query.partition)
    histories: list[tuple[tuple[str, ...], Run]] = []
    if isinstance(query, BoundEqlQuery):
        every = in_order(_detected(query, timeline), timeline)
    else:
        matches, histories = _matched(query, timeline, limits)
        every = in_order(matches, timeline)
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
        _timed_out(query, histories, every, timeline, hashes, lasting=lasting) if query.timeouts is not None else [],
        bad,
        stream,
        [match.last(timeline) for match in chosen] if query.into is not None else [],
    )


def _detected(query: BoundEqlQuery, timeline: ReferenceTimeline) -> list[Match]:
    """The detections of a query in EQL, as matches; those of the same events under the same names are one."""
    matches: dict[Any, Match] = {}
    for detected in DetectionEvaluator(timeline).evaluate(query.root).detections:
        selected: dict[str, tuple[ReferenceEvent, ...]] = {}
        for alias, event in detected.events:
            selected[alias] = (*selected.get(alias, ()), event)
        later = detected.end[0] - max(event.end for _, event in detected.events)
        match = Match(query.positives, selected, later)
        matches.setdefault(match.identity, match)
    return list(matches.values())


def _matched(
    query: BoundQuery, timeline: ReferenceTimeline, limits: Limits
) -> tuple[Iterable[Match], list[tuple[tuple[str, ...], Run]]]:
    """The matches of a pattern, and the runs that tell of timeouts."""
    matches_by_identity: dict[Any, Match] = {}
    histories: list[tuple[tuple[str, ...], Run]] = []
    for pattern in query.alternatives:
        matches, runs = _positive_matches(query, pattern, timeline, limits)
        histories += runs
        for match in matches:
            if survives_negation(query, pattern, match, timeline):
                matches_by_identity.setdefault(match.identity, match)
    return matches_by_identity.values(), histories


def _timed_out(
    query: BoundQuery,
    histories: list[tuple[tuple[str, ...], Run]],
    matches: list[Match],
    timeline: ReferenceTimeline,
    hashes: dict[ReferenceEvent, int],
    *,
    lasting: bool,
) -> list[Timeout]:
    prefixes = timeouts(query, histories, matches, timeline)
    lasting = lasting or query.schema.start is not None
    return [
        Timeout(prefix, closed_at(query, prefix, timeline, lasting=lasting), identity, prefix.last(timeline))
        for prefix, identity in zip(prefixes, match_ids(query, prefixes, hashes), strict=True)
    ]


def _positive_matches(
    query: BoundQuery, pattern: Pattern, timeline: ReferenceTimeline, limits: Limits
) -> tuple[list[Match], list[tuple[tuple[str, ...], Run]]]:
    if not is_linear(pattern):
        return Assignments(query, pattern, timeline, limits).run(), []
    line = assign_edges(tuple(components(pattern)), query.conditions.positive)
    automaton = Automaton(query, line, timeline, limits)
    matches = automaton.run()
    names = tuple(state.component.variable for state in line.states)
    return matches, [(names, run) for run in automaton.history]


def _event(row: Row, first: int, identity: str | None, first_tie: Any) -> ReferenceEvent:
    # What parts of a stream query make has its attributes in private columns.
    own = (START, TYPE, IDENTITY, STREAM, FIRST_TIE)
    values = {name: value for name, value in row.values.items() if name not in own}
    return ReferenceEvent(first + row.index, row.type, row.start, row.end, row.tie, values, identity, first_tie)


def _composites(result: Result, schema: Schema, first: int) -> list[ReferenceEvent]:
    """The composite events that a query makes: type S, the RETURN columns, start and end of its positive events."""
    assert result.query.into is not None
    composites = []
    rows = zip(result.matches, result.ids, result.returned, result.lasts, strict=True)
    for place_, (match, identity, values, last) in enumerate(rows):
        end = last.values.get(schema.time) if not match.later else _among_values(match.end, schema)
        own = {schema.type: result.query.into, schema.time: end}
        if schema.start is not None:
            own[schema.start] = min(match.events, key=lambda event: event.start).values.get(schema.start)
        if schema.tie_breaker is not None:
            own[schema.tie_breaker] = last.tie
        tie = None if schema.tie_breaker is None else first_event(match).tie
        composites.append(
            ReferenceEvent(
                first + place_, result.query.into, match.start, match.end, last.tie, {**own, **values}, identity, tie
            )
        )
    return composites


def _among_values(moment: int, schema: Schema) -> int:
    """A moment as values have it: timestamps are nanoseconds there."""
    ticks = schema.clock.kind is ClockKind.TICKS or schema.clock.nanoseconds is None
    return moment if ticks else moment * int(schema.clock.nanoseconds or 1)


def first_event(match: Match) -> ReferenceEvent:
    """The event that starts first; of several, that with the least tie-breaker."""
    return min(match.events, key=lambda event: (event.start, event.tie))


def _timeout_events(result: Result, schema: Schema, first: int) -> list[ReferenceEvent]:
    """The events that a query makes of its timeouts: the key and how far the run came, when its window closed."""
    query = result.query
    timeout_events: list[ReferenceEvent] = []
    for timeout in result.late:
        if timeout.closed is None:
            continue
        events = timeout.prefix.events
        values: dict[str, Any] = {name: events[0].values.get(name) for name in query.partition}
        values["reached"] = sum(map(bool, timeout.prefix.selected.values()))
        values |= {schema.type: query.timeouts, schema.time: _among_values(timeout.closed, schema)}
        if schema.start is not None:
            values[schema.start] = min(events, key=lambda event: event.start).values.get(schema.start)
        if schema.tie_breaker is not None:
            values[schema.tie_breaker] = timeout.last.values.get(schema.tie_breaker)
        span = timeout.prefix.start, timeout.closed
        timeout_events.append(
            ReferenceEvent(
                first + len(timeout_events), query.timeouts, *span, timeout.last.tie, values, timeout.identity
            )
        )
    return timeout_events

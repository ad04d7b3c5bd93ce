"""Results of the reference evaluator as Arrow tables with the documented columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kleene.frames.composites import composite_rows, timeout_rows
from kleene.frames.composites import with_composites as below
from kleene.frames.compressed import Events, RowFacts, compressed_table
from kleene.frames.results import (
    closed_times,
    event_column,
    event_list_column,
    result_schema,
    several_schema,
    several_table,
    shown,
    timeout_schema,
    times,
    value_column,
)
from kleene.lang.tree import OutputMode
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import EVENTS, FIRST_TIE, IDENTITY, LAST_TIE
from kleene.queries.any_query import AnyBoundQuery
from kleene.reference.evaluator import AnyResult, Result, first_event
from kleene.reference.matches import Match
from kleene.reference.stream_results import StreamResult, stream_table
from kleene.reference.timeline import ReferenceEvent


def match_table(result: Result, table: pa.Table) -> pa.Table:
    """One row a match; with RETURN its columns, with COMPRESSED one row a completing event."""
    if result.query.output is OutputMode.COMPRESSED:
        return _compressed_table(result, table)
    schema = result_schema(result.query, table.schema)
    query, matches = result.query, result.matches
    columns = _common_columns(result.ids, query, matches, table, schema)
    if query.returns is not None:
        for column in query.returns:
            values = [row[column.name] for row in result.returned]
            columns[column.name] = _returned_column(values, table, schema.field(column.name).type)
    elif not query.listed:
        for component in query.positives:
            kind = schema.field(component.variable).type
            columns[component.variable] = _variable_column(component, matches, table, kind)
    if query.listed:
        columns[EVENTS] = _listed_column(matches, table, schema.field(EVENTS).type)
    if LAST_TIE in schema.names:
        ties = pa.struct([table.schema.field(query.schema.tie_breaker)])
        columns[LAST_TIE] = event_column(table, [event.index for event in result.lasts], ties).field(0)
    if FIRST_TIE in schema.names:
        firsts = [first_event(match).index for match in matches]
        columns[FIRST_TIE] = event_column(table, firsts, ties).field(0)
    return pa.table(columns, schema=schema)


def timeout_table(result: Result, table: pa.Table) -> pa.Table:
    """One row per run start that never became a match: how far it came."""
    query, prefixes = result.query, result.timeouts
    schema = timeout_schema(query, table.schema)
    columns = _common_columns(None, query, prefixes, table, schema)
    columns["stream"] = pa.array([query.timeouts] * len(prefixes), pa.string())
    columns["closed"] = closed_times([timeout.closed for timeout in result.late], schema.field("closed").type)
    columns["reached"] = pa.array([sum(map(bool, prefix.selected.values())) for prefix in prefixes], pa.int64())
    for component in query.positives:
        columns[component.variable] = _variable_column(
            component, prefixes, table, schema.field(component.variable).type
        )
    if query.identified:
        columns[IDENTITY] = pa.array([timeout.identity for timeout in result.late], pa.string())
    if LAST_TIE in schema.names:
        ties = pa.struct([table.schema.field(query.schema.tie_breaker)])
        columns[LAST_TIE] = event_column(table, [timeout.last.index for timeout in result.late], ties).field(0)
    return pa.table(columns, schema=schema)


def any_table(result: AnyResult, table: pa.Table) -> pa.Table:
    """The matches of a query of either algebra, as users see them."""
    if isinstance(result, StreamResult):
        rows = stream_table(result, table.schema)
        return rows.select(shown(rows.schema).names)
    return match_table(result, table)


def many_table(results: Sequence[AnyResult], table: pa.Table) -> pa.Table:
    """The matches of several queries in one table: their events as (variable, position, event)."""
    listed: list[tuple[AnyBoundQuery, pa.Table]] = []
    for result in results:
        if isinstance(result, StreamResult):
            listed.append((result.query, stream_table(result, table.schema)))
        else:
            listed.append((result.query, match_table(replace(result, query=result.query.listing()), table)))
    return several_table(listed, several_schema([query for query, _ in listed], table.schema))


def with_composites(results: Sequence[AnyResult], table: pa.Table) -> pa.Table:
    """The input with the composite events of queries appended, so that a row number identifies any event."""
    sources: list[tuple[int | None, str | None, AnyResult]] = [
        (result.first_made, result.query.into, result) for result in results
    ]
    sources += [(result.first_late, None, result) for result in results if isinstance(result, Result)]
    for _, into, result in sorted((one for one in sources if one[0] is not None), key=lambda one: one[0] or 0):
        if isinstance(result, StreamResult):
            rows = composite_rows(result.query, stream_table(result, table.schema), table.schema)
        elif into is not None:
            matches = match_table(replace(result, query=result.query.listing()), table)
            rows = composite_rows(result.query, matches, table.schema)
        else:
            late = timeout_table(replace(result, query=result.query.identifying()), table)
            rows = timeout_rows(result.query, late, table.schema)
        table = below(table, [(into or str(result.query.timeouts), rows.select(shown(rows.schema).names))])
    return table


def _common_columns(
    ids: list[str] | None, query: BoundQuery, matches: list[Match], table: pa.Table, schema: pa.Schema
) -> dict[str, Any]:
    time = schema.field("start").type
    columns: dict[str, Any] = {} if ids is None else {"match_id": pa.array(ids, pa.string())}
    columns["query"] = pa.array([query.name] * len(matches), pa.string())
    columns["start"] = times([match.start for match in matches], time)
    columns["end"] = times([match.end for match in matches], time)
    if query.partition:
        rows = [match.events[0].index for match in matches]
        columns["key"] = event_column(table, rows, schema.field("key").type)
    return columns


def _variable_column(component: Component, matches: list[Match], table: pa.Table, kind: pa.DataType) -> pa.Array:
    rows = [[event.index for event in match.selected.get(component.variable, ())] for match in matches]
    if component.kind is not ComponentKind.SINGLE:
        return event_list_column(table, rows, kind)
    return event_column(table, [one[0] if one else None for one in rows], kind)


def _returned_column(values: list[Any], table: pa.Table, kind: pa.DataType) -> pa.Array:
    """Values, or whole events: those of a variable, or such in a column of composite events."""
    sample = next((value for value in values if value is not None), None)
    if isinstance(sample, tuple):
        return event_list_column(table, [[event.index for event in listed or ()] for listed in values], kind)
    if isinstance(sample, ReferenceEvent):
        return event_column(table, [None if event is None else event.index for event in values], kind)
    return value_column(values, kind)


def _listed_column(matches: list[Match], table: pa.Table, kind: pa.DataType) -> pa.Array:
    """All events of each match, in pattern order."""
    item = kind.value_type
    offsets, names, positions, rows = [0], [], [], []
    for match in matches:
        for component in match.components:
            for position, one in enumerate(match.selected.get(component.variable, ()), 1):
                names.append(component.variable)
                positions.append(position)
                rows.append(one.index)
        offsets.append(len(rows))
    items = pa.StructArray.from_arrays(
        [
            pa.array(names, pa.string()),
            pa.array(positions, pa.int64()),
            event_column(table, rows, item.field("event").type),
        ],
        fields=list(item),
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=kind)


def _compressed_table(result: Result, table: pa.Table) -> pa.Table:
    shared = result.shared
    assert shared is not None
    ids = [result.ids[places[0]] for _, places in shared.groups]
    counts = [str(len(places)) for _, places in shared.groups]
    return compressed_table(result.query, Events.of(table), shared.graphs, shared.store, RowFacts(ids, counts))

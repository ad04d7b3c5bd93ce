"""Queries over a table: on the compiled engine where a plan can run there, otherwise on the reference evaluator.

Both give the same matches with the same ids; `kleene.match` and the tasks on Spark come through here. Each query runs
for itself, those that make a stream before those that read it, whose input is the table and what the others made of it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pyarrow as pa

from kleene.frames.arrow import schema_on, value_type
from kleene.frames.composites import beside_composites, composite_rows, timeout_rows, with_composites
from kleene.frames.kinds import Kind, kind_of
from kleene.frames.results import fitting, result_schema, several_schema, several_table, shown, timeout_schema
from kleene.frames.streams import input_of, reads, to_table
from kleene.frames.type_names import types_among
from kleene.optimize.planner import plan_query
from kleene.pattern.feeding import (
    Placed,
    bound_in_order,
    declared_together,
    in_dependency_order,
    streams_made,
    types_read,
)
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.pattern.unseen import unseen_types
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.testing.process import Tables, of_queries, reference_tables, report_warnings
from kleene.testing.tables import bad_row_table

_LOG = logging.getLogger("kleene")

# Rows of a query's input, and what an error calls them.
Part = tuple[str, pa.Table]
_INPUT = "the events"


def evaluate(
    events: Any,
    queries: Sequence[Query],
    *,
    schema: Schema | None = None,
    several: bool = False,
    settings: Settings | None = None,
) -> Tables:
    """Matches, timeouts and bad rows of one query, or of several in one table."""
    declared = declared_together(schema or Schema(), queries)
    order = in_dependency_order(queries, declared)
    table, given = to_table(events, declared, reads(queries, declared))
    known = schema_on(table.schema, given)
    bound = bound_in_order(order, known)
    # Before the run, which may end in an exceeded budget that a warning explains.
    report_warnings([query for _, query in sorted(bound, key=itemgetter(0))])
    report_unseen_types(queries, table, given, frozenset(events) if kind_of(events) is Kind.STREAMS else frozenset())
    if len(bound) > 1 or several:
        return _run_together(bound, table, len(known.streams), several, settings)
    query = bound[0][1]
    return _run(query, [(_INPUT, input_of(query.schema, table, len(known.streams)))], settings)


def report_unseen_types(queries: Sequence[Query], table: pa.Table, schema: Schema, streams: Collection[str]) -> None:
    """Warn of types that a query names and that no event has."""
    # Tasks are silent: they know a part of the events.
    if not table.num_rows or schema.constant_type is not None or not _LOG.isEnabledFor(logging.WARNING):
        return
    known = {*streams, *(name for query in queries for name in streams_made(query))}
    wanted = {name for query in queries for name in types_read(query, schema)} - known
    seen = types_among(table.column(schema.type), wanted)
    if seen.issuperset(wanted):
        return
    for query in queries:
        for warning in unseen_types(query, schema, seen, known):
            _LOG.warning("%s", warning.render())


def warn_of_reference(queries: Sequence[BoundQuery]) -> None:
    """Say beforehand that a run will be slow, where its tasks cannot say it; what depends on the data is not known."""
    made = {name for query in queries for name in query.makes}
    for query in queries:
        fallback = plan_query(_reading(query, made)).fallback
        if fallback is not None:
            _say_slow(query, fallback.reason)


def _say_slow(query: BoundQuery, reason: str) -> None:
    _LOG.warning("`%s` runs on the reference evaluator, which is slow: %s", query.name, reason)


def _run_together(
    bound: Sequence[Placed], table: pa.Table, streams: int, several: bool, settings: Settings | None
) -> Tables:
    """Queries in dependency order; what they give comes in the order in which they were given.

    table   the events of so many `streams`, of which each query reads its own
    """
    own: dict[object, pa.Table] = {}
    made: list[Part] = []
    ran: dict[int, tuple[BoundQuery, Tables]] = {}
    read = {name for _, query in bound for name in query.types}
    for place, query in bound:
        asked = query.listing() if several or query.into is not None else query
        asked = asked.identifying() if query.timeouts in read else asked
        if query.schema.streams not in own:
            own[query.schema.streams] = input_of(query.schema, table, streams)
        found = _run(*_input(asked, own[query.schema.streams], made), settings)
        ran[place] = query, found
        if query.into is not None:
            made.append((query.into, composite_rows(query, found.matches, table.schema)))
        if query.timeouts in read and found.timeouts is not None:
            made.append((str(query.timeouts), timeout_rows(query, found.timeouts, table.schema)))
    # Events are shown with the columns of all of them.
    columns = shown(with_composites(table, made).schema)
    results = [ran[place] for place in sorted(ran)]
    first, found = results[0]
    if several:
        schema = several_schema([query for query, _ in results], columns)
        matches = several_table([(query, found.matches) for query, found in results], schema)
    else:
        schema = result_schema(first, columns)
        matches = fitting(found.matches.select(schema.names), schema)
    late = [
        (query.name, fitting(found.timeouts.select(wanted.names), wanted))
        for query, found in results
        if found.timeouts is not None and (wanted := timeout_schema(query, columns)) is not None
    ]
    dense = [(query.name, found.compressed) for query, found in results if found.compressed is not None]
    # What ran first read the input alone.
    return Tables(matches, of_queries(late), ran[bound[0][0]][1].bad_rows, of_queries(dense))


def _input(query: BoundQuery, table: pa.Table, made: Sequence[Part]) -> tuple[BoundQuery, list[Part]]:
    """A query, and what it reads: the input, and the composite events below it. All of these give their columns."""
    reader = _reading(query, {name for name, _ in made})
    if reader is query:
        return query, [(_INPUT, table)]
    below = [(name, rows if name in query.types else rows.slice(0, 0)) for name, rows in made]
    return reader, [(_INPUT, beside_composites(table, query.schema)), *below]


def _reading(query: BoundQuery, made: Collection[str | None]) -> BoundQuery:
    """The query as it runs where these streams are made: it may read some of them."""
    reads_some = any(name in made for name in query.types)
    return replace(query, schema=query.schema.of_composites()) if reads_some else query


def _run(query: BoundQuery, parts: Sequence[Part], settings: Settings | None) -> Tables:
    """One query, on the engine or else on the reference evaluator."""
    from kleene.engine.run import run_query

    try:
        made = run_query(query, _one_table(parts), settings)
    except NotCompilable as problem:
        _say_slow(query, str(problem))
        return reference_tables(query, parts)
    return Tables(made.matches, made.timeouts, bad_row_table(made.bad), made.compressed)


def _one_table(parts: Sequence[Part]) -> pa.Table:
    """The input of an engine; `NotCompilable` where values would have to change to stand in one column."""
    table = with_composites(parts[0][1], parts[1:])
    for name, part in parts:
        for column in part.schema:
            kind = value_type(column.type)
            if kind not in (ValueType.UNKNOWN, value_type(table.schema.field(column.name).type)):
                raise NotCompilable(f"`{column.name}` is of another type in {name} than elsewhere")
    return table

"""Queries over a table: on the compiled engine where a plan can run there, otherwise on the reference evaluator.

Both give the same matches with the same ids. Queries that run together are one graph, in which those that make a stream
come before those that read it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from kleene.composition.graph_run import GraphRun, say_slow
from kleene.composition.query_graph import QueryGraph
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.readiness import run_when_ready
from kleene.engine.slices import cores
from kleene.frames.arrow import empty_table, schema_on
from kleene.frames.kinds import FrameKind, kind_of
from kleene.frames.outputs import Outputs
from kleene.frames.results import fitting, of_queries, several_table
from kleene.frames.rows import BadRow, bad_row_table
from kleene.frames.streams import reads, to_table
from kleene.frames.type_names import types_among
from kleene.optimize.any_planner import plan_of
from kleene.pattern.recent import Recent
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery, AnyQuery
from kleene.queries.feeding import bound_in_order, declared_together, in_dependency_order, types_read
from kleene.queries.unseen import unseen_types

_LOG = logging.getLogger("kleene")


def evaluate(
    events: Any,
    queries: Sequence[AnyQuery],
    *,
    schema: Schema | None = None,
    several: bool = False,
    settings: Settings | None = None,
) -> Outputs[pa.Table]:
    """The outputs of one query, or of several in one table."""
    known = _DECLARED.get(queries[0] if queries else None, (tuple(queries), schema), lambda: _declared(queries, schema))
    table, typed = to_table(events, known.schema, known.reads)
    columns = table.schema
    # Schemas that differ in what is said of their fields are equal to Arrow.
    said = columns.metadata, tuple(field.metadata for field in columns)
    graph = _GRAPHS.get(known, (columns, said, typed, several), lambda: _graph(known, columns, typed, several))
    # Before the run, which may end in an exceeded budget that a warning explains.
    report_warnings([node.query for node in graph.in_order_given])
    report_unseen_types(
        queries, table, typed, frozenset(events) if kind_of(events) is FrameKind.STREAMS else frozenset()
    )
    outputs_by = _run(graph, table, settings)
    # Whatever else a query reads stands behind the events.
    bad = next(outputs_by[node.number].bad for node in graph.nodes if not node.is_part)
    return outputs_of(graph, outputs_by, bad, several=several)


class _Declared(NamedTuple):
    """What queries say before any event is seen: what they declare, their order, and the types that they read."""

    schema: Schema
    order: list[tuple[int, AnyQuery]]
    reads: tuple[str, ...]


# What was worked out for queries, and for queries on columns, serves their next run.
_DECLARED: Recent[_Declared] = Recent()
_GRAPHS: Recent[QueryGraph] = Recent()


def _declared(queries: Sequence[AnyQuery], schema: Schema | None) -> _Declared:
    declared = declared_together(schema or Schema(), queries)
    return _Declared(declared, in_dependency_order(queries, declared), reads(queries, declared))


def _graph(declared: _Declared, columns: pa.Schema, schema: Schema, several: bool) -> QueryGraph:
    """The graph of queries on events with these columns."""
    known = schema_on(columns, schema)
    return QueryGraph.of(bound_in_order(declared.order, known), columns, streams=len(known.streams), several=several)


def report_warnings(queries: Iterable[AnyBoundQuery]) -> None:
    """Log the warnings of queries, each one once."""
    for warning in dict.fromkeys(warning for query in queries for warning in query.warnings):
        _LOG.warning("%s", warning.render())


def report_unseen_types(queries: Sequence[AnyQuery], table: pa.Table, schema: Schema, streams: Collection[str]) -> None:
    """Warn of types that a query names and that no event has."""
    # Tasks of Spark do not warn: each of them sees only a part of the events.
    if not table.num_rows or schema.constant_type is not None or not _LOG.isEnabledFor(logging.WARNING):
        return
    known = {*streams, *(name for query in queries for name in query.tree.makes)}
    wanted = {name for query in queries for name in types_read(query, schema)} - known
    seen = types_among(table.column(schema.type), wanted)
    if seen.issuperset(wanted):
        return
    for query in queries:
        for warning in unseen_types(query, schema, seen, known):
            _LOG.warning("%s", warning.render())


def warn_of_reference(graph: QueryGraph) -> None:
    """Warn before a run on Spark of queries that only the reference evaluator runs; the data may add others."""
    for node in graph.in_order_given:
        reason = plan_of(node.runs).why_on_reference
        if reason is not None:
            say_slow(node, reason)


def _run(graph: QueryGraph, table: pa.Table, settings: Settings | None) -> dict[int, EngineOutputs]:
    """The outputs of each query over a whole table, by number."""

    def whole(run: GraphRun) -> tuple[dict[int, EngineOutputs], dict[int, int]]:
        return {node.number: outputs for node, outputs in run.finish(table, threads=cores(run.settings))}, run.dropped

    plans = attrgetter("plans")
    outputs_by, dropped_by = run_when_ready(lambda: GraphRun(graph, settings), plans, whole, table.num_rows)
    for node in graph.in_order_given:
        dropped = dropped_by[node.number]
        if dropped:
            _LOG.warning("`%s`: %d matches and partial matches were dropped", node.query.name, dropped)
    return outputs_by


def outputs_of(
    graph: QueryGraph, outputs_by: Mapping[int, EngineOutputs], bad: Sequence[BadRow] = (), *, several: bool
) -> Outputs[pa.Table]:
    """The outputs of the query that was given first, or of all in one table; of a query that gave nothing, no rows.

    The tables of timeouts and of compressed matches hold those of all queries; a column names the query.
    """
    known = {node.number: outputs_by.get(node.number, EngineOutputs()) for node in graph.nodes}
    listed = graph.in_order_given
    timeouts, dense = [], []
    for node in listed:
        outputs, columns = known[node.number], graph.timeout_columns(node)
        if columns is not None:
            timeouts.append((node.query.name, _with(outputs.timeouts, columns)))
        if outputs.compressed is not None:
            dense.append((node.query.name, outputs.compressed))
    if several:
        tables = [(node.query, known[node.number].matches) for node in listed]
        some = [(query, rows) for query, rows in tables if rows is not None]
        empty = empty_table(graph.several_columns)
        matches = several_table(some, graph.several_columns) if some else empty
    else:
        matches = _with(known[listed[0].number].matches, graph.match_columns(listed[0]))
    return Outputs(matches, of_queries(timeouts), bad_row_table(bad), of_queries(dense))


def _with(rows: pa.Table | None, columns: pa.Schema) -> pa.Table:
    """Rows with these columns, of which there may be others for queries that read them."""
    return empty_table(columns) if rows is None else fitting(rows.select(columns.names), columns)

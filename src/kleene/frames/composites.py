"""Composite events as rows of tables: what one query makes of its matches is part of the input of another."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kleene.algebra.query import BoundStreamQuery
from kleene.frames.arrow import value_type
from kleene.frames.streams import concatenated
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import FIRST_TIE, IDENTITY, LAST_TIE, START, TYPE, Schema
from kleene.pattern.types import ValueType
from kleene.queries.any_query import AnyBoundQuery


def composite_rows(query: AnyBoundQuery, matches: pa.Table, columns: pa.Schema) -> pa.Table:
    """The composite events of a query (semantics §1), with the private columns that queries reading them need.

    matches   those of the query; of a pattern, with their events in lists
    columns   those of the input
    """
    schema = query.schema
    name = pa.scalar(query.into)
    own = {
        schema.type: pa.repeat(name.cast(_type_of_types(schema, columns)), matches.num_rows),
        schema.time: matches.column("end"),
        schema.start or START: matches.column("start"),
        IDENTITY: matches.column("match_id"),
    }
    if schema.tie_breaker is not None:
        own |= {schema.tie_breaker: matches.column(LAST_TIE), FIRST_TIE: matches.column(FIRST_TIE)}
    own |= _attributes(query, matches)
    if schema.constant_type is not None:
        own[TYPE] = pa.repeat(name, matches.num_rows)
    return pa.table(own)


def _attributes(query: AnyBoundQuery, matches: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The attributes of composite events: what a pattern returns, or the attributes of a stream by their names."""
    if isinstance(query, BoundStreamQuery):
        return {
            column: pc.struct_field(matches.column(stream), name) if stream else matches.column(name)
            for (stream, name), column in query.made_columns
        }
    return {column.name: matches.column(column.name) for column in query.returns or ()}


def timeout_rows(query: BoundQuery, late: pa.Table, columns: pa.Schema) -> pa.Table:
    """The events that a query makes of its timeouts, each at the moment when its window closed.

    late      its timeouts with their identities; a timeout whose window no event closed makes no event
    columns   those of the input
    """
    schema = query.schema
    late = late.filter(late.column("closed").is_valid())
    name = pa.scalar(query.timeouts)
    key = late.column("key").combine_chunks() if query.partition else None
    own = {} if key is None else {attribute: pc.struct_field(key, attribute) for attribute in query.partition}
    own["reached"] = late.column("reached")
    own |= {
        schema.type: pa.repeat(name.cast(_type_of_types(schema, columns)), late.num_rows),
        schema.time: late.column("closed"),
        schema.start or START: late.column("start"),
        IDENTITY: late.column(IDENTITY),
    }
    if schema.tie_breaker is not None:
        own[schema.tie_breaker] = late.column(LAST_TIE)
    if schema.constant_type is not None:
        own[TYPE] = pa.repeat(name, late.num_rows)
    return pa.table(own)


def _type_of_types(schema: Schema, columns: pa.Schema) -> pa.DataType:
    if schema.type in columns.names and value_type(columns.field(schema.type).type) is ValueType.STRING:
        return columns.field(schema.type).type
    return pa.string()


def beside_composites(table: pa.Table, schema: Schema) -> pa.Table:
    """The input with the columns that composite events need: a start and a type for each event."""
    if schema.start is None:
        table = table.append_column(START, table.column(schema.time))
    if schema.constant_type is not None:
        table = table.append_column(TYPE, pa.repeat(pa.scalar(schema.constant_type), table.num_rows))
    return table


def with_composites(table: pa.Table, composites: Sequence[tuple[str, pa.Table]]) -> pa.Table:
    """The input with composite events appended, so that a row number identifies any event."""
    if not composites:
        return table
    return concatenated([("the events", table), *composites], hint="call it otherwise in RETURN: `… AS another_name`")

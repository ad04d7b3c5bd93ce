"""Events without a row or a column: an empty list, an empty file. They are taken to have what the queries speak of.

Nothing can match, but the queries are bound all the same, so that a wrong one is an error on such input too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kleene.errors import QueryError
from kleene.frames.arrow import arrow_type, schema_on
from kleene.frames.fitting import declared_types
from kleene.frames.kinds import FrameKind, kind_of
from kleene.frames.streams import reads, to_table
from kleene.lang import tree
from kleene.lang.spellings import ParsedQuery
from kleene.pattern.schema import Schema
from kleene.queries.any_query import AnyQuery
from kleene.queries.feeding import bound_in_order, declared_together, in_dependency_order

# What a time column may hold, in the order in which a query's windows are tried on it.
_TIMES = (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))


def with_named_columns(events: Any, queries: Sequence[AnyQuery], schema: Schema | None = None) -> Any:
    """The events; where no stream has columns, empty tables with those that the queries name."""
    streams = events.values() if kind_of(events) is FrameKind.STREAMS else (events,)
    if not streams or not all(map(_says_nothing, streams)):
        return events
    candidates = [_with_time(events, queries, declared_together(schema or Schema(), queries), time) for time in _TIMES]
    return next((tables for tables in candidates if _binds(tables, queries, schema)), candidates[0])


def _says_nothing(events: Any) -> bool:
    kind = kind_of(events)
    if kind is FrameKind.ARROW:
        return not events.num_columns
    return kind is FrameKind.ROWS and not any(events)


def _with_time(events: Any, queries: Sequence[AnyQuery], schema: Schema, time: pa.DataType) -> Any:
    if kind_of(events) is FrameKind.STREAMS:
        return {name: _table(queries, schema, time) for name in events}
    return _table(queries, schema, time, types=True)


def _table(queries: Sequence[AnyQuery], schema: Schema, time: pa.DataType, *, types: bool = False) -> pa.Table:
    """An empty table with the columns that the schema and the queries name."""
    kinds = {name: arrow_type(kind) for name, kind in declared_types(schema).items()}
    for name in (schema.time, schema.start):
        if name is not None:
            kinds.setdefault(name, time)
    named = dict.fromkeys([*schema.own_columns, *(name for query in queries for name in _attributes(query.tree))])
    if not types and schema.constant_type is None:
        # A stream of a dict has its name as its type.
        named.pop(schema.type, None)
    return pa.table({name: pa.nulls(0, kinds.get(name, pa.null())) for name in named})


def _binds(events: Any, queries: Sequence[AnyQuery], schema: Schema | None) -> bool:
    declared = declared_together(schema or Schema(), queries)
    try:
        table, known = to_table(events, declared, reads(queries, declared))
        bound_in_order(in_dependency_order(queries, declared), schema_on(table.schema, known))
    except QueryError:
        return False
    return True


def _attributes(query: ParsedQuery) -> Iterator[str]:
    """The attributes that a query names; a name on its own may be one."""
    for node in tree.walk(query):
        match node:
            case tree.Attribute(attribute=name) | tree.EquivalenceItem(attribute=name) | tree.Name(name=name):
                yield name
            case tree.TypeDeclaration(attributes=attributes) | tree.SourceDeclaration(attributes=attributes):
                yield from (name for name, _ in attributes)

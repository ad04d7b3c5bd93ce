"""Results built once, by row number: a struct of the event's columns per variable, a list of structs per closure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.algebra.query import BoundStreamQuery
from kleene.errors import TimeTooLarge, UnknownKind
from kleene.frames.arrow import arrow_type, nanoseconds_a_step
from kleene.frames.graph_type import graph_type
from kleene.frames.numbers import to_arrow
from kleene.frames.stream_columns import stream_result_schema
from kleene.frames.streams import concatenated
from kleene.lang.tree import OutputMode
from kleene.pattern.expressions import Aggregate, Attribute, Value, Whole
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.pattern.recent import Recent
from kleene.pattern.schema import EVENTS, FIRST_TIE, IDENTITY, LAST_TIE, is_private
from kleene.queries.any_query import AnyBoundQuery

Rows = npt.NDArray[np.int64]
# The column of one table of several queries that holds what they return.
RETURNED = "returned"


def event_fields(query: BoundQuery, component: Component, columns: pa.Schema) -> list[pa.Field]:
    """The columns of a component's events: those that one of its types has."""
    allowed: set[str] = set()
    for name in component.types:
        attributes = query.schema.attributes_of(name)
        if attributes is None:
            return list(columns)
        allowed |= set(attributes)
    return [field for field in columns if field.name in allowed]


def variable_type(query: BoundQuery, component: Component, columns: pa.Schema) -> pa.DataType:
    struct = pa.struct(event_fields(query, component, columns))
    return struct if component.kind is ComponentKind.SINGLE else pa.list_(struct)


def return_type(query: BoundQuery, value: Value, columns: pa.Schema) -> pa.DataType:
    if isinstance(value, Whole):
        component = next(c for c in query.components if c.variable == value.variable)
        return variable_type(query, component, columns)
    same = isinstance(value, Attribute) or (
        isinstance(value, Aggregate) and value.function in ("min", "max", "first", "last", "nth")
    )
    if same and isinstance(value, Attribute | Aggregate) and value.attribute in columns.names:
        return columns.field(value.attribute).type
    return arrow_type(value.type)


def shown(columns: pa.Schema) -> pa.Schema:
    """The columns without Kleene's private ones."""
    return pa.schema([field for field in columns if not is_private(field.name)])


def columns_of_input(query: BoundQuery, columns: pa.Schema) -> pa.Schema:
    """The columns of the query's own events, among those of all streams and of composite events."""
    schema = query.schema
    if not schema.streams or schema.columns is None:
        return shown(columns)
    composite_columns = {name for attributes in schema.made_types.values() for name in attributes}
    return pa.schema(
        [field for field in shown(columns) if field.name in schema.columns or field.name in composite_columns]
    )


def result_schema(query: AnyBoundQuery, columns: pa.Schema) -> pa.Schema:
    """The columns of a query's result over events with these columns."""
    if isinstance(query, BoundStreamQuery):
        return stream_result_schema(query, columns)
    # Schemas that differ in what is said of their fields are equal to Arrow.
    known = columns, tuple(field.metadata for field in columns)
    return _SCHEMAS.get(query, known, lambda: _match_schema(query, columns))


_SCHEMAS: Recent[pa.Schema] = Recent()


def _match_schema(query: BoundQuery, columns: pa.Schema) -> pa.Schema:
    columns = columns_of_input(query, columns)
    time = columns.field(query.schema.time).type
    fields = [
        pa.field("match_id", pa.string()),
        pa.field("query", pa.string()),
        pa.field("start", time),
        pa.field("end", time),
    ]
    key = [columns.field(name) for name in query.partition if not is_private(name)]
    if key:
        fields.append(pa.field("key", pa.struct(key)))
    if query.output is OutputMode.COMPRESSED:
        fields.append(pa.field("count", pa.string()))
        fields.append(pa.field("last", pa.struct(list(columns))))
        fields.append(pa.field("graph", graph_type(columns, time)))
        return pa.schema(fields)
    if query.returns is not None:
        fields += [pa.field(c.name, return_type(query, c.value, columns)) for c in query.returns]
    elif not query.listed:
        fields += [pa.field(c.variable, variable_type(query, c, columns)) for c in query.positives]
    if query.listed:
        fields.append(pa.field(EVENTS, listed_type(columns)))
        if query.into is not None and query.schema.tie_breaker is not None:
            tie = columns.field(query.schema.tie_breaker).type
            fields += [pa.field(FIRST_TIE, tie), pa.field(LAST_TIE, tie)]
    return pa.schema(fields)


def listed_type(columns: pa.Schema) -> pa.DataType:
    """All events of a match: for which variable each stands, where in its list, and the whole event."""
    event = pa.struct(list(columns))
    return pa.list_(pa.struct([("variable", pa.string()), ("position", pa.int64()), ("event", event)]))


def listed_columns(columns: pa.Schema) -> pa.Schema:
    """The columns that events have in one table of several queries."""
    return pa.schema(list(columns.field("events").type.value_type.field("event").type))


def several_schema(queries: Sequence[AnyBoundQuery], columns: pa.Schema) -> pa.Schema:
    """The columns of one table for the matches of several queries.

    What queries return is a struct with a field for each that has RETURN, called like the query: their columns may have
    the same names and other types. A stream has no events to list; its attributes are what it returns.
    """
    time = columns.field(queries[0].schema.time).type
    fields = [
        *(pa.field(name, pa.string()) for name in ("match_id", "query")),
        *(pa.field(name, time) for name in ("start", "end")),
        pa.field("events", listed_type(shown(columns))),
    ]
    returned: dict[str, pa.DataType] = {}
    for query in queries:
        fields_returned = _returned_fields(query, columns)
        if not fields_returned:
            continue
        kind = pa.struct(fields_returned)
        if returned.setdefault(query.name, kind) != kind:
            raise UnknownKind(f"two queries are called `{query.name}`", hint="give each a name of its own")
    if returned:
        fields.append(pa.field(RETURNED, pa.struct(list(returned.items()))))
    return pa.schema(fields)


def _returned_fields(query: AnyBoundQuery, columns: pa.Schema) -> list[pa.Field]:
    """The columns of its own that a query returns."""
    if isinstance(query, BoundStreamQuery):
        return [field for field in stream_result_schema(query, columns) if field.name in query.result_columns]
    own = columns_of_input(query, columns)
    return [pa.field(column.name, return_type(query, column.value, own)) for column in query.returns or ()]


def several_table(results: Sequence[tuple[AnyBoundQuery, pa.Table]], schema: pa.Schema) -> pa.Table:
    """The matches of several queries, each with its events in lists, as one table with these columns."""
    return pa.concat_tables([_among_several(query, table, schema) for query, table in results])


def _among_several(query: AnyBoundQuery, table: pa.Table, schema: pa.Schema) -> pa.Table:
    names = [name for name in schema.names if name != RETURNED]
    if EVENTS not in table.column_names:
        nothing = pa.array([[]] * table.num_rows, schema.field("events").type)
        table = table.append_column(EVENTS, nothing)
    own = table.select([EVENTS if name == "events" else name for name in names]).rename_columns(names)
    if RETURNED in schema.names:
        own = own.append_column(RETURNED, _returned(query, table, schema.field(RETURNED).type))
    return fitting(own, schema)


def _returned(query: AnyBoundQuery, table: pa.Table, kind: pa.StructType) -> pa.Array:
    """The columns that one query returns, as its field in the column of all queries."""
    place = kind.get_field_index(query.name)
    if place < 0 or not table.num_rows:
        return pa.nulls(table.num_rows, kind)
    names = [field.name for field in kind.field(place).type]
    own = pa.StructArray.from_arrays([table.column(name).combine_chunks() for name in names], names)
    fields = [
        own.cast(field.type) if field.name == query.name else pa.nulls(table.num_rows, field.type) for field in kind
    ]
    return pa.StructArray.from_arrays(fields, fields=list(kind))


def of_queries(tables: Sequence[tuple[str, pa.Table]]) -> pa.Table | None:
    """One table of those of some queries, by name; None when there is none."""
    return concatenated(tables, hint="give the variables other names") if tables else None


def fitting(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A result cast to the schema that it has when events have more columns, or wider ones."""
    return table if table.schema.equals(schema) else table.cast(schema)


def timeout_schema(query: BoundQuery, columns: pa.Schema) -> pa.Schema:
    """The columns of a query's timeouts: when the window of each run closed, and how far it came."""
    columns = columns_of_input(query, columns)
    time = columns.field(query.schema.time).type
    fields = [pa.field("stream", pa.string()), pa.field("query", pa.string())]
    fields += [pa.field("start", time), pa.field("end", time), pa.field("closed", time)]
    key = [columns.field(name) for name in query.partition if not is_private(name)]
    if key:
        fields.append(pa.field("key", pa.struct(key)))
    fields.append(pa.field("reached", pa.int64()))
    fields += [pa.field(c.variable, variable_type(query, c, columns)) for c in query.positives]
    if query.identified:
        fields.append(pa.field(IDENTITY, pa.string()))
        if query.schema.tie_breaker is not None:
            fields.append(pa.field(LAST_TIE, columns.field(query.schema.tie_breaker).type))
    return pa.schema(fields)


def times(steps: Sequence[int] | Rows, kind: pa.DataType) -> pa.Array:
    """Whole steps as values of the time column."""
    if pa.types.is_null(kind):
        return pa.nulls(len(steps))
    known = to_arrow(np.asarray(steps, np.int64))
    try:
        return (known.cast(pa.int32()) if pa.types.is_date32(kind) else known).cast(kind)
    except pa.ArrowInvalid:
        raise TimeTooLarge.of(str(kind)) from None


def closed_times(steps: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """When windows closed, NULL where none did, as values of the time column."""
    known = times([0 if step is None else step for step in steps], kind)
    return pc.if_else(pa.array([step is not None for step in steps], pa.bool_()), known, pa.scalar(None, kind))


def event_column(table: pa.Table, rows: Sequence[int | None] | Rows, kind: pa.DataType) -> pa.Array:
    """A struct column: the events at these rows, NULL where a variable is absent (None, or negative)."""
    numbers = rows if isinstance(rows, np.ndarray) else np.array([-1 if row is None else row for row in rows], np.int64)
    if not len(numbers):
        return pa.nulls(0, kind)
    absent = numbers < 0
    taken = table.select([field.name for field in kind]).take(to_arrow(np.where(absent, 0, numbers)))
    arrays = [taken.column(field.name).combine_chunks() for field in kind]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=to_arrow(absent) if absent.any() else None)


def event_list_column(table: pa.Table, rows: Sequence[Sequence[int]], kind: pa.DataType) -> pa.Array:
    """A column of lists of structs; an absent variable has an empty list."""
    offsets = [0]
    for listed in rows:
        offsets.append(offsets[-1] + len(listed))
    flat = event_column(table, [row for listed in rows for row in listed], kind.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, type=kind)


def value_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Computed values; times come in nanoseconds."""
    step = nanoseconds_a_step(kind)
    if step is None:
        return pa.array(values, kind)
    steps = [None if value is None else value // step for value in values]
    if pa.types.is_date32(kind):
        return pa.array(steps, pa.int32()).cast(kind)
    return pa.array(steps, pa.int64()).cast(kind)

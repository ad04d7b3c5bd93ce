"""One input from one stream or several: each stream's events keep their own attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kleene.errors import DataError, MissingColumn, MissingStream, MixedZones, UnusableColumn, did_you_mean
from kleene.frames.arrow import arrow_type, column_types, is_time, value_type
from kleene.frames.kinds import FrameKind, kind_of, to_arrow
from kleene.frames.pandas_index import refuse_index
from kleene.pattern.schema import STREAM, Schema
from kleene.pattern.types import ValueType
from kleene.queries.any_query import AnyQuery
from kleene.queries.feeding import types_read


def reads(queries: Sequence[AnyQuery], schema: Schema) -> tuple[str, ...]:
    """The event types that queries name, classes resolved, without those that one of them makes."""
    own_streams = {name for query in queries for name in query.tree.makes}
    names = dict.fromkeys(name for query in queries for name in types_read(query, schema))
    return tuple(name for name in names if name not in own_streams)


def to_table(events: Any, schema: Schema, wanted: tuple[str, ...] | None = None) -> tuple[pa.Table, Schema]:
    """The events as one table, and the schema that describes it.

    A dict of streams is put together: a stream without a type column has its name as the type of all its events, and
    its columns as that type's attributes. Streams that no query names (`wanted`) are left out; of those that remain,
    `input_of` gives each query its own.
    """
    if kind_of(events) is not FrameKind.STREAMS:
        return _with_time(_one_stream(events, schema, schema.types), schema), schema
    table, known = _together(events, schema, wanted)
    return _with_time(table, schema), known


def _one_stream(events: Any, schema: Schema, types: Mapping[str, Mapping[str, ValueType]]) -> pa.Table:
    """One stream's table; rows given as dicts may leave out attributes, which are NULL then."""
    if kind_of(events) is FrameKind.PANDAS:
        refuse_index(events, schema)
    table = to_arrow(events)
    twice = [name for name in table.column_names if table.column_names.count(name) > 1]
    if twice:
        raise UnusableColumn(f"two columns are called `{twice[0]}`", hint="rename one")
    if kind_of(events) is FrameKind.ROWS:
        declared = {name: kind for attributes in types.values() for name, kind in attributes.items()}
        for name, kind in declared.items():
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, arrow_type(kind)))
        if table.num_rows == 0:
            table = _empty(table, schema)
    if table.num_rows == 0 and schema.time in table.column_names:
        place = table.column_names.index(schema.time)
        if not is_time(table.schema.field(place).type):
            table = table.set_column(place, schema.time, pa.nulls(0))
    return table


def _with_time(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with integer ticks as times, where it has no rows and no type for them."""
    if table.num_rows or schema.time not in table.column_names:
        return table
    place = table.column_names.index(schema.time)
    if not pa.types.is_null(table.schema.field(place).type):
        return table
    return table.set_column(place, schema.time, pa.array([], pa.int64()))


def _empty(table: pa.Table, schema: Schema) -> pa.Table:
    """An empty table with the columns that the schema names."""
    kinds = {schema.type: pa.string(), schema.time: pa.null()}
    for name in schema.own_columns:
        if name not in table.column_names:
            table = table.append_column(name, pa.array([], kinds.get(name, pa.int64())))
    return table


def input_of(schema: Schema, table: pa.Table, streams: int) -> pa.Table:
    """The part of a table that is the input of a query: the streams that it reads, with their columns.

    schema    that of the query, which knows what it reads
    streams   how many there are in the table
    """
    if STREAM not in table.column_names:
        return table
    if len(schema.streams) < streams:
        labels = table.column(STREAM)
        names = pa.array([name for name, _ in schema.streams if name is not None], labels.type)
        table = table.filter(pc.or_(pc.is_null(labels), pc.is_in(labels, value_set=names)))
    assert schema.columns is not None, "a query on a table knows its columns"
    return table.select([name for name in table.column_names if name in schema.columns])


def _together(streams: Mapping[str, Any], schema: Schema, wanted: tuple[str, ...] | None) -> tuple[pa.Table, Schema]:
    tables: dict[str, pa.Table] = {}
    types: dict[str, Mapping[str, ValueType]] = {}
    for name, stream in streams.items():
        declared = {name: schema.types[name]} if name in schema.types else {}
        table = _one_stream(stream, schema, declared)
        if schema.time not in table.column_names:
            raise MissingColumn(
                f"stream {name} has no time column `{schema.time}`", hint=did_you_mean(schema.time, table.column_names)
            )
        if schema.constant_type is None and schema.type in table.column_names:
            tables[name] = table
        elif wanted is None or name in wanted:
            types[name] = schema.types.get(name, column_types(table.schema))
            tables[name] = table.append_column(schema.type, pa.repeat(pa.scalar(name), table.num_rows))
    typed = len(tables) > len(types)
    missing = [name for name in wanted or () if name not in types and name not in schema.types]
    if not tables or (missing and not typed):
        raise MissingStream(
            f"no stream `{missing[0] if missing else '?'}` was given",
            hint=did_you_mean(missing[0], streams) if missing else None,
        )
    if typed:
        known = schema.adding_types(types)
    else:
        declared_elsewhere = {name: columns for name, columns in schema.types.items() if name not in streams}
        known = schema.declaring_types({**declared_elsewhere, **types})
    if types and len(tables) > 1:
        known = known.of_streams(_columns_of(tables, types))
        tables = {name: _labelled(table, name if name in types else None) for name, table in tables.items()}
    return concatenated(list(tables.items()), hint="make it one type in all streams"), known


def _columns_of(
    tables: Mapping[str, pa.Table], types: Mapping[str, object]
) -> tuple[tuple[str | None, tuple[str, ...]], ...]:
    """The columns of each stream by name; those with types of their own are one, which every query reads."""
    named = [(name, tuple(table.column_names)) for name, table in tables.items() if name in types]
    others = [tuple(table.column_names) for name, table in tables.items() if name not in types]
    if not others:
        return tuple(named)
    return ((None, tuple(dict.fromkeys(column for columns in others for column in columns))), *named)


def _labelled(table: pa.Table, name: str | None) -> pa.Table:
    label = pa.nulls(table.num_rows, pa.string()) if name is None else pa.repeat(pa.scalar(name), table.num_rows)
    return table.append_column(STREAM, label)


def concatenated(tables: Sequence[tuple[str, pa.Table]], hint: str) -> pa.Table:
    """Tables below each other, NULL where one lacks a column; an error names them where a column cannot be one."""
    try:
        return pa.concat_tables([table for _, table in tables], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        raise _first_conflict(tables, hint) from None


def _first_conflict(tables: Sequence[tuple[str, pa.Table]], hint: str) -> DataError:
    names: Iterable[str] = dict.fromkeys(name for _, table in tables for name in table.column_names)
    for name in names:
        having = [(stream, table.select([name])) for stream, table in tables if name in table.column_names]
        try:
            pa.concat_tables([table for _, table in having], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            by_kind = {value_type(table.schema.field(name).type): stream for stream, table in reversed(having)}
            if by_kind.keys() == {ValueType.TIMESTAMP, ValueType.ZONED}:
                return MixedZones.in_column(name, by_kind[ValueType.TIMESTAMP], by_kind[ValueType.ZONED])
            kinds = ", ".join(f"{table.schema.field(name).type} in {stream}" for stream, table in having)
            return UnusableColumn(f"column `{name}` is of different types: {kinds}", hint=hint)
    raise AssertionError("some column is in conflict")

"""Arrow columns: what type of value each holds, and how a time column counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kleene.errors import BadTimeColumn
from kleene.pattern.clock import Clock, ClockKind
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

_UNIT_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY_NANOSECONDS = 86_400_000_000_000


def empty_table(columns: pa.Schema) -> pa.Table:
    """A table without rows. Arrow's own imports pandas to make one, which takes longer than most matches."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in columns], schema=columns)


def value_type(kind: pa.DataType) -> ValueType:
    """The type of the values in a column."""
    if pa.types.is_dictionary(kind):
        return value_type(kind.value_type)
    if pa.types.is_boolean(kind):
        return ValueType.BOOL
    if pa.types.is_integer(kind):
        return ValueType.INT
    if pa.types.is_floating(kind):
        return ValueType.FLOAT
    if pa.types.is_decimal(kind):
        return ValueType.DECIMAL
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return ValueType.STRING
    if pa.types.is_timestamp(kind):
        return ValueType.TIMESTAMP if kind.tz is None else ValueType.ZONED
    if pa.types.is_date(kind):
        return ValueType.TIMESTAMP
    if pa.types.is_duration(kind):
        return ValueType.DURATION
    return ValueType.UNKNOWN if pa.types.is_null(kind) else ValueType.OTHER


_ARROW_TYPES = {
    ValueType.INT: pa.int64(),
    ValueType.FLOAT: pa.float64(),
    ValueType.BOOL: pa.bool_(),
    ValueType.STRING: pa.string(),
    ValueType.TIMESTAMP: pa.timestamp("us"),
    ValueType.ZONED: pa.timestamp("us", "UTC"),
    ValueType.DURATION: pa.duration("us"),
    ValueType.DECIMAL: pa.decimal128(38, 18),
}


def arrow_type(kind: ValueType) -> pa.DataType:
    """The column type for computed values of a type."""
    return _ARROW_TYPES.get(kind, pa.string())


def is_time(kind: pa.DataType) -> bool:
    """Whether a column of this type can say when something happened."""
    return pa.types.is_integer(kind) or (nanoseconds_a_step(kind) is not None and not pa.types.is_duration(kind))


def nanoseconds_a_step(kind: pa.DataType) -> int | None:
    """How long one step of a time-like column is; None for other columns."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _UNIT_NANOSECONDS[kind.unit]
    if pa.types.is_date32(kind):
        return _DAY_NANOSECONDS
    return _UNIT_NANOSECONDS["ms"] if pa.types.is_date64(kind) else None


def column_types(schema: pa.Schema) -> dict[str, ValueType]:
    return {field.name: value_type(field.type) for field in schema}


def clock_of(kind: pa.DataType, name: str) -> Clock:
    """How a column of this type counts time."""
    if pa.types.is_integer(kind):
        return Clock(ClockKind.TICKS)
    step = nanoseconds_a_step(kind)
    if step is None or not is_time(kind):
        raise BadTimeColumn(
            f"column `{name}` holds {kind} values, not times",
            hint="time is an integer column or a timestamp column; convert it, or name another: Schema(time='…')",
        )
    return Clock(ClockKind.TIMESTAMP, Fraction(step), pa.types.is_timestamp(kind) and kind.tz is not None)


def schema_on(arrow: pa.Schema, schema: Schema) -> Schema:
    """The schema filled in from the columns of the data; a missing or unusable column is an error."""
    columns = column_types(arrow)
    clock = Clock()
    if schema.start is not None and schema.start in columns and schema.time in columns:
        _check_start(schema, arrow.field(schema.start).type, arrow.field(schema.time).type)
    if schema.time in columns and not pa.types.is_null(arrow.field(schema.time).type):
        clock = clock_of(arrow.field(schema.time).type, schema.time)
    return schema.with_columns(columns, clock)


def _check_start(schema: Schema, start: pa.DataType, end: pa.DataType) -> None:
    clock_of(start, str(schema.start))
    if start != end and not (pa.types.is_integer(start) and pa.types.is_integer(end)):
        raise BadTimeColumn(
            f"`{schema.start}` holds {start} values and `{schema.time}` {end} values", hint="make them the same type"
        )


def with_columns(table: pa.Table, columns: pa.Schema) -> pa.Table:
    """The table with NULLs for those of these columns that it lacks."""
    for place, name in enumerate(columns.names):
        if name not in table.column_names:
            table = table.add_column(place, name, pa.nulls(table.num_rows, columns.field(name).type))
    return table


def fitted(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """Rows with exactly these columns, NULL where they lack one; an error of Arrow's where a type cannot be changed."""
    return with_columns(rows, columns).select(columns.names).cast(columns)


def as_integers(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """A time-like column as whole steps."""
    if pa.types.is_int64(column.type):
        return column
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32()).cast(pa.int64())
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise BadTimeColumn("a time does not fit 64 bits", hint="times are signed 64-bit integers") from None


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values; times and durations in nanoseconds, strings and numbers as they are."""
    step = nanoseconds_a_step(column.type)
    if step is not None:
        return [None if value is None else value * step for value in as_integers(column).to_pylist()]
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    return column.to_pylist()  # type: ignore[no-any-return]

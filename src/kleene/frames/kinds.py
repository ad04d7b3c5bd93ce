"""The kinds of events that `match` takes: dispatch by the package an object comes from, so that none need be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import pyarrow as pa

from kleene.errors import MixedZones, UnknownKind


class FrameKind(Enum):
    ARROW = "pyarrow"
    PANDAS = "pandas"
    POLARS = "polars"
    SPARK = "pyspark"
    ROWS = "rows"
    STREAMS = "a dict of streams"


def kind_of(events: Any) -> FrameKind:
    """What kind of events these are, without importing what is not there."""
    package = type(events).__module__.split(".")[0]
    if package == "pyarrow" and isinstance(events, pa.Table | pa.RecordBatch):
        return FrameKind.ARROW
    if package == "pandas" and type(events).__name__ == "DataFrame":
        return FrameKind.PANDAS
    if package == "polars" and type(events).__name__ in ("DataFrame", "LazyFrame"):
        return FrameKind.POLARS
    if package == "pyspark" and hasattr(events, "mapInArrow"):
        return FrameKind.SPARK
    if isinstance(events, Mapping):
        return FrameKind.STREAMS
    if isinstance(events, list | tuple) and all(isinstance(row, Mapping) for row in events):
        return FrameKind.ROWS
    raise UnknownKind(
        f"cannot take events from a {type(events).__module__}.{type(events).__name__}",
        hint="pass a pyarrow table, a pandas, Polars or Spark data frame, an object that exports an Arrow stream, "
        "a list of dicts, or a dict of these",
    )


def tables_read(events: Any) -> Any:
    """The events; an object that only exports an Arrow stream is read into a table, since it can be read only once.

    Such objects are DuckDB's relations and the readers of ADBC and pyarrow. All other kinds stay as they are.
    """
    if isinstance(events, Mapping):
        return {name: tables_read(stream) for name, stream in events.items()}
    # A class may export the stream of its instances; it is no stream itself.
    if isinstance(events, type) or not hasattr(events, "__arrow_c_stream__") or _has_kind(events):
        return events
    try:
        return pa.RecordBatchReader.from_stream(events).read_all()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise UnknownKind(
            f"the Arrow stream of a {type(events).__module__}.{type(events).__name__} is no table: {problem}",
            hint="pass an object whose stream has rows with named columns",
        ) from None


def _has_kind(events: Any) -> bool:
    try:
        kind_of(events)
    except UnknownKind:
        return False
    return True


def on_spark(events: Any) -> bool:
    """Whether events, or one of several streams, are a Spark data frame."""
    kind = kind_of(events)
    return kind is FrameKind.SPARK or (kind is FrameKind.STREAMS and any(map(on_spark, events.values())))


def to_arrow(events: Any) -> pa.Table:
    """Events of one stream as an Arrow table."""
    kind = kind_of(events)
    if kind is FrameKind.ARROW:
        return events if isinstance(events, pa.Table) else pa.Table.from_batches([events])
    if kind is FrameKind.PANDAS:
        try:
            return _from_pandas(events)
        except UnicodeEncodeError:
            columns = {str(name): events.iloc[:, place].tolist() for place, name in enumerate(events.columns)}
            raise _half_character(columns) from None
    if kind is FrameKind.POLARS:
        frame = events.collect() if hasattr(events, "collect") else events
        return frame.to_arrow()
    if kind is FrameKind.ROWS:
        return _from_rows(events)
    raise UnknownKind(f"{kind.value} cannot be read in this process")


def _from_pandas(frame: Any) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    for place, field in enumerate(table.schema):
        # Columns of one dtype are of one kind; Python objects may be of several.
        if pa.types.is_timestamp(field.type) and frame.dtypes.iloc[place].kind == "O":
            _check_zones(frame.iloc[:, place], field.name)
    return table


def _from_rows(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    listed = [dict(row) for row in rows]
    names = dict.fromkeys(name for row in listed for name in row)
    columns = {name: [row.get(name) for row in listed] for name in names}
    try:
        return pa.table({name: _array(values, name) for name, values in columns.items()})
    except UnicodeEncodeError:
        raise _half_character(columns) from None


def _half_character(columns: Mapping[str, Sequence[Any]]) -> UnknownKind:
    """The error of a column whose name or one of whose strings cannot be written."""
    where = "the name of a column holds"
    for name, values in columns.items():
        rows = (row for row, value in enumerate(values, 1) if not _writable(value))
        first = next(rows, None)
        if first is not None:
            where = f"`{name}` of row {first} holds"
            break
    return UnknownKind(
        f"{where} half a character, which is no text",
        hint="it was cut from a pair, or read with the wrong encoding; give the whole character",
    )


def _writable(value: Any) -> bool:
    try:
        pa.array([value])
    except UnicodeEncodeError:
        return False
    except pa.ArrowException:
        return True
    return True


def _array(values: list[Any], name: str) -> pa.Array:
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if all(value is None or isinstance(value, int | float) for value in values):
            return pa.array(values, pa.float64())
        raise UnknownKind(f"the values of `{name}` are of different types", hint="make the column one type") from None
    if pa.types.is_timestamp(array.type):
        _check_zones(values, name)
    return array


def _check_zones(values: Iterable[Any], name: str) -> None:
    """Refuse a column that Arrow would silently make one of: times without a zone beside times with one."""
    # Dates have no zone to speak of; pandas' NaT has none either, and is no time.
    rows = {
        value.tzinfo is not None: row
        for row, value in reversed(list(enumerate(values)))
        if isinstance(value, datetime) and value == value
    }
    if len(rows) == 2:
        raise MixedZones.in_column(name, f"row {rows[False] + 1}", f"row {rows[True] + 1}")


def _to_pandas(table: pa.Table) -> Any:
    """Arrow turns nanoseconds inside structs into integers; as Python values they stay timestamps."""
    import pandas

    frame = table.to_pandas()
    for field in table.schema:
        if pa.types.is_nested(field.type):
            frame[field.name] = pandas.Series(table.column(field.name).to_pylist(), index=frame.index, dtype=object)
    return frame


def from_arrow(table: pa.Table, kind: FrameKind) -> Any:
    """A result in the same kind as the events were."""
    if kind is FrameKind.PANDAS:
        return _to_pandas(table)
    if kind is FrameKind.POLARS:
        import polars

        return polars.from_arrow(table)
    return table.to_pylist() if kind is FrameKind.ROWS else table

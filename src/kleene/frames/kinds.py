"""The kinds of events that `match` takes: dispatch by the package an object comes from, so that none need be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any

import pyarrow as pa

from kleene.errors import MixedZones, UnknownKind


class Kind(Enum):
    ARROW = "pyarrow"
    PANDAS = "pandas"
    POLARS = "polars"
    SPARK = "pyspark"
    ROWS = "rows"
    STREAMS = "a dict of streams"


def kind_of(events: Any) -> Kind:
    """What kind of events these are, without importing what is not there."""
    package = type(events).__module__.split(".")[0]
    if package == "pyarrow" and isinstance(events, pa.Table | pa.RecordBatch):
        return Kind.ARROW
    if package == "pandas" and type(events).__name__ == "DataFrame":
        return Kind.PANDAS
    if package == "polars" and type(events).__name__ in ("DataFrame", "LazyFrame"):
        return Kind.POLARS
    if package == "pyspark" and hasattr(events, "mapInArrow"):
        return Kind.SPARK
    if isinstance(events, Mapping):
        return Kind.STREAMS
    if isinstance(events, list | tuple) and all(isinstance(row, Mapping) for row in events):
        return Kind.ROWS
    raise UnknownKind(
        f"cannot take events from a {type(events).__module__}.{type(events).__name__}",
        hint="pass a pyarrow table, a pandas, Polars or Spark data frame, a list of dicts, or a dict of these",
    )


def on_spark(events: Any) -> bool:
    """Whether events, or one of several streams, are a Spark data frame."""
    kind = kind_of(events)
    return kind is Kind.SPARK or (kind is Kind.STREAMS and any(map(on_spark, events.values())))


def to_arrow(events: Any) -> pa.Table:
    """Events of one stream as an Arrow table."""
    kind = kind_of(events)
    if kind is Kind.ARROW:
        return events if isinstance(events, pa.Table) else pa.Table.from_batches([events])
    if kind is Kind.PANDAS:
        return _from_pandas(events)
    if kind is Kind.POLARS:
        frame = events.collect() if hasattr(events, "collect") else events
        return frame.to_arrow()
    if kind is Kind.ROWS:
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
    return pa.table({name: _array([row.get(name) for row in listed], name) for name in names})


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


def from_arrow(table: pa.Table, kind: Kind) -> Any:
    """A result in the same kind as the events were."""
    if kind is Kind.PANDAS:
        return _to_pandas(table)
    if kind is Kind.POLARS:
        import polars

        return polars.from_arrow(table)
    return table.to_pylist() if kind is Kind.ROWS else table

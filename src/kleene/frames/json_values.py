"""Arrow values as JSON values: moments in ISO 8601, durations in seconds, what JSON cannot hold as text or null."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any

import pyarrow as pa

_STEPS_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime(1970, 1, 1)


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, ready for `json.dumps`."""
    columns = {name: json_values(table.column(name).combine_chunks()) for name in table.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def json_line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(", ", ": "))


def json_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of an array, each as JSON has it."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in json_values(chunk)]
    kind = array.type
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(array)
    if pa.types.is_dictionary(kind):
        return json_values(array.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        steps = array.cast(pa.int64()).to_pylist()
        return [None if step is None else moment(step, kind.unit, zoned=kind.tz is not None) for step in steps]
    if pa.types.is_duration(kind):
        steps = array.cast(pa.int64()).to_pylist()
        return [None if step is None else step / _STEPS_A_SECOND[kind.unit] for step in steps]
    return [_plain(value) for value in array.to_pylist()]


def moment(step: int, unit: str, *, zoned: bool) -> str:
    """A moment in ISO 8601 with the digits that it has; zoned ones in UTC."""
    seconds, fraction = divmod(step, _STEPS_A_SECOND[unit])
    digits = str(fraction).zfill({"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]).rstrip("0") if fraction else ""
    try:
        text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    except OverflowError:  # outside the years 1 to 9999
        return f"{step}{unit}"
    return text + (f".{digits}" if digits else "") + ("Z" if zoned else "")


def _structs(array: pa.StructArray) -> list[dict[str, Any] | None]:
    names = [field.name for field in array.type]
    columns = [json_values(child) for child in array.flatten()]
    rows: list[tuple[Any, ...]] = list(zip(*columns, strict=True)) if names else [()] * len(array)
    there = array.is_valid().to_pylist()
    return [dict(zip(names, row, strict=True)) if valid else None for row, valid in zip(rows, there, strict=True)]


def _lists(array: pa.ListArray) -> list[list[Any] | None]:
    flat = iter(json_values(array.flatten()))
    lengths = array.value_lengths().to_pylist()
    return [None if length is None else list(islice(flat, length)) for length in lengths]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, date):
        return value.isoformat()
    return str(value)

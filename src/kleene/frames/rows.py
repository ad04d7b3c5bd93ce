"""A table as rows with a type, a time and values, for executors that look at one event at a time.

A row without a time is no event: it is kept aside with its reason, never dropped silently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from kleene.frames.arrow import as_integers, python_values
from kleene.frames.text_files import clipped
from kleene.pattern.schema import Schema


@dataclass(frozen=True, slots=True)
class Row:
    index: int
    type: str | None
    start: int
    end: int
    tie: Any
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no event: its number in the input (or its line in a file), and why."""

    index: int
    reason: str
    line: int | None = None
    text: str | None = None


def bad_line(index: int, line: int, reason: str, raw: bytes) -> BadRow:
    return BadRow(index, reason, line, clipped(raw.decode(errors="replace")))


def rows_of(table: pa.Table, schema: Schema) -> tuple[list[Row], list[BadRow]]:
    """The rows that are events, and those that are not."""
    columns = {name: python_values(table.column(name)) for name in table.column_names}
    ends = as_integers(table.column(schema.time)).to_pylist()
    starts = ends if schema.start is None else as_integers(table.column(schema.start)).to_pylist()
    ties = [None] * table.num_rows if schema.tie_breaker is None else columns[schema.tie_breaker]
    types = columns.get(schema.type) if schema.constant_type is None else None
    good: list[Row] = []
    bad: list[BadRow] = []
    for index in range(table.num_rows):
        reason = why_bad(schema, starts[index], ends[index], ties[index])
        if reason is not None:
            bad.append(BadRow(index, reason))
            continue
        kind = schema.constant_type if types is None else types[index]
        values = {name: column[index] for name, column in columns.items()}
        good.append(Row(index, None if kind is None else str(kind), starts[index], ends[index], ties[index], values))
    return good, bad


def why_bad(schema: Schema, start: int | None, end: int | None, tie: Any) -> str | None:
    if end is None:
        return f"no time: `{schema.time}` is NULL"
    if start is None:
        return f"no start: `{schema.start}` is NULL"
    if start > end:
        return f"`{schema.start}` is after `{schema.time}`"
    if schema.tie_breaker is not None and tie is None:
        return f"no tie-breaker: `{schema.tie_breaker}` is NULL"
    return None


_KINDS = {"row": pa.int64(), "line": pa.int64(), "reason": pa.string(), "text": pa.string()}


def bad_row_table(rows: Sequence[BadRow]) -> pa.Table:
    """Rows that are no events, as a table: where each stood, why it is none, and what it holds."""
    if not rows:
        return _no_bad_rows()
    values = zip(*((row.index, row.line, row.reason, row.text) for row in rows), strict=True)
    columns = zip(_KINDS.items(), values, strict=True)
    return pa.table({name: pa.array(listed, kind) for (name, kind), listed in columns})


@cache
def _no_bad_rows() -> pa.Table:
    """The usual case, for which `pa.array` would import pandas."""
    return pa.table({name: pa.nulls(0, kind) for name, kind in _KINDS.items()})

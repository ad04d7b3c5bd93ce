"""The order of events as arrays: rows that are events, sorted, with a number for each step of simultaneous ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.frames.arrow import as_integers
from kleene.frames.rows import BadRow, why_bad
from kleene.pattern.schema import Schema

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Order:
    """Rows of the table that are events, in the order of their steps."""

    rows: Ints
    start: Ints
    end: Ints
    # Simultaneous events have the same step; x is before y when its step is smaller (primitive events).
    step: Ints
    bad: list[BadRow]
    # Whether these are all rows of the table, as they stand there.
    as_given: bool


def order_of(table: pa.Table, schema: Schema) -> Order:
    end_column = as_integers(table.column(schema.time))
    start_column = end_column if schema.start is None else as_integers(table.column(schema.start))
    tie_column = None if schema.tie_breaker is None else table.column(schema.tie_breaker)
    bad, good = _bad_rows(schema, start_column, end_column, tie_column)
    ends = _numpy(end_column)
    starts = ends if schema.start is None else _numpy(start_column)
    ties = None if tie_column is None else _ranks(tie_column)
    rows = np.arange(table.num_rows, dtype=np.int64) if good is None else np.flatnonzero(good)
    end = ends if good is None else ends[rows]
    tie = None if ties is None else ties[rows]
    sorted_already = tie is None and bool(np.all(end[1:] >= end[:-1]))
    if not sorted_already:
        order = np.argsort(end, kind="stable") if tie is None else np.lexsort((tie, end))
        rows, end, tie = rows[order], end[order], None if tie is None else tie[order]
    start = end if schema.start is None else starts[rows]
    changes = end[1:] != end[:-1]
    if tie is not None:
        changes = changes | (tie[1:] != tie[:-1])
    step = np.zeros(len(rows), np.int64)
    np.cumsum(changes, out=step[1:])
    return Order(rows, start, end, step, bad, as_given=sorted_already and good is None)


def _bad_rows(
    schema: Schema, start: pa.ChunkedArray, end: pa.ChunkedArray, tie: pa.ChunkedArray | None
) -> tuple[list[BadRow], npt.NDArray[np.bool_] | None]:
    """The rows that are no events; None for the others when all are."""
    nulls = end.null_count + start.null_count + (0 if tie is None else tie.null_count)
    backwards = schema.start is not None and bool(pc.any(pc.greater(start, end)).as_py())
    if not nulls and not backwards:
        return [], None
    suspect = pc.or_(pc.is_null(end), pc.fill_null(pc.greater(start, end), True))
    if tie is not None:
        suspect = pc.or_(suspect, pc.is_null(tie))
    wrong = np.asarray(suspect.to_numpy(), np.bool_)
    bad = []
    for row in np.flatnonzero(wrong).tolist():
        reason = why_bad(schema, start[row].as_py(), end[row].as_py(), 0 if tie is None else tie[row].as_py())
        assert reason is not None, "what is suspect is bad"
        bad.append(BadRow(row, reason))
    return bad, ~wrong


def _numpy(column: pa.ChunkedArray) -> Ints:
    filled = pc.fill_null(column, 0) if column.null_count else column
    return np.ascontiguousarray(filled.to_numpy(), dtype=np.int64)


def _ranks(column: pa.ChunkedArray) -> Ints:
    """Any comparable column as integers in the same order."""
    if pa.types.is_integer(column.type):
        return _numpy(column)
    encoded = pc.rank(column.combine_chunks(), tiebreaker="dense")
    return np.ascontiguousarray(encoded.to_numpy(), dtype=np.int64)

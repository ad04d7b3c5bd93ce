"""The order of events as arrays: which rows are events, in which order they come, which of them are simultaneous."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.state.event_rows import AnyRows, EventRows
from kleene.engine.state.memory import empty, shared_range
from kleene.frames.arrow import as_integers, python_values
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.frames.rows import BadRow, why_bad
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows
from kleene.kernels.scanning import SHUFFLED, STRICT, how_ends_follow, least_and_greatest
from kleene.kernels.sorting import DIGIT, order_by_digits
from kleene.pattern.schema import Schema

Flags = npt.NDArray[np.bool_]
# Fewer numbers are ordered sooner by comparing them.
_FEW = 512


@dataclass(frozen=True, eq=False)
class Order:
    """Rows of a table in the order of their steps."""

    # None: as they stand in the table.
    rows: Ints | None
    start: Ints
    end: Ints
    # Simultaneous events have the same step, counted from 0. None: no two are simultaneous.
    step: Ints | None
    # Whether a tie-breaker orders events of the same time.
    tied: bool
    # Whether rows came in the order of their ends.
    in_order: bool = True

    @property
    def steps(self) -> int:
        """How many steps there are."""
        if self.step is None or not len(self.step):
            return len(self.end)
        return int(self.step[-1]) + 1

    def of(self, places: Rows | None) -> tuple[Rows | None, dict[str, Ints]]:
        """The rows and the times of some events, given by their places in the order; None: of all events."""
        if places is None:
            rows, start, end = self.rows, self.start, self.end
            step = shared_range(len(self.end)) if self.step is None else self.step
        else:
            rows, end = places if self.rows is None else self.rows[places], self.end[places]
            start = end if self.start is self.end else self.start[places]
            step = places.astype(np.int64) if self.step is None else self.step[places]
        left, right = (step, step) if start is end else self._bounds(start, end, step)
        return rows, {"start": start, "end": end, "step": step, "left": left, "right": right}

    def _bounds(self, start: Ints, end: Ints, step: Ints) -> tuple[Ints, Ints]:
        """The `left` and `right` of events that last: x is before y when the right of x is less than the left of y.

        An event that ends at the start of another, or later, is not before it. The tie-breaker orders only instants.
        """
        first = np.searchsorted(self.end, start)
        if self.step is None:
            return first, step
        if not self.tied:
            return self.step[first], step
        last = np.searchsorted(self.end, end, side="right") - 1
        lasts = start < end
        return np.where(lasts, self.step[first], step), np.where(lasts, self.step[last], step)


def order_of(table: AnyRows, schema: Schema) -> Order:
    """The order of events: by end, then by tie-breaker."""
    end = _steps(table, schema.time)
    start = end if schema.start is None else _steps(table, schema.start)
    tie = None if schema.tie_breaker is None else ranks(table.column(schema.tie_breaker))
    following = how_ends_follow(end)
    if tie is None and following == STRICT:
        return Order(None, start, end, None, tied=False)
    rows = None
    if tie is not None or following == SHUFFLED:
        rows = order_by_number(end) if tie is None else np.lexsort((tie, end))
        lasting = start is not end
        end, tie = end[rows], None if tie is None else tie[rows]
        start = start[rows] if lasting else end
    changes = end[1:] != end[:-1]
    if tie is not None:
        changes = changes | (tie[1:] != tie[:-1])
    step = np.zeros(len(end), np.int64)
    np.cumsum(changes, out=step[1:])
    return Order(rows, start, end, step, tied=tie is not None, in_order=following != SHUFFLED)


def order_by_number(numbers: Ints) -> Ints:
    """The rows by number, equal ones as they stand."""
    if len(numbers) < _FEW:
        few: Ints = np.argsort(numbers, kind="stable")
        return few
    least, greatest = map(int, least_and_greatest(numbers))
    rows, room = empty(len(numbers), np.int64), empty(len(numbers), np.int64)
    is_in_room = order_by_digits(numbers, least, -(-(greatest - least).bit_length() // DIGIT), rows, room)
    return room if is_in_room else rows


def bad_rows(table: pa.Table, schema: Schema, first: int = 0) -> tuple[list[BadRow], Flags | None]:
    """The rows that are no events, numbered from `first`, and which rows are; None when all are."""
    end = as_integers(table.column(schema.time))
    start = end if schema.start is None else as_integers(table.column(schema.start))
    tie = None if schema.tie_breaker is None else table.column(schema.tie_breaker)
    nulls = end.null_count + start.null_count + (0 if tie is None else tie.null_count)
    backwards = schema.start is not None and bool(pc.any(pc.greater(start, end)).as_py())
    if not nulls and not backwards:
        return [], None
    suspect = pc.or_(pc.is_null(end), pc.fill_null(pc.greater(start, end), True))
    if tie is not None:
        suspect = pc.or_(suspect, pc.is_null(tie))
    wrong = to_numpy(suspect)
    bad = []
    for row in np.flatnonzero(wrong).tolist():
        reason = why_bad(schema, start[row].as_py(), end[row].as_py(), 0 if tie is None else tie[row].as_py())
        assert reason is not None, "what is suspect is bad"
        bad.append(BadRow(first + row, reason))
    return bad, ~wrong


def canonical_order(rows: EventRows, start: Ints, step: Ints, schema: Schema, names: Iterable[str]) -> Ints | None:
    """Simultaneous events by start, type and values (the semantics page §1); None when rows stand so already."""
    tied = np.zeros(len(step), np.bool_)
    same = step[1:] == step[:-1]
    tied[1:] |= same
    tied[:-1] |= same
    places = np.flatnonzero(tied)
    if not len(places):
        return None
    part = rows.take(places)
    keys = [ranks(part.column(name)) for name in sorted(names, reverse=True) if name in part.column_names]
    if schema.constant_type is None:
        keys.append(ranks(_as_text(part.column(schema.type))))
    order = np.arange(len(step), dtype=np.int64)
    order[places] = places[np.lexsort((*keys, start[places], step[places]))]
    return order


def integers(column: pa.ChunkedArray) -> Ints:
    """A time-like column without NULL as whole steps."""
    return np.ascontiguousarray(to_numpy(as_integers(column)), dtype=np.int64)


def _steps(table: AnyRows, name: str) -> Ints:
    own = table.integers(name) if isinstance(table, EventRows) else None
    return integers(table.column(name)) if own is None else own


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([None if v is None else str(v) for v in python_values(column)], pa.string())])


def ranks(column: pa.ChunkedArray) -> Ints:
    """Any column as integers in the same order, NULL first; NaN counts as the least number."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_integer(kind) and not column.null_count and not pa.types.is_uint64(kind):
        return np.ascontiguousarray(to_numpy(column), dtype=np.int64)
    if pa.types.is_floating(kind):
        reals = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(reals), float("-inf"), reals)
    elif pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    try:
        ranked = _dense_ranks(column.combine_chunks())
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid):
        texts = pa.array([None if value is None else repr(value) for value in python_values(column)], pa.string())
        ranked = _dense_ranks(texts)
    return np.ascontiguousarray(to_numpy(ranked), dtype=np.int64)


def _dense_ranks(values: pa.Array) -> pa.Array:
    """Ranks from 1; NULL has 0."""
    ranked = pc.rank(values.drop_null(), tiebreaker="dense").cast(pa.int64())
    if not values.null_count:
        return ranked
    return pc.replace_with_mask(to_arrow(np.zeros(len(values), np.int64)), pc.is_valid(values), ranked)

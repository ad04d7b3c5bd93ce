"""From a table of settled rows to the events that some formula takes: in the order of their last points, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.executors.linking import link
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.masks import mask
from kleene.engine.intake.row_types import row_types
from kleene.engine.intake.timeline import integers
from kleene.engine.state.event_rows import AnyRows, EventRows
from kleene.engine.streams.cells import CellValues
from kleene.engine.streams.compiling import CompiledStream
from kleene.frames.arrow import as_integers, nanoseconds_a_step
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.frames.results import times
from kleene.kernels.blocks import holds_rows
from kleene.kernels.expression import EventColumns, Ints
from kleene.kernels.opcodes import MISSING, NULL, VALUE
from kleene.kernels.stream_instances import StreamEvents
from kleene.pattern.nodes import EventClass
from kleene.pattern.schema import FIRST_TIE, Schema
from kleene.plan.program import NotCompilable

Flags = npt.NDArray[np.bool_]

# Events that go through the kernel in one call: what is made of them waits in memory for so long.
_AT_ONCE = 1 << 16


class Arrived(NamedTuple):
    """Events in order, and the columns of those of their values that are read."""

    events: StreamEvents
    columns: EventColumns


def arrived(table: pa.Table, stream: CompiledStream, values: CellValues) -> Iterator[Arrived]:
    """The events of a table that some formula takes, some of them at a time; a step is never cut."""
    schema = stream.plan.query.schema
    types = {name for formula in stream.plan.formulas for name in formula.source.event_class.types}
    useful, _ = row_types(table, schema).among(types)
    rows = EventRows(table, None if len(useful) == table.num_rows else useful)
    points = Points.of(rows, schema)
    order = points.order()
    if order is not None:
        rows, points = rows.take(order), points.take(order)
    begin = 0
    while begin < rows.num_rows:
        end = points.step_end(min(begin + _AT_ONCE, rows.num_rows))
        yield _arrays(rows.slice(begin, end - begin), points.slice(begin, end), stream, values)
        begin = end


class Points(NamedTuple):
    """The first and last points of events: a moment and a tie-breaker each."""

    starts: Ints
    ends: Ints
    start_ties: Ints
    end_ties: Ints

    @staticmethod
    def of(rows: AnyRows, schema: Schema) -> Points:
        ends = integers(rows.column(schema.time))
        starts = ends if schema.start is None else integers(rows.column(schema.start))
        if schema.tie_breaker is None:
            nothing = np.zeros(len(ends), np.int64)
            return Points(starts, ends, nothing, nothing)
        ties = tie_numbers(rows.column(schema.tie_breaker))
        first_ties = ties
        if FIRST_TIE in rows.column_names:
            # Of composite events alone.
            column = rows.column(FIRST_TIE)
            first_ties = np.where(to_numpy(column.is_valid()), tie_numbers(column), ties)
        return Points(starts, ends, first_ties, ties)

    def order(self) -> Ints | None:
        """The rows by their last points; None: they stand so already."""
        later = self.ends[1:] > self.ends[:-1]
        same = self.ends[1:] == self.ends[:-1]
        if bool(np.all(later | (same & (self.end_ties[1:] >= self.end_ties[:-1])))):
            return None
        return np.lexsort((self.end_ties, self.ends))

    def take(self, rows: Ints) -> Points:
        return Points(*(array[rows] for array in self))

    def for_kernels(self) -> Points:
        """The same, read-only whether it is Arrow's own memory or a copy: kernels are compiled for one of the two."""
        return Points(*map(_read_only, self))

    def slice(self, begin: int, end: int) -> Points:
        return Points(*(array[begin:end] for array in self))

    def step_end(self, place: int) -> int:
        """The end of the step of the event before a place."""
        while place < len(self.ends) and (
            self.ends[place] == self.ends[place - 1] and self.end_ties[place] == self.end_ties[place - 1]
        ):
            place += 1
        return place


def _read_only(array: Ints) -> Ints:
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def tie_numbers(column: pa.ChunkedArray) -> Ints:
    """The values of a tie-breaker as integers in the same order, the same for the same value in every batch."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        try:
            return to_numpy(column.cast(pa.int64())).astype(np.int64)
        except pa.ArrowInvalid:
            raise NotCompilable("a tie-breaker beyond 64 bits") from None
    if nanoseconds_a_step(kind) is not None:
        return to_numpy(as_integers(column)).astype(np.int64)
    if pa.types.is_floating(kind):
        bits = (to_numpy(column.cast(pa.float64())).astype(np.float64) + 0.0).view(np.int64)
        # Of negative reals, greater bits are of lesser values.
        return np.where(bits < 0, np.int64(-(2**63)) - bits - 1, bits)
    raise NotCompilable(f"a tie-breaker of type {kind}")


def tie_column(numbers: Ints, kind: pa.DataType) -> pa.Array:
    """The values of which `tie_numbers` made these."""
    if not pa.types.is_floating(kind):
        return times(numbers, kind)
    bits = np.where(numbers < 0, np.int64(-(2**63)) - numbers - 1, numbers)
    return to_arrow(bits.view(np.float64)).cast(kind)


def _arrays(rows: EventRows, points: Points, stream: CompiledStream, values: CellValues) -> Arrived:
    layout, schema = stream.events, stream.plan.query.schema
    store = ColumnStore.from_table(rows, list(layout.columns), schema, values.strings, layout.spare)
    columns = store.events
    columns.ints[layout.start.place], columns.ints[layout.end.place] = points.starts, points.ends
    members = [_members(formula.source.event_class, store, values) for formula in stream.plan.formulas]
    # To a stream, what an event lacks is NULL.
    columns.states[columns.states == MISSING] = NULL
    columns.states[layout.end.index] = VALUE
    for name, place in layout.others.items():
        columns.ints[place], _ = values.others.codes(rows.column(name))
    for name, bits in layout.bits.items():
        own = layout.columns[name]
        reals = columns.reals[own.place] + 0.0
        columns.ints[bits.place] = reals.view(np.int64)
        columns.states[bits.index] = np.where(np.isnan(reals), NULL, columns.states[own.index])
    formulas = np.zeros(rows.num_rows, np.uint64)
    for number, (program, member) in enumerate(zip(stream.formulas, members, strict=True)):
        if len(program.code):
            code, passed = link(program, values.strings), np.zeros(rows.num_rows, np.bool_)
            holds_rows(code, columns, values.strings.arrays(), program.depth, passed)
            member = member & passed
        formulas |= member.astype(np.uint64) << np.uint64(number)
    useful = np.flatnonzero(formulas)
    if len(useful) < rows.num_rows:
        points, formulas = points.take(useful), formulas[useful]
        columns = EventColumns(
            np.ascontiguousarray(columns.ints[:, useful]),
            np.ascontiguousarray(columns.reals[:, useful]),
            np.ascontiguousarray(columns.states[:, useful]),
        )
    return Arrived(StreamEvents(*points.for_kernels(), formulas), columns)


def _members(event_class: EventClass, store: ColumnStore, values: CellValues) -> Flags:
    """Which events are of a class."""
    member = store.types.are(event_class.types)
    return member & mask(event_class.predicate, store, values.strings) if event_class.predicate else member

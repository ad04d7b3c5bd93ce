"""Settled rows as the arrays that shared automata read: in the order of their last points, with their atoms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kleene.algebra.nodes import StreamSource
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.masks import mask
from kleene.engine.intake.row_types import NO_TYPE
from kleene.engine.intake.strings import StringPool
from kleene.engine.query_sets.atoms import real_atoms
from kleene.engine.query_sets.compiling import ALWAYS, TYPE, class_column
from kleene.engine.state.event_rows import taken_rows
from kleene.engine.streams.cells import CellValues
from kleene.engine.streams.compiling import EventLayout
from kleene.engine.streams.intake import Points
from kleene.kernels.expression import Bytes, EventColumns, Ints, Reals
from kleene.kernels.opcodes import MISSING, NULL, VALUE
from kleene.kernels.shared_machine import AtomColumns, Coming, EventCells
from kleene.kernels.stream_instances import StreamEvents
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

# Events that go through the kernel in one call. No power of two: the values of an event, a column apart each, would
# all want the same few places of the processor's cache.
_AT_ONCE = 50_000


class ComingEvents(NamedTuple):
    coming: Coming
    columns: EventColumns


class SharedIntake(NamedTuple):
    """What is read of events.

    atoms     the columns that nodes and edges are looked up by, in the order of their numbers
    sources   those of several types or with a predicate, by the column that says who is one of theirs
    """

    schema: Schema
    layout: EventLayout
    atoms: tuple[str, ...]
    sources: Mapping[str, StreamSource]

    def ordered(self, table: pa.Table) -> tuple[pa.Table, Points]:
        """The rows of a table in the order of their last points, and these."""
        points = Points.of(table, self.schema)
        order = points.order()
        return (table, points) if order is None else (taken_rows(table, order), points.take(order))

    def events(self, rows: pa.Table, points: Points, values: CellValues, first: int) -> Iterator[ComingEvents]:
        """The events of ordered rows, some of them at a time; no step is cut. `first`: the number of the first."""
        begin = 0
        while begin < rows.num_rows:
            end = points.step_end(min(begin + _AT_ONCE, rows.num_rows))
            yield self._arrays(rows.slice(begin, end - begin), points.slice(begin, end), values, first + begin)
            begin = end

    def _arrays(self, rows: pa.Table, points: Points, values: CellValues, first: int) -> ComingEvents:
        layout = self.layout
        store = ColumnStore.from_table(rows, list(layout.columns), self.schema, values.strings, layout.spare)
        columns = store.events
        columns.ints[layout.start.place], columns.ints[layout.end.place] = points.starts, points.ends
        columns.ints[layout.number.place] = np.arange(first, first + rows.num_rows)
        flags = {name: _members(source, store, values) for name, source in self.sources.items()}
        # To a stream, what an event lacks is NULL.
        columns.states[columns.states == MISSING] = NULL
        columns.states[layout.end.index] = VALUE
        for name, place in layout.others.items():
            columns.ints[place], _ = values.others.codes(rows.column(name))
        size = rows.num_rows
        atoms = AtomColumns(np.zeros((size, len(self.atoms)), np.int64), np.ones((size, len(self.atoms)), np.uint8))
        for number, name in enumerate(self.atoms):
            _put_atoms(atoms.values[:, number], atoms.known[:, number], name, store, layout, flags, values.strings)
        events = StreamEvents(*points.for_kernels(), np.zeros(0, np.uint64))
        return ComingEvents(Coming(events, atoms, _cells(columns, layout)), columns)


def _cells(columns: EventColumns, layout: EventLayout) -> EventCells:
    """The values of events as cells have them, by the number of the column; after all others that of the event."""
    size = columns.states.shape[1]
    values = np.zeros((size, len(layout.columns) + 1), np.int64)
    states = np.full(values.shape, NULL, np.uint8)
    for name, column in layout.columns.items():
        place = layout.others.get(name, column.place)
        if place < 0:
            continue
        has_value = columns.states[column.index] == VALUE
        cells = columns.ints[place] if column.type is not ValueType.FLOAT else _bits(columns.reals[place])
        values[:, column.index] = cells if has_value.all() else np.where(has_value, cells, 0)
        states[:, column.index] = np.where(has_value, VALUE, NULL)
    values[:, layout.number.index], states[:, layout.number.index] = columns.ints[layout.number.place], VALUE
    return EventCells(values, states)


def _bits(reals: Reals) -> Ints:
    """Equal reals have equal bits: there is one zero, and one NaN."""
    return np.where(np.isnan(reals), np.nan, reals + 0.0).view(np.int64)


def _put_atoms(
    values: Ints,
    known: Bytes,
    name: str,
    store: ColumnStore,
    layout: EventLayout,
    flags: Mapping[str, Ints],
    strings: StringPool,
) -> None:
    if name == ALWAYS:
        return
    if name == TYPE:
        types = store.types.in_pool(strings)
        values[:], known[:] = types, types != NO_TYPE
        return
    if name in flags:
        values[:] = flags[name]
        return
    column = layout.columns[name]
    has_value = store.events.states[column.index] == VALUE
    if column.type is ValueType.FLOAT:
        reals = store.events.reals[column.place]
        numbers = ~np.isnan(reals)
        values[:], known[:] = real_atoms(np.where(numbers, reals, 0.0)), has_value & numbers
    else:
        values[:], known[:] = store.events.ints[column.place], has_value


def _members(source: StreamSource, store: ColumnStore, values: CellValues) -> Ints:
    """[event]: 1 where it is of the source's class."""
    event_class = source.event_class
    member = store.types.are(event_class.types)
    if event_class.predicate:
        member &= mask(event_class.predicate, store, values.strings)
    return member.astype(np.int64)


def compared_by_class(sources: Iterable[StreamSource], atoms: Iterable[str]) -> dict[str, StreamSource]:
    """The sources whose events are told by a column of their own."""
    named = {class_column(source): source for source in sources}
    return {name: named[name] for name in atoms if name in named}

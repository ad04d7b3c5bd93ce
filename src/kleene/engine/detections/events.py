"""The events that detections refer to, by row number: in canonical order, with the columns that conditions read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kleene.algebra.detections import FIRST_MOMENT, LAST_MOMENT
from kleene.algebra.eql_query import BoundEqlQuery
from kleene.engine.intake.columns import ColumnStore, column_layout
from kleene.engine.intake.masks import mask, members
from kleene.engine.intake.row_types import RowTypes, row_types
from kleene.engine.intake.strings import StringPool
from kleene.engine.intake.timeline import canonical_order, order_of
from kleene.engine.output.ordering import Spans
from kleene.engine.state.event_rows import ChunkedRows, EventRows
from kleene.engine.state.growing import Growing
from kleene.engine.state.sizes import row_bytes
from kleene.engine.streams.intake import Points
from kleene.kernels.detections import EventPoints
from kleene.kernels.expression import EventColumns, Ints
from kleene.kernels.opcodes import MISSING, NULL, VALUE
from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component
from kleene.pattern.types import ValueType
from kleene.plan.layout import Column


def event_layout(columns: pa.Schema, query: BoundEqlQuery) -> dict[str, Column]:
    """The columns that conditions read, the moments of events among them, which count steps."""
    schema = query.schema
    known = dict(column_layout(columns, _names(query)))
    for name, column in ((FIRST_MOMENT, schema.start or schema.time), (LAST_MOMENT, schema.time)):
        own = known[column]
        known[name] = Column(own.index, own.place, ValueType.INT)
    return known


def _names(query: BoundEqlQuery) -> list[str]:
    schema = query.schema
    moments = [schema.time] if schema.start is None else [schema.time, schema.start]
    return list(dict.fromkeys([*query.columns_tested, *moments]))


# A component, and the condition on its events by themselves.
Source = tuple[Component, tuple[Clause, ...]]


@dataclass(frozen=True, eq=False)
class NewEvents:
    """Events that have come, in canonical order.

    member   by component: the rows of those that are of its classes and satisfy its condition
    """

    number: int
    member: dict[Component, Ints]


class HeldEvents:
    """Events in canonical order, those of a batch after those before."""

    def __init__(self, query: BoundEqlQuery, columns: pa.Schema, strings: StringPool) -> None:
        self._query, self._strings = query, strings
        self.layout = event_layout(columns, query)
        self._names = _names(query)
        self._rows = ChunkedRows(columns)
        self.size = 0
        nothing = ColumnStore.from_table(self._rows.rows, self._names, query.schema, strings).events
        absent = [np.zeros((len(array), 1), array.dtype) for array in nothing]
        absent[2][:] = NULL
        # With an event before the first one that has no values.
        self._events = [Growing(array) for array in absent]
        self._points = [Growing(np.zeros(0, np.int64)) for _ in range(4)]
        self._steps = Growing(np.zeros(0, np.int64))
        self._next_step = 0

    @property
    def columns(self) -> EventColumns:
        return EventColumns(*(array.array for array in self._events))

    @property
    def points(self) -> EventPoints:
        return EventPoints(*(array.array for array in self._points))

    @property
    def unread(self) -> ColumnStore:
        """A store without columns: what results compute, they read from the rows."""
        nothing = np.zeros((0, 0))
        columns = EventColumns(nothing.astype(np.int64), nothing, nothing.astype(np.uint8))
        return ColumnStore({}, columns, RowTypes((), np.zeros(0, np.int32)))

    @property
    def rows(self) -> EventRows:
        return self._rows.rows

    @property
    def spans(self) -> Spans:
        starts, _, ends, _ = (array.used for array in self._points)
        return Spans(self._steps.used, starts, ends)

    @property
    def nbytes(self) -> int:
        arrays = (*self._events, *self._points, self._steps)
        return sum(array.nbytes for array in arrays) + self._rows.nbytes

    @property
    def bytes_an_event(self) -> int:
        """What its arrays take for each event."""
        return 8 * 5 + sum(int(array.array.shape[0]) * int(array.array.itemsize) for array in self._events)

    def take_in(self, table: pa.Table, sources: Sequence[Source]) -> NewEvents:
        """Hold the events of a table that are of the types of the query."""
        schema = self._query.schema
        order = order_of(table, schema)
        types = row_types(table, schema)
        useful, _ = (types if order.rows is None else types.take(order.rows)).among(self._query.types)
        chosen, numbers = order.of(None if len(useful) == table.num_rows else useful)
        rows, steps = EventRows(table, chosen), numbers["step"]
        if order.step is not None:
            compared = set(self._query.columns_compared(rows.column_names)) - schema.unordered
            canonical = canonical_order(rows, numbers["start"], steps, schema, compared)
            if canonical is not None:
                rows, steps = rows.take(canonical), steps[canonical]
        member = self._append(rows, steps + self._next_step, sources)
        self._next_step += order.steps
        return NewEvents(rows.num_rows, member)

    def _append(self, rows: EventRows, steps: Ints, sources: Sequence[Source]) -> dict[Component, Ints]:
        store = ColumnStore.from_table(rows, self._names, self._query.schema, self._strings)
        flags = [members(component, store, self._strings) for component, _ in sources]
        # In EQL a comparison with what an event lacks is false, as with NULL.
        states = store.events.states
        states[states == MISSING] = NULL
        # Every event has its moments, composite events too, whose types do not declare them.
        for moment in (FIRST_MOMENT, LAST_MOMENT):
            states[self.layout[moment].index] = VALUE
        with_moments = replace(store, columns=self.layout)
        member = {}
        for (component, condition), is_member in zip(sources, flags, strict=True):
            if condition:
                is_member &= mask(condition, with_moments, self._strings)
            member[component] = np.flatnonzero(is_member) + self.size
        for array, part in zip(self._events, store.events, strict=True):
            array.append(part)
        points = Points.of(rows, self._query.schema)
        of_ends = points.starts, points.start_ties, points.ends, points.end_ties
        for array, part in zip(self._points, of_ends, strict=True):
            array.append(part)
        self._steps.append(steps)
        self._rows.append(rows.kept())
        self.size += rows.num_rows
        return member

    def restore(self, rows: pa.Table, steps: Ints) -> None:
        """Hold the events of a snapshot."""
        self._append(EventRows(rows), steps, ())
        self._next_step = int(steps[-1]) + 1 if len(steps) else 0

    @property
    def next_step(self) -> int:
        return self._next_step

    def begin_at(self, step: int) -> None:
        """Count on from another step than that of the last event."""
        self._next_step = step

    def bytes_of(self, rows: Ints) -> int:
        """The bytes of some events as rows."""
        some = self.rows.take(rows)
        return row_bytes(some.base, some.places)

    @property
    def steps(self) -> Ints:
        """[event]: simultaneous events have the same."""
        steps: Ints = self._steps.used
        return steps

"""The events that an engine holds: settled ones that some component could use and that the window has not left behind.

An event is a number: its place here, in canonical order. Kernels see arrays, results are taken from the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.intake.columns import ColumnStore, no_events
from kleene.engine.intake.row_types import row_types
from kleene.engine.state.event_rows import ChunkedRows, EventRows
from kleene.engine.state.growing import Growing
from kleene.kernels.expression import EventColumns, Ints
from kleene.pattern.schema import Schema
from kleene.plan.layout import Column

# What is known of the order of events, [event].
ORDERED = ("start", "end", "step", "left", "right", "position", "place", "barrier")


@dataclass(frozen=True, eq=False)
class EventBatch:
    """Events to be held, in canonical order."""

    rows: EventRows
    columns: ColumnStore
    # [event]: the code of its partition, −1: in none.
    partition: Ints
    start: Ints
    end: Ints
    # x is before y when right[x] < left[y]; simultaneous events have the same step.
    step: Ints
    left: Ints
    right: Ints
    # How many events of its partition are before it, how many are of an earlier step, and the greatest left of those
    # against which contiguity is judged; 0 where nothing asks for them.
    position: Ints
    place: Ints
    barrier: Ints

    def take(self, places: Ints) -> EventBatch:
        events = self.columns.events
        columns = ColumnStore(
            self.columns.columns,
            EventColumns(*(_taken(array, places) for array in events)),
            self.columns.types.take(places),
        )
        numbers = taken({name: getattr(self, name) for name in ("partition", *ORDERED)}, places)
        return EventBatch(self.rows.take(places), columns, **numbers)


def taken(numbers: Mapping[str, Ints], places: Ints) -> dict[str, Ints]:
    """The arrays at these places; names that share an array share the new one."""
    subsets = {id(array): array[places] for array in numbers.values()}
    return {name: subsets[id(array)] for name, array in numbers.items()}


class EventStore:
    def __init__(self, columns: Mapping[str, Column], rows: pa.Schema, schema: Schema) -> None:
        """An empty store for events of this layout."""
        self._same = _same_numbers(schema)
        self.columns = columns
        self._events = [Growing(array) for array in no_events(columns)]
        self._rows = ChunkedRows(rows)
        self._stored = kept_numbers(schema)
        names = [name for name in ("partition", *ORDERED) if name not in self._same]
        self._growing = {name: Growing(np.zeros(0, np.int64)) for name in names}
        self.size = 0
        self._show()

    def _show(self) -> None:
        """Set the arrays that kernels read; they are longer than their content."""
        self.partition: Ints = self._growing["partition"].array
        arrays = [self._growing[self._same.get(name, name)].array for name in ORDERED]
        self.start: Ints
        self.end: Ints
        self.step: Ints
        self.left: Ints
        self.right: Ints
        self.position: Ints
        self.place: Ints
        self.barrier: Ints
        self.start, self.end, self.step, self.left, self.right, self.position, self.place, self.barrier = arrays
        # The columns that programs read.
        self.events = EventColumns(*(growing.array for growing in self._events))

    def append(self, arrived: EventBatch) -> None:
        for growing, part in zip(self._events, arrived.columns.events, strict=True):
            growing.append(part)
        self._rows.append(arrived.rows)
        for name, growing in self._growing.items():
            growing.append(getattr(arrived, name))
        self.size += len(arrived.step)
        self._show()

    def first_steps(self, times: Ints, others: Ints) -> Ints:
        """[time]: the step of the first event held that ends then or later; without one, the step in `others`."""
        places = np.searchsorted(self._growing["end"].used, times)
        known = np.flatnonzero(places < self.size)
        steps = others.copy()
        steps[known] = self.step[places[known]]
        return steps

    def events_between(self, first: int, last: int, schema: Schema) -> EventBatch:
        """Held events as they came, with their types, which are not held."""
        rows = self.rows.slice(first, last - first)
        events = EventColumns(*(_between(array, first, last) for array in self.events))
        columns = ColumnStore(self.columns, events, row_types(rows, schema))
        return EventBatch(rows, columns, **{name: getattr(self, name)[first:last] for name in ("partition", *ORDERED)})

    def numbers(self, places: Ints) -> dict[str, Ints]:
        """The arrays of some events that cannot be computed from their rows."""
        return {name: self._growing[name].used[places] for name in self._stored}

    def restored(self, numbers: Mapping[str, Ints]) -> dict[str, Ints]:
        """All arrays: these, and those that are equal to one of them and were not kept."""
        return {name: numbers[self._same.get(name, name)] for name in ORDERED if name not in ("start", "end")}

    @property
    def rows(self) -> EventRows:
        return self._rows.rows

    def keep_rows(self) -> None:
        """Let go of the table that came last where most of it would be held for nothing."""
        self._rows.keep()

    @property
    def nbytes(self) -> int:
        arrays = (*self._events, *self._growing.values())
        return sum(array.nbytes for array in arrays) + self._rows.nbytes

    @property
    def bytes_an_event(self) -> int:
        """The bytes that the arrays take for each event."""
        arrays = (*self._events, *self._growing.values())
        return sum(array.array.dtype.itemsize * int(np.prod(array.array.shape[:-1])) for array in arrays)


def kept_numbers(schema: Schema) -> list[str]:
    """The names of the arrays on the order of events that cannot be computed from their rows."""
    return [name for name in ORDERED if name not in ("start", "end", *_same_numbers(schema))]


def _same_numbers(schema: Schema) -> dict[str, str]:
    """The arrays that equal another one for all events of a stream, and are held once."""
    if schema.start is None:
        return {"start": "end", "left": "step", "right": "step", "place": "position"}
    return {"right": "step"} if schema.tie_breaker is None else {}


def _taken(array: Any, places: Ints) -> Any:
    return np.ascontiguousarray(array[:, places])


def _between(array: Any, first: int, last: int) -> Any:
    return np.ascontiguousarray(array[:, first:last])

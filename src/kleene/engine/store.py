"""The events that an engine holds: settled ones that some component could use and that the window has not left behind.

An event is a number: its place here, in canonical order. Kernels see arrays, results are taken from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.columns import ColumnStore
from kleene.engine.growing import Growing
from kleene.frames.numbers import to_arrow
from kleene.kernels.expression import Events, Ints

# More chunks than this are put together: taking rows by number slows down with their number.
_MOST_CHUNKS = 16


@dataclass(frozen=True, eq=False)
class Arrived:
    """Events to be held, in canonical order."""

    rows: pa.Table
    columns: ColumnStore
    # [event]: the code of its partition, −1: in none.
    partition: Ints
    start: Ints
    end: Ints
    step: Ints
    # Its place in its partition, and the number of its step there; 0 where nothing asks for them.
    position: Ints
    ordinal: Ints

    def take(self, places: Ints) -> Arrived:
        events = self.columns.events
        columns = ColumnStore(
            self.columns.columns,
            Events(*(_taken(array, places) for array in events)),
            self.columns.types[places],
            self.columns.kinds,
        )
        numbers = self.partition, self.start, self.end, self.step, self.position, self.ordinal
        return Arrived(self.rows.take(to_arrow(places)), columns, *(array[places] for array in numbers))


class EventStore:
    def __init__(self, columns: ColumnStore, rows: pa.Table, *, lasting: bool) -> None:
        """An empty store for events of this layout; `lasting` ones have a start of their own."""
        self._lasting = lasting
        self.columns = columns.columns
        self._events = [Growing(array[:, :0]) for array in columns.events]
        self._chunks = [rows.slice(0, 0)]
        self._whole: pa.Table | None = None
        names = ("partition", "start", "end", "step", "left", "position", "ordinal")
        self._growing = {name: Growing(np.zeros(0, np.int64)) for name in names}
        self.size = 0
        self._show()

    def _show(self) -> None:
        """The arrays as kernels want them, longer than what is in them. x is before y when step[x] < left[y]."""
        arrays = [growing.array for growing in self._growing.values()]
        self.partition: Ints
        self.start: Ints
        self.end: Ints
        self.step: Ints
        self.left: Ints
        self.position: Ints
        self.ordinal: Ints
        self.partition, self.start, self.end, self.step, self.left, self.position, self.ordinal = arrays
        # The columns that programs read.
        self.events = Events(*(growing.array for growing in self._events))

    def append(self, arrived: Arrived) -> None:
        for growing, part in zip(self._events, arrived.columns.events, strict=True):
            growing.append(part)
        if arrived.rows.num_rows:
            self._chunks.append(arrived.rows)
            self._whole = None
        for name in ("partition", "start", "end", "step", "position", "ordinal"):
            self._growing[name].append(getattr(arrived, name))
        left = arrived.step
        if self._lasting:
            # What ends at the start of an event, or later, is not before it.
            left = self._growing["step"].used[np.searchsorted(self._growing["end"].used, arrived.start)]
        self._growing["left"].append(left)
        self.size += len(arrived.step)
        self._show()

    @property
    def rows(self) -> pa.Table:
        if self._whole is None:
            table = pa.concat_tables(self._chunks)
            if len(self._chunks) > _MOST_CHUNKS:
                table = table.unify_dictionaries().combine_chunks()
                self._chunks = [table]
            self._whole = table
        return self._whole

    @property
    def nbytes(self) -> int:
        arrays = (*self._events, *self._growing.values())
        return sum(array.nbytes for array in arrays) + sum(int(chunk.nbytes) for chunk in self._chunks)


def _taken(array: Any, places: Ints) -> Any:
    return np.ascontiguousarray(array[:, places])

"""Columns of results: structs and lists of events, constants, times."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.state.event_rows import EventRows
from kleene.frames.numbers import bitmap
from kleene.frames.results import times
from kleene.kernels.gathering import Rows


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of results, gathered from the rows of events."""

    rows: EventRows
    # The columns in which all events of a match are the same.
    agreed: frozenset[str] = frozenset()
    # By name and the rows that a column was taken at: its values there. Keys and times are taken where variables are.
    _known: dict[tuple[str, int], tuple[Rows, pa.Array]] = field(default_factory=dict)

    def take(self, name: str, rows: Rows, *, absent: bool) -> pa.Array:
        """A column at these rows; NULL where there is none (a negative number), if any is absent."""
        if absent:
            return self.rows.values(name, rows, absent=True)
        where = name, id(rows)
        if where not in self._known:
            # The rows are kept, so that no others can have their id.
            self._known[where] = rows, self.rows.values(name, rows, absent=False)
        return self._known[where][1]

    def forget(self) -> None:
        """Let go of what was taken, before other rows are."""
        self._known.clear()

    def events(
        self, rows: Rows, kind: pa.DataType, first: Rows | None = None, *, may_be_absent: bool = True
    ) -> pa.Array:
        """A struct of the named columns for each row, NULL where there is none.

        first           [row]: an event of the same match, whose values it has in columns that are agreed
        may_be_absent   whether some row may be none
        """
        absent = may_be_absent and bool(len(rows)) and bool(rows.min() < 0)
        children = [
            self.take(each.name, first if first is not None and each.name in self.agreed else rows, absent=False)
            for each in kind
        ]
        validity = bitmap(rows >= 0) if absent else None
        return pa.Array.from_buffers(kind, len(rows), [validity], children=children)

    def event_lists(self, rows: Rows, offsets: npt.NDArray[np.int32], kind: pa.DataType) -> pa.Array:
        """A list of such structs for each match, whose rows begin at its offset."""
        values = self.events(rows, kind.value_type)
        return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets)], children=[values])


def constant(text: str, length: int) -> pa.Array:
    """A column with the same value in every row."""
    data = text.encode()
    return pa.StringArray.from_buffers(length, even_offsets(len(data), length), _repeated(data, _room(length)))


def even_offsets(width: int, length: int) -> pa.Buffer:
    """Where values of the same width begin, and the last of them ends."""
    return _offsets(width, _room(length))


def _room(length: int) -> int:
    """At least as many rows, so that results of about the same length share what does not depend on their rows."""
    return 1 << max(length - 1, 0).bit_length()


@lru_cache(maxsize=4)
def _offsets(width: int, length: int) -> pa.Buffer:
    return pa.py_buffer(np.arange(length + 1, dtype=np.int32) * np.int32(width))


@lru_cache(maxsize=2)
def _repeated(data: bytes, times: int) -> pa.Buffer:
    return pa.py_buffer(data * times)


def time_column(steps: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Whole steps as values of the time column."""
    if not pa.types.is_null(kind) and kind.bit_width == 64:
        return pa.Array.from_buffers(kind, len(steps), [None, pa.py_buffer(steps)])
    return times(steps, kind)

"""The events that results of lines are gathered from: those that instances still refer to, by their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kleene.engine.output.ordering import Spans
from kleene.engine.streams.intake import Points
from kleene.kernels.expression import Ints


class NumberedRows(NamedTuple):
    """Rows in the order of their last points, the number of the first, and when they happened."""

    first: int
    rows: pa.Table
    spans: Spans


@dataclass(frozen=True, eq=False)
class _Part:
    rows: pa.Table
    points: Points


class HeldEvents:
    """Rows in the order of their last points, in the parts in which they came; the first has the number `first`."""

    def __init__(self) -> None:
        self.first = 0
        self._parts: list[_Part] = []

    @property
    def end(self) -> int:
        """The number of the next event."""
        return self.first + sum(int(part.rows.num_rows) for part in self._parts)

    @property
    def nbytes(self) -> int:
        return sum(int(part.rows.nbytes) for part in self._parts)

    def add(self, rows: pa.Table, points: Points) -> None:
        if rows.num_rows:
            self._parts.append(_Part(rows, points))

    def drop_before(self, number: int) -> None:
        """Let go the parts of which no event has this number or a greater one."""
        while self._parts and self.first + self._parts[0].rows.num_rows <= number:
            self.first += self._parts.pop(0).rows.num_rows

    def from_number(self, number: int) -> NumberedRows:
        """The rows of the parts from that of an event on."""
        first, begin = self.first, 0
        while first + self._parts[begin].rows.num_rows <= number:
            first += self._parts[begin].rows.num_rows
            begin += 1
        parts = self._parts[begin:]
        points = Points(*map(np.concatenate, zip(*(part.points for part in parts), strict=True)))
        rows = pa.concat_tables([part.rows for part in parts])
        return NumberedRows(first, rows, Spans(steps_of(points), points.starts, points.ends))


def steps_of(points: Points) -> Ints:
    """[event]: simultaneous ones have the same number."""
    steps = np.zeros(len(points.ends), np.int64)
    later = (points.ends[1:] != points.ends[:-1]) | (points.end_ties[1:] != points.end_ties[:-1])
    np.cumsum(later, out=steps[1:])
    return steps

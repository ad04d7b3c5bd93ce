"""Events on their way in: rows that are none are set aside, late ones diverted, the others wait for the watermark."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.intake.timeline import bad_rows
from kleene.engine.state.sizes import held_bytes, row_bytes
from kleene.errors import MissingColumn, UnusableColumn
from kleene.frames.arrow import as_integers, empty_table
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.frames.rows import BadRow
from kleene.kernels.timeline import in_time
from kleene.pattern.schema import Schema

# Rows that stand together in at most so many runs are not copied.
_MOST_RUNS = 16


class Arrivals:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._waiting: list[pa.Table] = []
        # The columns of the first batch; None: there was none.
        self._columns: pa.Schema | None = None
        # None: no watermark has been given yet.
        self.watermark: int | None = None
        self.rows = 0

    @property
    def waiting(self) -> pa.Table | None:
        """The events that the watermark has not passed; None when no event was ever seen."""
        if self._columns is None:
            return None
        if len(self._waiting) != 1:
            self._waiting = [pa.concat_tables(self._waiting) if self._waiting else empty_table(self._columns)]
        return self._waiting[0]

    def add(self, batch: pa.Table) -> tuple[list[BadRow], pa.Table]:
        """Take in a batch; returns the rows that are no events, and the events that came too late."""
        batch = self._fitting(batch)
        bad, good = bad_rows(batch, self._schema, self.rows)
        self.rows += batch.num_rows
        events = batch if good is None else batch.filter(to_arrow(good))
        late = events.slice(0, 0)
        if self.watermark is not None and events.num_rows:
            in_time = pc.greater_equal(as_integers(events.column(self._schema.time)), self.watermark)
            if not pc.all(in_time).as_py():
                late, events = events.filter(pc.invert(in_time)), events.filter(in_time)
        if events.num_rows:
            self._waiting.append(events)
        return bad, late

    def _fitting(self, batch: pa.Table) -> pa.Table:
        """The batch with the columns of the first one."""
        if self._columns is None:
            self._columns = batch.schema
            return batch
        schema = self._columns
        if batch.schema.equals(schema):
            return batch
        missing = [name for name in schema.names if name not in batch.column_names]
        if missing:
            raise MissingColumn(f"this batch has no column `{missing[0]}`, which the first one had")
        try:
            return batch.select(schema.names).cast(schema)
        except pa.ArrowException as problem:
            raise UnusableColumn(
                f"this batch has columns of other types than the first one: {problem}",
                hint="give all batches the same columns",
            ) from None

    def settled(self, watermark: int | None) -> pa.Table | None:
        """Advance the watermark; returns the events that it has passed. None means the end of the stream."""
        table = self.waiting
        if table is None:
            return None
        if watermark is None:
            self._waiting = []
            return table
        # A watermark beyond 64 bits counts as the last moment: events that end there wait for the end of the stream.
        watermark = in_time(watermark)
        self.watermark = watermark if self.watermark is None else max(self.watermark, watermark)
        passed = to_numpy(pc.less(as_integers(table.column(self._schema.time)), self.watermark))
        number = np.count_nonzero(passed)
        if number == len(passed):
            self._waiting = []
            return table
        if not number:
            return table.slice(0, 0)
        # What waits is copied: the table in which it came would be held for it.
        self._waiting = [table.filter(to_arrow(~passed))]
        return _rows_of(table, passed)

    @property
    def first_end(self) -> int | None:
        """The end of the first waiting event; None when no event waits."""
        table = self.waiting
        if table is None or not table.num_rows:
            return None
        return int(pc.min(as_integers(table.column(self._schema.time))).as_py())

    def restore(self, waiting: pa.Table | None, watermark: int | None, rows: int) -> None:
        self._waiting, self._columns = ([], None) if waiting is None else ([waiting], waiting.schema)
        self.watermark, self.rows = watermark, rows

    @property
    def nbytes(self) -> int:
        return held_bytes(self._waiting)

    @property
    def row_bytes(self) -> int:
        """The bytes of the waiting events, however they were cut into batches."""
        waiting = self.waiting
        return 0 if waiting is None else row_bytes(waiting)


def _rows_of(table: pa.Table, chosen: npt.NDArray[np.bool_]) -> pa.Table:
    """The chosen rows, of which there are some: where they stand together, as parts of the table itself.

    Events come in about the order of time, so those that a watermark has passed are all but the last ones.
    """
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
    begins, ends = edges[::2].tolist(), edges[1::2].tolist()
    if len(begins) > _MOST_RUNS:
        return table.filter(to_arrow(chosen))
    return pa.concat_tables([table.slice(begin, end - begin) for begin, end in zip(begins, ends, strict=True)])

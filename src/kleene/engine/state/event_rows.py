"""Rows of events that stay in the tables they came in: a column is copied when its values are needed, if ever.

Most events are in no match, and conditions read few columns; to copy whole rows took longer than to match them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from kleene.engine.state.sizes import held_bytes
from kleene.engine.state.taking import Source, in_one_piece, taken_from_pieces
from kleene.frames.arrow import empty_table
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows, rows_at

# More tables, or pieces of a column, than this are put together: to take rows by number slows down with their number.
_MOST_TABLES = 16
_MOST_PIECES = 256
# A shorter piece of a table is copied where rows are let go: many small pieces would stay.
_SHORT = 1 << 12


class EventRows:
    """Some rows of a table, in an order of their own; row n is that of event n."""

    def __init__(self, table: pa.Table, places: Rows | None = None, whole: dict[str, Source] | None = None) -> None:
        """All rows of a table, or some.

        places   [event]: its row in the table; None: each row is an event, as it stands
        whole    columns of the table that were put together in one piece, shared by all that take rows from it
        """
        self.base, self.places = table, places
        self._whole = {} if whole is None else whole
        # Columns of the events that were read, and those that kernels read.
        self._columns: dict[str, Source] = {}
        self._integers: dict[str, Ints] = {}
        self._narrow: Rows | None = None
        self._base_bytes: int | None = None

    @property
    def num_rows(self) -> int:
        return int(self.base.num_rows) if self.places is None else len(self.places)

    @property
    def schema(self) -> pa.Schema:
        return self.base.schema

    @property
    def column_names(self) -> list[str]:
        names: list[str] = self.base.column_names
        return names

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of the events."""
        if self.places is None:
            return self.base.column(name)
        return pa.chunked_array([self._column(name)])

    def values(self, name: str, rows: Rows, *, absent: bool) -> pa.Array:
        """A column at these events; NULL where there is none (a negative number), if any is absent."""
        if self.places is None:
            return self._from_base(name, rows, absent=absent)
        is_known = name in self._columns or name in self._integers
        if not is_known and 2 * len(rows) < self.num_rows:
            return self._from_base(name, rows_at(self._places, rows), absent=absent)
        return self._own(name).taken(rows, absent=absent)

    def integers(self, name: str) -> Ints | None:
        """A column of 64-bit integers or times without NULL, as an array that kernels may have; None: another one."""
        if self.places is None or not len(self.places):
            return None
        if name not in self._integers:
            source = self._source(name, self._places)
            if not (self._own(name) if source is None else source).is_plain:
                return None
            if source is None:
                numbers = np.frombuffer(self._column(name).buffers()[1], np.int64)
                # Arrow's own arrays cannot be written to, and kernels are compiled for arrays that can.
                self._integers[name] = numbers if numbers.flags.writeable else numbers.copy()
            else:
                self._integers[name] = source.integers(self._places)
        return self._integers[name]

    def texts(self, name: str) -> tuple[Ints, pa.Array] | None:
        """A column of texts without NULL: the places of its values in a dictionary, and this; None: another one."""
        if self.places is None or not pa.types.is_dictionary(self.base.schema.field(name).type):
            return None
        source = self._source(name, self._places)
        codes = None if source is None else source.places(self._places)
        return None if source is None or codes is None else (codes, source.values.dictionary)

    def take(self, places: Rows) -> EventRows:
        """Those at these places."""
        return EventRows(self.base, places if self.places is None else self.places[places], self._whole)

    def slice(self, first: int, number: int) -> EventRows:
        """So many from one on."""
        if self.places is None:
            return EventRows(self.base.slice(first, number))
        return EventRows(self.base, self.places[first : first + number], self._whole)

    @property
    def table(self) -> pa.Table:
        """The rows as a table, copied where they are not a whole one."""
        if self.places is None:
            return self.base
        return pa.Table.from_arrays([self._column(name) for name in self.column_names], schema=self.schema)

    def kept(self) -> EventRows:
        """These rows, copied where most of the table that they came in would be held for nothing."""
        return EventRows(self.table) if 2 * self.num_rows < self.base.num_rows else self

    def without_unused(self) -> EventRows:
        """These rows; the pieces of the table that hold none of them, or few, are let go.

        A window leaves pieces behind from one end, so most rows stay where they are: only those of pieces that are used
        by less than half are copied.
        """
        if self.places is None or not self.num_rows:
            return self
        chunks = self.base.column(0).chunks if self.base.num_columns else []
        if not 1 < len(chunks) <= _MOST_PIECES:
            return EventRows(self.table)
        firsts = np.cumsum([0, *map(len, chunks)])
        piece = np.searchsorted(firsts, self.places, side="right") - 1
        used = np.bincount(piece, minlength=len(chunks))
        stays = (2 * used >= np.diff(firsts)) & (used >= _SHORT)
        numbers = np.flatnonzero(stays)
        if len(numbers) > _MOST_TABLES:
            return EventRows(self.table)
        copied = np.flatnonzero(~stays[piece])
        tables = [EventRows(self.base, self.places[copied], self._whole).table]
        places, first = np.empty_like(self.places), len(copied)
        places[copied] = np.arange(first)
        shift = np.zeros(len(chunks), np.int64)
        for number in numbers.tolist():
            begin, end = firsts[number : number + 2].tolist()
            tables.append(self.base.slice(begin, end - begin))
            shift[number] = first - begin
            first += end - begin
        kept = np.flatnonzero(stays[piece])
        places[kept] = self.places[kept] + shift[piece[kept]]
        return EventRows(pa.concat_tables(tables), places)

    @property
    def nbytes(self) -> int:
        places = 0 if self.places is None else int(self.places.nbytes)
        if self._base_bytes is None:
            self._base_bytes = held_bytes([self.base])
        names = {**self._columns, **self._integers}
        columns = [self._integers[name] if name in self._integers else self._columns[name].values for name in names]
        return self._base_bytes + places + sum(int(array.nbytes) for array in columns)

    @property
    def _places(self) -> Rows:
        """The places in 32 bits, which are enough for the rows of a table in memory."""
        if self._narrow is None:
            assert self.places is not None, "all rows have no places"
            self._narrow = self.places.astype(np.int32, copy=False)
        return self._narrow

    def _column(self, name: str) -> pa.Array:
        return self._own(name).values

    def _own(self, name: str) -> Source:
        """A column of the events, to take values from."""
        if name not in self._columns:
            if name in self._integers:
                kind, buffers = self.base.schema.field(name).type, [None, pa.py_buffer(self._integers[name])]
                column = pa.Array.from_buffers(kind, self.num_rows, buffers)
            else:
                column = self._from_base(name, self._places, absent=False)
            self._columns[name] = Source(column)
        return self._columns[name]

    def _from_base(self, name: str, rows: Rows, *, absent: bool) -> pa.Array:
        source = self._source(name, rows)
        if source is None:
            return taken_from_pieces(self.base.column(name), rows, absent=absent)
        return source.taken(rows, absent=absent)

    def _source(self, name: str, rows: Rows) -> Source | None:
        """What a column's values at these rows are taken from; None: from its pieces, since these rows are few."""
        if name not in self._whole:
            column = self.base.column(name)
            if 1 < column.num_chunks <= _MOST_PIECES and 4 * len(rows) < len(column):
                return None
            self._whole[name] = Source(in_one_piece(column))
        return self._whole[name]


# What has columns of events.
AnyRows: TypeAlias = EventRows | pa.Table


def taken_rows(table: AnyRows, rows: Ints) -> pa.Table:
    """The rows at these numbers, all of which there are, as a table."""
    return (table if isinstance(table, EventRows) else EventRows(table)).take(rows).table


class ChunkedRows:
    """Rows that come batch by batch."""

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = columns
        self._parts: list[EventRows] = []
        self._rows: EventRows | None = None

    def append(self, rows: EventRows) -> None:
        if rows.num_rows:
            self._parts.append(rows)
            self._rows = None

    def keep(self) -> None:
        """Let go of the table that came last where most of it would be held for nothing."""
        if self._parts and (kept := self._parts[-1].kept()) is not self._parts[-1]:
            self._parts[-1], self._rows = kept, None

    @property
    def rows(self) -> EventRows:
        """All rows, in the order in which they came."""
        if self._rows is None:
            if len(self._parts) > _MOST_TABLES:
                tables = pa.concat_tables([part.table for part in self._parts])
                self._parts = [EventRows(tables.unify_dictionaries().combine_chunks())]
            self._rows = self._parts[0] if len(self._parts) == 1 else _together(self._columns, self._parts)
        return self._rows

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts)


def _together(columns: pa.Schema, parts: Sequence[EventRows]) -> EventRows:
    base = pa.concat_tables([empty_table(columns), *(part.base for part in parts)])
    if all(part.places is None for part in parts):
        return EventRows(base)
    firsts = np.cumsum([0, *(part.base.num_rows for part in parts)])
    places = [
        np.arange(first, first + part.num_rows) if part.places is None else part.places + first
        for part, first in zip(parts, firsts, strict=False)
    ]
    return EventRows(base, np.concatenate(places))

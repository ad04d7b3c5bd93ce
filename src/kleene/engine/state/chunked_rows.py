"""Rows that come batch by batch, as one table."""

from __future__ import annotations

import pyarrow as pa

from kleene.engine.state.sizes import held_bytes
from kleene.frames.arrow import empty_table

# More chunks than this are put together: taking rows by number slows down with their number.
_MOST_CHUNKS = 16


class ChunkedRows:
    def __init__(self, columns: pa.Schema) -> None:
        self._chunks = [empty_table(columns)]
        self._whole: pa.Table | None = None

    def append(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._chunks.append(rows)
            self._whole = None

    @property
    def table(self) -> pa.Table:
        """All rows, in the order in which they came."""
        if self._whole is None:
            table = pa.concat_tables(self._chunks)
            if len(self._chunks) > _MOST_CHUNKS:
                table = table.unify_dictionaries().combine_chunks()
                self._chunks = [table]
            self._whole = table
        return self._whole

    @property
    def nbytes(self) -> int:
        return held_bytes(self._chunks)

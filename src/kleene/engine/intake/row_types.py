"""The type of each row, coded: few types, many rows."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.intake.strings import StringPool, is_text, string_codes
from kleene.engine.state.event_rows import AnyRows
from kleene.engine.state.memory import empty
from kleene.engine.state.taking import in_one_piece
from kleene.frames.arrow import python_values
from kleene.frames.numbers import to_numpy
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows, gather
from kleene.kernels.opcodes import VALUE
from kleene.kernels.scanning import CHUNK, Codes, count_codes, fill_wanted
from kleene.pattern.schema import Schema

Flags = npt.NDArray[np.bool_]
# The code of a type that is NULL, in a pool of strings.
NO_TYPE = -1
# Rows that are coded at a time.
_AT_A_TIME = 1 << 14


@dataclass(frozen=True, eq=False)
class RowTypes:
    """The types that occur, and which of them each row has."""

    # None for NULL.
    names: tuple[str | None, ...]
    # [row]: a place among the names; read-only.
    codes: Codes

    @property
    def size(self) -> int:
        return len(self.codes)

    @cached_property
    def numbers(self) -> Ints:
        """[name]: how many rows are of each type."""
        numbers = np.zeros(len(self.names), np.int64)
        count_codes(self.codes, numbers)
        return numbers

    def which(self, wanted: Callable[[str | None], bool]) -> Flags:
        """[name]: whether a type is wanted."""
        return np.array([wanted(name) for name in self.names], np.bool_)

    def are(self, wanted: Container[str | None]) -> Flags:
        """[row]: whether it is of one of these types."""
        flags: Flags = self.which(lambda name: name is not None and name in wanted)[self.codes]
        return flags

    def among(self, wanted: Container[str | None]) -> tuple[Rows, RowTypes]:
        """The rows of these types, and which of them each has."""
        # What is never written to takes no memory; 32 bits are enough for the rows of a table in memory.
        rows, codes = empty((2, self.size + CHUNK), np.int32)
        number = fill_wanted(self.codes, self.which(wanted.__contains__), rows, codes)
        return rows[:number], RowTypes(self.names, _frozen(codes[:number]))

    def in_pool(self, strings: StringPool) -> Ints:
        """[row]: the code of its type in a pool of strings, or NO_TYPE."""
        return self.numbered(
            np.array([NO_TYPE if name is None else strings.code(name) for name in self.names], np.int64)
        )

    def numbered(self, by_type: Ints) -> Ints:
        """[row]: the number of its type, given [name]."""
        numbers = empty(self.size, np.int64)
        gather(by_type, self.codes, numbers, False)
        return numbers

    def take(self, places: Rows) -> RowTypes:
        codes = empty(len(places), np.int32)
        gather(self.codes, places, codes, False)
        return RowTypes(self.names, _frozen(codes))

    def between(self, first: int, last: int) -> RowTypes:
        return RowTypes(self.names, self.codes[first:last])


def row_types(table: AnyRows, schema: Schema) -> RowTypes:
    """The type of each row of a table."""
    if schema.constant_type is not None:
        return RowTypes((schema.constant_type,), _frozen(np.zeros(table.num_rows, np.int32)))
    column = table.column(schema.type)
    if is_text(column.type):
        return _of_texts(column)
    column = in_one_piece(column)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = [None if name is None else str(name) for name in python_values(pa.chunked_array([encoded.dictionary]))]
    codes = encoded.indices if pa.types.is_int32(encoded.indices.type) else encoded.indices.cast(pa.int32())
    return RowTypes((*names, None), to_numpy(codes, len(names)))


def _of_texts(column: pa.ChunkedArray) -> RowTypes:
    """Types that are written out in each row, coded a few at a time: wide codes stay in the cache."""
    pool, at = StringPool(), 0
    codes = empty(len(column), np.int32)
    has_null = bool(column.null_count)
    for chunk in column.chunks:
        for first in range(0, len(chunk), _AT_A_TIME):
            some, states = string_codes(chunk[first : first + _AT_A_TIME], pool)
            codes[at : at + len(some)] = np.where(states == VALUE, some, -1) if has_null else some
            at += len(some)
    names = [pool.text(code) for code in range(pool.size)]
    if has_null:
        codes[codes < 0] = len(names)
    return RowTypes((*names, None), _frozen(codes))


def _frozen(codes: Codes) -> Codes:
    """Read-only like Arrow's own, for which kernels are compiled."""
    codes.flags.writeable = False
    return codes

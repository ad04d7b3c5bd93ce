"""Partition keys as codes: equal keys have equal codes as long as the coder lives; a NULL or NaN key has −1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.growing import with_room
from kleene.engine.strings import StringPool, string_codes
from kleene.frames.arrow import as_integers, nanoseconds_a_step, python_values
from kleene.kernels.expression import Ints
from kleene.kernels.keys import intern
from kleene.kernels.opcodes import VALUE

Flags = npt.NDArray[np.bool_]


class KeyCoder:
    """The keys met so far under some attributes. Without attributes every event has the same key."""

    def __init__(self, names: tuple[str, ...], strings: StringPool) -> None:
        self.names = names
        self._strings = strings
        self._known = np.empty((1024, len(names)), np.int64)
        self._table = np.full(4096, -1, np.int32)
        self._number = np.zeros(1, np.int64)

    @property
    def number(self) -> int:
        """How many codes there are."""
        return int(self._number[0]) if self.names else 1

    def codes(self, table: pa.Table) -> Ints:
        """The code of each row's key."""
        codes = np.zeros(table.num_rows, np.int64)
        if not self.names:
            return codes
        values = np.empty((len(self.names), table.num_rows), np.int64)
        missing = np.zeros(table.num_rows, np.bool_)
        for place, name in enumerate(self.names):
            values[place], lacking = _numbers(table.column(name), self._strings)
            missing |= lacking
        at = 0
        while True:
            at = intern(values, missing, at, self._known, self._table, self._number, codes)
            if at == table.num_rows:
                return codes
            self._make_room()

    def _make_room(self) -> None:
        """For four times as many keys; the table is at most half full."""
        self._known = with_room(self._known, 4 * self.number + 16)
        self._table = np.full(1 << (2 * len(self._known)).bit_length(), -1, np.int32)
        known, number = self._known[: self.number].copy(), self.number
        self._number[0] = 0
        intern(
            np.ascontiguousarray(known.T),
            np.zeros(number, np.bool_),
            0,
            self._known,
            self._table,
            self._number,
            np.empty(number, np.int64),
        )


def _numbers(column: pa.ChunkedArray, strings: StringPool) -> tuple[Ints, Flags]:
    """A number for each value, equal for equal values of this column; and which rows have none."""
    kind = column.type
    if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_dictionary(kind) or _is_text(kind):
        parts = [string_codes(chunk, strings) for chunk in column.chunks]
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return np.concatenate([codes for codes, _ in parts]), np.concatenate([states != VALUE for _, states in parts])
    missing = _flags(pc.is_null(column)) if column.null_count else np.zeros(len(column), np.bool_)
    if pa.types.is_floating(kind):
        reals = _filled(column.cast(pa.float64())).astype(np.float64) + 0.0
        return reals.view(np.int64), missing | np.isnan(reals)
    if pa.types.is_uint64(kind):
        return _filled(column).astype(np.uint64).view(np.int64), missing
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _filled(column.cast(pa.int64())).astype(np.int64, copy=False), missing
    if nanoseconds_a_step(kind) is not None:
        return _filled(as_integers(column)).astype(np.int64, copy=False), missing
    return strings.codes([repr(value) for value in python_values(column)]), missing


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _filled(column: pa.ChunkedArray) -> npt.NDArray[np.generic]:
    whole = pc.fill_null(column, 0) if column.null_count else column
    return np.asarray(whole.to_numpy())


def _flags(column: pa.ChunkedArray) -> Flags:
    return np.asarray(column.to_numpy(), np.bool_)

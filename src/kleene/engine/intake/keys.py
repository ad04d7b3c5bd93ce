"""Partition keys as codes: equal keys have equal codes as long as the coder lives; a NULL or NaN key has −1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.intake.strings import StringPool, is_text, string_codes
from kleene.engine.state.distinct import distinct_codes
from kleene.engine.state.event_rows import AnyRows, EventRows
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.frames.arrow import as_integers, nanoseconds_a_step, python_values
from kleene.frames.numbers import to_numpy
from kleene.kernels.expression import Ints
from kleene.kernels.keys import KnownKeys, intern
from kleene.kernels.opcodes import VALUE
from kleene.kernels.scanning import least_and_greatest

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int32]
_NO_TABLE = np.zeros(0, np.int32)
_NO_GROUPS = np.zeros(0, np.int64)
_NONE_MISSING = np.zeros(0, np.bool_)
# Values of a smaller range than this have a table, however few they are: as much memory as the first hash table.
_SMALL_RANGE = 4096


class KeyCoder:
    """The keys met so far under some attributes. Without attributes every event has the same key."""

    def __init__(self, names: tuple[str, ...], strings: StringPool) -> None:
        self.names = names
        self._strings = strings
        self._levels = [Interner(addresses=place == 0) for place in range(len(names))]
        # [attribute]: whether its values are codes of strings.
        self._texts = [False for _ in names]

    @property
    def number(self) -> int:
        """How many codes there are."""
        return int(self._levels[-1].number[0]) if self._levels else 1

    @property
    def nbytes(self) -> int:
        return sum(level.nbytes for level in self._levels)

    def string_codes(self, codes: Ints) -> Ints:
        """The codes of the strings in some keys, which are given by their codes."""
        text_codes: list[Ints] = [np.zeros(0, np.int64)]
        if not any(self._texts):
            return text_codes[0]
        codes = distinct_codes(codes[codes >= 0])
        for level, has_text in reversed([*zip(self._levels, self._texts, strict=True)]):
            groups, values = level.pairs(codes)
            text_codes += [values] if has_text else []
            codes = distinct_codes(groups)
        return np.concatenate(text_codes)

    def codes(self, table: AnyRows) -> Ints:
        """The code of each row's key."""
        if not self.names:
            return np.zeros(table.num_rows, np.int64)
        codes = _NO_GROUPS
        for place, (name, level) in enumerate(zip(self.names, self._levels, strict=True)):
            own = table.integers(name) if isinstance(table, EventRows) else None
            if own is not None:
                self._texts[place] = False
                codes = level.codes(codes, own, _NONE_MISSING)
                continue
            column = table.column(name)
            self._texts[place] = _holds_text(column.type)
            codes = level.codes(codes, *_numbers(column, self._strings))
        return codes


class Interner:
    """Codes for pairs: the code of a key's attributes so far, and the value of its next attribute."""

    def __init__(self, *, addresses: bool = False) -> None:
        """`addresses`: whether values that lie close together may be places in a table, twice as fast as a hash."""
        self._groups, self._values = np.empty(1024, np.int64), np.empty(1024, np.int64)
        self._table = np.full(4096, -1, np.int32)
        self.number = np.zeros(1, np.int64)
        self._addresses, self._near, self._lowest = addresses, _NO_TABLE, 0

    def codes(self, groups: Ints, values: Ints, missing: Flags) -> Ints:
        """The code of each pair, −1 where there is none; without groups all are in group 0, and none may be missing."""
        codes = empty(len(values), np.int64)
        if self._addresses and len(values):
            self._begin_table(values)
        at = 0
        while True:
            at = self._intern(at, groups, values, missing, codes, self._near)
            if at == len(codes):
                return codes
            self._make_room()

    def pairs(self, codes: Ints) -> tuple[Ints, Ints]:
        """The pairs that some codes stand for."""
        return self._groups[codes], self._values[codes]

    @property
    def nbytes(self) -> int:
        return int(self._groups.nbytes + self._values.nbytes + self._table.nbytes + self._near.nbytes)

    def _begin_table(self, values: Ints) -> None:
        """Make the table for the range of the first values, if it is small; those outside of it are looked up."""
        self._addresses = False
        lowest, highest = least_and_greatest(values)
        if highest - lowest < max(_SMALL_RANGE, 2 * len(values)):
            self._near, self._lowest = np.full(highest - lowest + 1, -1, np.int32), lowest
            self._reserve(min(highest - lowest + 1, len(values)))

    def _intern(self, at: int, groups: Ints, values: Ints, missing: Flags, codes: Ints, near: Numbers) -> int:
        known = KnownKeys(self._groups, self._values, self._table, self.number, near, self._lowest)
        return intern(at, groups, values, missing, known, codes)

    def _make_room(self) -> None:
        """Grow to four times as many keys; the hash table is at most half full."""
        number = int(self.number[0])
        groups, values = self._groups[:number].copy(), self._values[:number].copy()
        self._reserve(4 * number)
        self.number[0] = 0
        self._intern(0, groups, values, _NONE_MISSING, np.empty(number, np.int64), _NO_TABLE)

    def _reserve(self, number: int) -> None:
        """Make room for so many keys, of which the hash table has none."""
        if number > len(self._values):
            self._groups, self._values = with_room(self._groups, number), with_room(self._values, number)
            self._table = np.full(1 << (2 * len(self._values)).bit_length(), -1, np.int32)


def _numbers(column: pa.ChunkedArray, strings: StringPool) -> tuple[Ints, Flags]:
    """A number for each value, equal for equal values of this column; and which rows have none."""
    kind = column.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_dictionary(kind) or is_text(kind):
        parts = [string_codes(chunk, strings) for chunk in column.chunks]
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return np.concatenate([codes for codes, _ in parts]), np.concatenate([states != VALUE for _, states in parts])
    missing = _filled(pc.is_null(column)) if column.null_count else np.zeros(len(column), np.bool_)
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


def _holds_text(kind: pa.DataType) -> bool:
    """Whether the numbers of values of this type are codes of strings."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_number = pa.types.is_integer(plain) or pa.types.is_floating(plain) or pa.types.is_boolean(plain)
    return not is_number and nanoseconds_a_step(plain) is None


def _filled(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """The values, 0 for NULL; arrays that can be written to, because kernels are compiled for these."""
    values = to_numpy(column)
    return values if values.flags.writeable else values.copy()

"""The cells of instances: which attribute stands where, as what, and how cells become Arrow columns and the other way.

Integers, times and codes are as they are, reals as their bits. NULL is told by the states of cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.algebra.nodes import AttributeName
from kleene.codegen.value_kinds import FOREIGN, ValueKind
from kleene.engine.intake.strings import StringPool, string_codes
from kleene.engine.streams.values import ValuePool
from kleene.frames.arrow import as_integers, nanoseconds_a_step
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.opcodes import NULL, VALUE
from kleene.kernels.stream_instances import FIRST_VALUE
from kleene.pattern.types import TIMES, ValueType
from kleene.plan.layout import Column

Flags = npt.NDArray[np.bool_]
_TIME_LIKE = TIMES | {ValueType.DURATION}


@dataclass(frozen=True, eq=False)
class CellLayout:
    """The cells of the instances at one state, or of results, in the order of their attributes.

    kinds   what cells hold
    types   the Arrow types of the attributes
    """

    kinds: Mapping[AttributeName, ValueKind]
    types: Mapping[AttributeName, pa.DataType]

    @property
    def width(self) -> int:
        return FIRST_VALUE + len(self.kinds)

    @property
    def columns(self) -> dict[AttributeName, Column]:
        """Where programs find the attributes of an instance."""
        listed = enumerate(self.kinds.items(), FIRST_VALUE)
        return {name: Column(place, place, kind.type, kind.step) for place, (name, kind) in listed}


@dataclass(frozen=True, eq=False)
class CellValues:
    """Values behind the codes in cells."""

    strings: StringPool
    others: ValuePool

    def to_arrow(self, cells: Ints, states: Bytes, kind: ValueKind, arrow: pa.DataType) -> pa.Array:
        """[row]: a column of cells as values."""
        known = states == VALUE
        if kind.type is ValueType.STRING:
            return self._strings(cells, known, arrow)
        if kind.type in FOREIGN:
            return self.others.column(cells, known, arrow)
        if kind.type in (ValueType.NULL, ValueType.UNKNOWN):
            return pa.nulls(len(cells), arrow)
        missing = None if known.all() else ~known
        if kind.type is ValueType.FLOAT:
            return to_arrow(cells.view(np.float64), missing).cast(arrow, safe=False)
        if kind.type is ValueType.BOOL:
            return to_arrow(cells != 0, missing)
        step = nanoseconds_a_step(arrow)
        if step is not None:
            cells = _in_steps(cells, kind.step, step)
        whole = to_arrow(cells, missing)
        return whole.cast(pa.int32()).cast(arrow) if pa.types.is_date32(arrow) else whole.cast(arrow)

    def _strings(self, codes: Ints, known: Flags, arrow: pa.DataType) -> pa.Array:
        distinct, places = np.unique(codes[known], return_inverse=True)
        texts = self.strings.texts(distinct)
        indices = np.zeros(len(codes), np.int32)
        indices[known] = places
        encoded = pa.DictionaryArray.from_arrays(to_arrow(indices, None if known.all() else ~known), texts)
        if not pa.types.is_dictionary(arrow):
            return encoded.dictionary_decode().cast(arrow)
        return encoded.dictionary_decode().cast(arrow.value_type).dictionary_encode().cast(arrow)

    def from_arrow(self, column: pa.ChunkedArray, kind: ValueKind) -> tuple[Ints, Bytes]:
        """Cells of values, as `to_arrow` made these."""
        whole = column.combine_chunks()
        if kind.type is ValueType.STRING:
            return string_codes(whole, self.strings)
        if kind.type in FOREIGN:
            return self.others.codes(column)
        states = np.where(to_numpy(whole.is_null()), NULL, VALUE).astype(np.uint8)
        if kind.type in (ValueType.NULL, ValueType.UNKNOWN):
            return np.zeros(len(whole), np.int64), np.full(len(whole), NULL, np.uint8)
        if kind.type is ValueType.FLOAT:
            reals = to_numpy(whole.cast(pa.float64()).fill_null(0.0)).astype(np.float64)
            return np.where(np.isnan(reals), np.nan, reals + 0.0).view(np.int64), states
        integers = as_integers(whole) if kind.type in _TIME_LIKE else whole.cast(pa.int64())
        cells = to_numpy(integers.fill_null(0)).astype(np.int64)
        step = nanoseconds_a_step(column.type)
        return (cells if step is None else _in_steps(cells, step, kind.step)), states


def _in_steps(steps: Ints, have: int, wanted: int) -> Ints:
    """Steps of one length in steps of another, of which one divides the other."""
    if have == wanted:
        return steps
    return steps * (have // wanted) if have > wanted else steps // (wanted // have)

"""Values of columns as integers that are equal exactly where the values are: for look-ups by value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import EventColumns, Ints
from kleene.kernels.opcodes import VALUE
from kleene.pattern.types import ValueType
from kleene.plan.layout import Column

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64] | npt.NDArray[np.int32]
_NUMBERS = {ValueType.INT, ValueType.FLOAT}


def are_comparable(one: Column, other: Column) -> bool:
    """Whether equal values of two columns can be told so by `equal_numbers`; numbers whole and real can."""
    if min(one.place, other.place) < 0:
        return False
    return {one.type, other.type} == _NUMBERS or (one.type is other.type and one.step == other.step)


def equal_numbers(column: Column, events: EventColumns, rows: Rows, *, as_real: bool) -> tuple[Ints, Flags]:
    """The values of some events, and which of these have none that equals another.

    as_real   whether they are compared with real numbers, some of which no integer equals, and the other way round
    """
    missing: Flags = events.states[column.index, rows] != VALUE
    if column.type is ValueType.FLOAT:
        # 0.0 and -0.0 are equal, and NaN equals nothing.
        reals = events.reals[column.place, rows] + 0.0
        return reals.view(np.int64), missing | np.isnan(reals)
    whole: Ints = events.ints[column.place, rows]
    if not as_real:
        return whole, missing
    reals = whole.astype(np.float64)
    with np.errstate(invalid="ignore"):
        inexact: Flags = (reals.astype(np.int64) != whole) | (reals >= 2.0**63)
    return (reals + 0.0).view(np.int64), missing | inexact

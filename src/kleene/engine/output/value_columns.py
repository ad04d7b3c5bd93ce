"""Values of the expression machine as Arrow columns of the documented types."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.codegen.value_kinds import NO_VALUES, TIME_LIKE, ValueKind
from kleene.engine.intake.strings import StringPool
from kleene.frames.arrow import nanoseconds_a_step, value_type
from kleene.frames.numbers import to_arrow
from kleene.kernels.expression import Ints, Reals
from kleene.pattern.types import ValueType
from kleene.plan.program import NotCompilable


def check_kind(value_kind: ValueKind, kind: pa.DataType) -> None:
    """`NotCompilable` when values of a kind have no exact place in a column of this type."""
    if value_kind.type in NO_VALUES:
        return
    wanted = value_type(kind)
    if value_kind.type is not wanted and (value_kind.type, wanted) != (ValueType.INT, ValueType.FLOAT):
        raise NotCompilable(f"{value_kind.type.value} values in a column of {kind}")
    if value_kind.type in TIME_LIKE and value_kind.step > _step(kind):
        raise NotCompilable(f"a time in a column of {kind}")


def value_column(
    ints: Ints,
    reals: Reals,
    known: npt.NDArray[np.bool_],
    value_kind: ValueKind,
    kind: pa.DataType,
    strings: StringPool,
) -> pa.Array:
    """Computed values, NULL where there is none; times, which may be in shorter steps, are rounded down."""
    if value_kind.type in NO_VALUES or not known.any():
        return pa.nulls(len(known), kind)
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    missing = None if known.all() else ~known
    if value_kind.type is ValueType.STRING:
        values = _texts(ints, missing, strings).cast(plain)
    elif value_kind.type is ValueType.FLOAT:
        values = to_arrow(reals, missing).cast(plain)
    elif value_kind.type is ValueType.BOOL:
        values = to_arrow(ints != 0, missing)
    elif value_kind.type in TIME_LIKE:
        steps = to_arrow(ints if value_kind.step == _step(plain) else ints * value_kind.step // _step(plain), missing)
        values = (steps.cast(pa.int32()) if pa.types.is_date32(plain) else steps).cast(plain)
    else:
        values = to_arrow(ints, missing).cast(plain, safe=pa.types.is_integer(plain))
    return values.cast(kind)


def _step(kind: pa.DataType) -> int:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return nanoseconds_a_step(plain) or 1


def _texts(codes: Ints, missing: npt.NDArray[np.bool_] | None, strings: StringPool) -> pa.Array:
    """Strings by their codes; each distinct one is looked up once."""
    distinct, places = np.unique(codes, return_inverse=True)
    return strings.texts(distinct).take(to_arrow(places, missing))

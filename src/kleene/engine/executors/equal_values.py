"""Values as integers that are equal exactly where the values are, as `=` means it: for look-ups by value.

A value is an attribute of one event, or is computed of several (`a.x + 1`, `b.y - b.z`). NULL, NaN and undefined
arithmetic equal nothing; an integer equals a real number only where that is exact; times of different steps are
compared in the shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.codegen.value import compile_value, layout_of
from kleene.codegen.value_kinds import TIME_LIKE, ValueKind, kind_of
from kleene.engine.executors.linking import groups, link
from kleene.engine.intake.strings import StringPool
from kleene.kernels.expression import EventColumns, Ints, ProgramScope, Reals, Texts, room
from kleene.kernels.opcodes import MISSING, VALUE
from kleene.kernels.values import values_each
from kleene.pattern.expressions import Attribute, Clause, Value, equated, references, variables
from kleene.pattern.types import ValueType
from kleene.plan.layout import AS_INTEGERS, Column, Identifier
from kleene.plan.program import NotCompilable

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64] | npt.NDArray[np.int32]
# The events that an identifier stands for, one of each match, record or negated event.
Bound = Callable[[Identifier], Rows]
_NUMBERS = {ValueType.INT, ValueType.FLOAT}
_GREATEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Measure:
    """What both sides of an equality are brought to."""

    # Whether one of them is real.
    as_real: bool
    # Of times: the shorter of their steps, in nanoseconds.
    step: int


class ComparedValue:
    """One side of an equality."""

    def __init__(self, value: Value, measure: Measure, columns: Mapping[str, Column], strings: StringPool) -> None:
        layout = layout_of([value], columns)
        program, self._kind = compile_value(value, layout)
        self._identifiers = tuple(layout.identifiers)
        self._column = layout.column_of(value) if isinstance(value, Attribute) else None
        self._code, self._stack = link(program, strings), room(program.depth + 1)
        self._reads = tuple(
            ((each.variable, each.which), layout.column_of(each))
            for each in references(value)
            if isinstance(each, Attribute)
        )
        self._measure = measure

    def numbers(self, bound: Bound, events: EventColumns, texts: Texts) -> tuple[Ints, Flags]:
        """The values as integers, and which of them equal nothing."""
        if self._column is not None:
            return self._as_integers(*_attribute(self._column, events, bound(self._identifiers[0])))
        rows = np.stack([bound(identifier) for identifier in self._identifiers], axis=1).astype(np.int64, copy=False)
        ints, reals, known = (
            np.empty(len(rows), np.int64),
            np.empty(len(rows), np.float64),
            np.empty(len(rows), np.bool_),
        )
        scope = ProgramScope(events, texts, np.ascontiguousarray(rows), groups(1, 1), self._stack)
        values_each(self._code, scope, ints, reals, known)
        return self._as_integers(reals if self._kind.type is ValueType.FLOAT else ints, ~known)

    def _as_integers(self, values: Ints | Reals, nothing: Flags) -> tuple[Ints, Flags]:
        if self._kind.type is ValueType.FLOAT:
            # 0.0 and -0.0 are equal, and NaN equals nothing.
            reals = values + 0.0
            return reals.view(np.int64), nothing | np.isnan(reals)
        whole: Ints = values.astype(np.int64, copy=False)
        if self._measure.as_real:
            reals = whole.astype(np.float64)
            with np.errstate(invalid="ignore"):
                inexact: Flags = (reals.astype(np.int64) != whole) | (reals >= 2.0**63)
            return (reals + 0.0).view(np.int64), nothing | inexact
        ratio = self._kind.step // self._measure.step
        if ratio > 1:
            # What is beyond 64 bits in the shorter step equals no time that is given in it.
            most = _GREATEST // ratio
            nothing = nothing | (whole > most) | (whole < -most)
            whole = np.where(nothing, 0, whole) * ratio
        return whole, nothing

    def is_lacking(self, bound: Bound, events: EventColumns) -> bool:
        """Whether some of the events are absent, or of a type without the attribute: then it equals everything."""
        return any(
            bool((rows := bound(identifier)).min(initial=0) < 0)
            or bool((events.states[column.index, rows] == MISSING).any())
            for identifier, column in self._reads
        )


@dataclass(frozen=True, slots=True, eq=False)
class ValueEquality:
    """An equality of two values: `own` is of some variables, `other` of others."""

    own: ComparedValue
    other: ComparedValue

    @staticmethod
    def of(
        clause: Clause, own: Collection[str], columns: Mapping[str, Column], strings: StringPool
    ) -> ValueEquality | None:
        """An equality by which one side can be looked up; None where columns hold what cannot be told apart so."""
        one, other = equated(clause) or (None, None)
        if one is None or other is None:
            return None
        if not variables(one) <= set(own):
            one, other = other, one
        try:
            measure = common_measure(*(kind_of(value, layout_of([value], columns)) for value in (one, other)))
            if measure is None:
                return None
            return ValueEquality(*(ComparedValue(value, measure, columns, strings) for value in (one, other)))
        except NotCompilable:
            return None


def common_measure(one: ValueKind, other: ValueKind) -> Measure | None:
    """How values of these kinds are compared as integers; None: they are not."""
    if {one.type, other.type} == _NUMBERS:
        return Measure(as_real=True, step=1)
    if one.type is not other.type or one.type not in AS_INTEGERS | {ValueType.FLOAT}:
        return None
    step = min(one.step, other.step)
    if max(one.step, other.step) % step or (one.step != other.step and one.type not in TIME_LIKE):
        return None
    return Measure(as_real=False, step=step)


def _attribute(column: Column, events: EventColumns, rows: Rows) -> tuple[Ints | Reals, Flags]:
    """The values of some events, and which of these have none."""
    nothing: Flags = events.states[column.index, rows] != VALUE
    values: Ints | Reals = (events.reals if column.type is ValueType.FLOAT else events.ints)[column.place, rows]
    return values, nothing

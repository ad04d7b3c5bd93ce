"""Conditions and values of event automata to programs: of an instance, and of the newest event.

An attribute that an instance holds is a cell of it, which the machine has in its groups; one of the event is a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kleene.algebra.nodes import AttributeName
from kleene.codegen.expression import Writer
from kleene.codegen.value_kinds import FOREIGN, REAL, ValueKind
from kleene.kernels import opcodes as op
from kleene.pattern.expressions import Attribute, Clause, Elapsed, Value, Which
from kleene.pattern.types import ValueType
from kleene.plan.layout import AS_INTEGERS, Column, Layout
from kleene.plan.program import NotCompilable, Program

# The cell in which every instance has its start.
INSTANCE_START = 0
_NOWHERE = Column(0, 0, ValueType.INT)


@dataclass(frozen=True, slots=True)
class StreamLayout(Layout):
    """Where programs find what they read.

    cells         those of an instance, by attribute
    brought       the columns of an event, by attribute of its source
    start, end    the columns with the moments of an event
    """

    cells: Mapping[AttributeName, Column] = field(default_factory=dict)
    brought: Mapping[AttributeName, Column] = field(default_factory=dict)
    start: Column = _NOWHERE
    end: Column = _NOWHERE

    def column_of(self, attribute: Attribute) -> Column:
        overwritten = attribute.which is Which.OVERWRITTEN
        known = (self.cells if overwritten else self.brought).get((attribute.variable, attribute.attribute))
        if known is None:
            raise NotCompilable(f"`{attribute.variable}.{attribute.attribute}` is not in the layout")
        return known


class StreamWriter(Writer):
    """Writes the programs of an automaton."""

    def attribute(self, attribute: Attribute, kind: ValueKind) -> None:
        column = self.layout.column_of(attribute)
        if attribute.which is Which.OVERWRITTEN:
            self.emit(op.GROUP_REAL if kind == REAL else op.GROUP_INT, column.place, pushes=1)
            return
        operation = op.LOAD_INT if kind.type in AS_INTEGERS else op.LOAD_REAL if kind == REAL else op.LOAD_STATE
        self.emit(operation, 0, column.place, column.index, pushes=1)

    def elapsed(self, value: Elapsed) -> None:
        layout = self.layout
        assert isinstance(layout, StreamLayout), "DUR is of the stream algebra"
        if value.of_event:
            self.emit(op.LOAD_INT, 0, layout.start.place, layout.start.index, pushes=1)
        else:
            self.emit(op.GROUP_INT, INSTANCE_START, pushes=1)
        self.emit(op.LOAD_INT, 0, layout.end.place, layout.end.index, pushes=1)
        self.emit(op.ELAPSED, value.step, value.tick, pushes=-1)


def compile_condition(clauses: Iterable[Clause], layout: StreamLayout) -> Program:
    """A program that is true when all clauses hold; `NotCompilable` when there is none."""
    writer = StreamWriter(layout)
    for clause in clauses:
        writer.clause(clause)
    return writer.program()


def compile_assigned(value: Value, layout: StreamLayout, step: int) -> tuple[Program, ValueKind]:
    """A program that leaves a value, and its kind; times are in these steps where that is possible."""
    writer = StreamWriter(layout)
    kind = writer.value(value, step)
    if kind.type in FOREIGN:
        raise NotCompilable(f"computed {kind.type.value} values")
    return writer.program(), kind

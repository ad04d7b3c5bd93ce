"""Computed columns to programs: each leaves one value on the stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kleene.codegen.expression import Writer
from kleene.codegen.value_kinds import FOREIGN, ValueKind
from kleene.pattern.expressions import Clause, IsNull, Value
from kleene.plan.layout import Column, Layout
from kleene.plan.program import NotCompilable, Program


def compile_value(value: Value, layout: Layout, step: int = 1) -> tuple[Program, ValueKind]:
    """A program that leaves a value, and the kind of the value; a constant time is in these steps where possible."""
    writer = Writer(layout)
    kind = writer.value(value, step)
    if kind.type in FOREIGN:
        raise NotCompilable(f"{kind.type.value} values in RETURN")
    return writer.program(), kind


def layout_of(values: Iterable[Value], columns: Mapping[str, Column]) -> Layout:
    """Slots for everything that the values name."""
    return Layout.of([Clause((IsNull(value, False),)) for value in values], columns)

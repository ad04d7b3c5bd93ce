"""The computed columns of RETURN: attributes are taken as they are, everything else runs on the expression machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.codegen.aggregates import compile_aggregates
from kleene.codegen.value import compile_value, layout_of
from kleene.codegen.value_kinds import ValueKind
from kleene.engine.executors.linking import groups, link, link_aggregates
from kleene.engine.intake.columns import ColumnStore, column_layout
from kleene.engine.intake.row_types import row_types
from kleene.engine.intake.strings import StringPool
from kleene.engine.output.gathering import Columns
from kleene.engine.output.selected import Selected
from kleene.engine.output.value_columns import check_kind, value_column
from kleene.frames.arrow import nanoseconds_a_step
from kleene.frames.results import return_type
from kleene.kernels.expression import Groups, Ints, ProgramScope, Reals, room
from kleene.kernels.gathering import Rows
from kleene.kernels.values import aggregate_each, values_each
from kleene.pattern.expressions import Attribute, Nth, Value, Whole, references
from kleene.pattern.query import BoundQuery
from kleene.pattern.returns import ReturnColumn
from kleene.plan.layout import Layout
from kleene.plan.program import Program


def columns_returned(query: BoundQuery) -> list[str]:
    """The columns that must be in the store for what RETURN computes."""
    named = (getattr(reference, "attribute", None) for value in _computed(query) for reference in references(value))
    return list(dict.fromkeys(name for name in named if name is not None))


def check_returns(query: BoundQuery, columns: pa.Schema) -> None:
    """`NotCompilable` when a column of RETURN has no program on events with these columns."""
    if query.returns is None:
        return
    layout = layout_of(_computed(query), column_layout(columns, columns_returned(query)))
    compile_aggregates(layout)
    for value in _computed(query):
        _program(value, layout, return_type(query, value, columns))


def _computed(query: BoundQuery) -> list[Value]:
    return [column.value for column in query.returns or () if not isinstance(column.value, Whole | Attribute | Nth)]


def _program(value: Value, layout: Layout, kind: pa.DataType) -> tuple[Program, ValueKind]:
    program, value_kind = compile_value(value, layout, nanoseconds_a_step(kind) or 1)
    check_kind(value_kind, kind)
    return program, value_kind


_NO_LAYOUT = Layout()


@dataclass(frozen=True, eq=False)
class Returned:
    """Computes the columns of RETURN other than whole events."""

    query: BoundQuery
    events: Columns
    store: ColumnStore
    strings: StringPool
    layout: Layout

    @staticmethod
    def of(query: BoundQuery, events: Columns, store: ColumnStore, strings: StringPool) -> Returned:
        if query.returns is None:
            return Returned(query, events, store, strings, _NO_LAYOUT)
        needed = columns_returned(query)
        if any(name not in store.columns for name in needed):
            store = ColumnStore.from_table(events.rows, needed, query.schema, strings)
        return Returned(query, events, store, strings, layout_of(_computed(query), store.columns))

    def columns(self, selected: Selected) -> dict[str, pa.Array]:
        """The columns by name."""
        arrays = {}
        computed: list[ReturnColumn] = []
        for column in self.query.returns or ():
            if isinstance(column.value, Attribute | Nth):
                arrays[column.name] = self._attribute(column.value, selected)
            elif not isinstance(column.value, Whole):
                computed.append(column)
        return arrays | self._values(computed, selected) if computed else arrays

    # Attributes

    def _attribute(self, value: Attribute | Nth, selected: Selected) -> pa.Array:
        name = value.attribute
        if name is None or name not in self.events.rows.column_names:
            return pa.nulls(selected.size, return_type(self.query, value, self.events.rows.schema))
        if isinstance(value, Nth):
            rows = self._having(value.variable, name, selected.numbered(value.variable, value.position))
        else:
            rows = self._having(value.variable, name, selected.bound(value.variable, value.which))
        return self.events.take(name, rows, absent=bool(len(rows)) and bool(rows.min() < 0))

    def _having(self, variable: str, attribute: str, rows: Rows) -> Rows:
        """The rows whose declared type has the attribute, −1 instead of the others."""
        component = next(c for c in self.query.components if c.variable == variable)
        schema = self.query.schema
        if all(schema.has(name, attribute) for name in component.types):
            return rows
        types = row_types(self.events.rows, schema)
        has = types.which(lambda name: schema.has(name, attribute))
        return np.where(has[types.codes[rows]], rows, np.int32(-1))

    # Programs

    def _values(self, columns: Sequence[ReturnColumn], selected: Selected) -> dict[str, pa.Array]:
        aggregates = self._aggregates(selected)
        bindings = np.full((selected.size, max(1, len(self.layout.identifiers))), -1, np.int64)
        for (variable, which), slot in self.layout.identifiers.items():
            bindings[:, slot] = selected.bound(variable, which)
        arrays = {}
        for column in columns:
            kind = return_type(self.query, column.value, self.events.rows.schema)
            program, computed = _program(column.value, self.layout, kind)
            arrays[column.name] = value_column(*self._run(program, bindings, aggregates), computed, kind, self.strings)
        return arrays

    def _aggregates(self, selected: Selected) -> Groups:
        """The aggregates of each match."""
        plan = compile_aggregates(self.layout)
        aggregation = link_aggregates(plan, self.strings)
        aggregates = groups(selected.size, len(plan.functions))
        for variable, slots in plan.slots.items():
            rows, offsets = selected.covered(variable)
            aggregate_each(aggregation, slots, rows, offsets, self.store.events, self.strings.arrays(), aggregates)
        return aggregates

    def _run(self, program: Program, bindings: Ints, aggregates: Groups) -> tuple[Ints, Reals, npt.NDArray[np.bool_]]:
        size = len(bindings)
        ints, reals, known = np.empty(size, np.int64), np.empty(size, np.float64), np.empty(size, np.bool_)
        code = link(program, self.strings)
        scope = ProgramScope(self.store.events, self.strings.arrays(), bindings, aggregates, room(program.depth))
        values_each(code, scope, ints, reals, known)
        return ints, reals, known

"""Conditions on events, three times: compiled, not compiled, and by the reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from tests.kernels.conftest import Kernels

from kleene.codegen.aggregates import compile_aggregates
from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.linking import groups, link, link_aggregates
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.strings import StringPool
from kleene.frames.arrow import schema_on
from kleene.frames.rows import rows_of
from kleene.kernels.expression import ProgramScope
from kleene.pattern.expressions import Clause, Which
from kleene.pattern.schema import Schema
from kleene.plan.layout import Layout
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline
from kleene.reference.values import Environment, holds

_NONE = np.zeros(0, np.int64)


@dataclass
class Stream:
    """A table, for the reference evaluator and for the machine."""

    table: pa.Table
    declared: Schema = field(default_factory=Schema)
    strings: StringPool = field(default_factory=StringPool)

    def __post_init__(self) -> None:
        self.schema = schema_on(self.table.schema, self.declared)
        rows, _ = rows_of(self.table, self.schema)
        self.events = [ReferenceEvent(row.index, row.type, row.start, row.end, row.tie, row.values) for row in rows]
        self.timeline = ReferenceTimeline.of(self.events, self.schema, [])
        self.store = ColumnStore.from_table(self.table, self.table.column_names, self.schema, self.strings)

    def environment(self, selected: Mapping[str, Sequence[int]], current: int | None = None) -> Environment:
        """By row numbers."""
        chosen = {name: tuple(self.events[row] for row in rows) for name, rows in selected.items()}
        return Environment(self.timeline, chosen, None if current is None else self.events[current])

    def expected(self, clauses: Sequence[Clause], environments: Sequence[Environment]) -> list[bool]:
        return [all(holds(clause, environment) for clause in clauses) for environment in environments]

    def found(self, kernels: Kernels, clauses: Sequence[Clause], environments: Sequence[Environment]) -> list[bool]:
        layout = Layout.of(clauses, self.store.columns)
        program, plan = compile_clauses(clauses, layout), compile_aggregates(layout)
        code, aggregation = link(program, self.strings), link_aggregates(plan, self.strings)
        texts, number = self.strings.arrays(), len(environments)
        kept = groups(number, len(plan.functions))
        for variable in {accumulator.variable for accumulator in layout.accumulators}:
            for place, environment in enumerate(environments):
                rows = np.array([event.index for event in environment.selected.get(variable, ())], np.int64)
                slots = plan.slots.get(variable, _NONE)
                kernels.aggregates.accumulate_rows(aggregation, slots, rows, self.store.events, texts, kept, place)
        bindings = np.zeros((number, max(1, len(layout.identifiers))), np.int64)
        for place, environment in enumerate(environments):
            for (variable, which), slot in layout.identifiers.items():
                bindings[place, slot] = _row(environment, variable, which)
        out = np.zeros(number, np.bool_)
        scope = ProgramScope(self.store.events, texts, bindings, kept, kernels.expression.room(program.depth))
        kernels.expression.holds_each(code, scope, out)
        return [bool(truth) for truth in out]

    def mask(self, kernels: Kernels, clauses: Sequence[Clause]) -> list[bool]:
        """Of which rows the clauses hold."""
        program = compile_clauses(clauses, Layout.of(clauses, self.store.columns))
        code, out = link(program, self.strings), np.zeros(self.table.num_rows, np.bool_)
        kernels.blocks.holds_rows(code, self.store.events, self.strings.arrays(), program.depth, out)
        return [bool(truth) for truth in out]


def _row(environment: Environment, variable: str, which: Which) -> int:
    if which in (Which.CURRENT, Which.MEMBER):
        return -1 if environment.current is None else environment.current.index
    events = environment.selected.get(variable, ())
    if not events:
        return -1
    return events[0 if which in (Which.SINGLE, Which.FIRST) else -1].index

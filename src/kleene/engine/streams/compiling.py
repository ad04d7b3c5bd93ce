"""A stream plan as arrays: what the kernel must know of states and edges, and where values are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kleene.algebra.names import show
from kleene.algebra.nodes import AttributeName, StreamSchema
from kleene.codegen.streams import StreamLayout, compile_assigned, compile_condition
from kleene.codegen.value_kinds import FOREIGN, NO_VALUES, NULL, REAL, ValueKind, kind_of
from kleene.engine.executors.programs import depth_of, joined
from kleene.engine.intake.columns import column_layout
from kleene.engine.intake.strings import StringPool
from kleene.engine.streams.cells import CellLayout
from kleene.kernels import stream_instances as kernel
from kleene.kernels.expression import Ints
from kleene.kernels.timeline import LATEST
from kleene.optimize.streams.automaton import columns_used
from kleene.optimize.streams.keys import equality
from kleene.optimize.streams.lines import EVENT
from kleene.pattern.expressions import Attribute, Clause, Value, Which
from kleene.pattern.types import ValueType
from kleene.plan.layout import Column
from kleene.plan.program import NotCompilable, Program
from kleene.plan.streams import FINAL, START, EventAutomaton, StreamEdge, StreamPlan, WaitingState

# A bit for each formula that takes an event.
MOST_FORMULAS = 64
_LONGEST = LATEST


@dataclass(frozen=True, eq=False)
class EventLayout:
    """Where an event has its values: the columns that programs read or edges copy.

    columns      by name, as `ColumnStore` has them
    others       the places among the integers of codes for values that no array holds
    bits         for reals by which instances are looked up: the places of their bits, with the columns of their states
    numbered     whether events have numbers
    start, end   the moments of an event
    """

    columns: Mapping[str, Column]
    others: dict[str, int] = field(default_factory=dict)
    bits: dict[str, Column] = field(default_factory=dict)
    numbered: bool = False

    @property
    def _ints(self) -> int:
        return sum(column.place >= 0 and column.type is not ValueType.FLOAT for column in self.columns.values())

    @property
    def start(self) -> Column:
        return Column(len(self.columns), self._ints, ValueType.INT)

    @property
    def end(self) -> Column:
        return Column(len(self.columns), self._ints + 1, ValueType.INT)

    @property
    def number(self) -> Column:
        return Column(self.end.index, self.end.place + 1 + len(self.others) + len(self.bits), ValueType.INT)

    @property
    def spare(self) -> tuple[int, int]:
        """How many rows of integers and of states there are besides those of the columns."""
        return 2 + len(self.others) + len(self.bits) + self.numbered, 1 + len(self.bits)


@dataclass(frozen=True, eq=False)
class CompiledStream:
    """A plan that is ready to run on events with certain columns."""

    plan: StreamPlan
    events: EventLayout
    # Of the states, then of results.
    cells: tuple[CellLayout, ...]
    # The test of each formula.
    formulas: tuple[Program, ...]
    programs: tuple[Program, ...]
    states: Ints
    edges: Ints
    keys: Ints
    assignments: Ints
    # The states that take events, by formula, and where those of each formula begin.
    waiting: Ints
    offsets: Ints

    @property
    def depth(self) -> int:
        return depth_of([*self.programs, *self.formulas])

    @property
    def width(self) -> int:
        return max(layout.width for layout in self.cells)

    def linked(self, strings: StringPool) -> kernel.StreamMachine:
        """The arrays of the kernel; strings in programs have their codes."""
        programs = joined(self.programs, strings)
        final = len(self.plan.states)
        return kernel.StreamMachine(
            self.states, self.edges, self.keys, self.assignments, self.waiting, self.offsets, programs, final
        )


def compile_stream(plan: StreamPlan, columns: pa.Schema) -> CompiledStream:
    """Compile a plan for events with these columns; `NotCompilable` when only the reference evaluator can run it."""
    if len(plan.formulas) > MOST_FORMULAS:
        raise NotCompilable(f"more than {MOST_FORMULAS} ways to take an event")
    return StreamCompiler(plan, columns, _event_layout(plan, columns)).compiled(plan)


class StreamCompiler:
    def __init__(self, automaton: EventAutomaton, columns: pa.Schema, events: EventLayout) -> None:
        self._plan, self._columns, self._events = automaton, columns, events
        self._cells: list[CellLayout] = []
        self._programs: list[Program] = []
        self._edges: list[list[int]] = []
        self._assignments: list[tuple[int, int, int, int]] = []
        self._keys: list[tuple[int, int, int, int]] = []

    def compiled(self, plan: StreamPlan) -> CompiledStream:
        self._lay_out_cells()
        formulas = [
            compile_condition(formula.condition, self._layout({}, number))
            for number, formula in enumerate(plan.formulas)
        ]
        # Rows of states, of results, and of the start: one for each formula that begins something.
        states = [self._state(number, each) for number, each in enumerate(plan.states)]
        final = [-1] * kernel.STATE
        final[kernel.WIDTH] = self._cells[-1].width
        begun = sorted({edge.formula for edge in plan.edges if edge.source == START})
        states += [final, *(self._start(formula) for formula in begun)]
        takers = [*(state.formula for state in plan.states), -1, *begun]
        waiting = [[n for n, other in enumerate(takers) if other == f] for f in range(len(plan.formulas))]
        return CompiledStream(
            plan,
            self._events,
            tuple(self._cells),
            tuple(formulas),
            tuple(self._programs),
            np.array(states, np.int64).reshape(-1, kernel.STATE),
            np.array(self._edges, np.int64).reshape(-1, kernel.EDGE),
            np.array(self._keys, np.int64).reshape(-1, 4),
            np.array(self._assignments, np.int64).reshape(-1, 4),
            np.array([number for listed in waiting for number in listed], np.int64),
            np.cumsum([0, *map(len, waiting)]).astype(np.int64),
        )

    def _lay_out_cells(self) -> None:
        for state, each in enumerate(self._plan.states):
            self._cells.append(self._cell_layout(state, each.schema))
        self._cells.append(self._cell_layout(FINAL, self._plan.schema))

    def _layout(self, cells: Mapping[AttributeName, Column], formula: int) -> StreamLayout:
        """Where programs find what they read, of an instance with these cells and of an event of a formula."""
        source = self._plan.formulas[formula].source
        brought = {
            name: self._events.columns[column] for name, column in source.columns if column in self._events.columns
        }
        if self._events.numbered:
            brought[source.id, EVENT] = self._events.number
        return StreamLayout(cells=cells, brought=brought, start=self._events.start, end=self._events.end)

    def _edge_layout(self, edge: StreamEdge) -> StreamLayout:
        return self._layout({} if edge.source == START else self._cells[edge.source].columns, edge.formula)

    def _cell_layout(self, state: int, schema: StreamSchema) -> CellLayout:
        """What the cells of a state hold: what the edges put there that enter it; its rebind edge must put the same."""
        layout = CellLayout(dict.fromkeys(schema.names, NULL), {})
        entering = sorted((e for e in self._plan.edges if e.target == state), key=lambda edge: edge.source == state)
        for edge in entering:
            rebinds = edge.source == state
            programs = self._layout(layout.columns, edge.formula) if rebinds else self._edge_layout(edge)
            kinds, types = dict(layout.kinds), dict(layout.types)
            for name, value in zip(schema.names, edge.values, strict=True):
                kinds[name] = _common_kind(kinds[name], kind_of(value, programs), name)
                if kinds[name].type in FOREIGN and not rebinds:
                    types[name] = self._foreign_type(edge, value)
            layout = CellLayout(kinds, types)
        return layout

    def _foreign_type(self, edge: StreamEdge, value: Value) -> pa.DataType:
        """The Arrow type of a value that no array holds: an attribute as it is."""
        assert isinstance(value, Attribute), "nothing is computed of such values"
        name = value.variable, value.attribute
        if value.which is Which.OVERWRITTEN:
            return self._cells[edge.source].types[name]
        return self._columns.field(dict(self._plan.formulas[edge.formula].source.columns)[name]).type

    # States and edges

    def _state(self, number: int, state: WaitingState) -> list[int]:
        layout = self._layout(self._cells[number].columns, state.formula)
        first = len(self._keys)
        tested = tuple(clause for clause in state.condition if not self._add_key(clause, layout))
        row = [0] * kernel.STATE
        row[kernel.WIDTH] = self._cells[number].width
        row[kernel.FILTER] = self._program(compile_condition(tested, layout))
        row[kernel.EDGES], row[kernel.EDGES_END] = self._add_edges(self._plan.leaving(number))
        row[kernel.KEYS], row[kernel.KEYS_END] = first, len(self._keys)
        row[kernel.MOST] = -1 if state.most is None else min(max(state.most, 0), _LONGEST)
        return row

    def _add_key(self, clause: Clause, layout: StreamLayout) -> bool:
        """Whether a clause is an equality by which instances are found, and need not be tested."""
        key = equality(clause)
        if key is None:
            return False
        cell_name, attribute = key
        cell, column = layout.cells[cell_name], layout.column_of(attribute)
        if (cell.type, cell.step) != (column.type, column.step) or column.place < 0:
            return False
        if column.type is not ValueType.FLOAT:
            self._keys.append((cell.place, column.place, column.index, 0))
            return True
        bits = self._events.bits[self._column_named(attribute, layout)]
        self._keys.append((cell.place, bits.place, bits.index, 1))
        return True

    def _column_named(self, attribute: Attribute, layout: StreamLayout) -> str:
        column = layout.column_of(attribute)
        return next(name for name, other in self._events.columns.items() if other is column)

    def _start(self, formula: int) -> list[int]:
        """What events of a formula begin."""
        begun = [edge for edge in self._plan.edges if edge.source == START and edge.formula == formula]
        row = [0] * kernel.STATE
        row[kernel.FILTER] = self._program(compile_condition((), self._layout({}, formula)))
        row[kernel.EDGES], row[kernel.EDGES_END] = self._add_edges(begun)
        row[kernel.MOST] = -1
        return row

    def _add_edges(self, edges: Iterable[StreamEdge]) -> tuple[int, int]:
        """Where edges that leave one state begin and end."""
        first = len(self._edges)
        self._edges += [self._edge(edge) for edge in edges]
        return first, len(self._edges)

    def _edge(self, edge: StreamEdge) -> list[int]:
        layout = self._edge_layout(edge)
        row = [0] * kernel.EDGE
        row[kernel.TARGET] = len(self._plan.states) if edge.target == FINAL else edge.target
        row[kernel.TEST] = self._program(compile_condition(edge.condition, layout))
        row[kernel.ASSIGNMENTS] = len(self._assignments)
        for cell, value in zip(self._cells[edge.target].columns.values(), edge.values, strict=True):
            self._assignments.append((cell.place, *self._source(value, cell, layout)))
        row[kernel.ASSIGNMENTS_END] = len(self._assignments)
        return row

    def _source(self, value: Value, cell: Column, layout: StreamLayout) -> tuple[int, int, int]:
        """Where a cell has its value from."""
        if isinstance(value, Attribute):
            column = layout.column_of(value)
            if value.which is Which.OVERWRITTEN:
                return kernel.FROM_CELL, column.place, 0
            if column.type in FOREIGN:
                return kernel.FROM_INTS, self._events.others[self._column_named(value, layout)], column.index
            if column.place >= 0:
                kind = kernel.FROM_REALS if column.type is ValueType.FLOAT else kernel.FROM_INTS
                return kind, column.place, column.index
            return kernel.NOTHING, 0, 0
        program, computed = compile_assigned(value, layout, cell.step)
        if computed.type is ValueType.NULL:
            return kernel.NOTHING, 0, 0
        return kernel.COMPUTED_REAL if computed == REAL else kernel.COMPUTED_INT, self._program(program), 0

    def _program(self, program: Program) -> int:
        self._programs.append(program)
        return len(self._programs) - 1


def _event_layout(plan: StreamPlan, columns: pa.Schema) -> EventLayout:
    """The columns that the edges and formulas of a plan read, in the order in which their sources have them."""
    keys: dict[str, None] = {}
    for state in plan.states:
        column_of = dict(plan.formulas[state.formula].source.columns)
        keys |= {column_of[each.variable, each.attribute]: None for _, each in state.keys}
    layout = column_layout(columns, columns_used(plan))
    first = EventLayout(layout)
    place, index = first.end.place + 1, first.end.index + 1
    others = [name for name, column in layout.items() if column.type in FOREIGN]
    reals = [name for name in keys if layout[name].type is ValueType.FLOAT]
    return EventLayout(
        layout,
        {name: place + number for number, name in enumerate(others)},
        {
            name: Column(index + number, place + len(others) + number, ValueType.FLOAT)
            for number, name in enumerate(reals)
        },
    )


def _common_kind(known: ValueKind, more: ValueKind, name: AttributeName) -> ValueKind:
    if known.type in NO_VALUES or known == more:
        return more
    if more.type in NO_VALUES:
        return known
    raise NotCompilable(f"`{show(name)}` has values of several kinds: {known.type.value} and {more.type.value}")

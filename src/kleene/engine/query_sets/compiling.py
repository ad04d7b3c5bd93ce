"""A shared plan as shapes of nodes and edges: what they have in common, and where each query's constants belong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kleene.algebra.nodes import AttributeName, StreamSource
from kleene.codegen.streams import StreamLayout, compile_condition
from kleene.engine.executors.linking import link
from kleene.engine.intake.strings import StringPool
from kleene.engine.query_sets.atoms import Bounds, bounds
from kleene.engine.streams.cells import CellLayout
from kleene.engine.streams.compiling import EventLayout, StreamCompiler
from kleene.kernels import shared_machine as kernel
from kleene.kernels import stream_instances
from kleene.kernels.expression import Ints
from kleene.kernels.timeline import LATEST
from kleene.optimize.streams.deadlines import longest
from kleene.optimize.streams.keys import comparison_with_held, equality
from kleene.optimize.streams.lines import EVERY_EVENT
from kleene.optimize.streams.sharing import (
    Atom,
    EdgeLabel,
    NodeLabel,
    SharedPlan,
    atom_of,
    numbered,
    open_length,
    values_and_tests,
)
from kleene.pattern.expressions import Clause, Constant, OpenParameter
from kleene.pattern.schema import private
from kleene.pattern.types import TIMES, ValueType
from kleene.plan.program import Program
from kleene.plan.streams import FINAL, StreamEdge

# The columns of atoms that every event has: one that is the same of all events, and its type.
ALWAYS, TYPE = private("always"), private("type")

# What has an order as integers.
ORDERED = frozenset({ValueType.INT, ValueType.FLOAT, ValueType.DURATION, *TIMES})
_COMPUTED = (stream_instances.COMPUTED_INT, stream_instances.COMPUTED_REAL)


@dataclass(frozen=True, eq=False)
class Parameters:
    """The constants of some queries of one template, by parameter.

    values   [row] each: integers and codes of strings as they are, reals as reals
    size     how many queries there are
    """

    values: Mapping[str, np.ndarray]
    size: int

    def cells(self, name: str) -> Ints:
        """[row]: as programs have them, reals as their bits."""
        return self.values[name].view(np.int64)

    def given(self, value: Constant | OpenParameter, strings: StringPool) -> np.ndarray:
        """[row]: what a constant or a parameter is for each query."""
        if isinstance(value, OpenParameter):
            return self.values[value.name]
        constant = value.value
        if isinstance(constant, str):
            constant = strings.code(constant)
        kind = np.float64 if isinstance(constant, float) else np.int64
        return np.full(self.size, constant, kind)


# Programs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ConstantPool:
    """The constants of the programs of an edge or a node, one program after the other, each with integers first.

    first   how many constants stand before them
    """

    programs: tuple[Program, ...]
    first: int

    @property
    def size(self) -> int:
        return sum(len(program.ints) + len(program.reals) for program in self.programs)

    def parts(self) -> list[tuple[int, int, int, int]]:
        """Where the integers and the reals of each program begin and end."""
        places, at = [], self.first
        for program in self.programs:
            reals, end = at + len(program.ints), at + len(program.ints) + len(program.reals)
            places.append((at, reals, reals, end))
            at = end
        return places

    def rows(self, given: Parameters, strings: StringPool) -> Ints:
        """[row, constant]: those of each query."""
        rows = np.zeros((given.size, self.size), np.int64)
        at = 0
        for program in self.programs:
            code, reals = link(program, strings), at + len(program.ints)
            rows[:, at:reals] = code.ints
            rows[:, reals : reals + len(program.reals)] = code.reals.view(np.int64)
            for is_real, place, name in program.parameters:
                rows[:, (reals if is_real else at) + place] = given.cells(name)
            at = reals + len(program.reals)
        return rows


# Edges ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CompiledEdge:
    """What firing an edge takes.

    assignments   cell, FROM_CELL …; cell, place, or number among the programs; number of the column
    programs      the test, then those that compute values
    key           what makes edges of one source have one shape
    """

    test: Program
    assignments: tuple[tuple[int, int, int, int], ...]
    programs: tuple[Program, ...]
    key: object


@dataclass(frozen=True, eq=False)
class CompiledEntering:
    """An edge that enters a node, and how it is found."""

    label: EdgeLabel
    edge: CompiledEdge
    source: int
    equalities: tuple[Atom, ...]
    types: Mapping[str, ValueType]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it tests for equality."""
        return tuple(atom.column for atom in self.equalities)

    @property
    def ranged(self) -> tuple[str, ...]:
        """The columns of two ranges."""
        named = tuple(dict.fromkeys(atom.column for atom in self.label.ranges))
        return (*named, *[ALWAYS] * (2 - len(named)))

    @property
    def pool(self) -> ConstantPool:
        return ConstantPool(self.edge.programs, len(self.equalities))

    def tested(self, given: Parameters, strings: StringPool) -> tuple[Ints, Ints]:
        """[row, column]: the values tested for equality; [row, 4]: two closed ranges."""
        tested = np.zeros((given.size, len(self.equalities)), np.int64)
        ranges = {column: Bounds.everything(given.size) for column in self.ranged}
        for place, atom in enumerate(self.equalities):
            equal = self._bounds(atom, given, strings)
            tested[:, place] = equal.low
            # What equals nothing, such as 1.5 among integers, lies in no range.
            nothing = equal.low > equal.high
            first = ranges[self.ranged[0]]
            ranges[self.ranged[0]] = Bounds(np.where(nothing, 1, first.low), np.where(nothing, 0, first.high))
        for atom in self.label.ranges:
            ranges[atom.column] = ranges[atom.column].within(self._bounds(atom, given, strings))
        first, second = (ranges[column] for column in self.ranged)
        return tested, np.stack((*first, *second), axis=1)

    def _bounds(self, atom: Atom, given: Parameters, strings: StringPool) -> Bounds:
        return bounds(atom.operator, given.given(atom.value, strings), self.types[atom.column])

    def constants(self, tested: Ints, given: Parameters, strings: StringPool) -> Ints:
        """[row, constant]: all constants of the edge."""
        return np.concatenate((tested, self.pool.rows(given, strings)), axis=1)


# Nodes ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WaitingOrder:
    """The order in which instances wait whose filter tests nothing for equality: that of a bound.

    column   of an event, which is compared with the bounds
    source   whether the bound is a constant or a cell, and that
    less     whether an event's value must be less
    beyond   whether it must be unequal, too; of a constant the bound says that
    """

    column: str
    source: tuple[int, Atom | int]
    less: bool
    beyond: bool

    @property
    def key(self) -> object:
        kind, value = self.source
        return self.column, kind, None if isinstance(value, Atom) else value, self.less, self.beyond


@dataclass(frozen=True, eq=False)
class CompiledNode:
    """What waiting at a node takes, or being a result.

    keys      the columns by which instances are found, in order: where each value comes from, and the atom or the cell
    tested    what the filter tests besides
    rebind    the edge that leads back
    stays     whether instances go on waiting where an event has served them
    order     that in which they wait; None: in none
    expires   whether instances leave when they are too old to be served
    key       what makes nodes have one shape, besides how they are entered
    """

    label: NodeLabel
    cells: CellLayout
    keys: tuple[tuple[str, int, Atom | int], ...]
    tested: Program
    rebind: CompiledEdge | None
    entering: tuple[CompiledEntering, ...]
    key: object
    types: Mapping[str, ValueType]
    stays: bool = False
    order: WaitingOrder | None = None
    expires: bool = True

    @property
    def has_most(self) -> bool:
        return bool(self.label.lengths)

    @property
    def constant_keys(self) -> list[Atom]:
        return [value for _, _, value in self.keys if isinstance(value, Atom)]

    @property
    def constant_bound(self) -> Atom | None:
        value = None if self.order is None else self.order.source[1]
        return value if isinstance(value, Atom) else None

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.tested, *(self.rebind.programs if self.rebind is not None else ()))

    @property
    def pool(self) -> ConstantPool:
        bound = self.constant_bound is not None
        return ConstantPool(self.programs, self.has_most + len(self.constant_keys) + bound)

    def constants(self, given: Parameters, strings: StringPool) -> Ints:
        """[row, constant]: how long a composite event may last, those of its room, its bound, those of programs."""
        parts = []
        if self.has_most:
            parts.append(_most(self.label.lengths, given)[:, None])
        for atom in self.constant_keys:
            own = bounds("=", given.given(atom.value, strings), self.types[atom.column])
            parts.append(own.low[:, None])
        bound = self.constant_bound
        if bound is not None:
            own = bounds(bound.operator, given.given(bound.value, strings), self.types[bound.column])
            parts.append((own.high if bound.operator in ("<", "<=") else own.low)[:, None])
        return np.concatenate((*parts, self.pool.rows(given, strings)), axis=1)


def _most(lengths: Sequence[Clause], given: Parameters) -> Ints:
    """[row]: how many steps of time a composite event may last; −1: none may be."""
    most = np.full(given.size, LATEST, np.int64)
    for clause in lengths:
        fixed = longest(clause)
        if fixed is not None:
            most = np.minimum(most, min(max(fixed, -1), LATEST))
            continue
        bound = open_length(clause)
        assert bound is not None, "a length is a constant or a parameter"
        elapsed, operator, parameter = bound
        values = given.values[parameter.name]
        steps = np.where(values <= np.iinfo(np.int64).min + elapsed.tick, -1, values - elapsed.tick)
        most = np.minimum(most, np.maximum(steps - (operator == "<"), -1))
    return most


def class_column(source: StreamSource) -> str:
    """The column that says whether an event is of a class of several types, or with a predicate."""
    return private(f"class {source.event_class.digest.hex()}")


def source_atom(source: StreamSource) -> Atom:
    """The events of a source, as an equality: by their type, or by their class; every event is always equal."""
    if source.event_class == EVERY_EVENT:
        return Atom(ALWAYS, "=", Constant(0, ValueType.INT))
    types = source.event_class.types
    if len(types) == 1 and not source.event_class.predicate:
        return Atom(TYPE, "=", Constant(types[0], ValueType.STRING))
    return Atom(class_column(source), "=", Constant(1, ValueType.INT))


class SharedCompiler(StreamCompiler):
    """Compiles a shared plan, for events with certain columns."""

    def __init__(
        self,
        shared: SharedPlan,
        columns: pa.Schema,
        events: EventLayout,
        *,
        rooms: bool = True,
        deadlines: bool = True,
    ) -> None:
        super().__init__(shared.plan, columns, events)
        self._shared, self._rooms, self._deadlines = shared, rooms, deadlines
        self._types = {name: column.type for name, column in events.columns.items()}

    def nodes(self) -> list[CompiledNode]:
        """The nodes, each after those from which edges enter it; `NotCompilable` where no program is known."""
        self._lay_out_cells()
        return [self._node(label) for label in self._shared.nodes]

    def _node(self, label: NodeLabel) -> CompiledNode:
        cells = self._cells[label.state]
        entering = tuple(self._entering(each) for each in label.entering)
        if label.state == FINAL:
            nothing = compile_condition((), StreamLayout())
            kind = self._plan.schema, tuple(cells.kinds.values()), self._shared.results
            return CompiledNode(label, cells, (), nothing, None, entering, ("result", kind), self._types)
        state = self._plan.states[label.state]
        layout = self._layout(cells.columns, state.formula)
        assert label.source is not None, "a state waits for events"
        keys: dict[str, tuple[int, Atom | int]] = {}
        types = {**self._types}
        for atom in (source_atom(label.source), *label.equalities):
            types.setdefault(atom.column, ValueType.STRING if atom.column == TYPE else ValueType.INT)
            keys[atom.column] = kernel.OF_NODE, atom
        tested, held = [], []
        for clause in state.condition:
            of_cell = self._cell_key(clause, layout)
            if of_cell is None or of_cell[0] in keys:
                tested.append(clause)
            else:
                keys[of_cell[0]] = of_cell[1:]
                held.append(clause)
        order = self._order(tested, layout, dict(label.source.columns)) if self._rooms and len(keys) == 1 else None
        if order is not None and isinstance(order[1].source[1], int):
            # A bound that an instance holds says as much as the clause.
            tested.remove(order[0])
            held.append(order[0])
        rebind = next((edge for edge in self._plan.edges if edge.source == edge.target == label.state), None)
        loop = None if rebind is None else self._compiled_edge(rebind)
        listed = tuple((column, *keys[column]) for column in sorted(keys))
        said = numbered([*tested, *label.lengths, *(() if rebind is None else values_and_tests(rebind))])
        kinds = tuple((column, kind) for column, kind, _ in listed)
        waiting = None if order is None else order[1]
        how = state.stays, None if waiting is None else waiting.key
        key = label.source, state.schema, tuple(held), kinds, said, len(tested), how
        program = compile_condition(tested, layout)
        return CompiledNode(
            label, cells, listed, program, loop, entering, key, types, state.stays, waiting, self._deadlines
        )

    def _order(
        self, clauses: Iterable[Clause], layout: StreamLayout, columns: Mapping[AttributeName, str]
    ) -> tuple[Clause, WaitingOrder] | None:
        """A clause that bounds a value of an event, by what an instance holds rather than by a constant."""
        constant = None
        for clause in clauses:
            by_cell = self._cell_bound(clause, layout)
            if by_cell is not None:
                return clause, by_cell
            atom = atom_of(clause, columns, self._types)
            if constant is None and atom is not None and atom.operator != "=":
                less = atom.operator in ("<", "<=")
                constant = clause, WaitingOrder(atom.column, (kernel.OF_NODE, atom), less, False)
        return constant

    def _cell_bound(self, clause: Clause, layout: StreamLayout) -> WaitingOrder | None:
        """The order by a cell that a clause compares with a column of the same kind."""
        bound = comparison_with_held(clause)
        if bound is None:
            return None
        operator, name, attribute = bound
        cell, column = layout.cells[name], layout.column_of(attribute)
        if (cell.type, cell.step) != (column.type, column.step) or column.place < 0 or column.type not in ORDERED:
            return None
        kind = kernel.OF_REAL_CELL if column.type is ValueType.FLOAT else kernel.OF_CELL
        less, beyond = operator in ("<", "<="), operator in ("<", ">")
        return WaitingOrder(self._column_named(attribute, layout), (kind, cell.place), less, beyond)

    def _cell_key(self, clause: Clause, layout: StreamLayout) -> tuple[str, int, int] | None:
        """The column that a clause compares with a cell for equality, whether the cell holds reals, and the cell."""
        key = equality(clause)
        if key is None or not self._rooms:
            return None
        cell, column = layout.cells[key[0]], layout.column_of(key[1])
        if (cell.type, cell.step) != (column.type, column.step) or column.place < 0:
            return None
        kind = kernel.OF_REAL_CELL if column.type is ValueType.FLOAT else kernel.OF_CELL
        return self._column_named(key[1], layout), kind, cell.place

    def _entering(self, label: EdgeLabel) -> CompiledEntering:
        edge = self._plan.edges[label.number]
        equalities = {atom.column: atom for atom in label.equalities}
        types = {**self._types, TYPE: ValueType.STRING, ALWAYS: ValueType.INT}
        if label.source is not None:
            atom = source_atom(label.source)
            equalities[atom.column] = atom
            types.setdefault(atom.column, ValueType.INT)
        listed = tuple(equalities[column] for column in sorted(equalities))
        return CompiledEntering(label, self._compiled_edge(edge), edge.source, listed, types)

    def _compiled_edge(self, edge: StreamEdge) -> CompiledEdge:
        row = self._edge(edge)
        test = self._programs[row[stream_instances.TEST]]
        programs, assignments = [test], []
        first, last = row[stream_instances.ASSIGNMENTS], row[stream_instances.ASSIGNMENTS_END]
        for cell, kind, source, column in self._assignments[first:last]:
            if kind in _COMPUTED:
                programs.append(self._programs[source])
                source = len(programs) - 1
            assignments.append((cell, kind, source, column))
        key = (
            self._plan.formulas[edge.formula].source,
            tuple(assignments),
            numbered(values_and_tests(edge)),
            len(edge.condition),
        )
        return CompiledEdge(test, tuple(assignments), tuple(programs), key)

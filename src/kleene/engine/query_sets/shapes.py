"""The shapes of nodes and edges that the queries of a set have, as the arrays of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from kleene.engine.executors.programs import depth_of
from kleene.engine.query_sets.compiling import ALWAYS, TYPE, CompiledEdge, CompiledNode, ConstantPool
from kleene.engine.query_sets.compiling import CompiledEntering as Entering
from kleene.engine.streams.cells import CellLayout, Flags
from kleene.kernels import shared_machine as kernel
from kleene.kernels import stream_instances
from kleene.kernels.expression import Ints
from kleene.kernels.shared_nodes import LABEL, LABEL_COLUMNS, LABEL_EDGE, LABEL_MERGES, LABEL_RANGED
from kleene.optimize.streams.lines import EVENT
from kleene.plan.program import NotCompilable, Program

# What is copied from an event, be it an integer or a real, is found by the number of its column.
_SOURCES = {
    stream_instances.FROM_CELL: kernel.FROM_CELLS,
    stream_instances.FROM_INTS: kernel.FROM_EVENT,
    stream_instances.FROM_REALS: kernel.FROM_EVENT,
    stream_instances.COMPUTED_INT: kernel.FROM_INT_PROGRAM,
    stream_instances.COMPUTED_REAL: kernel.FROM_REAL_PROGRAM,
    stream_instances.NOTHING: kernel.FROM_NOWHERE,
}
_COPIED = (kernel.FROM_CELLS, kernel.FROM_EVENT)
_PROGRAMS = (kernel.FROM_INT_PROGRAM, kernel.FROM_REAL_PROGRAM)


def holds_events(cells: CellLayout) -> bool:
    """Whether cells begin with the number of an event: those of lines do."""
    return next(iter(cells.kinds), ("", ""))[1] == EVENT


@dataclass(frozen=True)
class EnteringShape:
    """The numbers of an edge's label, but for that of the node, and the shape of its source."""

    edge: int
    columns: int
    ranged: int


def _copies(
    assignments: Sequence[tuple[int, int, int, int]], programs: Sequence[int]
) -> list[tuple[int, int, int, int]]:
    """Assignments as the kernel has them: what stands side by side, here and there, is copied at once.

    programs   the number of each program that the assignments name
    """
    copies: list[tuple[int, int, int, int]] = []
    for cell, of_cell, place, column in sorted(assignments):
        kind = _SOURCES[of_cell]
        source = column if kind == kernel.FROM_EVENT else programs[place] if kind in _PROGRAMS else place
        last_kind, first, first_source, size = copies[-1] if copies else (-1, 0, 0, 0)
        if kind in _COPIED and (last_kind, first + size, first_source + size) == (kind, cell, source):
            copies[-1] = kind, first, first_source, size + 1
        else:
            copies.append((kind, cell, source, 1))
    return copies


class Shapes:
    """Grows with new templates; equal nodes and edges of several templates have one shape."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._nodes: list[list[int]] = [[0] * kernel.NODE_SHAPE_WIDTH]  # the root
        self._edges: list[list[int]] = []
        self._keys: list[tuple[int, int]] = []
        self._assignments: list[tuple[int, int, int, int]] = []
        self._words: list[Ints] = []
        self._parts: list[tuple[int, ...]] = []
        self._word_count = 0
        # Sets of columns, and columns by name.
        self._sets: dict[tuple[int, ...], int] = {}
        self.columns: dict[str, int] = {ALWAYS: 0, TYPE: 1}
        # Kinds of rooms: the set of columns, the column in whose order instances wait, and whether it must be less.
        self._rooms: dict[tuple[int, int, bool], int] = {}
        # One node for each shape of results, and [shape of nodes]: the number of that of its results; −1: it has none.
        self.results: list[CompiledNode] = []
        self._result_numbers: dict[object, int] = {}
        self._results_of: list[int] = [-1]
        # [shape of nodes]: whether its instances are of lines, and hold the numbers of their events.
        self._of_lines: list[bool] = [False]
        self.depth = 1
        self.width = stream_instances.FIRST_VALUE
        self._arrays: kernel.SharedShapes | None = None

    # Shapes of a template

    def entering(self, entering: Entering, source: int) -> EnteringShape:
        """The shape of an edge that leaves nodes of a shape."""
        columns = self._set(entering.columns)
        first, second = (self.column(name) for name in entering.ranged)
        key = "edge", source, columns, first, second, entering.edge.key
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._add_edge(entering.edge, entering.pool, columns)
        if max(first, second) >= 1 << 16:
            raise NotCompilable("more than 65,536 columns")
        return EnteringShape(number, columns, first | second << 16)

    def node(self, node: CompiledNode, entering: Sequence[EnteringShape]) -> int:
        """The shape of nodes that such edges enter."""
        key = "node", tuple(entering), node.key
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._add_node(node)
        return number

    def label(self, entering: EnteringShape, node: int, *, merges: bool) -> Ints:
        """What the kernel is told of the edges of one label."""
        label = np.zeros(LABEL, np.int64)
        label[LABEL_EDGE], label[LABEL_MERGES] = self._firing(entering, node), merges
        label[LABEL_COLUMNS], label[LABEL_RANGED] = entering.columns, entering.ranged
        return label

    def _firing(self, entering: EnteringShape, node: int) -> int:
        """The shape of an edge that enters nodes of a shape: instances are told of it where they are made."""
        key = "firing", entering.edge, node
        number = self._numbers.get(key)
        if number is None:
            self._arrays = None
            number = self._numbers[key] = len(self._edges)
            row = [*self._edges[entering.edge]]
            row[kernel.ENTERS] = node
            self._edges.append(row)
        return number

    def column(self, name: str) -> int:
        return self.columns.setdefault(name, len(self.columns))

    def _set(self, names: Sequence[str]) -> int:
        return self._sets.setdefault(tuple(self.column(name) for name in names), len(self._sets))

    def _add_node(self, node: CompiledNode) -> int:
        self._arrays = None
        row = [0] * kernel.NODE_SHAPE_WIDTH
        row[kernel.WIDTH] = node.cells.width
        self.width = max(self.width, node.cells.width)
        is_final = node.label.source is None
        row[kernel.IS_FINAL] = int(is_final)
        row[kernel.KEYS] = len(self._keys)
        constant = int(node.has_most)
        for _, kind, value in node.keys:
            self._keys.append((kind, cast(int, value) if kind != kernel.OF_NODE else constant))
            constant += kind == kernel.OF_NODE
        row[kernel.KEYS_END] = len(self._keys)
        row[kernel.MOST] = 0 if node.has_most else -1
        row[kernel.BOUND] = -1
        if node.order is not None:
            kind, bound = node.order.source
            row[kernel.BOUND], row[kernel.BEYOND] = kind, int(node.order.beyond)
            row[kernel.BOUND_PLACE] = bound if isinstance(bound, int) else constant
        row[kernel.STAYS], row[kernel.EXPIRES] = int(node.stays), int(node.expires)
        programs = self._add_programs(node.pool)
        row[kernel.FILTER] = programs[0]
        row[kernel.REBIND] = -1 if node.rebind is None else self._add_compiled(node.rebind, programs[1:], -1)
        if node.rebind is not None:
            self._edges[-1][kernel.ENTERS] = len(self._nodes)
        self._nodes.append(row)
        self._of_lines.append(holds_events(node.cells))
        if is_final:
            number = self._result_numbers.setdefault(node.key, len(self.results))
            self.results += [node] if number == len(self.results) else []
            self._results_of.append(number)
        else:
            row[kernel.ROOM] = self._room(node)
            self._results_of.append(-1)
        return len(self._nodes) - 1

    def _room(self, node: CompiledNode) -> int:
        """The kind of room where instances of a node wait."""
        columns = self._set([column for column, _, _ in node.keys])
        order = node.order
        kind = columns, -1 if order is None else self.column(order.column), order is not None and order.less
        return self._rooms.setdefault(kind, len(self._rooms))

    def _add_edge(self, edge: CompiledEdge, pool: ConstantPool, columns: int) -> int:
        self._arrays = None
        return self._add_compiled(edge, self._add_programs(pool), columns)

    def _add_compiled(self, edge: CompiledEdge, programs: Sequence[int], columns: int) -> int:
        row = [0] * kernel.EDGE_SHAPE_WIDTH
        row[kernel.TEST], row[kernel.FOUND_BY] = programs[0], columns
        row[kernel.ASSIGNMENTS] = len(self._assignments)
        self._assignments += _copies(edge.assignments, programs)
        row[kernel.ASSIGNMENTS_END] = len(self._assignments)
        self._edges.append(row)
        return len(self._edges) - 1

    def _add_programs(self, pool: ConstantPool) -> list[int]:
        numbers = []
        for program, part in zip(pool.programs, pool.parts(), strict=True):
            numbers.append(self._add_program(program, part))
        return numbers

    def _add_program(self, program: Program, part: tuple[int, int, int, int]) -> int:
        self.depth = max(self.depth, depth_of([program]))
        self._words.append(program.code)
        self._parts.append((self._word_count, self._word_count + len(program.code), *part))
        self._word_count += len(program.code)
        return len(self._parts) - 1

    # Arrays

    @property
    def arrays(self) -> kernel.SharedShapes:
        if self._arrays is None:
            members = [column for listed in self._sets for column in listed]
            self._arrays = kernel.SharedShapes(
                np.array(self._nodes, np.int64),
                np.array(self._edges, np.int64).reshape(-1, kernel.EDGE_SHAPE_WIDTH),
                np.array(self._keys, np.int64).reshape(-1, 2),
                np.array(self._assignments, np.int64).reshape(-1, 4),
                np.concatenate([np.zeros(0, np.int64), *self._words]),
                np.array(self._parts, np.int64).reshape(-1, 6),
                np.array(members, np.int64),
                np.cumsum([0, *map(len, self._sets)]).astype(np.int64),
                np.array(list(self._rooms), np.int64).reshape(-1, kernel.ROOM_KIND_WIDTH),
            )
        return self._arrays

    @property
    def results_of(self) -> Ints:
        """[shape of nodes]: the number of the shape of its results; −1: it has none."""
        return np.array(self._results_of, np.int64)

    @property
    def of_lines(self) -> Flags:
        """[shape of nodes]: whether its instances are of lines, and hold the numbers of their events."""
        return np.array(self._of_lines, np.bool_)

    @property
    def edge_sets(self) -> Ints:
        """[shape of edges]: the set of columns by which they are looked up; −1 of those that lead back."""
        return np.ascontiguousarray(self.arrays.edges[:, kernel.FOUND_BY])

    @property
    def set_names(self) -> list[tuple[str, ...]]:
        """[set of columns]: their names."""
        names = list(self.columns)
        return [tuple(names[column] for column in columns) for columns in self._sets]

    @property
    def room_names(self) -> list[tuple[tuple[str, ...], str | None]]:
        """The columns by which instances wait, and the one in whose order they do."""
        names = list(self.columns)
        return [(self.set_names[by], None if order < 0 else names[order]) for by, order, _ in self._rooms]

    @property
    def room_count(self) -> int:
        return len(self._rooms)

    @property
    def set_count(self) -> int:
        return len(self._sets)

"""The merged automata of a set's queries: arrays that grow as queries come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kleene.engine.intake.strings import StringPool
from kleene.engine.query_sets.compiling import CompiledNode, Parameters
from kleene.engine.query_sets.shapes import EnteringShape, Shapes
from kleene.engine.state.growing import with_room
from kleene.kernels import shared_nodes as kernel
from kleene.kernels.expression import Ints
from kleene.kernels.shared_nodes import NewEdges, Numbers, SharedGraph
from kleene.kernels.shared_streams import SharedMachine
from kleene.plan.streams import FINAL, START

_FIRST_ROOM = 64
# So many queries at once are worth trimming arrays to what they need.
_MANY = 1 << 12


@dataclass(frozen=True, eq=False)
class ShapedTemplate:
    """The nodes of a template, with the numbers of their shapes."""

    nodes: tuple[CompiledNode, ...]
    entering: tuple[tuple[EnteringShape, ...], ...]
    shapes: tuple[int, ...]


class QueryNodes:
    """Nodes and edges of all queries, and which queries end where."""

    def __init__(self, strings: StringPool) -> None:
        self.strings = strings
        self.shapes = Shapes()
        self._graph = _empty(_FIRST_ROOM)
        # [query]: the next query that ends at the same node.
        self._following: Numbers = np.full(_FIRST_ROOM, -1, np.int32)

    def shaped(self, nodes: Sequence[CompiledNode]) -> ShapedTemplate:
        """A template's nodes, with their shapes."""
        numbers: dict[int, int] = {START: 0}
        entering, shapes = [], []
        for node in nodes:
            edges = tuple(self.shapes.entering(each, numbers[each.source]) for each in node.entering)
            number = self.shapes.node(node, edges)
            entering.append(edges)
            shapes.append(number)
            if node.label.state != FINAL:
                numbers[node.label.state] = number
        return ShapedTemplate(tuple(nodes), tuple(entering), tuple(shapes))

    # Queries that come and go

    def add(self, template: ShapedTemplate, given: Parameters, queries: Ints, *, merges: bool = True) -> Numbers:
        """Put queries of one template in; [row]: the nodes where they end.

        merges   whether equal prefixes become one; otherwise every query has nodes of its own
        """
        at: dict[int, Numbers] = {START: np.zeros(given.size, np.int32)}
        ended = np.zeros(given.size, np.int32)
        for node, edges, shape in zip(template.nodes, template.entering, template.shapes, strict=True):
            own = self._kept(node.constants(given, self.strings))
            targets = np.zeros(given.size, np.int32)
            for number, (entering, edge) in enumerate(zip(node.entering, edges, strict=True)):
                tested, ranges = entering.tested(given, self.strings)
                places = self._kept(entering.constants(tested, given, self.strings))
                label = self.shapes.label(edge, shape, merges=merges and len(edges) == 1)
                self._make_room(edges=given.size)
                # Edges of the same values stand side by side.
                order = np.lexsort(tested.T[::-1]) if given.size > 1 and tested.shape[1] else np.arange(given.size)
                new = NewEdges(at[entering.source], tested, ranges, places, own, label, order)
                (kernel.add_entering if number else kernel.add_edges)(self._graph, new, targets)
            if node.label.state == FINAL:
                ended = targets
            else:
                at[node.label.state] = targets
        self._following = with_some_room(self._following, int(queries.max(initial=-1)) + 1, -1)
        kernel.add_users(self._graph, self._following, queries.astype(np.int32), ended)
        if given.size > _MANY:
            self._trim()
        return ended

    def remove(self, query: int, node: int) -> None:
        kernel.remove_user(self._graph, self.shapes.edge_sets, self._following, query, node)

    def _kept(self, rows: Ints) -> Numbers:
        """[row]: where the constants of each begin."""
        places = np.zeros(len(rows), np.int32)
        self._make_room(constants=len(rows) * (rows.shape[1] + 1), rows=len(rows))
        kernel.keep_rows(self._graph, rows, np.arange(len(rows)), places)
        return places

    def _make_room(self, edges: int = 0, constants: int = 0, rows: int = 0) -> None:
        """Room for so many more edges and nodes, constants, and rows of these."""
        graph = self._graph
        used = [int(size) for size in graph.sizes]
        needed = used[kernel.EDGES] + edges
        grown = graph._replace(
            nodes=with_some_room(graph.nodes, used[kernel.NODES] + edges),
            edges=with_some_room(graph.edges, needed),
            entries=with_some_room(graph.entries, needed),
            accesses=with_some_room(graph.accesses, used[kernel.ACCESS_COUNT] + edges),
            constants=with_some_room(graph.constants, used[kernel.CONSTANT_COUNT] + constants),
        )
        all_rows = used[kernel.ROW_COUNT] + rows
        if needed > len(graph.heads) or 3 * needed > 2 * len(graph.merged) or 3 * all_rows > 2 * len(graph.rows):
            grown = _in_buckets(grown, needed, all_rows)
        self._graph = grown

    def _trim(self) -> None:
        """Give back the room for what was merged."""
        graph = self._graph
        used = [int(size) for size in graph.sizes]
        counts = {
            "nodes": used[kernel.NODES],
            "edges": used[kernel.EDGES],
            "entries": used[kernel.EDGES],
            "accesses": used[kernel.ACCESS_COUNT],
            "constants": used[kernel.CONSTANT_COUNT],
        }
        trimmed = {name: getattr(graph, name)[:count].copy() for name, count in counts.items()}
        self._graph = _in_buckets(graph._replace(**trimmed), used[kernel.EDGES], used[kernel.ROW_COUNT])

    # What there is

    @property
    def machine(self) -> SharedMachine:
        return SharedMachine(self._graph, self.shapes.arrays, self._graph.constants.view(np.float64))

    @property
    def following(self) -> Numbers:
        """[query]: the next query that ends at the same node."""
        return self._following

    @property
    def node_count(self) -> int:
        return int(self._graph.sizes[kernel.NODES])

    @property
    def node_table(self) -> Numbers:
        """[node, NODE]"""
        return self._graph.nodes[: self.node_count]

    @property
    def edge_table(self) -> Numbers:
        """[edge, EDGE]"""
        return self._graph.edges[: int(self._graph.sizes[kernel.EDGES])]

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self._graph) + int(self._following.nbytes)


def with_some_room(array: Any, needed: int, fill: int | None = None) -> Any:
    """The array itself, or a longer copy: a quarter more than it was, since there may be very many of these."""
    return array if len(array) >= needed else with_room(array, max(needed, len(array) + (len(array) >> 2)), fill)


def _in_buckets(graph: SharedGraph, edges: int, rows: int) -> SharedGraph:
    """A graph with buckets for so many edges and rows of constants."""

    def buckets(number: int) -> Numbers:
        return np.full(1 << (max(number, _FIRST_ROOM) - 1).bit_length(), -1, np.int32)

    new = graph._replace(heads=buckets(edges), merged=buckets(edges * 3 // 2), rows=buckets(rows * 3 // 2))
    kernel.put_in_buckets(new)
    return new


def _empty(room: int) -> SharedGraph:
    """A graph with nothing but its root."""
    nodes = np.zeros((room, kernel.NODE), np.int32)
    nodes[kernel.ROOT, [kernel.ENTERING, kernel.QUERY, kernel.ACCESSES]] = -1
    nodes[kernel.ROOT, kernel.USERS] = 1
    sizes = np.zeros(kernel.GRAPH_SIZES, np.int64)
    sizes[kernel.NODES] = 1
    return SharedGraph(
        nodes,
        np.zeros((room, kernel.EDGE), np.int32),
        np.zeros((room, kernel.ENTRY), np.int64),
        np.zeros((room, kernel.ACCESS_WIDTH), np.int32),
        np.zeros(room, np.int64),
        np.full(2 * room, -1, np.int32),
        np.full(2 * room, -1, np.int32),
        np.full(2 * room, -1, np.int32),
        sizes,
    )

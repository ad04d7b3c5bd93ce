"""The merged automata of a set's queries: arrays that grow as queries come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kleene.engine.intake.strings import StringPool
from kleene.engine.query_sets.atoms import GREATEST, LEAST
from kleene.engine.query_sets.compiling import CompiledEntering, CompiledNode, Parameters
from kleene.engine.query_sets.lasting_arrays import lasting, taken, with_some_room
from kleene.engine.query_sets.shapes import EnteringShape, Shapes
from kleene.kernels import shared_nodes as kernel
from kleene.kernels.expression import Ints
from kleene.kernels.shared_machine import ENTERS, SharedMachine
from kleene.kernels.shared_nodes import NewEdges, Numbers, SharedGraph
from kleene.plan.streams import FINAL, START

_FIRST_ROOM = 64
# So many edges that only ranges tell apart are searched by their bounds.
_LONG_RUN = 32
# So many new edges are worth putting all of them in order.
_MANY = 1 << 8


@dataclass(frozen=True, eq=False)
class ShapedTemplate:
    """The nodes of a template, with the numbers of their shapes."""

    nodes: tuple[CompiledNode, ...]
    entering: tuple[tuple[EnteringShape, ...], ...]
    shapes: tuple[int, ...]


class QueryNodes:
    """Nodes and edges of all queries, and which queries end where."""

    def __init__(self, strings: StringPool, shapes: Shapes | None = None) -> None:
        self.strings = strings
        self.shapes = shapes or Shapes()
        self._graph = _empty(_FIRST_ROOM)
        # How many edges are in the order of the index.
        self._frozen = 0
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
            new = [self._new_edges(each, at[each.source], given) for each in node.entering]
            # Two nodes are one if all edges that enter them are: those after the first are part of what it holds.
            others = [part for each in new[1:] for part in (each.sources[:, None], each.places[:, None], each.ranges)]
            own = self._kept(np.concatenate((node.constants(given, self.strings), *others), axis=1))
            known, targets = self.node_count, np.zeros(given.size, np.int32)
            self._make_room(edges=given.size)
            label = self.shapes.label(edges[0], shape, merges=merges)
            kernel.add_edges(self._graph, new[0]._replace(own=own, label=label), targets)
            if len(edges) > 1:
                entered, firsts = np.unique(targets, return_index=True)
                firsts = firsts[entered >= known]
                for each, edge in zip(new[1:], edges[1:], strict=True):
                    self._make_room(edges=len(firsts))
                    label = self.shapes.label(edge, shape, merges=False)
                    kernel.add_entering(self._graph, _some(each, firsts, own, label), targets[firsts])
            if node.label.state == FINAL:
                ended = targets
            else:
                at[node.label.state] = targets
        self._following = with_some_room(self._following, int(queries.max(initial=-1)) + 1, -1)
        kernel.add_users(self._graph, self._following, queries.astype(np.int32), ended)
        return ended

    def remove(self, query: int, node: int) -> None:
        kernel.remove_user(self._graph, self._following, query, node)

    def _new_edges(self, entering: CompiledEntering, sources: Numbers, given: Parameters) -> NewEdges:
        """The edges of some queries that enter a node, without their label."""
        tested, ranges = entering.tested(given, self.strings)
        places = self._kept(entering.constants(tested, given, self.strings))
        return NewEdges(sources, tested, ranges, places, places, np.zeros(kernel.LABEL, np.int64))

    def _kept(self, rows: Ints) -> Numbers:
        """[row]: where the constants of each begin."""
        places = np.zeros(len(rows), np.int32)
        self._make_room(constants=len(rows) * (rows.shape[1] + 1), rows=len(rows))
        kernel.keep_rows(self._graph, rows, places)
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
            accesses=with_some_room(graph.accesses, used[kernel.ACCESS_COUNT] + 2 * edges),
            constants=with_some_room(graph.constants, used[kernel.CONSTANT_COUNT] + constants),
        )
        all_rows = used[kernel.ROW_COUNT] + rows
        if needed > len(graph.heads) or 3 * needed > 2 * len(graph.merged) or 3 * all_rows > 2 * len(graph.rows):
            grown = _in_buckets(grown, needed, all_rows)
        self._graph = grown

    def freeze_if_many(self) -> None:
        """Freeze edges when a good part of them came after the last time: amortised it costs little."""
        edges = int(self._graph.sizes[kernel.EDGES])
        if edges - self._frozen > max(_MANY, edges >> 3):
            self.freeze()

    def freeze(self) -> None:
        """Give back the room for what was merged, and let edges stand in the order of their buckets: those that an
        event looks at are then side by side in memory."""
        graph = self._graph
        used = [int(size) for size in graph.sizes]
        edges = self._frozen = used[kernel.EDGES]
        order = _index_order(graph.entries[:edges])
        # The last place stands for −1, no edge.
        place = np.full(edges + 1, -1, np.int32)
        place[order] = np.arange(edges)
        graph = graph._replace(
            nodes=taken(graph.nodes, used[kernel.NODES]),
            edges=taken(graph.edges, order),
            entries=taken(graph.entries, order),
            accesses=taken(graph.accesses, used[kernel.ACCESS_COUNT]),
            constants=taken(graph.constants, used[kernel.CONSTANT_COUNT]),
        )
        graph.edges[:, kernel.SIBLING] = place[graph.edges[:, kernel.SIBLING]]
        graph.nodes[:, kernel.ENTERING] = place[graph.nodes[:, kernel.ENTERING]]
        graph = _with_runs(graph)
        self._graph = _in_buckets(graph, edges, used[kernel.ROW_COUNT])

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

    def shapes_of(self, nodes: Ints) -> Ints:
        """[node]: the shape of each, which is that of the first edge that enters it."""
        shapes = self._graph.entries[self.node_table[nodes, kernel.ENTERING], kernel.TARGET] >> 32
        entered: Ints = self.shapes.arrays.edges[shapes, ENTERS]
        return entered

    @property
    def edge_table(self) -> Numbers:
        """[edge, EDGE]"""
        return self._graph.edges[: int(self._graph.sizes[kernel.EDGES])]

    @property
    def levels(self) -> list[int]:
        """How many nodes that some query needs there are after one event, after two, …"""
        nodes, edges = self.node_table, self.edge_table
        depth = np.zeros(len(nodes), np.int64)
        # An edge leads from an older node to a newer one.
        parents = edges[nodes[1:, kernel.ENTERING], kernel.SOURCE]
        while not np.array_equal(deeper := depth[parents] + 1, depth[1:]):
            depth[1:] = deeper
        levels: list[int] = np.bincount(depth[nodes[:, kernel.USERS] > 0])[1:].tolist()
        return levels

    @property
    def access_paths(self) -> dict[tuple[str, ...], int]:
        """The columns whose values edges are looked up by, and how many edges by each set of them."""
        targets = self._graph.entries[: int(self._graph.sizes[kernel.EDGES]), kernel.TARGET]
        needed = targets.astype(np.int32) >= 0
        counts = np.bincount(self.shapes.edge_sets[targets[needed] >> 32], minlength=self.shapes.set_count)
        named = zip(self.shapes.set_names, counts.tolist(), strict=True)
        return {names: count for names, count in named if count}

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self._graph) + int(self._following.nbytes)


def moved_nodes(old: QueryNodes, new: QueryNodes, ended: Numbers, renewed: Numbers) -> Numbers:
    """[old node]: the new one, where the same queries have the same nodes anew; −1: it is gone.

    ended, renewed   where each query ends, before and now
    """
    place = np.full(old.node_count, -1, np.int32)
    place[kernel.ROOT] = kernel.ROOT
    pairs = np.unique(np.stack((ended, renewed), axis=1), axis=0)
    while len(pairs):
        place[pairs[:, 0]] = pairs[:, 1]
        # The edges that enter equal nodes stand in the same order.
        before, after = old.node_table[pairs[:, 0], kernel.ENTERING], new.node_table[pairs[:, 1], kernel.ENTERING]
        sources = [np.zeros((0, 2), np.int32)]
        while len(before):
            sources.append(
                np.stack((old.edge_table[before, kernel.SOURCE], new.edge_table[after, kernel.SOURCE]), axis=1)
            )
            before, after = old.edge_table[before, kernel.SIBLING], new.edge_table[after, kernel.SIBLING]
            before, after = before[before >= 0], after[after >= 0]
        pairs = np.unique(np.concatenate(sources), axis=0)
        pairs = pairs[place[pairs[:, 0]] < 0]
    return place


def _some(new: NewEdges, rows: Ints, own: Numbers, label: Ints) -> NewEdges:
    """The edges of some rows."""
    return NewEdges(new.sources[rows], new.tested[rows], new.ranges[rows], new.places[rows], own[rows], label)


def _index_order(entries: Ints) -> Ints:
    """The order of edges in which those of one bucket stand together; of one hash and the same columns of ranges by
    their lower bounds, or by falling upper bounds where there are no lower ones."""
    buckets = entries[:, kernel.HASH] & (_power_of_two(len(entries)) - 1)
    # The complement falls where the bounds rise, and fits 64 bits.
    highs = np.where(entries[:, kernel.LOW] == LEAST, ~entries[:, kernel.HIGH], LEAST)
    keys = highs, entries[:, kernel.LOW], entries[:, kernel.RANGED], entries[:, kernel.HASH], buckets
    return np.lexsort(keys)


def _with_runs(graph: SharedGraph) -> SharedGraph:
    """A graph whose edges are in that order, with the runs of edges that only ranges tell apart."""
    entries = graph.entries
    same = np.all(entries[1:, [kernel.HASH, kernel.RANGED]] == entries[:-1, [kernel.HASH, kernel.RANGED]], axis=1)
    # What has no lower bound is a run by itself: it has another order.
    same &= (entries[1:, kernel.LOW] == LEAST) == (entries[:-1, kernel.LOW] == LEAST)
    firsts = np.flatnonzero(np.concatenate((np.ones(min(len(entries), 1), np.bool_), ~same)))
    lasts = np.append(firsts[1:], len(entries))
    long = lasts - firsts >= _LONG_RUN
    runs = np.zeros((int(long.sum()), kernel.RUN), np.int64)
    runs[:, kernel.FIRST], runs[:, kernel.LAST] = firsts[long], lasts[long]
    runs[:, kernel.IS_BY_HIGH] = entries[firsts[long], kernel.LOW] == LEAST
    bounds = 0
    for run in runs:
        is_bounded = entries[run[kernel.FIRST] : run[kernel.LAST], kernel.HIGH].min() < GREATEST
        run[kernel.BOUNDS] = bounds if is_bounded and not run[kernel.IS_BY_HIGH] else -1
        bounds += int(run[kernel.LAST] - run[kernel.FIRST]) + 64 if run[kernel.BOUNDS] >= 0 else 0
    graph = graph._replace(runs=runs, greatest=lasting(bounds, np.int64))
    kernel.fill_greatest(graph)
    return graph


def _power_of_two(number: int) -> int:
    return 1 << (max(number, _FIRST_ROOM) - 1).bit_length()


def _in_buckets(graph: SharedGraph, edges: int, rows: int) -> SharedGraph:
    """A graph with buckets for so many edges and rows of constants."""

    def buckets(number: int) -> Numbers:
        return lasting(_power_of_two(number), np.int32, -1)

    new = graph._replace(heads=buckets(edges), merged=buckets(edges * 3 // 2), rows=buckets(rows * 3 // 2))
    kernel.put_in_buckets(new)
    return new


def _empty(room: int) -> SharedGraph:
    """A graph with nothing but its root."""
    nodes = np.zeros((room, kernel.NODE), np.int32)
    nodes[kernel.ROOT, [kernel.ENTERING, kernel.LEADS_TO]] = -1
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
        np.zeros((0, kernel.RUN), np.int64),
        np.zeros(0, np.int64),
        sizes,
    )

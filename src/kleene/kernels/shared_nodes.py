"""The merged automata of many queries as flat arrays (CESAR §4.2): nodes, edges between them, and the index of edges.

Equal prefixes of queries are one path of nodes (CESAR Definition 2): an edge is looked up by its source, its label and
the loops of its target before a new one is made. The same edges are the predicate index (the FR-index of CESAR §4.3):
an edge is found by its source and by the values that its condition tests for equality, so that an event is joined only
with edges of nodes where something waits, and of those only with edges of its own values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleene.kernels.expression import Ints
from kleene.kernels.identity import mix
from kleene.kernels.jit import borrowed, compiled, inlined, step

Numbers = NDArray[np.int32]

# The node where nothing waits: every event visits it.
ROOT = 0

# Words of an edge in the index, one line of a processor's cache: the hash of its source and of the values tested for
# equality; the next edge in its bucket, and where its constants are; the node that it enters (−1: nobody needs the edge
# any more), and its shape; the columns of two ranges, 16 bits each, and where the constants of the node are; and the
# bounds of the ranges. Where two numbers are one word, the second one is the upper half (`both`).
HASH, LINKS, TARGET, RANGED, LOW, HIGH, OTHER_LOW, OTHER_HIGH, ENTRY = range(9)

# Numbers of an edge: its source, and the next edge that enters the same target.
SOURCE, SIBLING, EDGE = range(3)

# Numbers of a node: how many edges leave it and queries end there (0: nobody needs it), the first edge that enters it,
# which knows its shape and where its constants are, and what it leads to: of results that is the first query that ends
# there, of any other node the first access (−1: nothing).
USERS, ENTERING, LEADS_TO, NODE = range(4)

# Numbers of an access, one of the sets of columns by which the edges of a node are looked up: the set, and the next
# access of the node. Most nodes have one, which needs no memory of its own: it has the number −2 − set.
COLUMN_SET, NEXT_ACCESS, ACCESS_WIDTH = range(3)

# Sizes that change: nodes, edges, accesses, constants, and rows of these in use.
NODES, EDGES, ACCESS_COUNT, CONSTANT_COUNT, ROW_COUNT, GRAPH_SIZES = range(6)


# Words of a run of edges with one hash, one source and the same columns of ranges. It stands in its bucket as one:
# under the number −2 − run. Its first and its last edge + 1, what follows in the bucket, where its upper bounds are
# (−1: none is needed), and its order: by rising lower bounds of the first range, or by falling upper bounds.
FIRST, LAST, NEXT_IN_BUCKET, BOUNDS, IS_BY_HIGH, RUN = range(6)


class SharedGraph(NamedTuple):
    """Nodes and edges of all queries; a part of each array is free."""

    nodes: Numbers  #     [node, NODE]
    edges: Numbers  #     [edge, EDGE]
    entries: Ints  #      [edge, ENTRY]
    accesses: Numbers  #  [access, ACCESS_WIDTH]
    constants: Ints  #    [place]: rows of what edges and nodes compare with, each once and after its length
    heads: Numbers  #     [bucket]: the first edge with this hash; a power of two of them
    merged: Numbers  #    [bucket]: edges by all that makes them one, by open addressing; a power of two of them
    rows: Numbers  #      [bucket]: rows of constants by what they hold, by open addressing; a power of two of them
    runs: Ints  #         [run, RUN]: edges that only ranges tell apart, side by side
    greatest: Ints  #     [place]: upper bounds of the edges of runs, of every two of them, of every four …
    sizes: Ints  #        [GRAPH_SIZES]


class NewEdges(NamedTuple):
    """Edges with one label, one for each query, and the nodes that they enter.

    What makes two of them one: the source, the shapes, the ranges, and the rows of constants.
    """

    sources: Numbers  #    [row]
    tested: Ints  #        [row, column]: the values that the condition tests for equality
    ranges: Ints  #        [row, 4]: two closed ranges
    places: Numbers  #     [row]: where the constants of the edge begin, the tested values first
    own: Numbers  #        [row]: where the constants of the node begin
    label: Ints  #         [LABEL]


# Numbers of a label: the shape of edges, the set of columns that is tested for equality, the columns of two ranges (the
# second one times 2¹⁶), and whether equal edges are one.
LABEL_EDGE, LABEL_COLUMNS, LABEL_RANGED, LABEL_MERGES, LABEL = range(5)


@inlined
def both(low: int, high: int) -> int:
    """Two numbers in one word."""
    return int(np.int64(high) << 32 | np.int64(low) & 0xFFFFFFFF)


@inlined
def lower(word: int) -> int:
    return int(((np.int64(word) & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000)


@inlined
def upper(word: int) -> int:
    return int(np.int64(word) >> 32)


@inlined
def first_range(word: int) -> int:
    """The column of the first range of an edge, from its word RANGED."""
    return int(np.int64(word) & 0xFFFF)


@inlined
def second_range(word: int) -> int:
    return int((np.int64(word) >> 16) & 0xFFFF)


# Looking edges up ----------------------------------------------------------------------------------------------------


@inlined
def access_hash(source: int, columns: int) -> np.uint64:
    """The hash of a node and a set of columns, to which their values are added one by one (`with_value`)."""
    # 1 more, since 0 mixed is 0: a set with the values (c, v) would have the hash of set c with the value v.
    return mix(np.uint64(source) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(columns) + np.uint64(1))


@inlined
def with_value(value_hash: np.uint64, value: int) -> np.uint64:
    return mix(value_hash ^ np.uint64(value))


@inlined
def columns_of(graph: SharedGraph, access: int) -> int:
    """The set of columns of an access."""
    return -2 - access if access < -1 else graph.accesses[access, COLUMN_SET]


@inlined
def next_access(graph: SharedGraph, access: int) -> int:
    """The next one of the same node; −1: there is none."""
    return -1 if access < -1 else graph.accesses[access, NEXT_ACCESS]


@inlined
def bucket_of(value_hash: np.uint64, buckets: int) -> int:
    return int(np.int64(value_hash & np.uint64(buckets - 1)))


# Runs ----------------------------------------------------------------------------------------------------------------


@inlined
def end_in_run(graph: SharedGraph, run: int, values: Ints) -> int:
    """The first edge of a run whose range, and that of all after it, an event's value cannot be in."""
    low, high = graph.runs[run, FIRST], graph.runs[run, LAST]
    value = values[first_range(graph.entries[low, RANGED])]
    by_high = graph.runs[run, IS_BY_HIGH] == 1
    while low < high:
        middle = (low + high) >> 1
        if (graph.entries[middle, HIGH] >= value) if by_high else (graph.entries[middle, LOW] <= value):
            low = middle + 1
        else:
            high = middle
    return int(low)


@inlined
def next_in_run(graph: SharedGraph, run: int, at: int, end: int, values: Ints) -> int:
    """The first edge from a place on whose upper bound is not below an event's value: as many as possible are passed
    over at once, by the greatest bounds of two, four, eight …"""
    first, last = graph.runs[run, FIRST], graph.runs[run, LAST]
    bounds = graph.runs[run, BOUNDS]
    if bounds < 0 or at >= end:
        return at
    value = values[first_range(graph.entries[first, RANGED])]
    while at < end and graph.entries[at, HIGH] < value:
        place, size, level, begin = (at - first) >> 1, 2, last - first, bounds
        level = (level + 1) >> 1
        step_size = 1
        while (at - first) & (size - 1) == 0 and level > 0 and graph.greatest[begin + place] < value:
            step_size = size
            begin += level
            level = (level + 1) >> 1 if level > 1 else 0
            place, size = place >> 1, size << 1
        at += step_size
    return at


@compiled
def fill_greatest(graph: SharedGraph) -> None:
    """Compute the upper bounds of all runs that need them; there is room for them."""
    graph = borrowed(graph)
    for run in range(graph.runs.shape[0]):
        begin = graph.runs[run, BOUNDS]
        if begin < 0:
            continue
        first, size = graph.runs[run, FIRST], graph.runs[run, LAST] - graph.runs[run, FIRST]
        for place in range((size + 1) >> 1):
            bound = graph.entries[first + 2 * place, HIGH]
            if 2 * place + 1 < size:
                bound = max(bound, graph.entries[first + 2 * place + 1, HIGH])
            graph.greatest[begin + place] = bound
        size = (size + 1) >> 1
        while size > 1:
            for place in range((size + 1) >> 1):
                bound = graph.greatest[begin + 2 * place]
                if 2 * place + 1 < size:
                    bound = max(bound, graph.greatest[begin + 2 * place + 1])
                graph.greatest[begin + size + place] = bound
            begin += size
            size = (size + 1) >> 1


# Constants -----------------------------------------------------------------------------------------------------------


@compiled
def keep_rows(graph: SharedGraph, rows: Ints, places: Numbers) -> None:
    """Keep rows of constants, each once; `places` [row] gets where each begins. There is room for all of them."""
    graph = borrowed(graph)
    width, mask = rows.shape[1], graph.rows.size - 1
    for row in range(rows.shape[0]):
        value = np.uint64(width)
        for column in range(width):
            value = with_value(value, rows[row, column])
        slot = bucket_of(value, graph.rows.size)
        while graph.rows[slot] >= 0 and not _is_kept(graph, graph.rows[slot], rows[row]):
            slot = (slot + 1) & mask
        if graph.rows[slot] < 0:
            graph.rows[slot] = graph.sizes[CONSTANT_COUNT]
            graph.constants[graph.sizes[CONSTANT_COUNT]] = width
            for column in range(width):
                graph.constants[graph.sizes[CONSTANT_COUNT] + 1 + column] = rows[row, column]
            graph.sizes[CONSTANT_COUNT] += width + 1
            graph.sizes[ROW_COUNT] += 1
        places[row] = graph.rows[slot] + 1


@inlined
def _is_kept(graph: SharedGraph, place: int, row: Ints) -> bool:
    """Whether this row begins at a place: its length stands before it."""
    same = graph.constants[place] == row.size
    column = 0
    while same and column < row.size:
        same = graph.constants[place + 1 + column] == row[column]
        column += 1
    return bool(same)


# Coming --------------------------------------------------------------------------------------------------------------


@compiled
def add_edges(graph: SharedGraph, new: NewEdges, targets: Numbers) -> None:
    """Put edges in, each with the node that it enters, or find those that are there; `targets` [row] gets the nodes.

    There is room for as many edges and nodes as there are rows, and for two accesses each.
    """
    graph, new = borrowed(graph), borrowed(new)
    merges = new.label[LABEL_MERGES] == 1
    for row in range(targets.size):
        slot = _slot(graph, new, row) if merges else 0
        edge = graph.merged[slot] if merges else -1
        if edge < 0:
            edge = _new_edge(graph, new, row, _new_node(graph))
            if merges:
                graph.merged[slot] = edge
        targets[row] = lower(graph.entries[edge, TARGET])


@compiled
def add_entering(graph: SharedGraph, new: NewEdges, targets: Numbers) -> None:
    """Put further edges in that enter nodes which are there already: these are never merged."""
    graph, new = borrowed(graph), borrowed(new)
    for row in range(targets.size):
        _new_edge(graph, new, row, targets[row])


@step
def _slot(graph: SharedGraph, new: NewEdges, row: int) -> int:
    """The place of an equal edge among the merged ones, or the free one where it belongs."""
    links = both(new.places[row], new.label[LABEL_EDGE])
    value = _merging_hash(new.sources[row], new.own[row], links, new.ranges[row])
    slot = bucket_of(value, graph.merged.size)
    while graph.merged[slot] >= 0 and not _is_same(graph, new, row, slot):
        slot = (slot + 1) & (graph.merged.size - 1)
    return slot


@inlined
def _merging_hash(source: int, own: int, links: int, ranges: Ints) -> np.uint64:
    """The hash of all that makes edges one: the source, the constants of the node, shape and constants of the edge,
    and the ranges. The shape of the edge says that of the node."""
    value = with_value(with_value(mix(np.uint64(source + 1)), own), links)
    for column in range(4):
        value = with_value(value, ranges[column])
    return value


@inlined
def _is_same(graph: SharedGraph, new: NewEdges, row: int, slot: int) -> bool:
    edge = graph.merged[slot]
    entry = graph.entries[edge]
    same = (
        lower(entry[TARGET]) >= 0
        and graph.edges[edge, SOURCE] == new.sources[row]
        and upper(entry[TARGET]) == new.label[LABEL_EDGE]
        and upper(entry[LINKS]) == new.places[row]
        and upper(entry[RANGED]) == new.own[row]
    )
    for column in range(4):
        same = same and entry[LOW + column] == new.ranges[row, column]
    return bool(same)


@step
def _new_node(graph: SharedGraph) -> int:
    node = graph.sizes[NODES]
    graph.sizes[NODES] += 1
    graph.nodes[node, USERS] = 0
    graph.nodes[node, ENTERING] = -1
    graph.nodes[node, LEADS_TO] = -1
    return int(node)


@inlined
def _new_edge(graph: SharedGraph, new: NewEdges, row: int, target: int) -> int:
    edge = graph.sizes[EDGES]
    graph.sizes[EDGES] += 1
    source, columns = new.sources[row], new.label[LABEL_COLUMNS]
    graph.edges[edge, SOURCE] = source
    graph.edges[edge, SIBLING] = graph.nodes[target, ENTERING]
    graph.nodes[target, ENTERING] = edge
    graph.nodes[source, USERS] += 1
    _add_access(graph, source, columns)
    value = access_hash(source, columns)
    for column in range(new.tested.shape[1]):
        value = with_value(value, new.tested[row, column])
    bucket = bucket_of(value, graph.heads.size)
    graph.entries[edge, HASH] = np.int64(value)
    graph.entries[edge, LINKS] = both(graph.heads[bucket], new.places[row])
    graph.entries[edge, TARGET] = both(target, new.label[LABEL_EDGE])
    graph.entries[edge, RANGED] = both(new.label[LABEL_RANGED], new.own[row])
    for column in range(4):
        graph.entries[edge, LOW + column] = new.ranges[row, column]
    graph.heads[bucket] = edge
    return int(edge)


@inlined
def _add_access(graph: SharedGraph, node: int, columns: int) -> None:
    """Let edges of a node be looked up by a set of columns, too."""
    first = graph.nodes[node, LEADS_TO]
    if first == -1:
        graph.nodes[node, LEADS_TO] = -2 - columns
        return
    access = first
    while access != -1 and columns_of(graph, access) != columns:
        access = next_access(graph, access)
    if access != -1:
        return
    if first < -1:
        first = _new_access(graph, -2 - first, -1)
    graph.nodes[node, LEADS_TO] = _new_access(graph, columns, first)


@inlined
def _new_access(graph: SharedGraph, columns: int, following: int) -> int:
    access = graph.sizes[ACCESS_COUNT]
    graph.sizes[ACCESS_COUNT] += 1
    graph.accesses[access, COLUMN_SET], graph.accesses[access, NEXT_ACCESS] = columns, following
    return int(access)


@compiled
def put_in_buckets(graph: SharedGraph) -> None:
    """Put all edges and rows of constants into the buckets, which are new and empty."""
    graph = borrowed(graph)
    run = 0
    for edge in range(graph.sizes[EDGES]):
        entry = graph.entries[edge]
        node = lower(entry[TARGET])
        bucket = bucket_of(np.uint64(entry[HASH]), graph.heads.size)
        if run < graph.runs.shape[0] and edge == graph.runs[run, FIRST]:
            graph.runs[run, NEXT_IN_BUCKET] = graph.heads[bucket]
            graph.heads[bucket] = -2 - run
        if run < graph.runs.shape[0] and edge + 1 == graph.runs[run, LAST]:
            run += 1
        elif node >= 0 and not (run < graph.runs.shape[0] and edge >= graph.runs[run, FIRST]):
            entry[LINKS] = both(graph.heads[bucket], upper(entry[LINKS]))
            graph.heads[bucket] = edge
        if node < 0:
            continue
        own, links = upper(entry[RANGED]), both(upper(entry[LINKS]), upper(entry[TARGET]))
        value = _merging_hash(graph.edges[edge, SOURCE], own, links, entry[LOW : OTHER_HIGH + 1])
        slot = bucket_of(value, graph.merged.size)
        while graph.merged[slot] >= 0:
            slot = (slot + 1) & (graph.merged.size - 1)
        graph.merged[slot] = edge
    place = 0
    while place < graph.sizes[CONSTANT_COUNT]:
        width = graph.constants[place]
        value = np.uint64(width)
        for column in range(width):
            value = with_value(value, graph.constants[place + 1 + column])
        slot = bucket_of(value, graph.rows.size)
        while graph.rows[slot] >= 0:
            slot = (slot + 1) & (graph.rows.size - 1)
        graph.rows[slot] = place
        place += width + 1


# Queries -------------------------------------------------------------------------------------------------------------


@compiled
def add_users(graph: SharedGraph, following: Numbers, queries: Numbers, nodes: Numbers) -> None:
    """Let queries end at nodes; `following` [query] gets the next query of the same node."""
    for row in range(queries.size):
        query, node = queries[row], nodes[row]
        following[query] = graph.nodes[node, LEADS_TO]
        graph.nodes[node, LEADS_TO] = query
        graph.nodes[node, USERS] += 1


@compiled
def remove_user(graph: SharedGraph, following: Numbers, query: int, node: int) -> None:
    """Let a query end no longer at a node; edges that nobody needs any more leave the index."""
    graph = borrowed(graph)
    before = graph.nodes[node, LEADS_TO]
    if before == query:
        graph.nodes[node, LEADS_TO] = following[query]
    else:
        while following[before] != query:
            before = following[before]
        following[before] = following[query]
    pending = np.empty(16, np.int64)
    pending[0] = node
    left = 1
    while left > 0:
        left -= 1
        node = pending[left]
        graph.nodes[node, USERS] -= 1
        edge = graph.nodes[node, ENTERING] if graph.nodes[node, USERS] == 0 else -1
        while edge >= 0:
            if left == pending.size:
                pending = np.concatenate((pending, pending))
            if graph.edges[edge, SOURCE] != ROOT:
                pending[left] = graph.edges[edge, SOURCE]
                left += 1
            _leave_index(graph, edge)
            edge = graph.edges[edge, SIBLING]


@inlined
def _leave_index(graph: SharedGraph, edge: int) -> None:
    graph.entries[edge, TARGET] = both(-1, upper(graph.entries[edge, TARGET]))
    bucket = bucket_of(np.uint64(graph.entries[edge, HASH]), graph.heads.size)
    following = lower(graph.entries[edge, LINKS])
    other = int(graph.heads[bucket])
    if other == edge:
        graph.heads[bucket] = following
        return
    # An edge of a run is not in the bucket by itself: it stays where it is, and is passed over.
    while other != -1:
        next_one = graph.runs[-2 - other, NEXT_IN_BUCKET] if other < -1 else lower(graph.entries[other, LINKS])
        if next_one == edge and other < -1:
            graph.runs[-2 - other, NEXT_IN_BUCKET] = following
        elif next_one == edge:
            graph.entries[other, LINKS] = both(following, upper(graph.entries[other, LINKS]))
        other = -1 if next_one == edge else int(next_one)

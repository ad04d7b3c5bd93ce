"""Tables of OUTPUT COMPRESSED from flat arrays: the graphs of all completing events at once, column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.errors import BudgetExceeded
from kleene.frames.graph_type import GRAPH, OF_EACH_ROW, is_graph_type
from kleene.frames.identity import bytes_hash
from kleene.frames.numbers import to_arrow
from kleene.frames.results import columns_of_input, event_column, event_fields, result_schema, times
from kleene.kernels.graph_columns import list_events, number_links
from kleene.kernels.identity import fold_ranges
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery

Ints = npt.NDArray[np.int64]
# What 32 bits can number in an Arrow list.
_MOST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Sharing:
    """Rows that hold nodes for others, and what is too early for whom."""

    # [row]: the row that holds its nodes, itself or an earlier one.
    hosts: Ints
    # [row + 1]: row r holds the beginnings begins[begin_offsets[r] : begin_offsets[r + 1]].
    begin_offsets: Ints
    # [begin]: nodes at which a match can begin, those of a host from the earliest start.
    begins: Ints
    # [row]: how many of its host's beginnings, from the first, are none of its own.
    skipped: Ints

    @staticmethod
    def nothing(rows: int) -> Sharing:
        """Every row holds its own nodes."""
        none = np.zeros(0, np.int64)
        return Sharing(np.arange(rows), np.zeros(rows + 1, np.int64), none, np.zeros(rows, np.int64))


@dataclass(frozen=True, eq=False)
class Graphs:
    """The graphs of many rows, one after the other. Nodes are numbered through all of them.

    A row is a completing event. `graph_type` says what nodes, links and ends mean; each match must be one path. A link
    stays among the nodes of one row and goes to a smaller number.
    """

    # [row + 1]: row r holds the nodes node_offsets[r] … node_offsets[r + 1] − 1.
    node_offsets: Ints
    # [node]: its variable's place among the query's positive ones; −1 when the node is silent.
    variables: npt.NDArray[np.integer[Any]]
    # [node]: the number of its event in `Store`; −1 when the node is silent.
    events: Ints
    # [node + 1]: node n follows the nodes links[link_offsets[n] : link_offsets[n + 1]]; with none it is a start.
    link_offsets: Ints
    # [link]: numbers of nodes; −1 when a match can also begin here.
    links: Ints
    # [row + 1]: row r is completed by the nodes ends[end_offsets[r] : end_offsets[r + 1]], at least one.
    end_offsets: Ints
    # [end]: numbers of nodes, all of the row's completing event; several when it can stand for several variables.
    ends: Ints
    # None: every row holds its own nodes.
    sharing: Sharing | None = None

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    @property
    def completing(self) -> Ints:
        """[row]: the number of its completing event."""
        return self.events[self.ends[self.end_offsets[:-1]]]


@dataclass(frozen=True, eq=False)
class Events:
    """The events by row: their columns, and how structs of some columns are made for some rows."""

    columns: pa.Schema
    taken: Callable[[Ints, pa.DataType], pa.Array]

    @staticmethod
    def of(table: pa.Table) -> Events:
        return Events(table.schema, lambda rows, kind: event_column(table, rows, kind))


@dataclass(frozen=True, eq=False)
class Store:
    """What is known of each event by its number. A greater number is later in canonical order."""

    # [event]: its row in the table of events.
    rows: Ints
    # [event]: its start and its end, in whole steps of the time column.
    starts: Ints
    ends: Ints
    # [event]: what match ids are made of.
    hashes: npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class RowFacts:
    """What is known of each row beside its graph."""

    # [row]: the id of its canonically first match.
    ids: Sequence[str] | pa.Array
    # [row]: the number of its matches, in decimal digits.
    counts: Sequence[str] | pa.Array
    # [row]: when its earliest match starts, in whole steps; None: when the first event of its graph does.
    starts: Ints | None = None


def compressed_table(query: BoundQuery, events: Events, graphs: Graphs, store: Store, facts: RowFacts) -> pa.Table:
    """The documented columns of a result."""
    schema = result_schema(query, events.columns)
    listed = _Listed.of(graphs, len(store.rows))
    completing = graphs.completing
    starts = facts.starts
    if starts is None:
        starts = np.minimum.reduceat(store.starts[listed.events], listed.offsets[:-1]) if len(graphs) else completing
    columns: dict[str, Any] = {
        "match_id": pa.array(facts.ids, pa.string()),
        "query": _repeated(query.name, pa.string(), np.zeros(len(graphs), np.int64)),
        "start": times(starts, schema.field("start").type),
        "end": times(store.ends[completing], schema.field("end").type),
    }
    if query.partition:
        columns["key"] = events.taken(store.rows[completing], schema.field("key").type)
    columns["count"] = pa.array(facts.counts, pa.string())
    columns["last"] = events.taken(store.rows[completing], schema.field("last").type)
    columns["graph"] = _graph_column(query, events, graphs, store, listed, schema.field("graph").type)
    return pa.table(columns, schema=schema)


def some_rows(result: pa.Table, keep: npt.NDArray[np.bool_]) -> pa.Table:
    """Some rows of any result. A graph whose host is not among them moves to the first of them that shares it."""
    kept = result.filter(to_arrow(keep))
    if GRAPH not in result.column_names or not is_graph_type(result.schema.field(GRAPH).type) or not len(kept):
        return kept
    graph = result.column(GRAPH).combine_chunks()
    if graph.null_count:
        return kept
    numbers, sizes = graph.field("shared").to_pylist(), graph.field("nodes").value_lengths().to_pylist()
    hosts = {number: row for row, number in enumerate(numbers) if number is not None and sizes[row]}
    rows = np.flatnonzero(keep)
    sources = rows.copy()
    held = {numbers[row] for row in rows.tolist() if sizes[row]}
    for place, row in enumerate(rows.tolist()):
        if numbers[row] is not None and numbers[row] not in held:
            held.add(numbers[row])
            sources[place] = hosts[numbers[row]]
    own, of_host = to_arrow(rows), to_arrow(sources)
    parts = [graph.field(part.name).take(own if part.name in OF_EACH_ROW else of_host) for part in graph.type]
    column = pa.StructArray.from_arrays(parts, fields=list(graph.type))
    return kept.set_column(kept.column_names.index(GRAPH), result.schema.field(GRAPH), column)


@dataclass(frozen=True, eq=False)
class _Listed:
    """The events of each row, each once, in canonical order."""

    # [row + 1]
    offsets: Ints
    # [listed]: numbers in the store.
    events: Ints
    # [node]: the place of its event in its row's list.
    places: npt.NDArray[np.int32]

    @staticmethod
    def of(graphs: Graphs, stored: int) -> _Listed:
        offsets, places = np.empty(len(graphs) + 1, np.int64), np.empty(len(graphs.events), np.int32)
        events = np.empty(len(graphs.events), np.int64)
        if list_events(graphs.node_offsets, graphs.events, offsets, events, places):
            return _Listed(offsets, events[: offsets[-1]], places)
        owners = np.repeat(np.arange(len(graphs)), np.diff(graphs.node_offsets))
        real = graphs.events >= 0
        distinct, at = np.unique(owners[real] * stored + graphs.events[real], return_inverse=True)
        offsets = np.searchsorted(distinct, np.arange(len(graphs) + 1) * stored)
        places = np.full(len(graphs.events), -1, np.int32)
        places[real] = at - offsets[owners[real]]
        return _Listed(offsets, distinct % max(stored, 1), places)


def _graph_column(
    query: BoundQuery, events: Events, graphs: Graphs, store: Store, listed: _Listed, kind: pa.DataType
) -> pa.StructArray:
    size = len(graphs)
    _check_size(len(graphs.links), len(graphs.events) + size, len(listed.events))
    sharing = graphs.sharing or Sharing.nothing(size)
    first = graphs.node_offsets[:-1]
    holds = np.diff(graphs.node_offsets) > 0
    # Each row that holds nodes has one more offset than it has nodes.
    offset_offsets = graphs.node_offsets + np.append(0, np.cumsum(holds))
    link_offsets = graphs.link_offsets[graphs.node_offsets]
    offsets, links = np.empty(offset_offsets[-1], np.int32), np.empty(len(graphs.links), np.int32)
    number_links(graphs.node_offsets, graphs.link_offsets, graphs.links, offsets, links)
    begins = sharing.begins - np.repeat(first, np.diff(sharing.begin_offsets))
    ends = graphs.ends - np.repeat(first[sharing.hosts], np.diff(graphs.end_offsets))
    node = kind.field("nodes").type.value_type
    numbered = pa.StructArray.from_arrays([_narrow(graphs.variables), to_arrow(listed.places)], fields=list(node))
    time = kind.field("starts").type.value_type
    hashes = store.hashes[listed.events]
    lists: dict[str, tuple[Ints, pa.Array]] = {
        "nodes": (graphs.node_offsets, numbered),
        "offsets": (offset_offsets, to_arrow(offsets)),
        "predecessors": (link_offsets, to_arrow(links)),
        "begins": (sharing.begin_offsets, _narrow(begins)),
        "ends": (graphs.end_offsets, _narrow(ends)),
        "events": (
            listed.offsets,
            events.taken(store.rows[listed.events], kind.field("events").type.value_type),
        ),
        "starts": (listed.offsets, times(store.starts[listed.events], time)),
        "hashes": (listed.offsets, to_arrow(hashes.view(np.int64))),
    }
    described = _described(query, columns_of_input(query, events.columns))
    only_holders = np.where(holds, 0, -1)
    parts = {
        "shared": _block_numbers(query, sharing, [(listed.offsets, hashes.view(np.int64)), (link_offsets, links)]),
        "skipped": _narrow(sharing.skipped),
        "digest": _repeated(query.digest.hex(), pa.string(), only_holders),
        "variables": _repeated(described, kind.field("variables").type, only_holders),
    }
    for name, (of_row, values) in lists.items():
        parts[name] = pa.ListArray.from_arrays(_narrow(of_row), values, type=kind.field(name).type)
    return pa.StructArray.from_arrays([parts[part.name] for part in kind], fields=list(kind))


def _block_numbers(query: BoundQuery, sharing: Sharing, contents: Sequence[tuple[Ints, npt.NDArray[Any]]]) -> pa.Array:
    """[row]: a hash of what its host holds, NULL where the host holds it for itself alone.

    It follows from the contents, so that a row and a host of different runs, between which a block may be another, are
    never taken for each other's.
    """
    hosts = sharing.hosts
    shared = np.bincount(hosts, minlength=len(hosts)) > 1
    numbers = np.full(len(hosts), bytes_hash(query.digest), np.uint64)
    for offsets, values in contents:
        fold_ranges(numbers, offsets, values)
    return to_arrow(numbers.view(np.int64)[hosts], ~shared[hosts])


def _check_size(*sizes: int) -> None:
    if max(sizes) > _MOST:
        raise BudgetExceeded(
            f"the graphs of one result have more than {_MOST:,} links", hint="narrow the window or the conditions"
        )


def _described(query: BoundQuery, columns: pa.Schema) -> list[dict[str, Any]]:
    described = []
    for component in query.positives:
        own = [field.name for field in event_fields(query, component, columns)]
        several = component.kind is not ComponentKind.SINGLE
        described.append(
            {"name": component.variable, "is_list": several, "columns": None if own == columns.names else own}
        )
    return described


def _narrow(values: npt.NDArray[np.integer[Any]]) -> pa.Array:
    return to_arrow(values.astype(np.int32))


def _repeated(value: Any, kind: pa.DataType, places: Ints) -> pa.Array:
    """[row]: the value, NULL where the place is negative."""
    return pa.array([value], kind).take(to_arrow(places, places < 0))

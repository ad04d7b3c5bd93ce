"""Tables of OUTPUT COMPRESSED from flat arrays: the graphs of all completing events at once, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.errors import BudgetExceeded
from kleene.frames.numbers import to_arrow
from kleene.frames.results import columns_of_input, event_column, event_fields, result_schema, times
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery

Ints = npt.NDArray[np.int64]
# What 32 bits can number in an Arrow list.
_MOST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Graphs:
    """The graphs of many rows, one after the other. Nodes are numbered through all of them.

    A row is a completing event. `graph_type` says what nodes, links and ends mean; each match must be one path. A link
    stays in its row and goes to a node with a smaller number.
    """

    # [row + 1]: row r has the nodes node_offsets[r] … node_offsets[r + 1] − 1.
    node_offsets: Ints
    # [node]: its variable's place among the query's positive ones; −1 when the node is silent.
    variables: Ints
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

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    @property
    def completing(self) -> Ints:
        """[row]: the number of its completing event."""
        return self.events[self.ends[self.end_offsets[:-1]]]


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


def compressed_table(
    query: BoundQuery, table: pa.Table, graphs: Graphs, store: Store, ids: Sequence[str] | pa.Array, counts: list[str]
) -> pa.Table:
    """The documented columns of a result.

    table    the events
    ids      [row]: the id of its canonically first match
    counts   [row]: the number of its matches, in decimal digits
    """
    schema = result_schema(query, table.schema)
    listed = _Listed.of(graphs, len(store.rows))
    completing = graphs.completing
    starts = np.minimum.reduceat(store.starts[listed.events], listed.offsets[:-1]) if len(graphs) else completing
    columns: dict[str, Any] = {
        "match_id": pa.array(ids, pa.string()),
        "query": _repeated(query.name, pa.string(), len(graphs)),
        "start": times(starts, schema.field("start").type),
        "end": times(store.ends[completing], schema.field("end").type),
    }
    if query.partition:
        columns["key"] = event_column(table, store.rows[completing], schema.field("key").type)
    columns["count"] = pa.array(counts, pa.string())
    columns["last"] = event_column(table, store.rows[completing], schema.field("last").type)
    columns["graph"] = _graph_column(query, table, graphs, store, listed, schema.field("graph").type)
    return pa.table(columns, schema=schema)


def graph_column(query: BoundQuery, table: pa.Table, graphs: Graphs, store: Store) -> pa.StructArray:
    """The `graph` column alone."""
    kind = result_schema(query, table.schema).field("graph").type
    return _graph_column(query, table, graphs, store, _Listed.of(graphs, len(store.rows)), kind)


@dataclass(frozen=True, eq=False)
class _Listed:
    """The events of each row, each once, in canonical order."""

    # [row + 1]
    offsets: Ints
    # [listed]: numbers in the store.
    events: Ints
    # [node]: the place of its event in its row's list.
    places: Ints

    @staticmethod
    def of(graphs: Graphs, stored: int) -> _Listed:
        owners = np.repeat(np.arange(len(graphs)), np.diff(graphs.node_offsets))
        real = graphs.events >= 0
        distinct, at = np.unique(owners[real] * stored + graphs.events[real], return_inverse=True)
        offsets = np.searchsorted(distinct, np.arange(len(graphs) + 1) * stored)
        places = np.full(len(graphs.events), -1, np.int64)
        places[real] = at - offsets[owners[real]]
        return _Listed(offsets, distinct % max(stored, 1), places)


def _graph_column(
    query: BoundQuery, table: pa.Table, graphs: Graphs, store: Store, listed: _Listed, kind: pa.DataType
) -> pa.StructArray:
    size = len(graphs)
    _check_size(len(graphs.links), len(graphs.events) + size, len(listed.events))
    first, nodes = graphs.node_offsets[:-1], np.diff(graphs.node_offsets)
    # Each row has one more offset than it has nodes.
    first_link = graphs.link_offsets[first]
    offset_offsets = graphs.node_offsets + np.arange(size + 1)
    at = np.arange(offset_offsets[-1]) - np.repeat(np.arange(size), nodes + 1)
    offsets = graphs.link_offsets[at] - np.repeat(first_link, nodes + 1)
    link_offsets = graphs.link_offsets[graphs.node_offsets]
    links = graphs.links - np.repeat(first, np.diff(link_offsets))
    links[graphs.links < 0] = -1
    ends = graphs.ends - np.repeat(first, np.diff(graphs.end_offsets))
    node = kind.field("nodes").type.value_type
    numbered = pa.StructArray.from_arrays([_narrow(graphs.variables), _narrow(listed.places)], fields=list(node))
    time = kind.field("starts").type.value_type
    events = event_column(table, store.rows[listed.events], kind.field("events").type.value_type)
    lists: dict[str, tuple[Ints, pa.Array]] = {
        "nodes": (graphs.node_offsets, numbered),
        "offsets": (offset_offsets, _narrow(offsets)),
        "predecessors": (link_offsets, _narrow(links)),
        "ends": (graphs.end_offsets, _narrow(ends)),
        "events": (listed.offsets, events),
        "starts": (listed.offsets, times(store.starts[listed.events], time)),
        "hashes": (listed.offsets, to_arrow(store.hashes[listed.events].view(np.int64))),
    }
    parts = {
        "digest": _repeated(query.digest.hex(), pa.string(), size),
        "variables": _repeated(
            _described(query, columns_of_input(query, table.schema)), kind.field("variables").type, size
        ),
    }
    for name, (of_row, values) in lists.items():
        parts[name] = pa.ListArray.from_arrays(_narrow(of_row), values, type=kind.field(name).type)
    return pa.StructArray.from_arrays([parts[part.name] for part in kind], fields=list(kind))


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


def _repeated(value: Any, kind: pa.DataType, times: int) -> pa.Array:
    return pa.array([value], kind).take(pa.array(np.zeros(times, np.int64)))

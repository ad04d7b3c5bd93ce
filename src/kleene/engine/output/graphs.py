"""OUTPUT COMPRESSED (SASE+ §4.2): the runs that an event completed, as one graph, counted without writing them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.executors.automaton import AutomatonExecutor
from kleene.engine.output.gathering import constant
from kleene.engine.output.identity import match_ids, used_hashes
from kleene.engine.output.matches import Matches
from kleene.engine.output.ordering import Spans
from kleene.engine.output.selected import Selected
from kleene.frames.compressed import Graphs, Store, compressed_table
from kleene.frames.numbers import to_arrow
from kleene.frames.results import event_column, result_schema, times
from kleene.kernels import runs as kernel
from kleene.kernels.counting import count_paths
from kleene.kernels.expression import Ints
from kleene.kernels.first_paths import first_paths
from kleene.kernels.paths import write_graphs
from kleene.kernels.tallies import count_since
from kleene.kernels.timeline import Timeline
from kleene.pattern.query import BoundQuery

_SATURATED = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class Completed:
    """Completed runs of one executor: all of them are matches, or those of them that begin late enough."""

    executor: AutomatonExecutor
    nodes: Ints
    # [node]: the earliest start that the first event of a match may have.
    lowest: Ints
    # [node]: how many matches are written at most.
    most: Ints

    def take(self, places: Ints) -> Completed:
        return Completed(self.executor, self.nodes[places], self.lowest[places], self.most[places])


def compressed(
    query: BoundQuery,
    rows: pa.Table,
    spans: Spans,
    completed: Sequence[Completed],
    time: Timeline,
    *,
    graphs: bool,
) -> pa.Table:
    """One row a completing event, in canonical order."""
    events = _distinct([each.executor.event(each.nodes) for each in completed])
    if not graphs:
        return _counted_table(query, rows, spans, completed, events, time)
    row_graphs = _together([_graphs(each, events, time) for each in completed])
    parts = (
        row_graphs.node_offsets,
        row_graphs.variables,
        row_graphs.events,
        row_graphs.link_offsets,
        row_graphs.links,
        row_graphs.end_offsets,
        row_graphs.ends,
    )
    offsets, nodes = first_paths(*parts, spans.start)
    first = Matches(offsets, row_graphs.events[nodes], row_graphs.variables[nodes].astype(np.uint8))
    known = Matches(row_graphs.node_offsets, row_graphs.events, row_graphs.variables.astype(np.uint8))
    hashes = used_hashes(query, rows, spans.step, known) if len(events) else np.zeros(rows.num_rows, np.uint64)
    store = Store(np.arange(rows.num_rows, dtype=np.int64), spans.start, spans.end, hashes)
    counts = count_paths(
        row_graphs.node_offsets, row_graphs.link_offsets, row_graphs.links, row_graphs.end_offsets, row_graphs.ends
    )
    ids = match_ids(query, Selected.of(query, first, np.arange(len(first))), hashes)
    return compressed_table(query, rows, row_graphs, store, ids, list(map(str, counts)))


def counts_of(completed: Completed, time: Timeline) -> list[int]:
    """How many matches each completed run stands for."""
    counts, exact = _counts(completed, time)
    listed: list[int] = counts.tolist()
    for place, count in exact.items():
        listed[place] = count
    return listed


def _counts(completed: Completed, time: Timeline) -> tuple[npt.NDArray[np.uint64], dict[int, int]]:
    """[run]: how many matches; and by place the counts beyond 64 bits. Only inexact counts are counted on graphs."""
    executor, nodes, lowest = completed.executor, completed.nodes, completed.lowest
    totals = executor.total(nodes)
    early = time.starts[executor.oldest(nodes)] < lowest
    none = time.starts[executor.first(nodes)] < lowest
    totals[none], early[none] = 0, False
    if executor.counts_by_first and early.any():
        count_since(nodes, lowest, time.starts, executor.pool, totals)
        early[:] = False
    late = np.flatnonzero(early | (totals == _SATURATED))
    if not len(late):
        return totals, {}
    graph = _written(executor, np.arange(len(late) + 1), nodes[late], lowest[late], time)
    exact = count_paths(graph.node_offsets, graph.link_offsets, graph.links, graph.end_offsets, graph.ends)
    huge = {place: count for place, count in zip(late.tolist(), exact, strict=True) if count >= _SATURATED}
    totals[late] = [min(count, int(_SATURATED)) for count in exact]
    return totals, huge


def _distinct(events: Sequence[Ints]) -> Ints:
    """The events, each once, in order. Those of one executor are in order already."""
    every = np.concatenate([np.zeros(0, np.int64), *events])
    ordered = every if len(events) == 1 else np.sort(every)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _graphs(completed: Completed, events: Ints, time: Timeline) -> Graphs:
    """The graphs of one executor's runs, one for each of these events."""
    executor = completed.executor
    row = np.searchsorted(events, executor.event(completed.nodes))
    order = np.argsort(row, kind="stable")
    offsets = np.searchsorted(row[order], np.arange(len(events) + 1))
    # Runs that one event completes have the same window.
    low = np.zeros(len(events), np.int64)
    low[row] = completed.lowest
    return _written(executor, offsets, completed.nodes[order], low, time)


def _written(executor: AutomatonExecutor, offsets: Ints, nodes: Ints, lowest: Ints, time: Timeline) -> Graphs:
    """The graphs of rows; `offsets` says where the completed nodes of each begin."""
    runs = executor.pool
    room = np.full(int(runs.sizes[kernel.NODES]), -1, np.int32)
    node_offsets, numbers, kinds, link_offsets, links, ends = write_graphs(
        offsets, nodes, lowest, time.starts, executor.variables, runs, room
    )
    return Graphs(node_offsets, kinds, numbers, link_offsets, links, offsets, ends)


def _together(parts: Sequence[Graphs]) -> Graphs:
    """The graphs of several alternatives: those of one row become one."""
    if len(parts) == 1:
        return parts[0]
    rows = len(parts[0])
    shift = np.cumsum([0, *(len(part.events) for part in parts)])
    node_row = np.concatenate([_owners(part.node_offsets) for part in parts])
    order = np.argsort(node_row, kind="stable")
    # [node as it was]: its number now.
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    sizes = np.concatenate([np.diff(part.link_offsets) for part in parts])
    begins = np.concatenate([part.link_offsets[:-1] + at for part, at in zip(parts, _starts(parts), strict=True)])
    links = np.concatenate([np.where(part.links < 0, -1, part.links + shift[n]) for n, part in enumerate(parts)])
    link_offsets = np.concatenate([[0], np.cumsum(sizes[order])])
    at = np.repeat(begins[order] - link_offsets[:-1], sizes[order]) + np.arange(link_offsets[-1])
    moved = links[at]
    end_row = np.concatenate([_owners(part.end_offsets) for part in parts])
    by_row = np.argsort(end_row, kind="stable")
    ends = np.concatenate([part.ends + shift[n] for n, part in enumerate(parts)])[by_row]
    return Graphs(
        np.searchsorted(node_row[order], np.arange(rows + 1)),
        np.concatenate([part.variables for part in parts])[order],
        np.concatenate([part.events for part in parts])[order],
        link_offsets,
        np.where(moved < 0, -1, number[np.maximum(moved, 0)]),
        np.searchsorted(end_row[by_row], np.arange(rows + 1)),
        number[ends],
    )


def _owners(offsets: Ints) -> Ints:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _starts(parts: Sequence[Graphs]) -> Ints:
    return np.cumsum([0, *(len(part.links) for part in parts[:-1])])


def _counted_table(
    query: BoundQuery,
    rows: pa.Table,
    spans: Spans,
    completed: Sequence[Completed],
    events: Ints,
    time: Timeline,
) -> pa.Table:
    """A table of counts without graphs; columns that need a graph are NULL."""
    counts = np.zeros(len(events), np.uint64)
    exact: dict[int, int] = {}
    for each in completed:
        at = np.searchsorted(events, each.executor.event(each.nodes))
        some, huge = _counts(each, time)
        before = counts.copy()
        np.add.at(counts, at, some)
        for place in {*np.flatnonzero(counts < before).tolist(), *at[list(huge)].tolist()}:
            own = np.flatnonzero(at == place).tolist()
            known = exact.get(place, int(before[place]))
            exact[place] = known + sum(huge.get(node, int(some[node])) for node in own)
    schema = result_schema(query, rows.schema)
    columns = {field.name: pa.nulls(len(events), field.type) for field in schema}
    columns["query"] = constant(query.name, len(events))
    columns["end"] = times(spans.end[events], schema.field("end").type)
    columns["count"] = to_arrow(counts).cast(pa.string())
    if exact:
        known = columns["count"].to_pylist()
        for place, count in exact.items():
            known[place] = str(count)
        columns["count"] = pa.array(known, pa.string())
    columns["last"] = event_column(rows, events, schema.field("last").type)
    if query.partition:
        columns["key"] = event_column(rows, events, schema.field("key").type)
    return pa.table(columns, schema=schema)

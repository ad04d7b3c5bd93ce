"""OUTPUT COMPRESSED (SASE+ §4.2) as a table: one row a completing event, its matches in graphs that rows share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.output.gathering import Columns, constant
from kleene.engine.output.graphs import Completed, RowsOfRuns, counts_and_huge, own_graphs, shared_graphs
from kleene.engine.output.identity import Hashes, begun_folds, ids_of, match_ids, used_hashes
from kleene.engine.output.matches import Matches
from kleene.engine.output.ordering import Ordered, Spans, spans_of
from kleene.engine.output.selected import Selected
from kleene.engine.state.event_rows import EventRows
from kleene.frames.compressed import Events, Graphs, RowFacts, Store, compressed_table
from kleene.frames.numbers import to_arrow
from kleene.frames.results import event_column, result_schema, times
from kleene.kernels.expression import Ints
from kleene.kernels.first_paths import first_paths
from kleene.kernels.graph_blocks import TIED, Blocks, complete_folds, fold_first_matches
from kleene.kernels.tallies import earliest_since
from kleene.kernels.timeline import Timeline
from kleene.pattern.query import BoundQuery

Flags = npt.NDArray[np.bool_]


def compressed(
    query: BoundQuery,
    rows: EventRows,
    spans: Spans,
    completed: Sequence[Completed],
    time: Timeline,
    *,
    graphs: bool,
) -> pa.Table:
    """One row a completing event, in canonical order."""
    events, row_of = _rows([each.executor.event(each.nodes) for each in completed])
    counts = _counts(completed, row_of, len(events), time)
    if not graphs or not len(events):
        return _counted_table(query, rows, spans, events, counts)
    runs = RowsOfRuns.of(completed, row_of, len(events))
    shared, blocks = shared_graphs(runs, spans, time)
    known = Matches(shared.node_offsets, shared.events, shared.variables.astype(np.uint8, copy=False))
    hashes = used_hashes(query, rows, spans.step, known)
    ids = _first_ids(query, shared, blocks, hashes)
    starts, told = _starts(completed, row_of, spans, time, len(events))
    # What runs do not tell is read off the graphs of those rows.
    open_rows = np.flatnonzero(~told | (blocks.first_ends == TIED))
    if len(open_rows):
        own = own_graphs(runs.take(open_rows), runs.pool, time)
        starts[open_rows] = np.minimum.reduceat(spans.start[own.events], own.node_offsets[:-1])
        places = np.arange(len(events))
        places[open_rows] = len(events) + np.arange(len(open_rows))
        ids = pa.concat_arrays([ids, _walked_ids(query, own, spans, hashes)]).take(to_arrow(places))
    store = Store(np.arange(rows.num_rows, dtype=np.int64), spans.start, spans.end, hashes)
    held = Events(rows.schema, Columns(rows).events)
    return compressed_table(query, held, shared, store, RowFacts(ids, counts, starts))


def _rows(events: Sequence[Ints]) -> tuple[Ints, list[Ints]]:
    """The completing events, each once, in order; and for each executor the row that each of its runs belongs to."""
    if len(events) == 1:
        # Those of one executor are in order already.
        new = np.append(True, events[0][1:] != events[0][:-1]) if len(events[0]) else np.zeros(0, np.bool_)
        return events[0][new], [np.cumsum(new) - 1]
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *events]))
    return distinct, [np.searchsorted(distinct, each) for each in events]


def _counts(completed: Sequence[Completed], row_of: Sequence[Ints], rows: int, time: Timeline) -> pa.Array:
    """[row]: how many matches the event completes, in decimal digits."""
    counts = np.zeros(rows, np.uint64)
    exact: dict[int, int] = {}
    for each, at in zip(completed, row_of, strict=True):
        some, huge = counts_and_huge(each, time)
        before = counts.copy()
        np.add.at(counts, at, some)
        for place in {*np.flatnonzero(counts < before).tolist(), *at[list(huge)].tolist()}:
            own = np.flatnonzero(at == place).tolist()
            known = exact.get(place, int(before[place]))
            exact[place] = known + sum(huge.get(node, int(some[node])) for node in own)
    texts = to_arrow(counts).cast(pa.string())
    if exact:
        listed = texts.to_pylist()
        for place, count in exact.items():
            listed[place] = str(count)
        texts = pa.array(listed, pa.string())
    return texts


def _starts(
    completed: Sequence[Completed], row_of: Sequence[Ints], spans: Spans, time: Timeline, rows: int
) -> tuple[Ints, Flags]:
    """[row]: when its earliest match starts; and whether its runs could tell."""
    starts = np.full(rows, np.iinfo(np.int64).max)
    told = np.ones(rows, np.bool_)
    for each, row in zip(completed, row_of, strict=True):
        executor, nodes, lowest = each.executor, each.nodes, each.lowest
        first = executor.oldest(nodes)
        early = time.starts[first] < lowest
        if executor.counts_by_first and early.any():
            earliest_since(nodes, lowest, time.starts, executor.pool, first)
            early[:] = False
        told[row[early]] = False
        np.minimum.at(starts, row, spans.start[first])
    if spans.start is not spans.end and not np.array_equal(spans.start, spans.end) and time.starts is not spans.start:
        # Of events that last, the first position need not have the first start.
        told &= np.array_equal(time.starts, spans.start)
    return starts, told


# Ids ------------------------------------------------------------------------------------------------------------------


def _first_ids(query: BoundQuery, graphs: Graphs, blocks: Blocks, hashes: Hashes) -> pa.Array:
    """The ids of canonically first matches, folded along the nodes that they share; any where one end is TIED."""
    seeds = begun_folds(query.digest, 1)[:, 0]
    variables = graphs.variables.astype(np.uint8, copy=False)
    folds = fold_first_matches(variables, graphs.events, blocks.before, hashes, seeds)
    ends = np.maximum(blocks.first_ends, 0)
    return ids_of(complete_folds(ends, variables, len(query.positives), folds))


def _walked_ids(query: BoundQuery, graphs: Graphs, spans: Spans, hashes: Hashes) -> pa.Array:
    """The same, found by a walk along each graph."""
    links = graphs.link_offsets, graphs.links
    ends, variables = (graphs.end_offsets, graphs.ends), graphs.variables.astype(np.int64, copy=False)
    offsets, nodes = first_paths(graphs.node_offsets, variables, graphs.events, *links, *ends, spans.start)
    first = Matches(offsets, graphs.events[nodes], graphs.variables[nodes].astype(np.uint8))
    return match_ids(query, Selected.of(query, first, Ordered(None, len(first), spans_of(first, spans))), hashes)


# Counts alone ---------------------------------------------------------------------------------------------------------


def _counted_table(query: BoundQuery, rows: EventRows, spans: Spans, events: Ints, counts: pa.Array) -> pa.Table:
    """A table of counts without graphs; columns that need a graph are NULL."""
    schema = result_schema(query, rows.schema)
    columns = {field.name: pa.nulls(len(events), field.type) for field in schema}
    columns["query"] = constant(query.name, len(events))
    columns["end"] = times(spans.end[events], schema.field("end").type)
    columns["count"] = counts
    columns["last"] = event_column(rows.table, events, schema.field("last").type)
    if query.partition:
        columns["key"] = event_column(rows.table, events, schema.field("key").type)
    return pa.table(columns, schema=schema)

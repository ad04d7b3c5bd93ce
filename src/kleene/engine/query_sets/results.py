"""What the queries of a set found, as tables: a row for each query and match, a row for each match, or counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kleene.algebra.query import BoundStreamQuery
from kleene.engine.output.identity import Hashes, column_hashes, folds_of_queries, ids_of
from kleene.engine.query_sets.held_events import NumberedRows
from kleene.engine.query_sets.stored import StoredQueries
from kleene.engine.state.event_rows import taken_rows
from kleene.engine.streams.cells import CellLayout, CellValues
from kleene.engine.streams.results import result_order, value_columns
from kleene.frames.numbers import to_arrow
from kleene.frames.stream_columns import result_column, stream_result_schema
from kleene.kernels import stream_instances as kernel
from kleene.kernels.expression import Ints
from kleene.kernels.identity import fold_singles
from kleene.kernels.shared_machine import SharedResults
from kleene.kernels.shared_nodes import Numbers
from kleene.kernels.shared_results import count_queries, list_queries
from kleene.pattern.query import BoundQuery


class FoundPairs(NamedTuple):
    """Results and the queries that they are of."""

    counts: Ints  #      [result]: how many queries
    queries: Numbers  #  [pair]: those of each result, one result after the other


@dataclass(frozen=True, eq=False)
class SharedFound:
    """Results of one shape, and the queries that they are of.

    query    one of these
    cells    what the results hold
    events   those that the results of lines refer to
    """

    query: BoundStreamQuery | BoundQuery
    cells: CellLayout
    results: SharedResults
    pairs: FoundPairs
    events: NumberedRows | None = None

    @property
    def queries(self) -> Numbers:
        """[query and result]: the number of the query."""
        return self.pairs.queries


class DistinctMatches(NamedTuple):
    """Results that are the same match, whichever node they ended at, and the queries that have it."""

    firsts: Ints  #     [match]: one of its results
    queries: pa.Array  #  [match]: the list of their names


def distinct_matches(content: Ints, pairs: FoundPairs, queries: StoredQueries) -> DistinctMatches:
    """The matches that some query has; results with the same row of `content` are one."""
    whole = np.ascontiguousarray(content).view(np.dtype((np.void, content.itemsize * content.shape[1]))).ravel()
    _, firsts, match = np.unique(whole, return_index=True, return_inverse=True)
    of_pairs = np.repeat(match, pairs.counts)
    counts = np.bincount(of_pairs, minlength=len(firsts))
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(np.int32)
    listed = queries.names(pairs.queries[np.lexsort((pairs.queries, of_pairs))])
    lists, some = pa.ListArray.from_arrays(to_arrow(offsets), listed), np.flatnonzero(counts)
    return DistinctMatches(firsts[some], lists.take(to_arrow(some)))


def found_pairs(results: SharedResults, nodes: Numbers, following: Numbers, since: Ints) -> FoundPairs:
    """The queries of results: those that end where a result did, and were there when it began."""
    counts = np.zeros(len(results.nodes), np.int64)
    count_queries(nodes, following, since, results.nodes, results.begun, counts)
    listed = np.zeros(int(counts.sum()), np.int32)
    list_queries(nodes, following, since, results.nodes, results.begun, listed)
    return FoundPairs(counts, listed)


def match_rows(
    found: SharedFound,
    columns: pa.Schema,
    values: CellValues,
    queries: StoredQueries,
    digests: Callable[[Numbers], Hashes],
) -> pa.Table:
    """A row for each query and match, as the query has it by itself; by end, start, and id.

    digests   the hashes that identify queries in match ids
    """
    query, results, pairs = found.query, found.results, found.pairs
    assert isinstance(query, BoundStreamQuery), "lines have results of their own"
    known, attributes = value_columns(query, columns, results.cells, results.states, found.cells, values)
    rows = np.repeat(np.arange(len(results.nodes), dtype=np.int32), pairs.counts)
    folds = folds_of_queries(digests(pairs.queries))
    for place, column in enumerate([*known.values(), *attributes.values()], 1):
        fold_singles(folds, place, rows, column_hashes(pa.chunked_array([column])))
    order = result_order(results.cells[rows], folds)
    known |= {name: result_column(listed, attributes) for name, listed in query.result_columns.items()}
    taken = taken_rows(pa.table(known), rows[order].astype(np.int64))
    schema = stream_result_schema(query, columns)
    arrays = {name: taken.column(name) for name in taken.column_names}
    arrays["match_id"] = ids_of(np.ascontiguousarray(folds[:, order]))
    arrays["query"] = queries.names(pairs.queries[order])
    return pa.table([arrays[name] for name in schema.names], schema=schema)


def query_lists(found: SharedFound, columns: pa.Schema, values: CellValues, queries: StoredQueries) -> pa.Table:
    """A row for each match that some query has, with the list of these; by end and start."""
    query, results, width = found.query, found.results, found.cells.width
    assert isinstance(query, BoundStreamQuery), "lines have results of their own"
    content = np.concatenate((results.cells[:, :width], results.states[:, :width].astype(np.int64)), axis=1)
    matches = distinct_matches(content, found.pairs, queries)
    cells, states = results.cells[matches.firsts], results.states[matches.firsts]
    known, attributes = value_columns(query, columns, cells, states, found.cells, values)
    known |= {name: result_column(each, attributes) for name, each in query.result_columns.items()}
    table = pa.table({"queries": matches.queries, **known})
    return taken_rows(table, np.lexsort((cells[:, kernel.START], cells[:, kernel.END])))

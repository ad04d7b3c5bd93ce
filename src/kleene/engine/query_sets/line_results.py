"""What lines of a set found, as tables: their results are numbers of events."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.strings import StringPool
from kleene.engine.output.identity import Hashes
from kleene.engine.output.matches import ColumnarMatches, Matches
from kleene.engine.output.ordering import in_order
from kleene.engine.output.returned import columns_returned
from kleene.engine.output.tables import MatchOwners, match_table
from kleene.engine.query_sets.held_events import NumberedRows
from kleene.engine.query_sets.results import SharedFound, distinct_matches
from kleene.engine.query_sets.stored import StoredQueries
from kleene.engine.state.event_rows import EventRows
from kleene.kernels.expression import Ints
from kleene.kernels.shared_nodes import Numbers
from kleene.kernels.stream_instances import FIRST_VALUE
from kleene.pattern.query import BoundQuery


def line_rows(
    found: SharedFound, strings: StringPool, queries: StoredQueries, digests: Callable[[Numbers], Hashes]
) -> pa.Table:
    """A row for each query and match, as the query has it by itself.

    digests   the hashes that identify queries in match ids
    """
    query, events, numbers = _numbers(found)
    owners = MatchOwners(queries.names(found.queries), digests(found.queries))
    return _table(query, events, _matches(np.repeat(numbers, found.pairs.counts, axis=0)), strings, owners)


def line_lists(found: SharedFound, strings: StringPool, queries: StoredQueries) -> pa.Table:
    """A row for each match that some query has, with the list of these."""
    query, events, numbers = _numbers(found)
    distinct = distinct_matches(numbers, found.pairs, queries)
    matches = _matches(numbers[distinct.firsts])
    order = in_order(matches, events.spans).numbers
    table = _table(query, events, matches.take(order), strings, None).drop_columns(["match_id", "query"])
    return table.add_column(0, "queries", distinct.queries.take(pa.array(order)))


def _table(
    query: BoundQuery, events: NumberedRows, matches: Matches, strings: StringPool, owners: MatchOwners | None
) -> pa.Table:
    store = ColumnStore.from_table(events.rows, columns_returned(query), query.schema, strings)
    return match_table(query, EventRows(events.rows), events.spans, matches, store, strings, owners)


def _numbers(found: SharedFound) -> tuple[BoundQuery, NumberedRows, Ints]:
    """One of the queries, their events, and [result, place] the rows of these."""
    query, events = found.query, found.events
    assert isinstance(query, BoundQuery), "lines are patterns"
    assert events is not None, "results of lines come with their events"
    return query, events, found.results.cells[:, FIRST_VALUE : FIRST_VALUE + len(query.positives)] - events.first


def _matches(numbers: Ints) -> Matches:
    columns = np.ascontiguousarray(numbers.T, np.int32)
    return ColumnarMatches(columns, np.arange(numbers.shape[1], dtype=np.uint8))

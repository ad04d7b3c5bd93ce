"""What the engine of a template found for its queries, as tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kleene.engine.query_sets.results import FoundPairs, distinct_matches
from kleene.engine.query_sets.stored import StoredQueries
from kleene.engine.query_sets.template_rows import RowMatches
from kleene.frames.numbers import to_arrow


def row_rows(found: RowMatches, queries: StoredQueries) -> pa.Table:
    """A row for each query and match, as the query has it by itself."""
    table = found.table
    return table.set_column(table.column_names.index("query"), "query", queries.names(found.queries))


def row_lists(found: RowMatches, queries: StoredQueries) -> pa.Table:
    """A row for each match that some query has, with the list of these, in the order of the matches."""
    pairs = FoundPairs(np.ones(len(found.queries), np.int64), found.queries.astype(np.int32))
    distinct = distinct_matches(found.content[:, None], pairs, queries)
    order = np.argsort(distinct.firsts)
    table = found.table.drop_columns(["match_id", "query"]).take(to_arrow(distinct.firsts[order]))
    return table.add_column(0, "queries", distinct.queries.take(to_arrow(order)))

"""The outputs of the reference evaluator as tables, which the outputs of every executor are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kleene.frames.outputs import Outputs
from kleene.frames.results import of_queries
from kleene.frames.rows import bad_row_table
from kleene.frames.streams import reads, to_table
from kleene.pattern.schema import Schema
from kleene.queries.any_query import AnyQuery
from kleene.queries.feeding import declared_together
from kleene.reference.evaluator import Result, all_results
from kleene.reference.tables import any_table, many_table, timeout_table, with_composites


def table_outputs(
    events: Any, queries: Sequence[AnyQuery], *, schema: Schema | None = None, several: bool = False
) -> Outputs[pa.Table]:
    """The outputs of one query, or of several in one table."""
    declared = declared_together(schema or Schema(), queries)
    table, known = to_table(events, declared, reads(queries, declared))
    results = all_results(table, queries, schema=known)
    whole = with_composites(results, table)
    matches = many_table(results, whole) if several else any_table(results[0], whole)
    late = [
        (result.query.name, timeout_table(result, whole))
        for result in results
        if isinstance(result, Result) and result.query.timeouts is not None
    ]
    return Outputs(matches, of_queries(late), bad_row_table(results[0].bad_rows))

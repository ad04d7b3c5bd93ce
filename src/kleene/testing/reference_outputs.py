"""The outputs of the reference evaluator as tables, which the outputs of every executor are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kleene.frames.outputs import Outputs
from kleene.frames.results import of_queries
from kleene.frames.rows import bad_row_table
from kleene.frames.streams import reads, to_table
from kleene.pattern.feeding import declared_together
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.reference.evaluator import reference_results
from kleene.reference.tables import many_table, match_table, timeout_table, with_composites


def table_outputs(
    events: Any, queries: Sequence[Query], *, schema: Schema | None = None, several: bool = False
) -> Outputs[pa.Table]:
    """The outputs of one query, or of several in one table."""
    declared = declared_together(schema or Schema(), queries)
    table, given = to_table(events, declared, reads(queries, declared))
    results = reference_results(table, queries, schema=given)
    whole = with_composites(results, table)
    matches = many_table(results, whole) if several else match_table(results[0], whole)
    late = [
        (result.query.name, timeout_table(result, whole)) for result in results if result.query.timeouts is not None
    ]
    return Outputs(matches, of_queries(late), bad_row_table(results[0].bad_rows))

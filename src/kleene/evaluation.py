"""Queries over a table: on the compiled engine where a plan can run there, otherwise on the reference evaluator.

Both give the same matches with the same ids; `kleene.match` and the tasks on Spark come through here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kleene.frames.arrow import schema_on
from kleene.frames.streams import reads, to_table
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.testing.process import Tables, report_warnings, table_outputs
from kleene.testing.tables import bad_row_table


def evaluate(events: Any, queries: Sequence[Query], *, schema: Schema | None = None, several: bool = False) -> Tables:
    """Matches, timeouts and bad rows of one query, or of several in one table."""
    if len(queries) != 1 or several or _feeds_itself(queries[0]):
        return table_outputs(events, queries, schema=schema, several=several)
    query = queries[0]
    declared = (schema or Schema()).declaring(query.tree.declarations)
    table, given = to_table(events, declared, reads(queries, declared))
    bound = query.bind(schema_on(table.schema, given))
    from kleene.engine.run import run_query

    # Before the run, which may end in an exceeded budget that a warning explains.
    report_warnings([bound])
    made = run_query(bound, table)
    if made is None:
        return table_outputs(table, queries, schema=given, warned=True)
    return Tables(made.matches, made.timeouts, bad_row_table(made.bad))


def _feeds_itself(query: Query) -> bool:
    """Which is an error that the reference evaluator reports, as it does for several queries."""
    returns = query.tree.returns
    return returns is not None and returns.into in query.inputs

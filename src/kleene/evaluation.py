"""Queries over a table: on the compiled engine where a plan can run there, otherwise on the reference evaluator.

Both give the same matches with the same ids; `kleene.match` and the tasks on Spark come through here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from kleene.frames.arrow import schema_on
from kleene.frames.streams import reads, to_table
from kleene.optimize.planner import plan_query
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.testing.process import Tables, report_warnings, table_outputs
from kleene.testing.tables import bad_row_table

_LOG = logging.getLogger("kleene")


def evaluate(
    events: Any,
    queries: Sequence[Query],
    *,
    schema: Schema | None = None,
    several: bool = False,
    settings: Settings | None = None,
) -> Tables:
    """Matches, timeouts and bad rows of one query, or of several in one table."""
    if len(queries) != 1 or several or _feeds_itself(queries[0]):
        if several:
            _warn_of_several()
        return table_outputs(events, queries, schema=schema, several=several)
    query = queries[0]
    declared = (schema or Schema()).declaring(query.tree.declarations)
    table, given = to_table(events, declared, reads(queries, declared))
    bound = query.bind(schema_on(table.schema, given))
    from kleene.engine.run import run_query

    # Before the run, which may end in an exceeded budget that a warning explains.
    report_warnings([bound])
    made = run_query(bound, table, settings)
    if made is None:
        return table_outputs(table, queries, schema=given, warned=True)
    return Tables(made.matches, made.timeouts, bad_row_table(made.bad), made.compressed)


def warn_of_reference(queries: Sequence[BoundQuery], *, several: bool) -> None:
    """Say beforehand that a run will be slow, where its tasks cannot say it; what depends on the data is not known."""
    fallback = None if several else plan_query(queries[0]).fallback
    if several:
        _warn_of_several()
    elif fallback is not None:
        name, reason = queries[0].name, fallback.reason
        _LOG.warning("`%s` runs on the reference evaluator, which is slow: %s", name, reason)


def _warn_of_several() -> None:
    _LOG.warning(
        "queries in a list run on the reference evaluator, which is slow: they are not compiled together so far"
    )


def _feeds_itself(query: Query) -> bool:
    """Which is an error that the reference evaluator reports, as it does for several queries."""
    returns = query.tree.returns
    return returns is not None and returns.into in query.inputs

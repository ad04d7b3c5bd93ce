"""The engine behind `match`: one query over one table, compiled; None when its plan stays on the reference."""

from __future__ import annotations

import logging

import pyarrow as pa

from kleene.frames.rows import BadRow
from kleene.optimize.planner import plan_query
from kleene.pattern.query import BoundQuery
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings

_LOG = logging.getLogger("kleene")


def run_query(
    query: BoundQuery, table: pa.Table, settings: Settings | None = None
) -> tuple[pa.Table, list[BadRow]] | None:
    """The matches of a query and the rows that were no events, or None when no executor can run it yet."""
    plan = plan_query(query, settings)
    reason = None if plan.fallback is None else plan.fallback.reason
    if reason is None:
        from kleene.engine.outputs import sequence_table
        from kleene.engine.sequence import find_sequences

        try:
            found = find_sequences(plan, table, settings or Settings())
            return sequence_table(query, table, found), found.bad
        except NotCompilable as problem:
            reason = str(problem)
    _LOG.info("`%s` runs on the reference evaluator: %s", query.name, reason)
    return None

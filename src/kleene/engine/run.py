"""The engine behind `match`: one query over one table."""

from __future__ import annotations

import logging
from typing import NamedTuple

import pyarrow as pa

from kleene.engine.engine import Batch, Engine
from kleene.engine.readiness import when_ready
from kleene.frames.rows import BadRow
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Settings

_LOG = logging.getLogger("kleene")


class Ran(NamedTuple):
    matches: pa.Table
    bad: list[BadRow]
    timeouts: pa.Table | None
    # Of events that completed more matches than they may, under the policy that emits these compressed.
    compressed: pa.Table | None


def run_query(query: BoundQuery, table: pa.Table, settings: Settings | None = None) -> Ran:
    """What a query gives over a whole table; `NotCompilable` when no executor can run it yet."""
    engine, bad, last = run_engine(query, table, settings)
    if engine.statistics.dropped:
        _LOG.warning("`%s`: %d matches and partial matches were dropped", query.name, engine.statistics.dropped)
    return Ran(last.matches, bad, last.timeouts, last.compressed)


def run_engine(
    query: BoundQuery, table: pa.Table, settings: Settings | None = None
) -> tuple[Engine, list[BadRow], Batch]:
    """An engine that went through a whole table, the rows that were no events, and what it gave."""
    first = Engine(query, settings)
    unused = [first]

    def run() -> tuple[Engine, list[BadRow], Batch]:
        engine = unused.pop() if unused else Engine(query, settings)
        bad = engine.process(table).bad
        return engine, bad, engine.finish()

    return when_ready(run, table.num_rows, first.plan)

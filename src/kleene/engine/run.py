"""The engine behind `match`: one query over one table, compiled."""

from __future__ import annotations

import logging
from typing import NamedTuple

import pyarrow as pa

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
    from kleene.engine.engine import Engine

    engine = Engine(query, settings)
    bad = engine.process(table).bad
    made = engine.finish()
    if engine.statistics.dropped:
        _LOG.warning("`%s`: %d matches and partial matches were dropped", query.name, engine.statistics.dropped)
    return Ran(made.matches, bad, made.timeouts, made.compressed)

"""The reference evaluator over tables: what the engine cannot run yet goes this way."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.frames.composites import with_composites as below
from kleene.frames.rows import BadRow
from kleene.frames.streams import concatenated, reads, to_table
from kleene.pattern.feeding import declared_together
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.testing.limits import Limits
from kleene.testing.reference import evaluate, events_of, reference_results
from kleene.testing.tables import bad_row_table, many_table, match_table, timeout_table, with_composites
from kleene.testing.timeline import Event

_LOG = logging.getLogger("kleene")


@dataclass(frozen=True)
class Tables:
    matches: pa.Table
    timeouts: pa.Table | None
    bad_rows: pa.Table
    # Matches of events that completed more than the budget allows, where its policy is to emit these compressed.
    compressed: pa.Table | None = None


def report_warnings(queries: Sequence[BoundQuery]) -> None:
    for warning in dict.fromkeys(warning for query in queries for warning in query.warnings):
        _LOG.warning("%s", warning.render())


def table_outputs(
    events: Any, queries: Sequence[Query], *, schema: Schema | None = None, several: bool = False, warned: bool = False
) -> Tables:
    """Matches, timeouts and bad rows of one query, or of several in one table."""
    declared = declared_together(schema or Schema(), queries)
    table, given = to_table(events, declared, reads(queries, declared))
    results = reference_results(table, queries, schema=given)
    if not warned:
        report_warnings([result.query for result in results])
    whole = with_composites(results, table)
    matches = many_table(results, whole) if several else match_table(results[0], whole)
    late = [
        (result.query.name, timeout_table(result, whole)) for result in results if result.query.timeouts is not None
    ]
    return Tables(matches, of_queries(late), bad_row_table(results[0].bad_rows))


def of_queries(tables: Sequence[tuple[str, pa.Table]]) -> pa.Table | None:
    """One table of those of some queries; None when there is none."""
    return concatenated(tables, hint="give the variables other names") if tables else None


def reference_tables(query: BoundQuery, parts: Sequence[tuple[str, pa.Table]]) -> Tables:
    """One query over its input: the events of a table, and the composite ones that it reads."""
    events: list[Event] = []
    bad: list[BadRow] = []
    following = 0
    for _, part in parts:
        good, wrong = events_of(part, query.schema, following)
        following += part.num_rows
        events += good
        bad += wrong
    result = evaluate(query, events, Limits(), bad)
    whole = below(parts[0][1], parts[1:])
    late = None if query.timeouts is None else timeout_table(result, whole)
    return Tables(match_table(result, whole), late, bad_row_table(bad))

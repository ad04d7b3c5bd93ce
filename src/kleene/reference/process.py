"""The reference evaluator over tables: what the engine cannot run yet goes this way."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kleene.algebra.query import BoundStreamQuery
from kleene.frames.composites import with_composites as below
from kleene.frames.rows import BadRow
from kleene.queries.any_query import AnyBoundQuery
from kleene.reference.evaluator import evaluate, events_of
from kleene.reference.limits import Limits
from kleene.reference.stream_results import evaluate_stream, stream_table
from kleene.reference.tables import match_table, timeout_table
from kleene.reference.timeline import ReferenceEvent


def reference_tables(
    query: AnyBoundQuery, parts: Sequence[tuple[str, pa.Table]]
) -> tuple[pa.Table, pa.Table | None, list[BadRow]]:
    """Matches, timeouts and bad rows of one query over its input: the events, and the composite ones that it reads."""
    events: list[ReferenceEvent] = []
    bad: list[BadRow] = []
    following = 0
    for _, part in parts:
        good, wrong = events_of(part, query.schema, following)
        following += part.num_rows
        events += good
        bad += wrong
    if isinstance(query, BoundStreamQuery):
        columns = below(parts[0][1].slice(0, 0), [(name, part.slice(0, 0)) for name, part in parts[1:]]).schema
        return stream_table(evaluate_stream(query, events, bad), columns), None, bad
    result = evaluate(query, events, Limits(), bad)
    whole = below(parts[0][1], parts[1:])
    late = None if query.timeouts is None else timeout_table(result, whole)
    return match_table(result, whole), late, bad

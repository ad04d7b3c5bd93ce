"""How the events of a query are pruned and divided on Spark, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery
from kleene.spark.parquet.listing import ReadBySpark, listed_files
from kleene.spark.pruning import columns_needed, counts_every_event
from kleene.spark.routing import routes_of, selects_afterwards


def division_text(query: AnyBoundQuery, columns: pa.Schema, events: Any, settings: Settings) -> Iterator[str]:
    needed = columns_needed([query], columns)
    yield f"read       {_reader(events, needed)}"
    yield f"columns    {len(needed)} of {len(columns)}: {', '.join(needed)}"
    if counts_every_event(query):
        yield "rows       all: positions and contiguity are judged among all events"
    else:
        yield f"rows       of {', '.join(query.types)}, and what Spark can test of an event alone"
    (route,) = routes_of([query], columns, settings.budget.policy)
    yield f"divided    {route.describe()}"
    if selects_afterwards(query, route):
        yield "selected   by one task, from the matches of all slices"


def _reader(events: Any, needed: Sequence[str]) -> str:
    """Who reads the events: Spark, and why, or the tasks that pack them."""
    if getattr(events, "isStreaming", False):
        return "by Spark: it is a stream"
    try:
        listed = listed_files(events)
        listed.placed(needed)
    except ReadBySpark as reason:
        return f"by Spark: {reason}"
    files, groups = len(listed.files), listed.row_groups
    return f"by tasks, {files:,} file{'s'[: files != 1]}, {groups:,} row group{'s'[: groups != 1]}"

"""How the events of a query are pruned and divided on Spark, in words."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery
from kleene.spark.pruning import columns_needed, counts_every_event
from kleene.spark.routing import routes_of, selects_afterwards


def division_text(query: AnyBoundQuery, columns: pa.Schema, settings: Settings) -> Iterator[str]:
    needed = columns_needed([query], columns)
    yield f"columns    {len(needed)} of {len(columns)}: {', '.join(needed)}"
    if counts_every_event(query):
        yield "rows       all: positions and contiguity are judged among all events"
    else:
        yield f"rows       of {', '.join(query.types)}, and what Spark can test of an event alone"
    (route,) = routes_of([query], columns, settings.budget.policy)
    yield f"divided    {route.describe()}"
    if selects_afterwards(query, route):
        yield "selected   by one task, from the matches of all slices"

"""Streams for an engine: a table as batches with watermarks that time allows, and small streams in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kleene.engine.intake.timeline import integers
from kleene.frames.arrow import schema_on
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.plan.settings import Budget, Settings


def settings_for_streams() -> Settings:
    """A query without WITHIN runs on a stream only under a state budget."""
    return Settings(budget=Budget(state_bytes=1 << 40))


def in_time_order(table: pa.Table, schema: Schema, pieces: int) -> Iterator[tuple[pa.Table, int]]:
    """So many batches, by time; the watermark is the time of the next row to come, so equal times wait for each other.

    Rows without a time are no events, and come first.
    """
    column = table.column(schema.time)
    known = column.is_valid().to_numpy()
    times = np.zeros(table.num_rows, np.int64)
    times[known] = integers(column.drop_null())
    order = np.lexsort((times, known))
    after = int(times[known].max(initial=0)) + 1
    for part in np.array_split(order, pieces):
        left = order[np.flatnonzero(order == part[-1])[0] + 1 :] if len(part) else order
        left = left[known[left]]
        yield table.take(pa.array(part)), int(times[left].min(initial=after))


# Small streams in words --------------------------------------------------------------------------------------------


def events(text: str) -> pa.Table:
    """`a1 b2/7` is an A at 1 and a B at 2 with id 7; an id that is not said is 0, and `a-` has no time."""
    words = [re.fullmatch(r"([a-z])(-|\d+)(?:/(\w+))?", word) for word in text.split()]
    found = [word for word in words if word is not None]
    assert len(found) == len(words), text
    return pa.table(
        {
            "type": pa.array([word[1].upper() for word in found], pa.string()),
            "ts": pa.array([None if word[2] == "-" else int(word[2]) for word in found], pa.int64()),
            "id": pa.array([word[3] or "0" for word in found], pa.string()),
        }
    )


def bound(text: str, table: pa.Table | None = None) -> BoundQuery:
    """A query on the columns of a table, or of `events`."""
    return Query(text).bind(schema_on((events("") if table is None else table).schema, Schema()))


def words(table: pa.Table | None) -> list[str]:
    """Matches as the words of their events, in the order of the query's variables: `a1 a3 b4`."""
    if table is None:
        return []
    common = {"match_id", "query", "start", "end", "key", "stream", "closed", "reached"}
    said = []
    for row in table.to_pylist():
        listed = [value if isinstance(value, list) else [value] for name, value in row.items() if name not in common]
        chosen = [event for part in listed for event in part if event is not None]
        said.append(" ".join(f"{event['type'].lower()}{event['ts']}" for event in chosen))
    return said

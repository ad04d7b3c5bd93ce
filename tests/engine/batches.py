"""A table as the batches of a stream, each with a watermark that time allows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kleene.engine.timeline import integers
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

"""What a query found, as a table: events taken by row number, ids computed by column, in the order of their ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.identity import event_hashes, match_id_column
from kleene.engine.sequence import Found
from kleene.frames.results import event_column, result_schema, times
from kleene.kernels.expression import Ints
from kleene.pattern.expressions import Attribute, Whole
from kleene.pattern.query import BoundQuery


def sequence_table(query: BoundQuery, table: pa.Table, found: Found) -> pa.Table:
    """The documented columns of a result, one row a match."""
    schema = result_schema(query, table.schema)
    hashes = _hashes(query, table, found)
    starts, ends = _spans(found)
    order = _in_order(found.numbers, starts, ends, _ranks(found, hashes))
    numbers, rows = found.numbers[order], found.rows[order]
    time = schema.field("start").type
    places = range(1, len(query.positives) + 1)
    columns: dict[str, Any] = {
        "match_id": match_id_column(query, numbers, hashes, list(places)),
        "query": pa.array([query.name], pa.string()).take(pa.array(np.zeros(len(rows), np.int64))),
        "start": times(starts[order], time),
        "end": times(ends[order], time),
    }
    if query.partition:
        first = rows[np.arange(len(rows)), np.argmax(rows >= 0, axis=1)] if len(rows) else np.zeros(0, np.int64)
        columns["key"] = event_column(table, first, schema.field("key").type)
    of_variable = {component.variable: rows[:, place] for place, component in enumerate(query.positives)}
    if query.returns is None:
        for variable, at in of_variable.items():
            columns[variable] = event_column(table, at, schema.field(variable).type)
    for column in query.returns or ():
        columns[column.name] = _returned(query, column.value, table, of_variable, schema.field(column.name).type)
    return pa.table(columns, schema=schema)


def _hashes(query: BoundQuery, table: pa.Table, found: Found) -> npt.NDArray[np.uint64]:
    """The hashes of the events in matches, and of those simultaneous with them, which could be their equals."""
    hashes = np.zeros(len(found.chosen), np.uint64)
    steps = found.order.step[found.chosen]
    used = np.unique(steps[found.numbers[found.numbers >= 0]])
    first, last = np.searchsorted(steps, used), np.searchsorted(steps, used, side="right")
    wanted = first if np.all(last - first == 1) else np.flatnonzero(np.isin(steps, used))
    hashes[wanted] = event_hashes(query, table.take(pa.array(found.relevant[wanted])))
    return hashes


def _spans(found: Found) -> tuple[Ints, Ints]:
    """Start and end of each match."""
    start, end = found.order.start[found.chosen], found.order.end[found.chosen]
    if not len(found.numbers):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    present = found.numbers >= 0
    known = np.maximum(found.numbers, 0)
    low = np.where(present, start[known], np.iinfo(np.int64).max).min(axis=1)
    high = np.where(present, end[known], np.iinfo(np.int64).min).max(axis=1)
    return low, high


def _ranks(found: Found, hashes: Any) -> Ints:
    """The order of relevant events: by step, then, among simultaneous ones, by content."""
    steps = found.order.step[found.chosen]
    if np.all(steps[1:] > steps[:-1]):
        return np.arange(len(steps))
    ranks = np.empty(len(steps), np.int64)
    ranks[np.lexsort((hashes, steps))] = np.arange(len(steps))
    return ranks


def _in_order(numbers: Ints, starts: Ints, ends: Ints, ranks: Ints) -> Ints:
    """By end, then by start from the latest, then by events in pattern order; an absent variable comes first."""
    if not len(numbers):
        return np.zeros(0, np.int64)
    events = np.where(numbers >= 0, ranks[np.maximum(numbers, 0)], -1)
    keys = [ends, -starts, *(events[:, place] for place in range(numbers.shape[1]))]
    packed = _packed(keys)
    return np.lexsort(keys[::-1]) if packed is None else np.argsort(packed, kind="stable")


def _packed(keys: list[Ints]) -> Ints | None:
    """Several keys in one integer, the first the most significant; None when they do not fit."""
    lows = [int(key.min()) for key in keys]
    spans = [int(key.max()) - low + 1 for key, low in zip(keys, lows, strict=True)]
    if math.prod(spans) >= 2**63:
        return None
    packed = np.zeros(len(keys[0]), np.int64)
    for key, low, span in zip(keys, lows, spans, strict=True):
        packed = packed * span + (key - low)
    return packed


def _returned(
    query: BoundQuery, value: Any, table: pa.Table, of_variable: dict[str, Ints], kind: pa.DataType
) -> pa.Array:
    if isinstance(value, Whole):
        return event_column(table, of_variable[value.variable], kind)
    assert isinstance(value, Attribute)
    if value.attribute not in table.column_names:
        return pa.nulls(len(of_variable[value.variable]), kind)
    component = next(c for c in query.components if c.variable == value.variable)
    taken = event_column(table, of_variable[value.variable], pa.struct([table.schema.field(value.attribute)]))
    values = taken.field(0) if not taken.null_count else pa.compute.if_else(taken.is_valid(), taken.field(0), None)
    lacking = [name for name in component.types if not _has(query, name, value.attribute)]
    if lacking:
        types = event_column(table, of_variable[value.variable], pa.struct([table.schema.field(query.schema.type)]))
        missing = pa.compute.is_in(types.field(0), pa.array(lacking, pa.string()))
        values = pa.compute.if_else(missing, None, values)
    return values.cast(kind)


def _has(query: BoundQuery, kind: str, attribute: str) -> bool:
    attributes = query.schema.attributes_of(kind)
    return attributes is None or attribute in attributes

"""The state of a detection engine as bytes: waiting events, the events that detections refer to, and these.

A checksum tells that a snapshot is whole, not that an engine wrote it, so that tables are held against what an engine
of this query keeps before anything is put into memory that kernels index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.algebra.detections import Delay, Iteration, NextDetection, Unless, walk_detections
from kleene.algebra.eql_query import BoundEqlQuery
from kleene.engine.state.container import pack, unpack
from kleene.engine.state.state_contract import check_events, require
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.kernels.detections import DetectionArrays
from kleene.kernels.expression import Ints
from kleene.pattern.schema import private

_STEP = private("step")
_MOMENTS = ("start", "start_tie", "end", "end_tie")
_REFERENCES = ("rows", "aliases", "later")
_NUMBERS = pa.list_(pa.int64())
_SCHEMA = pa.schema([*((name, pa.int64()) for name in _MOMENTS), *((name, _NUMBERS) for name in _REFERENCES)])


@dataclass(frozen=True, eq=False)
class DetectionSnapshot:
    digest: bytes
    meaning: Mapping[str, Any] | None
    watermark: int | None
    # How many rows came in.
    rows: int
    waiting: pa.Table | None
    # The events that detections refer to, in canonical order, and the step of each.
    events: pa.Table | None
    steps: Ints
    # By operator that holds something.
    held: Sequence[DetectionArrays]


def to_bytes(state: DetectionSnapshot) -> bytes:
    description = {
        "digest": state.digest.hex(),
        "meaning": state.meaning,
        "watermark": state.watermark,
        "rows": state.rows,
        "step": 0,
    }
    if state.events is None:
        return pack(description, [state.waiting])
    events = state.events.append_column(_STEP, to_arrow(state.steps))
    return pack(description, [state.waiting, events, *map(_table, state.held)])


def _table(detections: DetectionArrays) -> pa.Table:
    offsets = pa.array(detections.offsets, pa.int32())
    lists = [pa.ListArray.from_arrays(offsets, to_arrow(array), type=_NUMBERS) for array in detections[5:]]
    return pa.table([*map(to_arrow, detections[:4]), *lists], schema=_SCHEMA)


def from_bytes(data: bytes, query: BoundEqlQuery, meaning: Mapping[str, Any]) -> DetectionSnapshot:
    """The state that was written, for this query, on events with this meaning."""
    holding = sum(isinstance(node, NextDetection | Iteration | Unless | Delay) for node in walk_detections(query.root))
    parts = ["events that wait", "the events of detections", *["detections"] * holding]
    said, tables = unpack(data, query.digest, meaning, parts)
    waiting, events, *held = (*tables, None) if len(tables) < 2 else tables
    if waiting is None or events is None:
        require(waiting is None and events is None and not held, "detections wait, and no event ever came")
        return DetectionSnapshot(
            query.digest, said["meaning"], said["watermark"], said["rows"], None, None, np.zeros(0, np.int64), []
        )
    named = [*(said["meaning"] or {}).get("columns", {})]
    check_events(waiting, query.schema, "the events that wait", named=named, earliest=said["watermark"])
    require(_STEP in events.column_names, "its events have no steps")
    steps = events.column(_STEP)
    require(steps.type == pa.int64() and not steps.null_count, "its events have no steps")
    numbers = np.ascontiguousarray(to_numpy(steps))
    require(bool(np.all(numbers[1:] >= numbers[:-1])), "its events are out of order")
    events = events.drop_columns([_STEP])
    require(events.schema.equals(waiting.schema), "its events have other columns than those that wait")
    check_events(events, query.schema, "the events of detections", named=named)
    arrays = [_arrays(table) for table in held if table is not None]
    for each in arrays:
        _check(each, events.num_rows, len(query.components))
    return DetectionSnapshot(
        query.digest, said["meaning"], said["watermark"], said["rows"], waiting, events, numbers, arrays
    )


def _arrays(table: pa.Table) -> DetectionArrays:
    require(table.schema.equals(_SCHEMA), f"detections have the columns {', '.join(table.column_names)}")
    require(not any(column.null_count for column in table.columns), "a detection lacks something")
    moments = [np.ascontiguousarray(to_numpy(table.column(name)), dtype=np.int64) for name in _MOMENTS]
    lists = [table.column(name).combine_chunks() for name in _REFERENCES]
    sizes = [np.asarray(each.value_lengths().to_numpy(zero_copy_only=False), dtype=np.int64) for each in lists]
    require(all(np.array_equal(size, sizes[0]) for size in sizes), "detections have lists of several lengths")
    require(bool(np.all(sizes[0] > 0)), "a detection has no events")
    values = [each.flatten() for each in lists]
    require(not any(each.null_count for each in values), "a detection lacks something")
    offsets = np.zeros(len(sizes[0]) + 1, np.int64)
    np.cumsum(sizes[0], out=offsets[1:])
    rows, aliases, later = (np.array(to_numpy(pa.chunked_array([each])), dtype=np.int64) for each in values)
    return DetectionArrays(*moments, offsets, rows, aliases, later)  # type: ignore[call-arg]


def _check(detections: DetectionArrays, events: int, aliases: int) -> None:
    rows, names = detections.rows, detections.aliases
    if len(rows):
        require(int(rows.min()) >= 0 and int(rows.max()) < events, "a detection has an event that is not there")
        require(int(names.min()) >= 0 and int(names.max()) < aliases, "a detection has an alias that is not there")

"""The state of a stream engine as bytes: waiting events, and the instances of each state as an Arrow table.

A checksum tells that a snapshot is whole, not that an engine wrote it, so that tables are held against what an engine
of this query keeps before anything is put into memory that kernels index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.algebra.query import BoundStreamQuery
from kleene.codegen.value_kinds import FOREIGN, ValueKind
from kleene.engine.state.container import pack, unpack
from kleene.engine.state.state_contract import check_events, require
from kleene.engine.streams.cells import CellLayout, CellValues
from kleene.engine.streams.pool import InstancePool
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.kernels import stream_instances as kernel
from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.opcodes import VALUE
from kleene.pattern.types import ValueType
from kleene.plan.streams import StreamPlan

_MOMENTS = ("start", "end", "start_tie", "end_tie")


@dataclass(frozen=True, eq=False)
class StreamSnapshot:
    digest: bytes
    meaning: Mapping[str, Any] | None
    watermark: int | None
    # How many rows came in.
    rows: int
    waiting: pa.Table | None
    # By state.
    instances: Sequence[pa.Table]


def to_bytes(state: StreamSnapshot) -> bytes:
    description = {
        "digest": state.digest.hex(),
        "meaning": state.meaning,
        "watermark": state.watermark,
        "rows": state.rows,
        "step": 0,
    }
    return pack(description, [state.waiting, *state.instances])


def from_bytes(data: bytes, query: BoundStreamQuery, plan: StreamPlan, meaning: Mapping[str, Any]) -> StreamSnapshot:
    """The state that was written, for this query, on events with this meaning."""
    parts = ["events that wait", *(f"instances at state {number}" for number in range(len(plan.states)))]
    said, tables = unpack(data, query.digest, meaning, parts)
    waiting, *instances = tables
    require(waiting is not None or not instances, "instances wait, and no event ever came")
    if waiting is not None:
        require(len(instances) == len(plan.states) and None not in instances, "it lacks the instances of a state")
        named = [*(said["meaning"] or {}).get("columns", {})]
        check_events(waiting, query.schema, "the events that wait", named=named, earliest=said["watermark"])
    of_states = [table for table in instances if table is not None]
    return StreamSnapshot(query.digest, said["meaning"], said["watermark"], said["rows"], waiting, of_states)


# Instances -----------------------------------------------------------------------------------------------------------


def instance_tables(pool: InstancePool) -> Iterator[pa.Table]:
    """The instances of each state: when they are, and the values of their attributes."""
    for state, layout in enumerate(pool.stream.cells[:-1]):
        cells, states = pool.rows(state)
        moments = [to_arrow(np.ascontiguousarray(cells[:, place])) for place in range(kernel.FIRST_VALUE)]
        values = [
            pool.values.to_arrow(np.ascontiguousarray(cells[:, place]), states[:, place], kind, field.type)
            for place, (kind, field) in enumerate(
                zip(layout.kinds.values(), _value_fields(layout), strict=True), kernel.FIRST_VALUE
            )
        ]
        yield pa.table([*moments, *values], schema=_schema(layout))


def restore_instances(pool: InstancePool, tables: Sequence[pa.Table], watermark: int | None) -> None:
    """Let the instances of a snapshot wait again."""
    for state, (table, layout) in enumerate(zip(tables, pool.stream.cells[:-1], strict=True)):
        _check(table, layout, watermark)
        number = table.num_rows
        cells, states = np.zeros((number, layout.width), np.int64), np.full((number, layout.width), VALUE, np.uint8)
        for place, name in enumerate(_MOMENTS):
            cells[:, place] = to_numpy(table.column(name))
        for place, kind in enumerate(layout.kinds.values(), kernel.FIRST_VALUE):
            cells[:, place], states[:, place] = pool.values.from_arrow(table.column(place), kind)
        pool.put(state, cells, states)


def moved(cells: Ints, states: Bytes, layout: CellLayout, old: CellValues, new: CellValues) -> tuple[Ints, Bytes]:
    """Instances whose strings and other values are in another pool."""
    cells = cells.copy()
    for place, (kind, field) in enumerate(
        zip(layout.kinds.values(), _value_fields(layout), strict=True), kernel.FIRST_VALUE
    ):
        if kind.type is ValueType.STRING or kind.type in FOREIGN:
            values = old.to_arrow(np.ascontiguousarray(cells[:, place]), states[:, place], kind, field.type)
            cells[:, place], _ = new.from_arrow(pa.chunked_array([values]), kind)
    return cells, states


def _schema(layout: CellLayout) -> pa.Schema:
    moments = [pa.field(name, pa.int64()) for name in _MOMENTS]
    return pa.schema([*moments, *_value_fields(layout)])


def _value_fields(layout: CellLayout) -> list[pa.Field]:
    """Attributes by number: their names may be anything."""
    return [
        pa.field(str(number), layout.types[name] if kind.type in FOREIGN else _stored_type(kind))
        for number, (name, kind) in enumerate(layout.kinds.items())
    ]


def _stored_type(kind: ValueKind) -> pa.DataType:
    """As what a cell is kept; moments and lengths of time as their steps."""
    if kind.type is ValueType.STRING:
        return pa.string()
    if kind.type is ValueType.FLOAT:
        return pa.float64()
    if kind.type in (ValueType.NULL, ValueType.UNKNOWN):
        return pa.null()
    return pa.bool_() if kind.type is ValueType.BOOL else pa.int64()


def _check(table: pa.Table, layout: CellLayout, watermark: int | None) -> None:
    """Refuse instances that no engine can have held."""
    require(table.schema.equals(_schema(layout)), f"instances have the columns {', '.join(table.column_names)}")
    if not table.num_rows:
        return
    require(all(not table.column(name).null_count for name in _MOMENTS), "an instance has no time")
    start, end, start_tie, end_tie = (to_numpy(table.column(name)) for name in _MOMENTS)
    require(bool(np.all((start < end) | ((start == end) & (start_tie <= end_tie)))), "instances end before they start")
    require(watermark is not None and int(end.max()) < watermark, "instances are of a time that has not come")

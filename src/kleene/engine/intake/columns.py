"""Columns of a table as the arrays that programs read (`kernels.expression.EventColumns`).

Times and durations keep their own steps, so that none is out of range. An attribute that the event's declared type
does not have is missing, whatever the column holds there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from kleene.engine.intake.row_types import RowTypes, row_types
from kleene.engine.intake.strings import StringPool, string_codes
from kleene.engine.state.event_rows import AnyRows, EventRows
from kleene.engine.state.memory import empty
from kleene.frames.arrow import as_integers, nanoseconds_a_step, value_type
from kleene.frames.numbers import to_numpy
from kleene.kernels.expression import Bytes, EventColumns, Ints, Reals
from kleene.kernels.opcodes import MISSING, NULL, VALUE
from kleene.pattern.expressions import Clause, Node, references
from kleene.pattern.query import BoundQuery
from kleene.pattern.recent import Recent
from kleene.pattern.schema import Schema
from kleene.pattern.types import TIMES, ValueType
from kleene.plan.layout import AS_INTEGERS, Column
from kleene.plan.program import NotCompilable


def column_layout(schema: pa.Schema, names: Iterable[str]) -> Mapping[str, Column]:
    """The number and the place of each column; one that the data does not have holds only NULL."""
    return _column_layout(schema, tuple(dict.fromkeys(names)))


@lru_cache(maxsize=256)
def _column_layout(schema: pa.Schema, names: tuple[str, ...]) -> Mapping[str, Column]:
    layout: dict[str, Column] = {}
    places = {True: 0, False: 0}
    for index, name in enumerate(names):
        at = schema.get_field_index(name)
        arrow = pa.null() if at < 0 else schema.field(at).type
        kind = value_type(arrow)
        place = -1
        if kind in AS_INTEGERS or kind is ValueType.FLOAT:
            place = places[kind in AS_INTEGERS]
            places[kind in AS_INTEGERS] += 1
        layout[name] = Column(index, place, kind, nanoseconds_a_step(_plain(arrow)) or 1)
    return layout


@dataclass(frozen=True, slots=True, eq=False)
class ColumnStore:
    columns: Mapping[str, Column]
    events: EventColumns
    types: RowTypes

    @staticmethod
    def from_table(
        table: AnyRows,
        names: Sequence[str],
        schema: Schema,
        strings: StringPool,
        spare: tuple[int, int] = (0, 0),
        types: RowTypes | None = None,
    ) -> ColumnStore:
        """The named columns; `NotCompilable` when they hold an integer beyond 64 bits.

        spare   how many more rows the integers and the states have, for the caller to fill
        types   the types of the rows, where they are known
        """
        columns = column_layout(table.schema, names)
        size = table.num_rows
        integers = [name for name, column in columns.items() if column.type in AS_INTEGERS]
        own = _own_integers(table, integers) if not spare[0] else None
        ints = empty((len(integers) + spare[0], size), np.int64) if own is None else own.reshape(1, size)
        reals = empty((sum(column.type is ValueType.FLOAT for column in columns.values()), size), np.float64)
        states = empty((len(columns) + spare[1], size), np.uint8)
        states[:] = VALUE
        types = row_types(table, schema) if types is None else types
        for name, column in columns.items():
            if own is not None and name == integers[0]:
                continue
            if name in table.column_names:
                _fill(table.column(name), column, name, ints, reals, states[column.index], strings)
            else:
                states[column.index] = NULL
        _mark_missing(states, columns, types, schema)
        return ColumnStore(columns, EventColumns(ints, reals, states), types)


def _own_integers(table: AnyRows, names: Sequence[str]) -> Ints | None:
    """The values of the only column of integers as they stand, where they need no copy."""
    if len(names) != 1 or not isinstance(table, EventRows) or names[0] not in table.column_names:
        return None
    return table.integers(names[0])


def no_events(columns: Mapping[str, Column]) -> EventColumns:
    """Arrays of this layout, without events."""
    integers = sum(column.type in AS_INTEGERS for column in columns.values())
    reals = sum(column.type is ValueType.FLOAT for column in columns.values())
    return EventColumns(
        np.zeros((integers, 0), np.int64), np.zeros((reals, 0), np.float64), np.zeros((len(columns), 0), np.uint8)
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _fill(
    column: pa.ChunkedArray, at: Column, name: str, ints: Ints, reals: Reals, states: Bytes, strings: StringPool
) -> None:
    begin = 0
    for chunk in column.chunks:
        part = slice(begin, begin + len(chunk))
        begin += len(chunk)
        if at.type is ValueType.STRING:
            ints[at.place, part], states[part] = string_codes(chunk, strings)
            continue
        if pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_decode()
        if chunk.null_count:
            states[part] = np.where(to_numpy(chunk.is_null()), NULL, VALUE)
        if at.type is ValueType.FLOAT:
            reals[at.place, part] = to_numpy(chunk.cast(pa.float64()))
        elif at.place >= 0:
            ints[at.place, part] = to_numpy(_integers(chunk, at, name))


def _integers(chunk: pa.Array, at: Column, name: str) -> pa.Array:
    if at.type in TIMES or at.type is ValueType.DURATION:
        return as_integers(chunk)
    try:
        return chunk.cast(pa.int64())
    except pa.ArrowInvalid:
        raise NotCompilable(f"column `{name}` holds an integer beyond 64 bits") from None


def _mark_missing(states: Bytes, columns: Mapping[str, Column], types: RowTypes, schema: Schema) -> None:
    """Mark attributes that the type of an event does not have."""
    if not types.size or all(map(schema.all_have, columns)):
        return
    numbers = types.numbers
    for code, kind in enumerate(types.names):
        lacking = [column.index for name, column in columns.items() if not schema.has(kind, name)]
        if lacking and numbers[code]:
            states[np.ix_(np.array(lacking), types.codes == code)] = MISSING


def columns_read(query: BoundQuery) -> tuple[str, ...]:
    """The columns that programs read."""
    return _READ.get(query, None, lambda: _columns_read(query))


_READ: Recent[tuple[str, ...]] = Recent()


def _columns_read(query: BoundQuery) -> tuple[str, ...]:
    nodes: list[Node] = [column.value for column in query.returns or ()]
    clauses: list[Clause] = [*query.conditions.positive]
    for listed in (*query.conditions.negative.values(), *query.conditions.members.values()):
        clauses += listed
    clauses += [clause for c in query.components for kind in c.classes for clause in kind.predicate]
    named = (getattr(reference, "attribute", None) for node in (*nodes, *clauses) for reference in references(node))
    return tuple(dict.fromkeys(name for name in named if name is not None))

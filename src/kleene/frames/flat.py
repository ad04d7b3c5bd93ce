"""Results as flat rows, one an event of a match: what CSV files and BI tools can hold.

`Layout` says which columns there are, from nothing but names and types; `kleene.spark.flat` follows the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.errors import UnusableColumn
from kleene.frames.kinds import from_arrow, kind_of, to_arrow
from kleene.frames.results import RETURNED

VARIABLE, POSITION = "variable", "position"
_KEY, _GRAPH, _EVENTS = "key", "graph", "events"
_MEMBER = (VARIABLE, POSITION, "event")


@dataclass(frozen=True, slots=True)
class FlatLayout:
    """The columns of a result in its flat form.

    carried    columns of the match that every row repeats: the column, the path to a field of it (none: all of it), and
               the new name
    variables  columns that hold an event or a list of events
    together   the column that holds the events of all variables, where several queries gave one table
    event      the columns of an event: as it calls them, and the new names
    """

    carried: tuple[tuple[str, tuple[str, ...], str], ...]
    variables: tuple[str, ...]
    together: str | None
    event: tuple[tuple[pa.Field, str], ...]

    @property
    def has_events(self) -> bool:
        return self.together is not None or bool(self.variables)

    @property
    def names(self) -> list[str]:
        carried = [new for _, _, new in self.carried]
        return [*carried, VARIABLE, POSITION, *(new for _, new in self.event)] if self.has_events else carried

    @staticmethod
    def of(schema: pa.Schema) -> FlatLayout:
        together = next((field.name for field in schema if _is_together(field)), None)
        variables = tuple(field.name for field in schema if field.name != together and _is_event(field))
        carried: list[tuple[str, tuple[str, ...], str]] = []
        for field in schema:
            if field.name == _KEY and pa.types.is_struct(field.type):
                carried += [(_KEY, (part.name,), f"key_{part.name}") for part in field.type]
            elif together is not None and field.name == RETURNED and pa.types.is_struct(field.type):
                carried += _returned(field)
            elif field.name != together and field.name not in variables and not _is_graph(field):
                carried.append((field.name, (), field.name))
        # A column that RETURN made may be called like one of ours.
        ours = {VARIABLE, POSITION} if together or variables else set()
        names = _fresh((new for _, _, new in carried), ours, "match_")
        carried = [(*one[:2], name) for one, name in zip(carried, names, strict=True)]
        events = [_event_type(schema.field(name).type) for name in ([together] if together else variables)]
        fields = _united(events)
        fresh = _fresh((field.name for field in fields), {VARIABLE, POSITION, *names}, "event_")
        return FlatLayout(tuple(carried), variables, together, tuple(zip(fields, fresh, strict=True)))


def _returned(column: pa.Field) -> list[tuple[str, tuple[str, ...], str]]:
    """The RETURN columns of all queries of a table, without whole events, which have rows of their own."""
    return [
        (RETURNED, (query.name, part.name), f"{query.name}_{part.name}")
        for query in column.type
        for part in query.type
        if not pa.types.is_nested(part.type)
    ]


def _is_together(field: pa.Field) -> bool:
    if field.name != _EVENTS or not _is_list(field.type) or not pa.types.is_struct(field.type.value_type):
        return False
    return _names(field.type.value_type) == _MEMBER


def _is_event(field: pa.Field) -> bool:
    if field.name == _KEY or _is_graph(field):
        return False
    if _is_list(field.type):
        # Rows whose lists are all empty do not say what would be in them.
        return bool(pa.types.is_struct(field.type.value_type) or pa.types.is_null(field.type.value_type))
    return bool(pa.types.is_struct(field.type))


def _is_graph(field: pa.Field) -> bool:
    """Whether a column is the graph of a compressed result, which a flat result leaves out."""
    if field.name != _GRAPH or not pa.types.is_struct(field.type):
        return False
    return {"digest", "predecessors", "ends"} <= {*_names(field.type)}


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _names(kind: pa.StructType) -> tuple[str, ...]:
    return tuple(field.name for field in kind)


def _event_type(kind: pa.DataType) -> pa.DataType:
    inner = kind.value_type if _is_list(kind) else kind
    if not pa.types.is_struct(inner):
        return pa.struct([])
    return inner.field("event").type if _names(inner) == _MEMBER else inner


def _united(events: Iterable[pa.DataType]) -> list[pa.Field]:
    """The columns of the events of all variables; the same name must have the same type everywhere."""
    fields: dict[str, pa.Field] = {}
    for event in events:
        for field in event:
            known = fields.get(field.name)
            if known is None or pa.types.is_null(known.type):
                fields[field.name] = field
            elif known.type != field.type and not pa.types.is_null(field.type):
                raise UnusableColumn(
                    f"`{field.name}` is {known.type} in one variable and {field.type} in another",
                    hint="return one of them under another name",
                )
    return list(fields.values())


def _fresh(names: Iterable[str], taken: set[str], prefix: str) -> list[str]:
    old_names = list(names)
    new_names: list[str] = []
    for name in old_names:
        new = name
        while new in taken or new in new_names or (new != name and new in old_names):
            new = prefix + new
        new_names.append(new)
    return new_names


# Arrow and what becomes it -------------------------------------------------------------------------------------------


def flat_result(result: Any) -> Any:
    """A result's flat form, of the same kind; not for Spark."""
    return from_arrow(flat_table(to_arrow(result)), kind_of(result))


def flat_table(table: pa.Table) -> pa.Table:
    """One row an event: by match, then by variable in the pattern's order, then by position."""
    layout = FlatLayout.of(table.schema)
    if not layout.has_events:
        return _named(_carried(table, layout), layout)
    pieces = [_piece(table, name, layout, place) for place, name in enumerate(layout.variables)]
    if layout.together is not None:
        pieces = [_members(table, layout.together, layout)]
    pieces.append(_without_events(table.num_rows, pieces, layout))
    rows = np.concatenate([piece.rows for piece in pieces])
    order = np.lexsort([np.concatenate([getattr(piece, part) for piece in pieces]) for part in ("positions", "places")])
    order = order[np.argsort(rows[order], kind="stable")]
    events = pa.concat_tables([piece.table for piece in pieces]).take(pa.array(order)).combine_chunks()
    carried = [column.take(pa.array(rows[order])) for column in _carried(table, layout)]
    return _named([*carried, *events.columns], layout)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Events of one variable: the row of each one's match, its variable's place in the pattern, its place in a list."""

    rows: Any
    places: Any
    positions: Any
    table: pa.Table


def _piece(table: pa.Table, name: str, layout: FlatLayout, place: int) -> _Piece:
    column = table.column(name).combine_chunks()
    if _is_list(column.type):
        rows, positions = _unfolded(column)
        events = column.flatten()
    else:
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        positions = np.ones(len(rows), np.int64)
        events = column.drop_null()
    names = pa.array([name], pa.string()).take(pa.array(np.zeros(len(rows), np.int64)))
    return _Piece(rows, np.full(len(rows), place), positions, _events(names, pa.array(positions), events, layout))


def _members(table: pa.Table, name: str, layout: FlatLayout) -> _Piece:
    column = table.column(name).combine_chunks()
    rows, places = _unfolded(column)
    names, positions, events = column.flatten().flatten()
    return _Piece(rows, places, places, _events(names.cast(pa.string()), positions.cast(pa.int64()), events, layout))


def _without_events(rows: int, pieces: Sequence[_Piece], layout: FlatLayout) -> _Piece:
    """One row for each match without events, such as a RETURN of an absent variable."""
    seen = np.zeros(rows, bool)
    for piece in pieces:
        seen[piece.rows] = True
    (missing,) = np.nonzero(~seen)
    nothing = pa.nulls(len(missing), pa.struct([]))
    none = _events(pa.nulls(len(missing), pa.string()), pa.nulls(len(missing), pa.int64()), nothing, layout)
    return _Piece(missing, np.zeros(len(missing), np.int64), np.zeros(len(missing), np.int64), none)


def _unfolded(column: pa.ListArray) -> tuple[Any, Any]:
    """For each element of lists the row that it stands in, and its place there, from 1."""
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows, np.arange(len(rows)) - starts[rows] + 1


def _events(names: pa.Array, positions: pa.Array, events: pa.Array, layout: FlatLayout) -> pa.Table:
    parts = {}
    if pa.types.is_struct(events.type):
        parts = dict(zip((field.name for field in events.type), events.flatten(), strict=True))
    columns = [
        parts[field.name].cast(field.type) if field.name in parts else pa.nulls(len(names), field.type)
        for field, _ in layout.event
    ]
    return pa.Table.from_arrays([names, positions, *columns], [VARIABLE, POSITION, *(new for _, new in layout.event)])


def _carried(table: pa.Table, layout: FlatLayout) -> list[pa.Array]:
    columns = []
    for name, path, _ in layout.carried:
        column = table.column(name).combine_chunks()
        for part in path:
            column = column.flatten()[column.type.get_field_index(part)]
        columns.append(column)
    return columns


def _named(columns: Sequence[Any], layout: FlatLayout) -> pa.Table:
    return pa.Table.from_arrays(list(columns), layout.names)

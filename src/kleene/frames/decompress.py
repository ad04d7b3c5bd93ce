"""The matches of a compressed result, one at a time, as the rows that OUTPUT ALL gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC
from typing import Any

import pyarrow as pa

from kleene.errors import NotCompressed, did_you_mean
from kleene.frames.graph import Graph, Place, integers, paths
from kleene.frames.identity import match_id
from kleene.frames.kinds import FrameKind, kind_of

_NEEDED = ("query", "end", "graph")
_NUMBERS = ("offsets", "predecessors", "begins", "ends", "hashes")


def decompressed(rows: Any, within: Any = None) -> Iterator[dict[str, Any]]:
    """The matches of what `match` gave for OUTPUT COMPRESSED, in the order of its rows; nothing is found in advance.

    within   the result that `rows` were taken from, where they are not all of it
    """
    kind = kind_of(rows)
    _check_all(rows, kind)
    if within is None:
        within, holder_kind = rows, kind
    else:
        holder_kind = kind_of(within)
        _check_all(within, holder_kind)
    hosts = _Hosts(_each(within, holder_kind))
    return (match for row in _each(rows, kind) for match in matches_of(row, hosts))


class _Hosts:
    """The graphs that rows hold for others, by the number that these share.

    A result in its own order has a host before the rows that need it. Where it is not, `rows` are searched, once.
    """

    def __init__(self, rows: Iterator[Mapping[str, Any]]) -> None:
        self._rows = rows
        self._known: dict[int, Graph] = {}

    def graph_of(self, value: Mapping[str, Any]) -> Graph:
        """The graph of one row."""
        graph = self._held(value)
        while graph is None and (graph := self._known.get(int(value["shared"]))) is None:
            row = next(self._rows, None)
            if row is None:
                raise NotCompressed(
                    "this row shares its matches with another one, which is not among these rows",
                    hint="give the whole result, too: `kleene.decompress(rows, within=result)`",
                )
            if isinstance(row["graph"], Mapping):
                self._held(row["graph"])
        return graph.of_row(integers(value["ends"]), int(value.get("skipped", 0)))

    def _held(self, value: Mapping[str, Any]) -> Graph | None:
        """What a row holds itself; known from now on, if it is for others as well."""
        if not len(value["nodes"]):
            return None
        shared = value.get("shared")
        graph = None if shared is None else self._known.get(int(shared))
        if graph is None:
            graph = Graph.of(value)
            if shared is not None:
                self._known[int(shared)] = graph
        return graph


def matches_of(row: Mapping[str, Any], hosts: _Hosts | None = None) -> Iterator[dict[str, Any]]:
    """The matches of one row: starts from the latest, then events in pattern order canonically, shorter lists first."""
    if not isinstance(row["graph"], Mapping):
        raise NotCompressed(
            f"a graph is a struct, not a {type(row['graph']).__name__}", hint="keep the column as `match` returned it"
        )
    graph = (hosts or _Hosts(iter(()))).graph_of(row["graph"])
    digest = bytes.fromhex(graph.digest)
    key = row.get("key")
    for path in paths(graph):
        groups = _by_variable(graph, path)
        first = path[0][1]
        match: dict[str, Any] = {
            "match_id": match_id(digest, ([graph.hashes[event] for event in group] for group in groups)),
            "query": row["query"],
            "start": graph.starts[first],
            "end": row["end"],
        }
        if key is not None:
            match["key"] = {name: graph.events[first][name] for name in key}
        for variable, group in zip(graph.variables, groups, strict=True):
            events = [_event(graph.events[event], variable.columns) for event in group]
            match[variable.name] = events if variable.is_list else events[0] if events else None
        yield match


def _by_variable(graph: Graph, path: Iterable[Place]) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in graph.variables]
    for variable, event in path:
        groups[variable].append(event)
    return groups


def _event(event: Mapping[str, Any], columns: tuple[str, ...] | None) -> dict[str, Any]:
    """A fresh dict, since the same event stands in many matches."""
    return dict(event) if columns is None else {name: event[name] for name in columns}


# Kinds of tables -----------------------------------------------------------------------------------------------------


def _check_all(rows: Any, kind: FrameKind) -> None:
    if kind is FrameKind.ROWS:
        for row in rows:
            _check(row)
    else:
        _check(_names(rows, kind))


def _check(names: Iterable[str]) -> None:
    there = list(names)
    missing = next((name for name in reversed(_NEEDED) if name not in there), None)
    if missing is not None:
        raise NotCompressed(
            f"these rows have no column `{missing}`",
            hint=did_you_mean(missing, there)
            if missing != "graph"
            else "pass what `match` gives with OUTPUT COMPRESSED",
        )


def _names(rows: Any, kind: FrameKind) -> Iterable[str]:
    if kind is FrameKind.STREAMS:
        raise NotCompressed("one dict is no table", hint="pass a list of rows")
    if kind is FrameKind.ARROW:
        return rows.schema.names  # type: ignore[no-any-return]
    if kind is FrameKind.POLARS:
        return rows.collect_schema().names()  # type: ignore[no-any-return]
    return rows.columns  # type: ignore[no-any-return]


def _each(rows: Any, kind: FrameKind) -> Iterator[Mapping[str, Any]]:
    if kind is FrameKind.ROWS:
        return iter(rows)
    if kind is FrameKind.POLARS:
        return (rows.collect() if hasattr(rows, "collect") else rows).iter_rows(named=True)  # type: ignore[no-any-return]
    if kind is FrameKind.SPARK:
        in_utc = _in_utc(rows.schema) or (lambda row: row)
        return (in_utc(row.asDict(recursive=True)) for row in rows.toLocalIterator())
    if kind is FrameKind.PANDAS:
        names = list(rows.columns)
        return (dict(zip(names, values, strict=True)) for values in zip(*(rows[name] for name in names), strict=True))
    return _arrow_rows(rows)


def _in_utc(kind: Any) -> Callable[[Any], Any] | None:
    """A function that sets the zone of all moments in a value of a Spark type; None where the type has no moments.

    PySpark returns them in the local time of this process, without a zone.
    """
    name = type(kind).__name__
    if name == "TimestampType":
        return lambda moment: None if moment is None else moment.astimezone(UTC)
    if name == "ArrayType" and (of_one := _in_utc(kind.elementType)) is not None:
        return lambda values: None if values is None else [of_one(value) for value in values]
    if name == "StructType":
        fields = ((field.name, _in_utc(field.dataType)) for field in kind.fields)
        parts = {field: of_part for field, of_part in fields if of_part is not None}
        if parts:
            return lambda row: row and {**row, **{field: of_part(row[field]) for field, of_part in parts.items()}}
    return None


def _arrow_rows(table: pa.Table | pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
    names = [name for name in table.schema.names if name != "graph"]
    for place in range(table.num_rows):
        row = {name: table.column(name)[place].as_py() for name in names}
        yield {**row, "graph": _graph_value(table.column("graph")[place])}


def _graph_value(graph: pa.Scalar) -> Any:
    """A graph as Python values; its numbers as NumPy arrays, since there can be millions of links."""
    if not pa.types.is_struct(graph.type) or not graph.is_valid:
        return graph.as_py()
    return {name: part.values.to_numpy() if name in _NUMBERS else part.as_py() for name, part in graph.items()}

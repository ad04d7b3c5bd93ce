"""Matches for a person: a table in which an event is one short phrase, `Shelf@08:00 tag=7`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kleene.frames.json_values import json_rows
from kleene.frames.results import RETURNED
from kleene.frames.text_files import printable
from kleene.pattern import Schema

_LISTED = 4
_PIPE_WIDTH = 160
_HIDDEN = ("match_id", "query", "key")


def print_matches(matches: pa.Table, schema: Schema, *, limit: int, title: str | None = None) -> None:
    """Print a result to stdout; at most `limit` rows of it."""
    console = Console(file=sys.stdout, highlight=False, width=_width())
    if not matches.num_rows:
        console.print(Text(f"{title}: no match" if title else "no match"))
        return
    console.print(rendered(matches.slice(0, limit), schema, title))
    if matches.num_rows > limit:
        console.print(Text(f"… and {matches.num_rows - limit:,} more"))


def _width() -> int | None:
    """The width of the output: fixed for a pipe; None for a terminal, whose width rich finds out."""
    return None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH


def rendered(matches: pa.Table, schema: Schema, title: str | None = None) -> Table:
    """One row a match: its time, its key, and a phrase an event."""
    rows = json_rows(matches)
    key = [field.name for field in matches.schema.field("key").type] if "key" in matches.column_names else []
    phrases = Phrases(schema, frozenset(key), Moments.of(rows))
    several = "events" in matches.column_names and "query" in matches.column_names
    shown = [name for name in matches.column_names if name not in _HIDDEN or (name == "query" and several)]
    shown = [name for name in shown if not _is_graph(matches.schema.field(name))]
    caption = " ".join(part for part in (title, phrases.moments.date and f"on {phrases.moments.date}") if part)
    table = Table(title=Text(caption) if caption else None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in [*key, *shown]:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        cells = [phrases.value((row["key"] or {}).get(name)) for name in key]
        if several and row.get(RETURNED) is not None:
            row = {**row, RETURNED: row[RETURNED][row["query"]]}
        cells += [phrases.cell(name, row[name]) for name in shown]
        table.add_row(*map(Text, cells))
    return table


def _is_graph(field: pa.Field) -> bool:
    """Whether a column is the graph of a compressed result, which is not shown, and no variable called `graph`."""
    is_struct = field.name == "graph" and pa.types.is_struct(field.type)
    return is_struct and {"digest", "predecessors", "ends"} <= {part.name for part in field.type}


@dataclass(frozen=True)
class Moments:
    """How times are shortened: without the day that all of them share, without seconds that all of them lack."""

    date: str = ""
    seconds: bool = True

    @staticmethod
    def of(rows: Iterable[dict[str, Any]]) -> Moments:
        times = [value for row in rows for value in (row.get("start"), row.get("end")) if isinstance(value, str)]
        if not times or any("T" not in value for value in times):
            return Moments()
        dates = {value.split("T")[0] for value in times}
        return Moments(dates.pop() if len(dates) == 1 else "", any(value[16:19] not in ("", ":00") for value in times))

    def short(self, value: Any) -> str:
        text = str(value)
        if self.date:
            text = text.removeprefix(f"{self.date}T")
        return text.removesuffix(":00") if not self.seconds and text.count(":") == 2 else text


@dataclass(frozen=True)
class Phrases:
    schema: Schema
    key: frozenset[str]
    moments: Moments

    def cell(self, name: str, value: Any) -> str:
        if name in ("start", "end"):
            return self.moments.short(value)
        return self.value(value)

    def value(self, value: Any) -> str:
        if value is None:
            return "–"
        if isinstance(value, dict):
            return self.event(value)
        if isinstance(value, list):
            return self.listed(value)
        return str(value).lower() if isinstance(value, bool) else printable(str(value))

    def event(self, event: dict[str, Any]) -> str:
        """`Shelf@08:00 tag=7`; the key stands in columns of its own."""
        if event.keys() == {"variable", "position", "event"}:
            return f"{event['variable']}={self.event(event['event'])}"
        own = {*self.schema.own_columns, *self.key}
        kind = self.schema.constant_type or event.get(self.schema.type)
        moment = self.moments.short(event[self.schema.time]) if self.schema.time in event else None
        head = "@".join(printable(str(part)) for part in (kind, moment) if part is not None)
        rest = [f"{name}={self.inner(value)}" for name, value in event.items() if name not in own and value is not None]
        return " ".join([head, *rest]) if head else " ".join(rest)

    def inner(self, value: Any) -> str:
        """A value inside another; the attributes of a stream, which have no type before them, in parentheses."""
        text = self.value(value)
        return f"({text})" if isinstance(value, dict) and self.schema.time not in value else text

    def listed(self, values: Sequence[Any]) -> str:
        shown = [self.value(value) for value in values]
        if len(shown) > _LISTED:
            shown = [*shown[: _LISTED - 1], f"… {len(shown) - _LISTED} more", shown[-1]]
        return "\n".join(chain(shown)) if shown else "–"

"""The inputs of commands: queries, schema files, parameters, files of events."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kleene.errors import QueryError, UnreadableFile
from kleene.frames import text_files
from kleene.lang import parse_declarations
from kleene.pattern import Schema
from kleene.queries.any_query import AnyQuery, read_query

if TYPE_CHECKING:
    from kleene.frames.rows import BadRow

_NAMED = re.compile(r"([^\W\d][\w-]*)=(.+)\Z", re.DOTALL)
_INTEGER = re.compile(r"[+-]?\d+\Z")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}


# Queries -----------------------------------------------------------------------------------------------------------


def read_text(path: str) -> tuple[str, str]:
    """The text of a file (`-`: of the standard input) and the name to call it by."""
    if path != "-":
        return text_files.read_text(Path(path)), path
    try:
        return sys.stdin.buffer.read().decode(), "stdin"
    except UnicodeDecodeError:
        raise UnreadableFile("`-` is no UTF-8 text") from None


def query_from(argument: str, params: dict[str, object]) -> AnyQuery:
    """A query from its text, or from a file; a word that is neither is taken for a file that is not there."""
    # `σ{x>1}(A)` is an expression of streams, without a blank.
    if (
        argument == "-"
        or argument.endswith(".kleene")
        or not re.search(r"[\s{(;∪]", argument.strip())
        or _is_file(argument)
    ):
        text, origin = read_text(argument)
        name = None if argument == "-" else Path(argument).stem
        return read_query(text, name, params, origin=origin)
    return read_query(argument, None, params)


def _is_file(argument: str) -> bool:
    try:
        return len(argument) < 4096 and Path(argument).is_file()
    except (OSError, ValueError):
        return False


def schema_from(path: Path | None) -> Schema:
    """The schema that a file of DECLARE statements describes."""
    if path is None:
        return Schema()
    text, origin = read_text(str(path))
    try:
        return Schema().declaring(parse_declarations(text))
    except QueryError as error:
        error.text, error.origin = text, origin
        raise


def params_from(arguments: Iterable[str]) -> dict[str, object]:
    """`x=5` is a number, `x=true` a boolean, `x=12 hours` and `x='5'` are texts."""
    params: dict[str, object] = {}
    for item in arguments:
        named = _NAMED.match(item)
        if named is None:
            raise typer.BadParameter(f"`{item}` is no `name=value`, such as `limit=5`", param_hint="--param")
        params[named[1]] = _value(named[2].strip())
    return params


def _value(text: str) -> object:
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if _INTEGER.match(text):
        return int(text) if len(text) < 4000 else text
    try:
        return float(text) if re.search(r"\d", text) else text
    except ValueError:
        return text


# Events ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """The events of all files: one table, or a table a stream; and the rows that could not be read, by file."""

    events: Any
    count: int
    bad_rows: list[tuple[str, BadRow]] = field(default_factory=list)
    # By stream, where all its files are Parquet with the same columns.
    parquet: dict[str, list[str]] = field(default_factory=dict)


def events_from(arguments: Sequence[str], schema: Schema, format: str | None, separator: str | None = None) -> Given:
    """Read `FILE …` or `NAME=FILE …`; several files without a name are one stream."""
    import pyarrow as pa

    streams: dict[str, list[pa.Table]] = {}
    files: dict[str, list[str]] = {}
    bad: list[tuple[str, BadRow]] = []
    for item in arguments:
        name, path = _stream(item)
        read = _read(path, schema, format, separator)
        streams.setdefault(name, []).append(read.table)
        files.setdefault(name, []).append(path)
        bad += [(path, row) for row in read.bad_rows]
    if "" in streams and len(streams) > 1:
        raise typer.BadParameter("name every stream, or none: `-i Shelf=shelf.csv`", param_hint="-i")
    tables = {name: _joined(parts) for name, parts in streams.items()}
    count = sum(table.num_rows for table in tables.values())
    parquet = {
        name: paths
        for name, paths in files.items()
        if all(_is_parquet(path, format) for path in paths)
        and all(table.schema.equals(streams[name][0].schema) for table in streams[name])
    }
    return Given(tables.get("", tables), count, bad, parquet)


def _is_parquet(path: str, format: str | None) -> bool:
    from kleene.frames.files import format_of

    return Path(path).is_file() and (format or format_of(path)) == "parquet"


def _stream(item: str) -> tuple[str, str]:
    named = _NAMED.match(item)
    return ("", item) if named is None or _is_file(item) else (named[1], named[2])


def _read(path: str, schema: Schema, format: str | None, separator: str | None) -> Any:
    from kleene.frames.files import read_events

    if path == "-":
        return read_events(sys.stdin.buffer, format or "jsonl", schema=schema, separator=separator)
    return read_events(path, format, schema=schema, separator=separator)


def _joined(tables: list[Any]) -> Any:
    import pyarrow as pa

    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise UnreadableFile(
            f"the files of one stream differ: {problem}", hint="make a column one type in all files"
        ) from None

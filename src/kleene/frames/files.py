"""Files of events: CSV, JSON lines and Parquet in, CSV, JSON lines and Parquet out.

A row that cannot be read is kept aside with its line and the reason, never dropped silently, and never stops the rest.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa

from kleene.errors import TooManyBadRows, UnknownFormat, UnreadableFile, did_you_mean
from kleene.frames.atomic import replacing
from kleene.frames.json_values import json_line, json_rows, json_values
from kleene.frames.rows import BadRow
from kleene.frames.text_files import neighbour
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS = ("csv", "tsv", "jsonl", "parquet")
_SEPARATORS = {"csv": ",", "tsv": "\t"}
_NESTED = (pa.types.is_struct, pa.types.is_list, pa.types.is_large_list)


@dataclass(frozen=True)
class FileEvents:
    """What a file holds: the rows that could be read, and those that could not."""

    table: pa.Table
    bad_rows: list[BadRow]


def format_of(path: str | Path) -> str:
    """The format that a file's ending says: `events.csv.gz` is CSV."""
    name = Path(path).name.casefold()
    suffixes = Path(name.removesuffix(".gz")).suffixes
    if suffixes and suffixes[-1] in _FORMATS:
        return _FORMATS[suffixes[-1]]
    raise UnknownFormat(
        f"no format is known for `{Path(path).name}`",
        hint="a file ends in .csv, .tsv, .jsonl or .parquet (the first three also with .gz), or its format is named",
    )


def read_events(
    path: str | Path | IO[bytes],
    format: str | None = None,
    *,
    schema: Schema | None = None,
    separator: str | None = None,
) -> FileEvents:
    """The events of a file, in the order in which they stand there.

    path        a file, a folder of Parquet files, or an open binary stream (whose format must be named)
    format      csv, tsv, jsonl or parquet, where the file's ending should not decide
    schema      what the columns mean: a row whose time cannot be read is bad, a column declared as string stays text
    separator   one character between the columns of a CSV file, where it is no comma
    """
    if separator is not None and (len(separator.encode()) != 1 or separator in '"\r\n'):
        raise UnknownFormat(f"{separator!r} cannot separate columns", hint="one character, such as `;`")
    name = "the input" if not isinstance(path, str | Path) else str(path)
    if isinstance(path, str | Path):
        if not Path(path).exists():
            raise UnreadableFile(f"there is no file `{path}`", hint=neighbour(Path(path)))
        folder = Path(path).is_dir()
        format = format or ("parquet" if folder else format_of(path))
        if folder and format != "parquet":
            raise UnreadableFile(f"`{path}` is a folder", hint="name a file; only Parquet is read from a folder")
    if format not in FORMATS:
        raise UnknownFormat(f"unknown format `{format}`", hint=did_you_mean(str(format), FORMATS))
    if separator is not None and format != "csv":
        raise UnknownFormat(f"{format} has no separator to choose", hint="a separator is for CSV: leave it out")
    if format == "parquet":
        return FileEvents(_read_parquet(path, name), [])
    return _read_text(_bytes_of(path, name), name, format, schema or Schema(), separator or _SEPARATORS.get(format, ""))


def _bytes_of(path: str | Path | IO[bytes], name: str) -> bytes:
    try:
        data = Path(path).read_bytes() if isinstance(path, str | Path) else path.read()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as problem:
        raise UnreadableFile(f"`{name}` cannot be read: {_reason(problem)}") from None


def _reason(problem: Exception) -> str:
    return problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)


def _read_text(data: bytes, name: str, format: str, schema: Schema, separator: str) -> FileEvents:
    from kleene.frames.csv_files import read_csv
    from kleene.frames.fitting import declared_types, fitted, with_declared_columns
    from kleene.frames.json_lines import read_json_lines

    strings = frozenset(column for column, kind in declared_types(schema).items() if kind is ValueType.STRING)
    read = read_json_lines(data, name, strings) if format == "jsonl" else read_csv(data, name, separator, strings)
    table, bad = fitted(read, schema)
    if bad and not table.num_rows:
        first = bad[0]
        place = f"line {first.line}" if first.line is not None else f"row {first.index + 1}"
        kind = "JSON lines" if format == "jsonl" else format.upper()
        raise TooManyBadRows(
            f"no row of `{name}` can be read as an event; {place}: {first.reason}",
            hint=f"is it really {kind}, with the time in `{schema.time}`?",
        )
    return FileEvents(with_declared_columns(table, schema) if format == "jsonl" else table, bad)


def _read_parquet(path: str | Path | IO[bytes], name: str) -> pa.Table:
    import pyarrow.parquet as pq

    source = path if isinstance(path, str | Path) else pa.BufferReader(path.read())
    try:
        table = pq.read_table(source)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as problem:
        reason = str(problem).splitlines()[0]
        raise UnreadableFile(f"`{name}` cannot be read as Parquet: {reason}") from None
    names = table.column_names
    if len(set(names)) < len(names):
        raise UnreadableFile(f"`{name}` has two columns of one name", hint="rename one")
    return table.replace_schema_metadata(None)


# Out -----------------------------------------------------------------------------------------------------------------


def write_table(table: pa.Table, path: str | Path, format: str | None = None) -> None:
    """Write a result; a reader sees the old file or the whole new one, nothing between."""
    write = _writer(format or format_of(path))
    with replacing(path) as stream:
        write(table, stream)


def write_stream(table: pa.Table, stream: IO[bytes], format: str) -> None:
    """Write a result to an open stream."""
    _writer(format)(table, stream)


def _writer(format: str) -> Callable[[pa.Table, IO[bytes]], None]:
    writers = {"csv": _write_csv, "tsv": _write_tsv, "jsonl": _write_json_lines, "parquet": _write_parquet}
    if format not in writers:
        raise UnknownFormat(f"unknown format `{format}`", hint=did_you_mean(format, writers))
    return writers[format]


def _write_json_lines(table: pa.Table, stream: IO[bytes]) -> None:
    for batch in table.to_batches(max_chunksize=10_000):
        rows = json_rows(pa.Table.from_batches([batch]))
        stream.write("".join(json_line(row) + "\n" for row in rows).encode())


def _write_csv(table: pa.Table, stream: IO[bytes], delimiter: str = ",") -> None:
    """Nested columns hold JSON text."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    columns = [_csv_values(table.column(place)) for place in range(table.num_columns)]
    writer.writerows(zip(*columns, strict=True))
    stream.write(text.getvalue().encode())


def _csv_values(column: pa.ChunkedArray) -> list[object]:
    values = json_values(column)
    if any(test(column.type) for test in _NESTED):
        return [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    return [str(value).lower() if isinstance(value, bool) else value for value in values]


def _write_tsv(table: pa.Table, stream: IO[bytes]) -> None:
    _write_csv(table, stream, "\t")


def _write_parquet(table: pa.Table, stream: IO[bytes]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, pa.PythonFile(stream, mode="w"))

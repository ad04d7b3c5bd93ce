"""CSV: read by pyarrow at once when all is well, and record by record when it is not, to say which lines are bad."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from kleene.errors import UnreadableFile
from kleene.frames.rows import BadRow, bad_line
from kleene.frames.text_files import TextTable, require_text, without_mark

# An empty field is NULL unless it is quoted; `NA` may be a word.
_NULLS = ["", "NULL", "null"]
# What separates columns in files that are called CSV.
_SEPARATORS = (";", "\t", "|", ",")
_LARGEST_BLOCK = 2**31 - 1


def read_csv(data: bytes, name: str, delimiter: str, strings: frozenset[str]) -> TextTable:
    """A CSV file with a header.

    strings   columns that hold text, whatever their values look like
    """
    require_text(data, name)
    data = without_mark(data)
    if not data.strip():
        return TextTable(pa.table({}), [], lambda: ())
    if not data.endswith(b"\n"):
        data += b"\n"
    table = _at_once(data, delimiter, strings)
    if table is not None:
        _check_header(table.column_names, name, delimiter)
        return TextTable(table, [], lambda: _Records.of(data, name, delimiter).lines, data)
    records = _Records.of(data, name, delimiter)
    _check_header(records.header, name, delimiter)
    good = b"\n".join([records.header_text, *records.texts, b""])
    try:
        table = _parsed(good, delimiter, strings, block=min(len(good) + 1, _LARGEST_BLOCK))
    except pa.ArrowInvalid as problem:
        raise UnreadableFile(f"`{name}` cannot be read as CSV: {problem}") from None
    return TextTable(table, records.bad, lambda: records.lines, data)


def _at_once(data: bytes, delimiter: str, strings: frozenset[str]) -> pa.Table | None:
    """The whole file, or None when some record of it needs a closer look."""
    try:
        table = _parsed(data, delimiter, strings)
        names = table.column_names
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    return None if any(_doubtful(table.column(place)) for place in range(len(names))) else table


def _doubtful(column: pa.ChunkedArray) -> bool:
    """Bytes that are no UTF-8, or a value of several lines: perhaps a quotation that was never closed."""
    if pa.types.is_binary(column.type):
        return True
    return pa.types.is_string(column.type) and bool(pc.any(pc.match_substring(column, "\n")).as_py())


def _parsed(data: bytes, delimiter: str, strings: frozenset[str], block: int | None = None) -> pa.Table:
    """The table that pyarrow reads, in blocks cut at any line end, or in one block, where values may hold line ends."""
    types: Mapping[str, pa.DataType] = dict.fromkeys(strings, pa.string())
    return pa_csv.read_csv(
        BytesIO(data),
        read_options=pa_csv.ReadOptions(block_size=block),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=block is not None),
        convert_options=pa_csv.ConvertOptions(
            column_types=types, null_values=_NULLS, strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _check_header(names: list[str], file: str, delimiter: str) -> None:
    other = next((sign for sign in _SEPARATORS if sign != delimiter and len(names) == 1 and sign in names[0]), None)
    if other is not None:
        raise UnreadableFile(
            f"`{file}` has one column, {names[0]!r}: its separator seems to be {other!r}, not {delimiter!r}",
            hint=f"say so: `--separator {shlex.quote(other)}`",
        )
    for name in names:
        if names.count(name) > 1:
            raise UnreadableFile(f"`{file}` has two columns called `{name}`", hint="rename one in the header")


@dataclass
class _Records:
    """The records of a CSV file one by one: texts and lines of the good ones, and the bad ones."""

    header: list[str]
    header_text: bytes
    texts: list[bytes] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    @staticmethod
    def of(data: bytes, name: str, delimiter: str) -> _Records:
        physical = [line.removesuffix(b"\r") for line in data.split(b"\n")]
        first = next(number for number, line in enumerate(physical) if line.strip())
        try:
            last, header = _record(physical, first, delimiter, None)
        except (csv.Error, UnicodeDecodeError) as problem:
            raise UnreadableFile(f"the header of `{name}` cannot be read: {problem}") from None
        records = _Records(header, b"\n".join(physical[first : last + 1]))
        at = last + 1
        while at < len(physical):
            at = records.take(physical, at, delimiter)
        return records

    def take(self, physical: list[bytes], at: int, delimiter: str) -> int:
        """Take the record that begins at a line; the line after it."""
        if not physical[at].strip(b" "):
            return at + 1
        reason = ""
        try:
            last, fields = _record(physical, at, delimiter, len(self.header))
            if len(fields) != len(self.header):
                reason = f"{_columns(len(fields))}, expected {len(self.header)}"
        except UnicodeDecodeError:
            reason = "not UTF-8 text"
        except csv.Error as problem:
            reason = str(problem)
        if reason:
            number = len(self.texts) + len(self.bad)
            self.bad.append(bad_line(number, at + 1, reason, physical[at]))
            return at + 1
        self.texts.append(b"\n".join(physical[at : last + 1]))
        self.lines.append(at + 1)
        return last + 1


def _columns(count: int) -> str:
    return f"{count} column" if count == 1 else f"{count} columns"


def _record(physical: list[bytes], at: int, delimiter: str, width: int | None) -> tuple[int, list[str]]:
    """The record that begins at a line: its last line and its fields.

    A quotation may go on over lines. One that is never closed, or whose record then has the wrong number of columns,
    is a fault of its own line alone.
    """
    line = physical[at].decode()
    try:
        return at, next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as problem:
        if "unexpected end of data" not in str(problem):
            return at, next(csv.reader([line], delimiter=delimiter))
    odd, last = True, at
    while odd and last + 1 < len(physical):
        last += 1
        odd ^= physical[last].count(b'"') % 2 == 1
    if not odd:
        joined = [part.decode(errors="replace") + "\n" for part in physical[at : last + 1]]
        fields = next(csv.reader(joined, delimiter=delimiter))
        if width in (None, len(fields)) and not any("\ufffd" in entry for entry in fields):
            return last, fields
    raise csv.Error("a quotation is not closed")

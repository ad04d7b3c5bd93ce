"""JSON lines: read by pyarrow at once when all is well, and line by line when it is not, to say which lines are bad.

A column has the type that most of its values have; a line that says otherwise is a bad row. Whole and real numbers are
one type.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from kleene.errors import UnreadableFile
from kleene.frames.rows import BadRow, bad_line
from kleene.frames.text_files import TextTable, clipped, require_text, without_mark

_LARGEST_INTEGER = 2**63
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LONG_INTEGER = re.compile(rb"[:,\[\s]-?\d{19,}[\s,\]}]")
_WORDS = {"bool": "true or false", "number": "a number", "string": "a string", "object": "an object", "list": "a list"}


def read_json_lines(data: bytes, name: str, strings: frozenset[str]) -> TextTable:
    """One JSON object a line, or one JSON array of objects.

    strings   columns that hold text, whatever their values look like
    """
    require_text(data, name)
    data = without_mark(data)
    table = _at_once(data)
    if table is not None:
        return TextTable(_with_moments(table, strings), [], lambda: _filled_lines(data), data)
    if data.lstrip()[:1] == b"[":
        return _array(data, name, strings)
    return _line_by_line(data, strings)


def _at_once(data: bytes) -> pa.Table | None:
    """The whole file, or None when some line of it needs a closer look."""
    if not data.strip():
        return pa.table({})
    try:
        table = pa_json.read_json(BytesIO(data))
        moments = [field for field in table.schema if pa.types.is_timestamp(field.type)]
        if moments:  # pyarrow forgets the zone
            text = pa.schema([(field.name, pa.string()) for field in moments])
            table = pa_json.read_json(BytesIO(data), parse_options=pa_json.ParseOptions(explicit_schema=text))
        named = len(set(table.column_names)) == len(table.column_names)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    if not named or any(pa.types.is_binary(field.type) for field in table.schema) or _doubtful(table, data):
        return None
    try:
        table.validate(full=True)  # strings that are no UTF-8
    except pa.ArrowInvalid:
        return None
    return table


def _doubtful(table: pa.Table, data: bytes) -> bool:
    """A row of nothing, which pyarrow makes of a line `null`, or an integer that it rounds to a real number."""
    if not table.num_columns or _LONG_INTEGER.search(data):
        return True
    if any(not column.null_count for column in table.columns):
        return False
    empty = reduce(pc.and_, (column.is_null() for column in table.columns))
    return bool(pc.any(empty).as_py())


def _filled_lines(data: bytes) -> list[int]:
    return [number for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]


def _line_by_line(data: bytes, strings: frozenset[str]) -> TextTable:
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    # Of each row: its number among all that the file holds, and its text.
    origins: list[tuple[int, bytes]] = []
    bad: list[BadRow] = []
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        value, reason = _value(raw)
        if isinstance(value, dict):
            rows.append(value)
            lines.append(number)
            origins.append((len(rows) + len(bad) - 1, raw))
        else:
            bad.append(bad_line(len(rows) + len(bad), number, reason, raw))
    table, misfits = _table(rows, strings)
    for place, reason in misfits.items():
        index, raw = origins[place]
        bad.append(bad_line(index, lines[place], reason, raw))
    bad.sort(key=lambda row: row.line or 0)
    good = [line for place, line in enumerate(lines) if place not in misfits]
    return TextTable(table, bad, lambda: good, data)


def _value(raw: bytes) -> tuple[Any, str]:
    try:
        value = json.loads(raw.decode())
    except UnicodeDecodeError:
        return None, "not UTF-8 text"
    except json.JSONDecodeError as problem:
        return None, f"no JSON: {problem.msg} at column {problem.colno}"
    except (RecursionError, ValueError):  # nested without end, or a number of thousands of digits
        return None, "no JSON that can be read"
    return value, "" if isinstance(value, dict) else f"{_WORDS.get(_kind(value), 'null')}, not an object"


def _array(data: bytes, name: str, strings: frozenset[str]) -> TextTable:
    """A file that holds one array: rows have numbers, not lines."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as problem:
        if b"\n" in data.strip():
            return _line_by_line(data, strings)
        raise UnreadableFile(f"`{name}` is no JSON: {problem}") from None
    if not isinstance(value, list):
        return _line_by_line(data, strings)
    rows = [row for row in value if isinstance(row, dict)]
    bad = [
        BadRow(place, "not an object", None, clipped(json.dumps(row)))
        for place, row in enumerate(value)
        if not isinstance(row, dict)
    ]
    table, misfits = _table(rows, strings)
    bad += [BadRow(place, reason, None, clipped(json.dumps(rows[place]))) for place, reason in misfits.items()]
    return TextTable(table, bad, lambda: None)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "list"
    return ""


def _table(rows: list[dict[str, Any]], strings: frozenset[str]) -> tuple[pa.Table, dict[int, str]]:
    """The rows whose values have the types of their columns, and why the others have not."""
    try:
        return _fitting_table(rows, strings, {})
    except UnicodeEncodeError:
        # JSON can say half a character, and Arrow cannot; rows are rarely looked at for that.
        halves = {place: "half a character, which is no text" for place, row in enumerate(rows) if not _writable(row)}
        return _fitting_table(rows, strings, halves)


def _writable(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _fitting_table(
    rows: list[dict[str, Any]], strings: frozenset[str], misfits: dict[int, str]
) -> tuple[pa.Table, dict[int, str]]:
    names = dict.fromkeys(name for place, row in enumerate(rows) if place not in misfits for name in row)
    for name in names:
        _find_misfits(name, rows, misfits)
    good = [row for place, row in enumerate(rows) if place not in misfits]
    columns = {name: _column([row.get(name) for row in good]) for name in names}
    return _with_moments(pa.table(columns), strings), misfits


def _find_misfits(name: str, rows: Sequence[dict[str, Any]], misfits: dict[int, str]) -> None:
    kinds = [_kind(row.get(name)) for row in rows]
    counts = Counter(kind for kind in kinds if kind)
    if not counts:
        return
    usual, _ = counts.most_common(1)[0]
    real = usual == "number" and any(isinstance(row.get(name), float) for row in rows)
    for place, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
        if kind not in ("", usual):
            misfits.setdefault(place, f"`{name}` is {_WORDS[kind]} here, {_WORDS[usual]} elsewhere")
        elif kind == "number" and not real and not -_LARGEST_INTEGER <= row[name] < _LARGEST_INTEGER:
            misfits.setdefault(place, f"`{name}` is too large for an integer of 64 bits")


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        if all(value is None or isinstance(value, int | float) for value in values):
            return pa.array([None if value is None else _float(value) for value in values], pa.float64())
        # Objects and lists that agree on no type are kept as the text that they are.
        return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())


def _float(value: int | float) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _with_moments(table: pa.Table, strings: frozenset[str]) -> pa.Table:
    """JSON has no moments: a column of ISO 8601 texts is taken to hold them."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and field.name not in strings:
            column = _moments(table.column(place))
            if column is not None:
                table = table.set_column(place, field.name, column)
    return table


def _moments(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    first = next((value for value in pc.drop_null(column).slice(0, 1).to_pylist()), None)
    if first is None or not _DATE.match(first):
        return None
    for unit in ("us", "ns"):
        for zone in (None, "UTC"):
            try:
                return pc.cast(column, pa.timestamp(unit, zone))
            except pa.ArrowInvalid:
                continue
    return None

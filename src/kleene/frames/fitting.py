"""Make the columns of a text file fit what the schema says of them; rows that cannot fit are bad rows.

A text file says little about types: a column of numbers with one word in it comes as a column of words. Where the
schema knows better (its time, the attributes that it declares), the word is the fault, not the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kleene.errors import MixedZones
from kleene.frames.arrow import arrow_type, value_type
from kleene.frames.rows import BadRow
from kleene.frames.text_files import TextTable, clipped
from kleene.pattern.clock import ClockKind
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

Parser = Callable[[str], Any]


def declared_types(schema: Schema) -> dict[str, ValueType]:
    """The type of each column that the schema declares; columns that two types declare differently have none."""
    kinds_by_name: dict[str, set[ValueType]] = {}
    for attributes in schema.types.values():
        for name, kind in attributes.items():
            kinds_by_name.setdefault(name, set()).add(kind)
    if schema.clock.kind is not ClockKind.UNKNOWN:
        times = ValueType.ZONED if schema.clock.zoned else ValueType.TIMESTAMP
        kinds_by_name[schema.time] = {ValueType.INT if schema.clock.kind is ClockKind.TICKS else times}
    known = {name: kinds - {ValueType.UNKNOWN} for name, kinds in kinds_by_name.items()}
    return {name: kinds.pop() for name, kinds in known.items() if len(kinds) == 1}


def with_declared_columns(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with a column for every attribute that is declared: JSON leaves out what no event of a file has."""
    if schema.constant_type is None and schema.type not in table.column_names:
        return table
    kinds = declared_types(schema)
    for attributes in schema.types.values():
        for name in attributes:
            if name not in table.column_names:
                kind = arrow_type(kinds[name]) if name in kinds else pa.null()
                table = table.append_column(name, pa.nulls(table.num_rows, kind))
    return table


def fitted(read: TextTable, schema: Schema) -> tuple[pa.Table, list[BadRow]]:
    """The table with its columns in the types that the schema says, and all bad rows in the order of their lines."""
    table, reasons = read.table, dict[int, str]()
    kinds = declared_types(schema)
    times = [name for name in (schema.time, schema.start) if name is not None and name in table.column_names]
    for name in table.column_names:
        column = table.column(name)
        parsers = _parsers(value_type(column.type), kinds.get(name), is_time=name in times)
        typed_column = _parse(column, parsers, name, reasons) if parsers else _cast(column, kinds.get(name))
        if typed_column is not column:
            table = table.set_column(table.column_names.index(name), name, typed_column)
    if table.num_rows:
        for role, name in (("time", schema.time), ("start", schema.start), ("tie-breaker", schema.tie_breaker)):
            if name is not None and name in table.column_names:
                for row in _nulls(table.column(name)):
                    reasons.setdefault(row, f"no {role}: `{name}` is NULL")
    if not reasons:
        return _in_microseconds(table), read.bad_rows
    rejected = [_bad(read, row, reason) for row, reason in sorted(reasons.items())]
    keep = pa.array([row not in reasons for row in range(table.num_rows)], pa.bool_())
    return _in_microseconds(table.filter(keep)), _merged(read, rejected)


def _bad(read: TextTable, row: int, reason: str) -> BadRow:
    line = read.line(row)
    earlier = 0 if line is None else sum(bad.line is not None and bad.line < line for bad in read.bad_rows)
    return BadRow(row + earlier, reason, line, read.text(row))


def _merged(read: TextTable, rejected: list[BadRow]) -> list[BadRow]:
    every = [*read.bad_rows, *rejected]
    return sorted(every, key=lambda row: (row.line or 0, row.index))


def _nulls(column: pa.ChunkedArray) -> list[int]:
    if not column.null_count:
        return []
    return pc.indices_nonzero(column.is_null()).to_pylist()  # type: ignore[no-any-return]


# Values that were read as text ---------------------------------------------------------------------------------------


def _parsers(have: ValueType, wanted: ValueType | None, *, is_time: bool) -> tuple[Parser, ...]:
    """The parsers to try on a column of texts that is a time or is declared as another type."""
    if have is not ValueType.STRING:
        return ()
    if is_time and wanted is None:
        return _integer, _naive, _zoned
    known: dict[ValueType | None, tuple[Parser, ...]] = {
        ValueType.INT: (_integer,),
        ValueType.FLOAT: (_real,),
        ValueType.BOOL: (_boolean,),
        ValueType.TIMESTAMP: (_naive, _zoned),
        ValueType.ZONED: (_zoned, _naive),
    }
    return known.get(wanted, ())


def _integer(text: str) -> int:
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError("too large")
    return value


def _real(text: str) -> float:
    return float(text)


def _boolean(text: str) -> bool:
    return {"true": True, "false": False, "1": True, "0": False}[text.strip().casefold()]


def _naive(text: str) -> datetime:
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is not None:
        raise ValueError("a zone")
    return moment


def _zoned(text: str) -> datetime:
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return moment


_KINDS: dict[Parser, tuple[pa.DataType, str]] = {
    _integer: (pa.int64(), "an integer"),
    _real: (pa.float64(), "a number"),
    _boolean: (pa.bool_(), "true or false"),
    _naive: (pa.timestamp("us"), "a timestamp"),
    _zoned: (pa.timestamp("us", "UTC"), "a timestamp with a time zone"),
}


def _parse(column: pa.ChunkedArray, parsers: tuple[Parser, ...], name: str, reasons: dict[int, str]) -> pa.ChunkedArray:
    """The column in the type that most of its texts can be read as; unchanged when that is none."""
    texts = column.to_pylist()
    filled = sum(text is not None for text in texts)
    attempts = [(parser, list(_attempt(parser, texts))) for parser in parsers]
    parser, values = max(attempts, key=lambda attempt: sum(value is not None for value in attempt[1]))
    if 2 * sum(value is not None for value in values) <= filled:
        _check_zones(attempts, filled, name)
        return column
    kind, word = _KINDS[parser]
    for row, (text, value) in enumerate(zip(texts, values, strict=True)):
        if text is not None and value is None:
            reasons.setdefault(row, f"`{name}` is not {word}: {clipped(repr(text))}")
    return pa.chunked_array([pa.array(values, kind)])


def _check_zones(attempts: list[tuple[Parser, list[Any]]], filled: int, name: str) -> None:
    """Refuse times of which as many have a zone as have none: neither kind can be called the wrong one."""
    times = {parser: values for parser, values in attempts if parser in (_naive, _zoned)}
    rows = {parser: [row for row, value in enumerate(values) if value is not None] for parser, values in times.items()}
    if all(rows.get(parser) for parser in (_naive, _zoned)) and sum(map(len, rows.values())) == filled:
        raise MixedZones.in_column(name, f"row {rows[_naive][0] + 1}", f"row {rows[_zoned][0] + 1}")


def _attempt(parser: Parser, texts: list[str | None]) -> Iterator[Any]:
    for text in texts:
        try:
            yield None if text is None else parser(text)
        except (ValueError, KeyError, OverflowError):
            yield None


# Values that were read as something near -----------------------------------------------------------------------------


def _cast(column: pa.ChunkedArray, wanted: ValueType | None) -> pa.ChunkedArray:
    """Whole numbers where reals or texts are declared."""
    have = value_type(column.type)
    if wanted is ValueType.FLOAT and have is ValueType.INT:
        return pc.cast(column, pa.float64(), safe=False)
    if wanted is ValueType.STRING and have in (ValueType.INT, ValueType.FLOAT, ValueType.BOOL):
        return pc.cast(column, pa.string())
    return column


def _in_microseconds(table: pa.Table) -> pa.Table:
    """Moments in the unit that Spark and Python have, where that loses nothing."""
    for place, entry in enumerate(table.schema):
        if pa.types.is_timestamp(entry.type) and entry.type.unit != "us":
            try:
                column = pc.cast(table.column(place), pa.timestamp("us", entry.type.tz))
            except pa.ArrowInvalid:
                continue
            table = table.set_column(place, entry.name, column)
    return table

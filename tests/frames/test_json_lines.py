"""JSON lines: most values decide a column's type, and a line that says otherwise is a bad row."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kleene import KleeneError, Schema
from kleene.frames.files import FileEvents, read_events


def read(folder: Path, data: bytes, name: str = "events.jsonl", schema: Schema | None = None) -> FileEvents:
    path = folder / name
    path.write_bytes(data)
    return read_events(path, schema=schema)


def faults(events: FileEvents) -> list[tuple[int | None, str]]:
    return [(row.line, row.reason) for row in events.bad_rows]


GOOD = b'{"type": "A", "ts": 1, "x": 1}\n'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"type": "A", "ts": 2, "x":', "no JSON: Expecting value at column 28"),
        (b"[1, 2]", "a list, not an object"),
        (b"7", "a number, not an object"),
        (b"null", "null, not an object"),
        (b'{"type": "A", "ts": 2, "x": "many"}', "`x` is a string here, a number elsewhere"),
        (b'{"type": "A", "ts": 2, "x": true}', "`x` is true or false here, a number elsewhere"),
        (b'{"type": "A", "ts": 2, "x": 99999999999999999999}', "`x` is too large for an integer of 64 bits"),
        (b'{"type": "A", "ts": null, "x": 3}', "no time: `ts` is NULL"),
        (b'{"type": "A", "ts": 2, "x": "\xff"}', "not UTF-8 text"),
        (b"[" * 100_000, "no JSON that can be read"),
    ],
)
def test_a_line_that_is_no_event_is_a_bad_row(tmp_path: Path, line: bytes, reason: str) -> None:
    events = read(tmp_path, GOOD + b"\n" + line + b"\n" + GOOD + GOOD)
    assert events.table.to_pylist() == [{"type": "A", "ts": 1, "x": 1}] * 3
    assert faults(events) == [(3, reason)]
    assert events.bad_rows[0].index == 1


def test_whole_and_real_numbers_are_one_type(tmp_path: Path) -> None:
    data = b'{"ts": 1, "x": 1}\n{"ts": 2, "x": 2.5}\n{"ts": 3, "x": "no"}\n'
    events = read(tmp_path, data)
    assert events.table.column("x").to_pylist() == [1.0, 2.5]
    assert [line for line, _ in faults(events)] == [3]


def test_the_majority_decides_far_behind_the_first_block(tmp_path: Path) -> None:
    rows = [{"ts": number, "x": number, "pad": "y" * 50} for number in range(30_000)]
    rows[17_000]["x"] = "odd"
    rows[5]["x"] = "odd"
    events = read(tmp_path, "\n".join(map(json.dumps, rows)).encode())
    assert events.table.num_rows == 29_998
    assert [line for line, _ in faults(events)] == [6, 17_001]


def test_moments(tmp_path: Path) -> None:
    data = b'{"ts": "2024-01-01T10:00:00Z", "d": "2024-01-01"}\n{"ts": "2024-01-01T12:00:00.5+01:00"}\n{"ts": "soon"}\n'
    events = read(tmp_path, data)
    assert events.table.column("ts").to_pylist() == [
        datetime(2024, 1, 1, 10, tzinfo=UTC),
        datetime(2024, 1, 1, 11, 0, 0, 500000, tzinfo=UTC),
    ]
    assert faults(events) == [(3, "`ts` is not a timestamp with a time zone: 'soon'")]


def test_a_column_declared_as_string_stays_text(tmp_path: Path) -> None:
    schema = Schema(types={"A": {"day": "string"}})
    events = read(tmp_path, b'{"type": "A", "ts": 1, "day": "2024-01-01"}\n', schema=schema)
    assert events.table.column("day").to_pylist() == ["2024-01-01"]


def test_an_absent_attribute_is_null_and_columns_come_in_the_order_of_appearance(tmp_path: Path) -> None:
    table = read(tmp_path, b'{"type": "A", "ts": 1}\n{"type": "B", "ts": 2, "y": "z"}\n').table
    assert table.to_pylist() == [{"type": "A", "ts": 1, "y": None}, {"type": "B", "ts": 2, "y": "z"}]


def test_nested_values_are_kept(tmp_path: Path) -> None:
    table = read(tmp_path, b'{"ts": 1, "o": {"p": [1, 2]}}\n{"ts": 2, "o": {"p": []}}\n').table
    assert table.column("o").to_pylist() == [{"p": [1, 2]}, {"p": []}]


def test_one_array_of_objects(tmp_path: Path) -> None:
    events = read(tmp_path, b'[\n {"type": "A", "ts": 1},\n {"type": "B", "ts": 2},\n 7\n]', "events.json")
    assert events.table.column("type").to_pylist() == ["A", "B"]
    assert [(row.index, row.line, row.text) for row in events.bad_rows] == [(2, None, "7")]


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_an_empty_file_is_an_empty_table(tmp_path: Path, data: bytes) -> None:
    events = read(tmp_path, data)
    assert (events.table.num_rows, events.bad_rows) == (0, [])


@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        (b"\x00\x01" * 100, "KL501", "binary"),
        (b"hello\nworld\n", "KL509", "line 1: no JSON"),
        (b"[1, 2", "KL501", "no JSON"),
    ],
)
def test_what_is_no_json_is_said_so(tmp_path: Path, data: bytes, code: str, says: str) -> None:
    with pytest.raises(KleeneError) as caught:
        read(tmp_path, data)
    assert caught.value.code == code
    assert says in caught.value.message


def test_what_is_declared_is_a_column_even_when_no_event_has_it(tmp_path: Path) -> None:
    schema = Schema(types={"A": {"x": "int"}, "B": {"y": "string", "z": "float"}})
    table = read(tmp_path, b'{"type": "A", "ts": 1, "x": 5}\n', schema=schema).table
    assert table.to_pylist() == [{"type": "A", "ts": 1, "x": 5, "y": None, "z": None}]
    assert [str(table.schema.field(name).type) for name in "yz"] == ["string", "double"]

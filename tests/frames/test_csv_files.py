"""CSV: types by inference, and every row that cannot be read set aside with its line."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kleene import KleeneError, Schema
from kleene.frames.files import FileEvents, read_events

HEADER = b"type,ts,x\n"


def read(folder: Path, data: bytes, name: str = "events.csv", schema: Schema | None = None) -> FileEvents:
    path = folder / name
    path.write_bytes(data)
    return read_events(path, schema=schema)


def faults(events: FileEvents) -> list[tuple[int | None, str]]:
    return [(row.line, row.reason) for row in events.bad_rows]


def test_types_are_inferred(tmp_path: Path) -> None:
    data = b"type,ts,n,r,flag,word\nA,2024-01-01T10:00:00,1,1.5,true,x\nB,2024-01-01T10:00:00.25,2,2,false,\n"
    events = read(tmp_path, data)
    assert events.table.to_pylist() == [
        {"type": "A", "ts": datetime(2024, 1, 1, 10), "n": 1, "r": 1.5, "flag": True, "word": "x"},
        {"type": "B", "ts": datetime(2024, 1, 1, 10, 0, 0, 250000), "n": 2, "r": 2.0, "flag": False, "word": None},
    ]
    assert str(events.table.schema.field("ts").type) == "timestamp[us]"


def test_an_empty_field_is_null_and_a_quoted_one_is_not(tmp_path: Path) -> None:
    table = read(tmp_path, HEADER + b'A,1,\nA,2,""\nA,3,NA\nA,4,NULL\nA,5,x\n').table
    assert table.column("x").to_pylist() == [None, "", "NA", None, "x"]


def test_wrong_numbers_of_columns_are_bad_rows(tmp_path: Path) -> None:
    events = read(tmp_path, HEADER + b"A,1,2\nB,3\n\nC,4,5,6\nA,7,8\n")
    assert events.table.column("ts").to_pylist() == [1, 7]
    assert faults(events) == [(3, "2 columns, expected 3"), (5, "4 columns, expected 3")]
    assert [(row.index, row.text) for row in events.bad_rows] == [(1, "B,3"), (2, "C,4,5,6")]


def test_a_quotation_may_go_over_lines_and_lines_are_counted_right(tmp_path: Path) -> None:
    events = read(tmp_path, HEADER + b'A,1,"one\ntwo"\nB,3\nA,4,z\n')
    assert events.table.column("x").to_pylist() == ["one\ntwo", "z"]
    assert faults(events) == [(4, "2 columns, expected 3")]


@pytest.mark.parametrize("tail", [b"A,2,y\nA,3,z\n", b"A,2,y\nA,3,z"])
def test_an_unclosed_quotation_spoils_its_own_line_only(tmp_path: Path, tail: bytes) -> None:
    events = read(tmp_path, HEADER + b'A,1,"x\n' + tail)
    assert events.table.column("x").to_pylist() == ["y", "z"]
    assert faults(events) == [(2, "a quotation is not closed")]


def test_a_quote_inside_a_field_is_a_character(tmp_path: Path) -> None:
    events = read(tmp_path, HEADER + b'A,1,5" pipe\nA,2\nA,3,z\n')
    assert events.table.column("x").to_pylist() == ['5" pipe', "z"]
    assert faults(events) == [(3, "2 columns, expected 3")]


def test_bytes_that_are_no_text_are_bad_rows(tmp_path: Path) -> None:
    events = read(tmp_path, HEADER + b"A,1,caf\xe9\nA,2,caf\xc3\xa9\n")
    assert events.table.column("x").to_pylist() == ["café"]
    assert faults(events) == [(2, "not UTF-8 text")]


def test_a_time_that_is_none_is_a_bad_row_and_not_a_column_of_words(tmp_path: Path) -> None:
    events = read(tmp_path, HEADER + b"A,1,p\nA,soon,q\nA,,r\nA,4,s\n")
    assert events.table.column("ts").to_pylist() == [1, 4]
    assert faults(events) == [(3, "`ts` is not an integer: 'soon'"), (4, "no time: `ts` is NULL")]
    assert [row.text for row in events.bad_rows] == ["A,soon,q", "A,,r"]


def test_moments_with_and_without_a_zone_do_not_mix(tmp_path: Path) -> None:
    data = HEADER + b"A,2024-01-01T10:00:00Z,1\nA,2024-01-01T12:00:00+01:00,2\nA,2024-01-01T10:00:00,3\n"
    events = read(tmp_path, data)
    assert events.table.column("ts").to_pylist() == [
        datetime(2024, 1, 1, 10, tzinfo=UTC),
        datetime(2024, 1, 1, 11, tzinfo=UTC),
    ]
    assert [line for line, _ in faults(events)] == [4]


def test_the_schema_says_what_columns_hold(tmp_path: Path) -> None:
    schema = Schema(time="at", types={"A": {"id": "string", "amount": "int", "price": "float"}})
    events = read(tmp_path, b"type,at,id,amount,price\nA,1,007,5,1\nA,2,008,many,2\nA,3,009,6,3\n", schema=schema)
    assert events.table.to_pylist() == [
        {"type": "A", "at": 1, "id": "007", "amount": 5, "price": 1.0},
        {"type": "A", "at": 3, "id": "009", "amount": 6, "price": 3.0},
    ]
    assert faults(events) == [(3, "`amount` is not an integer: 'many'")]


def test_a_column_of_words_stays_one(tmp_path: Path) -> None:
    """Only the schema makes a word among numbers a fault."""
    events = read(tmp_path, HEADER + b"A,1,1\nA,2,2\nA,3,B3\n")
    assert events.table.column("x").to_pylist() == ["1", "2", "B3"]
    assert events.bad_rows == []


@pytest.mark.parametrize(
    ("data", "columns"), [(b"", []), (b"\n\n", []), (b"type,ts", ["type", "ts"]), (b"type,ts\r\n", ["type", "ts"])]
)
def test_an_empty_file_is_an_empty_table(tmp_path: Path, data: bytes, columns: list[str]) -> None:
    events = read(tmp_path, data)
    assert (events.table.num_rows, events.table.column_names, events.bad_rows) == (0, columns, [])


def test_tabs_marks_windows_lines_and_gzip(tmp_path: Path) -> None:
    assert read(tmp_path, b"type\tts\nA\t1\n", "a.tsv").table.to_pylist() == [{"type": "A", "ts": 1}]
    assert read(tmp_path, b"\xef\xbb\xbftype,ts\r\nA,1\r\n", "b.csv").table.to_pylist() == [{"type": "A", "ts": 1}]
    packed = gzip.compress(HEADER + b"A,1,2\nA\n")
    events = read(tmp_path, packed, "c.csv.gz")
    assert (events.table.num_rows, faults(events)) == (1, [(3, "1 column, expected 3")])


@pytest.mark.parametrize(
    ("data", "name", "code", "says"),
    [
        (b"\x00\x01\x02" * 100, "a.csv", "KL501", "binary"),
        ("type,ts\nA,1\n".encode("utf-16"), "a.csv", "KL501", "UTF-16"),
        (b"a,a\n1,2\n", "a.csv", "KL501", "two columns called `a`"),
        (b"\xff,b\n1,2\n", "a.csv", "KL501", "header"),
        (b"\x1f\x8bjunk", "a.csv.gz", "KL501", "cannot be read"),
        (b"type,ts\nA\nB\n", "a.csv", "KL509", "line 2: 1 column, expected 2"),
    ],
)
def test_what_is_no_csv_is_said_so(tmp_path: Path, data: bytes, name: str, code: str, says: str) -> None:
    with pytest.raises(KleeneError) as caught:
        read(tmp_path, data, name)
    assert caught.value.code == code
    assert says in caught.value.message


def test_a_long_bad_row_is_clipped(tmp_path: Path) -> None:
    events = read(tmp_path, HEADER + b"A,1,2\n" + b"y" * 5_000 + b"\n")
    assert events.bad_rows[0].text == "y" * 199 + "…"


def test_many_blocks_with_quoted_lines(tmp_path: Path) -> None:
    """Larger than pyarrow's block, with values of several lines at its bounds."""
    record = b'A,%d,"' + b"z" * 60 + b"\n" + b"z" * 60 + b'"\n'
    events = read(tmp_path, HEADER + b"".join(record % number for number in range(20_000)))
    assert events.table.column("ts").to_pylist() == list(range(20_000))
    assert events.bad_rows == []


def test_a_bad_row_cannot_steer_the_terminal(tmp_path: Path) -> None:
    events = read(tmp_path, HEADER + b"A,1,2\n\x1b[31mred\n")
    assert events.bad_rows[0].text == "�[31mred"

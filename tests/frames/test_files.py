"""Files by their endings, Parquet, and results written whole or not at all."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kleene import KleeneError
from kleene.frames import files
from kleene.frames.files import format_of, read_events, write_table

EVENTS = pa.table({"type": ["A", "B"], "ts": [1, 2]})


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", "csv"),
        ("a.CSV.GZ", "csv"),
        ("a.tsv", "tsv"),
        ("a.ndjson.gz", "jsonl"),
        ("a.json", "jsonl"),
        ("a.b.parquet", "parquet"),
    ],
)
def test_the_ending_says_the_format(name: str, format: str) -> None:
    assert format_of(name) == format


@pytest.mark.parametrize("name", ["events", "events.xlsx", "events.gz", ".csv.d/events"])
def test_an_unknown_ending_is_an_error_with_a_hint(name: str) -> None:
    with pytest.raises(KleeneError) as caught:
        format_of(name)
    assert caught.value.code == "KL502"
    assert ".parquet" in (caught.value.hint or "")


def test_an_unknown_file_offers_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_bytes(b"")
    with pytest.raises(KleeneError) as caught:
        read_events(tmp_path / "event.csv")
    assert (caught.value.code, caught.value.hint) == ("KL501", "did you mean `events.csv`?")
    with pytest.raises(KleeneError, match="no folder"):
        read_events(tmp_path / "nowhere" / "events.csv")


def test_a_named_format_goes_before_the_ending(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_bytes(b"type,ts\nA,1\n")
    assert read_events(path, "csv").table.num_rows == 1
    with pytest.raises(KleeneError, match="KL502"):
        read_events(path, "xml")


def test_an_open_stream_can_be_read() -> None:
    assert read_events(BytesIO(b'{"type": "A", "ts": 1}\n'), "jsonl").table.num_rows == 1


def test_parquet_files_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(EVENTS, folder / "part-0.parquet")
    pq.write_table(EVENTS, folder / "part-1.parquet")
    (folder / "_SUCCESS").write_bytes(b"")
    assert read_events(folder / "part-0.parquet").table.equals(EVENTS)
    assert read_events(folder).table.num_rows == 4
    with pytest.raises(KleeneError, match="is a folder"):
        read_events(folder, "csv")


@pytest.mark.parametrize("data", [b"", b"junk", b"PAR1" + b"\x07" * 100 + b"PAR1"])
def test_a_broken_parquet_file_is_unreadable(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "events.parquet"
    path.write_bytes(data)
    with pytest.raises(KleeneError) as caught:
        read_events(path)
    assert caught.value.code == "KL501"


NESTED = pa.table(
    {
        "start": pa.array([datetime(2024, 1, 1, 10, 0, 0, 250000), None], pa.timestamp("us")),
        "zoned": pa.array([datetime(2024, 1, 1, 10, tzinfo=UTC), None], pa.timestamp("ns", "Europe/Berlin")),
        "a": pa.array([{"ts": datetime(2024, 1, 1), "x": 1.5}, None]),
        "b": pa.array([[{"x": 1}, {"x": 2}], []]),
        "flag": [True, None],
        "real": [float("nan"), 1.0],
        "day": [date(2024, 1, 1), None],
        "long": pa.array([timedelta(seconds=90), None], pa.duration("ms")),
        "sum": [Decimal("1.50"), None],
        "word": pa.array(["ä", "b"]).dictionary_encode(),
        "bytes": [b"\xff", None],
    }
)
ROWS = [
    {
        "start": "2024-01-01T10:00:00.25",
        "zoned": "2024-01-01T10:00:00Z",
        "a": {"ts": "2024-01-01T00:00:00", "x": 1.5},
        "b": [{"x": 1}, {"x": 2}],
        "flag": True,
        "real": None,
        "day": "2024-01-01",
        "long": 90.0,
        "sum": "1.50",
        "word": "ä",
        "bytes": "/w==",
    },
    dict.fromkeys(NESTED.column_names) | {"b": [], "real": 1.0, "word": "b"},
]


def test_json_lines_hold_every_type(tmp_path: Path) -> None:
    write_table(NESTED, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == ROWS


def test_a_slice_is_written_as_itself(tmp_path: Path) -> None:
    write_table(NESTED.slice(1), tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8")) == ROWS[1]


def test_csv_holds_nested_columns_as_json(tmp_path: Path) -> None:
    write_table(NESTED, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert json.loads(first["a"]) == ROWS[0]["a"]
    assert json.loads(first["b"]) == ROWS[0]["b"]
    assert (first["flag"], first["start"], second["a"], second["b"]) == ("true", "2024-01-01T10:00:00.25", "", "[]")


def test_parquet_gives_the_same_table_back(tmp_path: Path) -> None:
    write_table(NESTED, tmp_path / "deep" / "out.parquet")
    assert (
        read_events(tmp_path / "deep" / "out.parquet")
        .table.drop_columns(["real"])
        .equals(NESTED.drop_columns(["real"]))
    )


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_an_empty_result_keeps_its_columns(tmp_path: Path, name: str) -> None:
    write_table(EVENTS.slice(0, 0), tmp_path / name)
    if name != "out.jsonl":
        assert read_events(tmp_path / name).table.column_names == ["type", "ts"]
    else:
        assert (tmp_path / name).read_bytes() == b""


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("old")

    def fail(row: object) -> str:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(files, "json_line", fail)
    with pytest.raises(RuntimeError):
        write_table(EVENTS, target)
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert target.read_text() == "old"


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KleeneError, match="cannot be written"):
        write_table(EVENTS, tmp_path / "file" / "out.csv")

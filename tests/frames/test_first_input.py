"""Input as people first have it: an empty list, a CSV file with `;`, time in the index of a pandas frame."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import kleene
from kleene.cli.running import run
from kleene.errors import KleeneError, MissingColumn, MissingStream, UnknownFormat, UnreadableFile
from kleene.frames.files import read_events

_PAIR = "PATTERN A a ; B b WHERE a.x = b.x WITHIN 5"


@pytest.mark.parametrize(
    "query",
    [
        _PAIR,
        "PATTERN A a ; B b WHERE [k] WITHIN 5 minutes",
        "PATTERN A a WHERE a.ts > TIMESTAMP '2024-01-01T00:00:00Z'",
        "PATTERN A+ a[] ; B b WHERE sum(a.x) > b.y WITHIN 5 EVENTS RETURN a[1].x + b.y AS total",
        "DECLARE STREAM (type 'A', time at) DECLARE TYPE A (x int) PATTERN A a ; A b WHERE a.x < b.x",
    ],
)
def test_an_empty_list_has_no_match(query: str) -> None:
    assert kleene.match([], query) == []


def test_no_rows_in_any_stream() -> None:
    assert kleene.match({"A": [], "B": []}, _PAIR) == []
    assert kleene.match([], ["PATTERN A a RETURN a.x INTO S", "PATTERN S s ; S t WHERE s.a_x = t.a_x"]) == []
    with pytest.raises(MissingStream):
        kleene.match({"A": []}, _PAIR)


def test_a_stream_without_rows_beside_one_with_times() -> None:
    began = [{"ts": datetime(2024, 1, 1), "x": 1}]
    assert kleene.match({"A": began, "B": []}, "PATTERN A a ; B b WITHIN 5 minutes") == []
    (late,) = kleene.outputs({"A": began, "B": []}, "PATTERN A a ; B b WITHIN 5 minutes TIMEOUTS INTO L").timeouts
    assert late["start"] == datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("query", "code"), [("PATTERN A a WHERE c.x = 1", "KL202"), ("PATTERN A+ a[] WHERE a.x = 1", "KL408")]
)
def test_a_wrong_query_is_wrong_on_nothing_too(query: str, code: str) -> None:
    with pytest.raises(KleeneError) as caught:
        kleene.match([], query)
    assert caught.value.code == code


# CSV ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [";", "|", "\t"])
@pytest.mark.parametrize("value", ["2", "2,5"])
def test_a_csv_file_with_another_separator(tmp_path: Path, separator: str, value: str) -> None:
    file = tmp_path / "x.csv"
    rows = ["type;ts;x", f"A;1;{value}", f"B;2;{value}"]
    file.write_text("\n".join(rows).replace(";", separator))
    with pytest.raises(UnreadableFile, match="its separator seems to be") as caught:
        read_events(file)
    assert "--separator" in str(caught.value.hint)
    read = read_events(file, separator=separator)
    assert read.table.column_names == ["type", "ts", "x"]
    assert len(kleene.match(read.table, _PAIR)) == 1


def test_the_command_takes_a_separator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.csv"
    file.write_text("type;ts;x\nA;1;2\nB;2;2\n")
    assert run(["match", "-q", _PAIR, "-i", str(file)]) == 1
    assert "--separator ';'" in capsys.readouterr().err
    assert run(["match", "-q", _PAIR, "-i", str(file), "--separator", ";", "-f", "jsonl"]) == 0
    assert capsys.readouterr().out.count("match_id") == 1


@pytest.mark.parametrize(("separator", "format"), [(";;", None), ("", None), ("\n", None), (";", "jsonl")])
def test_what_cannot_separate(tmp_path: Path, separator: str, format: str | None) -> None:
    (tmp_path / "x.csv").write_text("type,ts\nA,1\n")
    with pytest.raises(UnknownFormat):
        read_events(tmp_path / "x.csv", format, separator=separator)


def test_a_frame_read_with_the_wrong_separator() -> None:
    with pytest.raises(MissingColumn) as caught:
        kleene.match(pd.DataFrame({"type;ts;x": ["A;1;2"]}), _PAIR)
    assert "read the file with ';' as its separator" in str(caught.value.hint)


# pandas ------------------------------------------------------------------------------------------------------------


def _frame(index: Any) -> pd.DataFrame:
    return pd.DataFrame({"type": ["A", "B"], "x": [1, 1]}, index=index)


@pytest.mark.parametrize(
    ("index", "remedy"),
    [
        (pd.DatetimeIndex(["2024-01-01", "2024-01-02"], name="ts"), "df.reset_index()"),
        (pd.DatetimeIndex(["2024-01-01", "2024-01-02"]), "df.rename_axis('ts').reset_index()"),
        (pd.DatetimeIndex(["2024-01-01", "2024-01-02"], name="when"), "df.rename_axis('ts').reset_index()"),
        (pd.MultiIndex.from_tuples([("s", 1), ("s", 2)], names=["shop", "ts"]), "df.reset_index()"),
    ],
)
def test_time_in_the_index(index: Any, remedy: str) -> None:
    df = _frame(index)
    query = "PATTERN A a ; B b WHERE a.x = b.x"
    with pytest.raises(MissingColumn, match="the time is in the index") as caught:
        kleene.match(df, query)
    assert remedy in str(caught.value.hint)
    assert len(kleene.match(eval(remedy, {"df": df}), query)) == 1  # what the hint says works


def test_type_in_the_index() -> None:
    df = pd.DataFrame({"ts": [1, 2], "x": [1, 1]}, index=pd.Index(["A", "B"], name="type"))
    with pytest.raises(MissingColumn, match="the type is in the index"):
        kleene.match(df, _PAIR)
    assert len(kleene.match(df.reset_index(), _PAIR)) == 1


def test_an_index_beside_its_column_is_left_alone() -> None:
    df = _frame(pd.DatetimeIndex(["2024-01-01", "2024-01-02"])).assign(ts=[1, 2])
    assert len(kleene.match(df, _PAIR)) == 1

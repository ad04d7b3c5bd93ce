"""Bad input: a clear error or the right answer, and never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.conftest import Kleene

from kleene.cli import running

QUERY = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"
GOOD = "type,ts,x\nA,1,5\nB,2,5\n"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text(GOOD)
    return path


def test_an_unknown_file(kleene: Kleene, events: Path) -> None:
    ended = kleene("match", "-q", QUERY, "-i", "evnts.csv")
    assert ended.code == 1
    assert ended.err == "error[KL501]: there is no file `evnts.csv`\n  = hint: did you mean `events.csv`?\n"


def test_an_unknown_query_file(kleene: Kleene, events: Path) -> None:
    for name in ("nowhere.kleene", "nowhere"):
        ended = kleene("match", "-q", name, "-i", events)
        assert ended.code == 1
        assert f"error[KL501]: there is no file `{name}`" in ended.err


def test_an_unknown_format(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "events.xlsx").write_bytes(b"PK")
    ended = kleene("match", "-q", QUERY, "-i", "events.xlsx")
    assert ended.code == 1
    assert "error[KL502]" in ended.err
    assert ".csv" in ended.err


def test_unreadable_rows_are_counted_and_shown_with_their_lines(kleene: Kleene, events: Path) -> None:
    events.write_text(GOOD + "A,3\nA,soon,5\n" + "B\n" * 5)
    ended = kleene("match", "-q", QUERY, "-i", events)
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 1
    lines = ended.err.splitlines()
    assert lines[0].startswith("2 events, 7 bad rows, 1 match in ")
    assert lines[1:3] == ["  line 4: 2 columns, expected 3: A,3", "  line 5: `ts` is not an integer: 'soon': A,soon,5"]
    assert lines[-1] == "  … and 2 more (--bad-rows FILE writes them all)"


@pytest.mark.parametrize(
    ("query", "code", "says"),
    [
        ("PATTERN SEQ(A a, B b) WHERE a.y = 5", "KL203", "`x`"),
        ("PATTERN SEQ(A a, B b) WHERE a.x = 'five'", "KL301", "quotes"),
        ("PATTERN SEQ(A a, B b) WHERE [y]", "KL203", "y"),
    ],
)
def test_a_wrong_column(kleene: Kleene, events: Path, query: str, code: str, says: str) -> None:
    ended = kleene("match", "-q", query, "-i", events)
    assert ended.code == 1
    assert f"error[{code}]" in ended.err
    assert "^" in ended.err
    assert says in ended.err


def test_a_time_column_that_is_missing_or_none(kleene: Kleene, events: Path) -> None:
    events.write_text("type,when,x\nA,1,5\n")
    ended = kleene("match", "-q", QUERY, "-i", events)
    assert (ended.code, "error[KL503]" in ended.err) == (1, True)
    events.write_text("type,ts,x\nA,soon,5\nA,later,5\n")
    ended = kleene("match", "-q", QUERY, "-i", events)
    assert (ended.code, "error[KL504]" in ended.err) == (1, True)


def test_unsorted_input_is_sorted(kleene: Kleene, events: Path) -> None:
    right = kleene("match", "-q", QUERY, "-i", events).out
    events.write_text("type,ts,x\nB,2,5\nA,1,5\n")
    assert kleene("match", "-q", QUERY, "-i", events).out == right


@pytest.mark.parametrize(
    ("name", "content"),
    [("e.csv", ""), ("e.csv", "type,ts,x"), ("e.csv", "type,ts,x\n"), ("e.jsonl", ""), ("e.jsonl", "\n\n")],
)
def test_empty_input_gives_an_empty_result_with_the_right_columns(
    kleene: Kleene, tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    ended = kleene("match", "-q", QUERY, "-i", name, "--format", "csv")
    assert (ended.code, ended.out) == (0, "match_id,query,start,end,key,a,b\n")
    assert ended.err.startswith("0 events, 0 bad rows, 0 matches in ")
    assert kleene("match", "-q", QUERY, "-i", name, "-o", "out.parquet").code == 0


def test_empty_input_with_declarations_and_returns(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text("")
    query = """
      DECLARE STREAM (type kind, time at timestamp, tie seq)
      DECLARE TYPE A (id string, x int)
      PATTERN SEQ(A a, A+ b[]) WHERE skip_till_next_match { [id] AND b[i].x > b[i-1].x } WITHIN 2 hours
      RETURN a.id AS id, sum(b.x) AS total, b
    """
    ended = kleene("match", "-q", query, "-i", "e.jsonl", "--format", "csv")
    assert (ended.code, ended.out) == (0, "match_id,query,start,end,key,id,total,b\n"), ended.err


@pytest.mark.parametrize("content", [os.urandom(3_000) + b"\0", b"\0" * 100, b"%PDF-1.4\n\xff\xff\n", b"\xff\n" * 9])
@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.jsonl", "e.parquet", "e.csv.gz"])
def test_garbage(kleene: Kleene, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    ended = kleene("match", "-q", QUERY, "-i", name)
    assert ended.code == 1
    assert ended.err.startswith("error[KL5")


def test_a_query_of_garbage(kleene: Kleene, tmp_path: Path, events: Path) -> None:
    (tmp_path / "q.kleene").write_bytes(b"\xff\xfe\x00")
    ended = kleene("match", "-q", "q.kleene", "-i", events)
    assert (ended.code, "no UTF-8 text" in ended.err) == (1, True)
    ended = kleene("match", "-q", "", "-i", events)
    assert ended.code == 1


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN " + "(" * 1_000 + "A a" + ")" * 1_000,
        "PATTERN SEQ(A a, B b) WHERE " + "(" * 1_000 + "a.x = b.x" + ")" * 1_000,
        "PATTERN SEQ(A a, B b) WHERE " + "NOT " * 1_000 + "a.x = b.x",
        "PATTERN SEQ(A a, B b) WHERE a.x = " + "- " * 1_000 + "b.x",
        "PATTERN SEQ(A a, B b) WHERE a.x = b.x" + " + 1" * 1_000,
        "PATTERN " + "SEQ(A, " * 1_000 + "B" + ")" * 1_000,
        "PATTERN SEQ(A a, " + "!" * 1_000 + "(B b))",
        "PATTERN SEQ(A a, B b) WHERE " + "(a.x = 1 OR (a.x = 2 AND " * 500 + "a.x = b.x" + "))" * 500,
    ],
)
def test_nested_a_thousand_deep(kleene: Kleene, events: Path, query: str) -> None:
    ended = kleene("match", "-q", query, "-i", events)
    assert ended.code in (0, 1)
    if ended.code:
        assert ended.err.startswith("error[KL")
        assert len(ended.err) < 2_000


def test_more_matches_than_the_budget(kleene: Kleene, events: Path) -> None:
    events.write_text("type,ts,x\n" + "".join(f"A,{number},5\n" for number in range(60)) + "B,60,5\n")
    ended = kleene("match", "-q", "PATTERN SEQ(A+ a[], B b) WHERE [x]", "-i", events)
    assert ended.code == 3
    assert "error[KL601]" in ended.err


def test_a_result_that_cannot_be_written(kleene: Kleene, events: Path) -> None:
    ended = kleene("match", "-q", QUERY, "-i", events, "-o", events / "out.csv")
    assert (ended.code, "cannot be written" in ended.err) == (1, True)
    ended = kleene("match", "-q", QUERY, "-i", events, "-o", "out.xlsx")
    assert (ended.code, "KL502" in ended.err) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["match"],
        ["match", "-q", QUERY],
        ["match", "-q", QUERY, "-i", "events.csv", "--format", "xml"],
        ["match", "-q", QUERY, "-i", "events.csv", "--format", "table", "-o", "out.csv"],
        ["match", "-q", QUERY, "-i", "events.csv", "--limit", "-1"],
        ["nonsense"],
        ["check"],
        ["generate", "hospital"],
        ["generate", "supermarket", "--events", "5", "-o", "x.csv"],
    ],
)
def test_wrong_use_ends_with_2(kleene: Kleene, events: Path, arguments: list[str]) -> None:
    ended = kleene(*arguments)
    assert ended.code == 2
    assert "Error: " in ended.err


def test_a_fault_of_our_own_is_no_traceback_unless_asked_for(
    kleene: Kleene, events: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("kleene.cli.matching.match_files", broken)
    arguments = ["match", "-q", QUERY, "-i", str(events)]
    assert running.run(arguments) == running.INTERNAL
    assert "internal error: ZeroDivisionError: oh" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        running.run(["--debug", *arguments])
    monkeypatch.setenv("KLEENE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        running.run(arguments)


def test_an_interrupt_ends_with_130(kleene: Kleene, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kleene.cli.matching.match_files", interrupted)
    assert kleene("match", "-q", QUERY, "-i", events).code == 130


def test_an_error_that_a_task_raised_is_shown_as_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Spark hands the driver the text of a traceback."""
    error = "kleene.errors.BudgetExceeded: error[KL601]: too much\n  = hint: less\n"
    text = f"Job aborted\nTraceback (most recent call last):\n  File x\n{error}\n at org.apache"
    assert running._report(RuntimeError(text)) == 3
    assert capsys.readouterr().err == "error[KL601]: too much\n  = hint: less\n"
    text = "Job aborted\nTraceback (most recent call last):\n  File x\nZeroDivisionError: by zero\n\n at org.apache"
    assert running._report(RuntimeError(text)) == running.INTERNAL
    assert "internal error: RuntimeError: ZeroDivisionError: by zero\n" in capsys.readouterr().err

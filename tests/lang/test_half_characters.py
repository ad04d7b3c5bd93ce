"""Half a character, which Python lets into a string, is refused wherever text comes in, with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import kleene
from kleene.cli.running import run
from kleene.errors import BadParameter, KleeneError, SyntaxProblem, UnknownKind
from kleene.frames.files import read_events
from kleene.lang import parse_class, parse_declarations, parse_duration

HALF = "\ud83d"
ROWS = [{"type": "A", "ts": 1, "x": "p"}, {"type": "B", "ts": 2, "x": "q"}]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"PATTERN SEQ(A a, B b)\nWHERE a.x = '{HALF}'", (2, 14)),
        (f"PATTERN SEQ(A a, B b) WHERE a.`{HALF}` = 1", (1, 32)),
        (f"PATTERN SEQ(A{HALF} a, B b)", (1, 14)),
        (f"{HALF}PATTERN A a", (1, 1)),
        (f"PATTERN A a -- {HALF}", (1, 16)),
    ],
    ids=ascii,
)
def test_in_a_query(text: str, place: tuple[int, int]) -> None:
    for read in (kleene.query, lambda text: kleene.match(ROWS, text), lambda text: kleene.explain(text)):
        with pytest.raises(SyntaxProblem, match=r"half a character \(U\+D83D\)") as raised:
            read(text)
        assert (raised.value.line, raised.value.column) == place
        assert str(raised.value).encode(), "the message can be printed"


def test_in_the_name_of_a_query() -> None:
    with pytest.raises(SyntaxProblem, match="the name of a query holds half a character at place 3") as raised:
        kleene.query("PATTERN A a", name=f"abc{HALF}")
    assert str(raised.value).encode(), "the message can be printed"


@pytest.mark.parametrize("read", [parse_declarations, parse_duration, parse_class])
def test_in_declarations(read: Callable[[str], object]) -> None:
    with pytest.raises(SyntaxProblem, match="half a character"):
        read(f"DECLARE {HALF}")


def test_a_whole_pair_is_a_character() -> None:
    rows = [{"type": "A", "ts": 1, "x": "😀"}, {"type": "B", "ts": 2, "x": "q"}]
    assert len(kleene.match(rows, "PATTERN SEQ(A a, B b) WHERE a.x = '😀'")) == 1


@pytest.mark.parametrize(
    ("condition", "value"), [("a.x = :p", HALF), ("a.x IN :p", ["p", f"ab{HALF}"]), ("a.x CONTAINS :p", HALF)]
)
def test_in_a_parameter(condition: str, value: object) -> None:
    with pytest.raises(BadParameter, match=r"half a character at place [02]") as raised:
        kleene.match(ROWS, f"PATTERN SEQ(A a, B b) WHERE {condition}", params={"p": value})
    assert raised.value.column is not None
    assert str(raised.value).encode()


def test_in_the_name_of_a_parameter() -> None:
    with pytest.raises(KleeneError) as raised:
        kleene.match(ROWS, "PATTERN A a WHERE a.x = :p", params={"p": 1, HALF: 2})
    assert str(raised.value).encode()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"type": "A", "ts": 3, "x": f"a{HALF}"}, "`x` of row 3 holds half a character"),
        ({"type": HALF, "ts": 3, "x": "a"}, "`type` of row 3 holds half a character"),
        ({"type": "A", "ts": 3, HALF: "a"}, "the name of a column holds half a character"),
    ],
    ids=ascii,
)
def test_in_data(row: dict[str, object], said: str) -> None:
    frame = pd.DataFrame([*ROWS, row])
    for events in ([*ROWS, row], frame):
        with pytest.raises(UnknownKind, match=said) as raised:
            kleene.match(events, "PATTERN A a")
        assert str(raised.value).encode()


def test_in_what_the_command_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A byte of an argument that is no UTF-8 comes as half a character; in a file it is refused as a byte."""
    query = tmp_path / "half.kleene"
    query.write_bytes(b"PATTERN A a WHERE a.x = '" + HALF.encode("utf-8", "surrogatepass") + b"'")
    data = tmp_path / "events.jsonl"
    data.write_text('{"type": "A", "ts": 1, "x": "p"}\n')
    for given in (f"PATTERN A a WHERE a.x = '{HALF}'", str(query)):
        assert run(["match", "-i", str(data), "-q", given]) != 0
        said = capsys.readouterr().err
        assert "error[KL" in said
        assert "Traceback" not in said


def test_in_a_file_of_events(tmp_path: Path) -> None:
    """As JSON it can be written; such a row is no event."""
    path = tmp_path / "events.jsonl"
    good, bad = '{"type": "A", "ts": 1, "x": "p"}', '{"type": "A", "ts": 2, "x": "\\ud83d"}'
    for text in (f"{good}\n{bad}\n", f"[{good}, {bad}]"):
        path.write_text(text)
        read = read_events(path)
        assert read.table.column("x").to_pylist() == ["p"]
        assert [(row.index, row.reason) for row in read.bad_rows] == [(1, "half a character, which is no text")]

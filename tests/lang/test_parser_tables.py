"""A parser made of kept tables is the parser that made them: the same trees, the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lark import Lark, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from kleene.lang import main_spelling, parser_tables

GRAMMAR = Path(main_spelling.__file__).with_name("kleene.lark")
TEXTS = (
    "DECLARE TYPE A(x INT) PATTERN A a",
    "PATTERN SEQ(A+ a[], !(B b), ANY(C, D) c) WHERE skip_till_next_match { [id] AND a[i].x > avg(a[..i-1].x) }",
    "EVENT (A a | B b) ; C{2,3} c[] WHERE a.s CONTAINS 'it''s' OR NOT c[1].x BETWEEN 1 AND 2.5 WITHIN 1 hour 5 minutes",
    "PATTERN A a -- the first\n ; B* b[] /* the rest */ WITHIN 20 EVENTS INCLUSIVE OUTPUT NON_OVERLAP",
    "PATTERN A a ; B b TIMEOUTS INTO Late RETURN a.x + 1 AS y, count(b) AS n INTO Made",
    "PATTERN A a ; §",
    "PATTERN A a ; B 'never closed",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parser_tables, "_folders", lambda: iter([tmp_path / "new", tmp_path / "spare"]))
    return tmp_path


def _parser() -> Lark:
    return parser_tables.parser(GRAMMAR, start=main_spelling.STARTS, builder=main_spelling.Builder())


def _answers(parser: Lark) -> Iterator[Any]:
    """What comes of each text, of each of its beginnings, and of each without one of its characters."""
    for text in TEXTS:
        for place in range(len(text) + 1):
            for part in (text[:place], text[:place] + text[place + 1 :]):
                yield part, _answer(parser, part)


def _answer(parser: Lark, text: str) -> Any:
    try:
        made = parser.parse(text, start="start")
        assert not isinstance(made, Tree), "the builder was not asked"
        return made
    except UnexpectedToken as problem:
        return problem.token, problem.token.start_pos, problem.expected, problem.accepts
    except UnexpectedCharacters as problem:
        return problem.pos_in_stream, problem.allowed
    except UnexpectedInput as problem:
        return type(problem)
    except Exception as problem:
        return type(problem), str(problem)


def test_kept_tables_make_the_same_parser(folder: Path) -> None:
    first = _parser()
    (kept,) = (folder / "new").iterdir()
    before = kept.read_bytes()
    second = _parser()
    assert kept.read_bytes() == before
    assert second.source_path == "<deserialized>" != first.source_path
    assert list(_answers(first)) == list(_answers(second))


@pytest.mark.slow
def test_damaged_tables_are_made_again(folder: Path) -> None:
    _parser()
    (kept,) = (folder / "new").iterdir()
    whole = kept.read_bytes()
    for damaged in (b"", whole[:1000], whole[:-1], whole.replace(b'"start"', b'"stars"'), b"\xff" * 40):
        kept.write_bytes(damaged)
        assert _parser().source_path != "<deserialized>"
        assert _parser().source_path == "<deserialized>"
        assert [path.name for path in (folder / "new").iterdir()] == [kept.name]


def test_tables_are_kept_where_there_is_room(folder: Path) -> None:
    (folder / "new").write_text("no folder")
    _parser()
    assert len(list((folder / "spare").iterdir())) == 1
    assert _parser().source_path == "<deserialized>"


def test_without_any_folder_there_is_a_parser(folder: Path) -> None:
    (folder / "new").write_text("no folder")
    (folder / "spare").write_text("no folder")
    assert _answer(_parser(), TEXTS[1]) == _answer(main_spelling._parser(), TEXTS[1])


def test_another_grammar_has_other_tables(folder: Path) -> None:
    _parser()
    changed = folder / "kleene.lark"
    changed.write_text(GRAMMAR.read_text(encoding="utf-8") + "\n// changed\n", encoding="utf-8")
    made = parser_tables.parser(changed, start=main_spelling.STARTS, builder=main_spelling.Builder())
    assert made.source_path != "<deserialized>"
    assert len(list((folder / "new").iterdir())) == 2

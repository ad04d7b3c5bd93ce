"""DECLARE SOURCE and DECLARE SINK (NEXT §3.5): read in every spelling, printed, and what they mean for a schema."""

from __future__ import annotations

import pytest

from kleene.errors import BadDeclaration, SyntaxProblem
from kleene.lang import format_query, parse, parse_declarations, tree
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

SOURCE = "DECLARE SOURCE t (acc int, amount float, note)"
SINK = "DECLARE SINK alerts (acc int)"


@pytest.mark.parametrize("query", ["PATTERN t a ; t b", "t a ; t b", "SELECT * FROM t a ; t b"])
def test_every_spelling_has_them(query: str) -> None:
    parsed = parse(f"{SOURCE}\n{SINK}\n{query}")
    assert parsed.declarations == (
        tree.SourceDeclaration("t", (("acc", "int"), ("amount", "float"), ("note", None))),
        tree.SinkDeclaration("alerts", (("acc", "int"),)),
    )
    printed = format_query(parsed)
    assert printed.startswith(f"{SOURCE}\n{SINK}\n")
    assert parse(printed) == parsed


def test_words_in_any_case_and_names_in_quotes() -> None:
    written = parse_declarations("declare Source `x y` (`in` int) declare sink CARD-ALERTS ()")
    assert written == (
        tree.SourceDeclaration("x y", (("in", "int"),)),
        tree.SinkDeclaration("CARD-ALERTS", ()),
    )
    # No words of the language elsewhere.
    parse("DECLARE TYPE source (sink int) PATTERN source sink ; SINK source WHERE sink.source = source.sink")


def test_a_source_declares_its_type() -> None:
    schema = Schema.from_declarations(f"{SOURCE} {SINK}")
    assert dict(schema.types) == {"t": {"acc": ValueType.INT, "amount": ValueType.FLOAT, "note": ValueType.UNKNOWN}}
    assert schema == Schema.from_declarations("DECLARE TYPE t (acc int, amount float, note)")


def test_a_source_may_send_a_declared_type() -> None:
    Schema.from_declarations("DECLARE TYPE t (acc int) DECLARE SOURCE t (acc long)")
    Schema.from_declarations("DECLARE SINK t (acc int) DECLARE SOURCE t (x string)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DECLARE TYPE t (acc int) DECLARE SOURCE t (acc string)", "`t` is declared twice"),
        ("DECLARE SOURCE t (acc int) DECLARE TYPE t (acc int, x int)", "`t` is declared twice"),
        ("DECLARE SOURCE t (acc int) DECLARE SOURCE t (acc int)", "`t` is declared twice"),
        ("DECLARE SOURCE t (acc int) DECLARE CLASS t IS u", "`t` is declared twice"),
        ("DECLARE SINK t (acc int) DECLARE SINK t (acc int)", "`t` is declared twice"),
        ("DECLARE SOURCE t (acc int, acc int)", "attribute `acc` is declared twice"),
        ("DECLARE SINK t (acc number)", "unknown type of values `number`"),
    ],
)
def test_what_contradicts_itself(text: str, message: str) -> None:
    with pytest.raises(BadDeclaration, match=message):
        Schema.from_declarations(text)


def test_what_may_be_declared() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_declarations("DECLARE TABLE t (acc int)")
    assert caught.value.hint == "expected CLASS, SINK, SOURCE, STREAM or TYPE"

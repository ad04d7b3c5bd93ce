"""CESAR's spelling: signs and names, with and without the underscore of the paper; declarations before any spelling."""

from __future__ import annotations

import pytest

from kleene.lang import cesar_spelling, main_spelling
from kleene.lang.cesar_spelling import parse, recognises
from kleene.lang.format_streams import format_stream_query
from kleene.lang.statements import query_start

SAME = [
    ("σ{price > 5}(Stock S)", "select{price > 5}(Stock S)", "σ_{price > 5}(Stock S)", "SELECT {price>5} (Stock S)"),
    ("π{name, S.price}(Stock S)", "project{name, S.price}(Stock S)", "π_{name,S.price}(Stock S)"),
    ("ρ{price ↦ old}(S)", "rename{price -> old}(S)", "ρ_{price ↦ old}(S)"),
    ("ρ{a ↦ c, b ↦ d}(S)", "ρ{(a, b) ↦ (c, d)}(S)"),
    ("α{avg ↦ (x + y) / 2}(S)", "compute{avg -> (x + y) / 2}(S)"),
    ("A ∪ B ∪ C", "A union B union C", "A ∪ (B ∪ C)"),
    ("A ; B", "A next B", "(A ; B)"),
    ("A ;{A.x = B.x} B", "A ;_{A.x = B.x} B", "A next{A.x = B.x} B", "A ; {A.x == B.x} B"),
    ("μ{ID, x > x.last}(A, B)", "fold{x > x.last}(A, B)", "µ_{id, x > x.last}(A, B)"),
    (
        "μ{σ{x > 1} ∘ α{x ↦ 2}, y = 1, init z ↦ y}(A, B)",
        "fold{y = 1, select{x > 1} of compute{x -> 2}, init z -> y}(A, B)",
    ),
    ("σ{a = 1} ∘ π{a}(S)", "σ{a = 1}(π{a}(S))", "select{a = 1} of project{a}(S)"),
    ("A ; B publish C", "A ; B PUBLISH C"),
]


@pytest.mark.parametrize("texts", SAME, ids=[texts[0] for texts in SAME])
def test_signs_and_names_are_read_alike(texts: tuple[str, ...]) -> None:
    first = parse(texts[0])
    assert all(parse(text) == first for text in texts)
    assert parse(format_stream_query(first)) == first
    assert all(map(recognises, texts))


def test_next_is_read_from_the_left_and_binds_looser_than_union() -> None:
    assert parse("A ; B ; C") == parse("(A ; B) ; C") != parse("A ; (B ; C)")
    assert parse("A ; B ∪ C") == parse("A ; (B ∪ C)") != parse("(A ; B) ∪ C")


@pytest.mark.parametrize(
    "text", ["PATTERN A a ; B b", "PATTERN A ; B", "EVENT SEQ(A a, B b)", "hello world", "", "SELECT x FROM (a A)"]
)
def test_what_is_no_cesar_is_not_taken_for_it(text: str) -> None:
    assert not recognises(text)


DECLARED = [
    "DECLARE TYPE Stock (name string, price float)",
    "DECLARE STREAM (time ts timestamp, tick 1 second)",
    "DECLARE CLASS G IS Stock WHERE name = 'PATTERN G' and price > 5 -- σ{x}(y)",
    "DECLARE CLASS H IS ANY(SHELF-READING, Stock) WHERE x in (1, 2) or not y.last is null",
    "DECLARE CLASS I IS SHELF-READING",
    "DECLARE CLASS J IS Stock WHERE price > 5 min /* DECLARE */",
]


@pytest.mark.parametrize("query", ["PATTERN A a ; B b", "σ{x > 1}(A)", "A a ; B", "(A ∪ B) ; C", "fold{x > 1}(A, B)"])
def test_declarations_stand_before_any_spelling(query: str) -> None:
    for declared in (*DECLARED, "\n".join(DECLARED), "-- nothing\n"):
        # A comment to the end of the line would swallow the query.
        text = f"{declared}\n{query}"
        assert text[query_start(text) :] == query
        assert recognises(text) == (not query.startswith("PATTERN"))
    whole = "\n".join(DECLARED) + "\n" + query
    if query.startswith("PATTERN"):
        assert len(main_spelling.parse(whole).declarations) == len(DECLARED)
    else:
        parsed = cesar_spelling.parse(whole)
        assert len(parsed.declarations) == len(DECLARED)
        assert whole[parsed.span.start : parsed.span.end] in query

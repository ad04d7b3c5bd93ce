"""Usual mistakes in expressions of streams: the error stands at the right place and says what to write."""

from __future__ import annotations

import pytest

from kleene.errors import QueryError
from kleene.lang import parse
from kleene.queries.any_query import read_query

# A text, what the caret covers, and what the hint says.
MISTAKES = [
    # Braces
    ("σ{price > 1(S)", "(", "is a `}` missing before it? `σ{price > 1}(S)`"),
    ("A ;{A.x = B.x B", "B", "is a `}` missing before it? `;{A.x = B.x} B`"),
    ("A ;{A.x = B.x", "{", "write `}` where it ends: `;{A.x = B.x} B`"),
    ("σ{price > 1", "{", "write `}` where it ends: `σ{price > 5}(S)`"),
    ("(A ; B", "(", "write `)` where it ends"),
    ("A ; B)", ")", "nothing is open that `)` could close"),
    ("A ; B } C", "}", "nothing is open that `}` could close"),
    ("σ(price > 1)(S)", "(", "what σ tests stands in braces: `σ{price > 1}(S)`"),
    ("σ[price > 1](S)", "[", "what σ tests stands in braces: `σ{price > 1}(S)`"),
    ("σ_θ(S)", "(", "what σ tests stands in braces: `σ{θ}(S)`"),
    ("select price > 1 (S)", ">", "what σ tests stands in braces: `select{price > 1}(S)`"),
    ("project(name, price)(S)", "(", "what π keeps stands in braces: `project{name, price}(S)`"),
    ("π name, price (S)", ",", "what π keeps stands in braces: `π{name, price}(S)`"),
    ("A ; σ(price > 1)(S)", "(", "what σ tests stands in braces: `σ{price > 1}(S)`"),
    ("A ;(A.x = B.x) B", ".", "the condition of `;` stands in braces: `A ;{A.x = B.x} B`"),
    ("A next(A.x = B.x) B", ".", "the condition of `;` stands in braces"),
    ("A ;[A.x = B.x] B", "[", "the condition of `;` stands in braces"),
    ("A ;_θ B", ";", "the condition of `;` stands in braces"),
    # In braces
    ("π{}(S)", "}", "name at least one attribute: `π{name, price}(S)`"),
    ("π{*}(S)", "*", "without π every attribute is kept"),
    ("π{price + 1}(S)", "+", "compute them before: `π{n} ∘ α{n ↦ price + 1}(S)`"),
    ("π{avg(price)}(S)", "(", "compute them before"),
    ("σ{}(S)", "}", "a condition stands in the braces; without one it is the stream itself"),
    ("A ;{} B", "}", "a condition stands in the braces; `A ; B` has no condition"),
    ("σ{x > 1, y < 2}(S)", ",", "join conditions with AND"),
    ("σ{x > 1 && y < 2}(S)", "&&", "write AND"),
    ("σ{x > 1 || y < 2}(S)", "||", "write OR"),
    ("σ{(x > 1 || y < 2) AND z = 1}(S)", "||", "write OR"),
    ("A ;{(A.x = 1 & B.x = 1)} B", "&", "write AND"),
    ("σ{name LIKE 'x'}(S)", "LIKE", "write CONTAINS for a part of a text"),
    ("ρ{price, old}(S)", ",", "write `↦`, or `->`: `ρ{price ↦ old}(S)`"),
    ("ρ{price => old}(S)", "=>", "write `↦`, or `->`"),
    ("ρ{price as old}(S)", "as", "write `↦`, or `->`"),
    ("ρ{price ↦ S.old}(S)", ".", "a new name belongs to no stream: `ρ{S1.price ↦ old}`"),
    ("ρ{(name, price) ↦ old}(S)", "old", "as many new names stand in parentheses"),
    ("α{n = n + 1}(S)", "=", "write `↦`, or `->`: `α{n ↦ n + 1}(S)`"),
    ("α{n := n + 1}(S)", ":=", "write `↦`, or `->`"),
    ("α{n + 1}(S)", "+", "α names what it assigns: `α{n ↦ n + 1}`"),
    ("α{n ↦ }(S)", "}", "a value stands behind `↦`"),
    ("α{n ↦ x > 5}(S)", ">", "α assigns values, and this is a condition"),
    ("μ{}(A, B)", "}", "a fold has a step, a condition, or both"),
    ("μ{x > 5; σ{x > 1}}(A, B)", ";", "a fold has a step, a condition, or both: `μ{σ{…}, S1.id = S2.id}(S1, S2)`"),
    ("μ{init x = 5}(A, B)", "x", "a first value is written `init x ↦ y`"),
    ("μ{x > 5, init x}(A, B)", "x", "a first value is written `init x ↦ y`"),
    # Operations
    ("σ{x > 1} S", "S", "stands in parentheses: `σ{price > 5}(S)`"),
    ("σ{x > 1}", "}", "stands in parentheses: `σ{price > 5}(S)`"),
    ("σ{x > 1}()", ")", "expected a stream"),
    ("select {x > 1} from S", "from", "stands in parentheses"),
    ("σ{x > 1} π{x}(S)", "π", "join operations with `∘`, or `of`"),
    ("σ{x > 1}.π{x}(S)", ".", "join operations with `∘`, or `of`"),
    ("μ(S1)", ")", "μ has two streams, a comma between them"),
    ("μ{x > 5}(A ; B)", ")", "μ has two streams, a comma between them"),
    ("μ{σ{x > 1}}(A, B, C)", ",", "μ has two streams, a comma between them"),
    ("μ A, B", ",", "the streams of μ stand in parentheses"),
    ("filter{x > 1}(S)", "filter", "that is `σ{price > 5}(S)` here"),
    ("A ; map{n ↦ 1}(S)", "map", "that is `α{n ↦ n + 1}(S)` here"),
    ("σ{x > 1}(SEQ(A a, B b))", "SEQ", "a sequence of streams is written `A a ; B b`"),
    ("union(A, B)", "union", "a union is written `A ∪ B`, or `A union B`"),
    ("next(A, B)", "next", "a sequence of streams is written `A a ; B b`"),
    ("A ; delay(B)", "delay", "the operations are σ (select), π (project)"),
    # Between streams
    ("S1 ; ; S2", ";", "expected a stream"),
    ("; S2", ";", "expected a stream"),
    ("S1 ;", ";", "expected a stream"),
    ("A ∪∪ B", "∪", "expected a stream"),
    ("A U B", "U", "a union is written `A ∪ B`, or `A union B`"),
    ("(A | B)", "|", "a union is written `A ∪ B`"),
    ("A -> B", "->", "a sequence of streams is written `A a ; B b`"),
    ("C ; A a b", "b", "put `;` or `∪` between the streams"),
    ("σ{x > 1}(A), π{x}(B)", ",", "put `;` or `∪` between the streams"),
    ("A ; !B", "!", "streams have no negation; a pattern has"),
    ("A ; B? ; C", "?", "belong to patterns: `PATTERN …`"),
    ("(A & B)", "&", "belong to patterns"),
    ("(A - B)", "-", "the algebra has `∪`, `;` and μ"),
    ("A ; B WHERE A.x = B.x", "WHERE", "conditions stand in `σ{…}(…)`, or in `;{…}`"),
    ("A a ; B b WITHIN 10", "WITHIN", "`σ{DUR <= 10}(…)`"),
    ("A ; B INTO C", "INTO", "`publish S` makes a stream of the results"),
    ("A ; PATTERN B", "PATTERN", "`publish` lets one read the other"),
    ("A ; B publish", "h", "the name of the new stream stands behind `publish`"),
    ("A ; B publish 5", "5", "the name of the new stream stands behind it"),
    ("publish S A ; B", "A", "`publish S` stands at the end: `A ; B publish S`"),
]


@pytest.mark.parametrize(("text", "caret", "hint"), MISTAKES, ids=[text for text, *_ in MISTAKES])
def test_what_to_write_instead(text: str, caret: str, hint: str) -> None:
    for declared in ("", "DECLARE TYPE A (x int)\n"):
        with pytest.raises(QueryError) as caught:
            parse(declared + text)
        error = caught.value
        assert error.code == "KL101", error.render()
        assert error.span is not None
        assert (declared + text)[error.span.start : error.span.end] == caret, error.render()
        assert hint in str(error.hint), error.render()
        # The line is shown as it was written, also below declarations.
        assert f"| {text}\n" in error.render()


@pytest.mark.parametrize(
    "text",
    ["σ{price > 1(S)", "σ(price > 1)(S)", "select price > 1 (S)", "σ[price > 1](S)", "project(name, price)(S)"],
)
def test_the_hint_is_a_query(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    *_, written, _ = str(caught.value.hint).split("`")
    parse(written)


@pytest.mark.parametrize("text", ["SEQ(A a, B b)", "A a & B b", "A | B ; C", "A+ a[] ; B b", "!A ; B", "ANY(A, B) v"])
def test_a_pattern_without_its_first_word(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert caught.value.code == "KL107"
    assert caught.value.hint == f"a pattern begins with PATTERN: `PATTERN {text}`"


def test_control_characters_stay_out_of_hints() -> None:
    with pytest.raises(QueryError) as caught:
        parse("σ{x > 'a\x1b'(S)")
    assert "\x1b" not in str(caught.value.hint)


# A text, its code, what the caret covers, and what the hint says.
MISUSED = [
    ("σ{z.x > 1}(A a)", "KL202", "z", "known here: `a`"),
    ("σ{x.last.last > 1}(A ; A)", "KL422", "x.last", "`x.last` is one event back"),
    ("σ{last(x) > 1}(A ; A)", "KL409", "last(x)", "the value before the newest event is `x.last`"),
    ("σ{sum(x) > 1}(A)", "KL409", "sum(x)", "computed as it goes"),
    ("σ{a[1].x > 5}(A a)", "KL406", "a[1].x", "`a.x.last` that of the one before"),
    ("σ{a[i-1].x > 5}(A a)", "KL406", "a[i-1].x", "`a.x.last` that of the one before"),
    ("σ{x + 1}(A)", "KL302", "x + 1", "compare it with something"),
    ("μ{ID, x > 1, y > 1}(A, A)", "KL101", "y > 1", "`μ{step, condition, init x ↦ y}`"),
]


@pytest.mark.parametrize(("text", "code", "caret", "hint"), MISUSED, ids=[text for text, *_ in MISUSED])
def test_what_can_be_parsed_and_means_nothing(text: str, code: str, caret: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        read_query(text).bind(checking=True)
    error = caught.value
    assert error.code == code, error.render()
    assert error.span is not None
    assert text[error.span.start : error.span.end] == caret, error.render()
    assert hint in str(error.hint), error.render()

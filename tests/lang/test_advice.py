"""Habits of other languages: the error stands at the right place and says what to write."""

from __future__ import annotations

import pytest

from kleene.errors import QueryError
from kleene.lang import parse
from kleene.pattern import Query

# A query, what the caret covers, and what the hint says to write.
_READ = [
    ("PATTERN A A B", "B", "put `;` between the components: `A ; A ; B`"),
    ("PATTERN A a B b WITHIN 5", "B", "put `;` between the components: `A a ; B b`"),
    ("PATTERN A a !B b ; C c", "!", "put `;` between the components: `A a ; B b`"),
    ("PATTERN SEQ(A a B b)", "B", "put `,` between the components: `SEQ(A a, B b)`"),
    ("PATTERN A a, B b", ",", "a sequence is written `SEQ(A a, B b)` or `A a ; B b`"),
    ("PATTERN A a -> B b", "->", "a sequence is written `SEQ(A a, B b)` or `A a ; B b`"),
    ("PATTERN A a && B b", "&&", "in a pattern it is `&`, once"),
    ("PATTERN A a ; B b WHERE a.x = b.x && a.y > 3", "&&", "write AND"),
    ("PATTERN A a ; B b WHERE a.x = 1 & a.y > 3", "&", "write AND"),
    ("PATTERN A a ; B b WHERE a.x = 1 || a.y > 3", "||", "write OR"),
    ("PATTERN A a WHERE a.name LIKE '%x%'", "LIKE", "write CONTAINS for a part of a text, without wildcards"),
    ("PATTERN A a WHERE a.name not like 'x'", "like", "write CONTAINS for a part of a text, without wildcards"),
    (
        "PATTERN A a WHERE skip_till_next_match [card]",
        "skip_till_next_match [card]",
        "`skip_till_next_match { [card] }`",
    ),
    ("PATTERN A a WHERE skip_till_next_match [k, m] WITHIN 5", ",", "`skip_till_next_match { [k, m] }`"),
    ("PATTERN A a WHERE strict_contiguity(a) [k]", "[", "`strict_contiguity(a) { [k] }`"),
    ("PATTERN A a WHERE skip_till_any_match a.x > 1 WITHIN 5", "a", "`skip_till_any_match { a.x > 1 }`"),
    ("PATTERN A a WITHIN '10 minutes'", "'10 minutes'", "a length of time has no quotes: `WITHIN 10 minutes`"),
    ('PATTERN A a WITHIN "10"', '"10"', "a length of time has no quotes: `WITHIN 10`"),
    ("PATTERN A a OUTPUT ALL WITHIN 5", "WITHIN", "the clauses come in this order"),
]


@pytest.mark.parametrize(("text", "caret", "hint"), _READ)
def test_what_to_write_instead(text: str, caret: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    error = caught.value
    assert error.code == "KL101"
    assert error.span is not None
    assert text[error.span.start : error.span.end] == caret
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    "hint_of", ["PATTERN A A B", "PATTERN A a B b", "PATTERN A a WHERE skip_till_next_match [card]"]
)
def test_the_hint_is_a_query(hint_of: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(hint_of)
    written = str(caught.value.hint).split(": `")[1].rstrip("`")
    parse(f"PATTERN A a WHERE {written}" if "{" in written else f"PATTERN {written}")


def test_a_strategy_without_its_conditions() -> None:
    with pytest.raises(QueryError, match=r"a strategy is followed by its conditions") as caught:
        Query("PATTERN A a ; B b WHERE skip_till_next_match(a, b)").bind()
    assert caught.value.code == "KL101"
    assert caught.value.hint == "`skip_till_next_match(…) { … }`"


def test_control_characters_of_a_query_stay_out_of_its_hint() -> None:
    with pytest.raises(QueryError) as caught:
        parse("PATTERN A a WHERE skip_till_next_match(a) [\x1b]")
    assert "\x1b" not in str(caught.value.hint)


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("(C c)?", "C? c"),
        ("((C c))?", "C? c"),
        ("(C)?", "C?"),
        ("(ANY(C, D) c)?", "ANY(C, D)? c"),
        ("(C? c)?", "C? c"),
        ("(C+ c[])?", "C* c[]"),
    ],
)
def test_parentheses_around_one_optional_component(written: str, means: str) -> None:
    assert parse(f"PATTERN A a ; {written} ; B b") == parse(f"PATTERN A a ; {means} ; B b")

"""Usual mistakes in queries of EQL: the error stands at the right place and says what to write."""

from __future__ import annotations

import pytest

from kleene.errors import QueryError
from kleene.lang import parse

# A text, what the caret covers, and what the hint says.
MISTAKES = [
    # SELECT
    ("SELECT * ( t S1 ; t S2 ) WHERE S1.x = 1", "(", "the pattern stands behind FROM: `SELECT * FROM t S1"),
    ("SELECT * t S1 ; t S2", "t", "the pattern stands behind FROM"),
    ("SELECT * WHERE S1.x = 1", "WHERE", "the pattern stands behind FROM"),
    ("SELECT * FORM t S1", "FORM", "the pattern stands behind FROM"),
    ("SELECT *", "*", "the pattern stands behind FROM"),
    ("SELECT FROM t S1", "FROM", "name what is selected: `SELECT *`, or `SELECT S1.acc, S2.amount AS large`"),
    ("SELECT FROM ( t S1 ; t S2 )", "FROM", "name what is selected"),
    ("SELECT S1.x, FROM t S1", ",", "leave out the comma before FROM"),
    ("SELECT S1.x, , S1.y FROM t S1", ",", "name what is selected"),
    ("SELECT *, S1.x FROM t S1", ",", "`*` is every field, and stands alone"),
    ("SELECT S1.* FROM t S1", "*", "name what is selected"),
    ("SELECT S1.x y FROM t S1", "y", "a name of its own stands behind AS: `S1.amount AS small`"),
    ("SELECT S1.x AS FROM t S1", "AS", "a name stands behind AS"),
    ("SELECT DISTINCT S1.x FROM t S1", "DISTINCT", "there is no DISTINCT"),
    ("SELECT (S1.x FROM t S1", "FROM", "is a `)` missing before it?"),
    ("SELECT 20% FROM t S1", "%", "before FROM a percentage stands in parentheses: `(20%)`"),
    ("SELECT S1.x INTO S FROM t S1", "INTO", "INTO stands at the end"),
    ("SELECT * FROM t S1 INTO S", "INTO S", "name the fields that the stream has: `SELECT S1.acc, L.amount AS large"),
    ("SELECT FILTER(S1.x = 1) FROM t S1", "FILTER(S1.x = 1)", "FILTER(…) stands between commas in WHERE"),
    # FROM
    ("SELECT * FROM", "FROM", "the pattern stands behind FROM"),
    ("SELECT * FROM WHERE S1.x = 1", "FROM", "the pattern stands behind FROM"),
    ("SELECT * FROM INTO S", "INTO", "the pattern stands behind FROM"),
    ("SELECT * FROM ; t S1", ";", "an event source stands here"),
    ("SELECT * FROM t S1 ; ; t S2", ";", "an event source stands here"),
    ("SELECT * FROM t S1 ;", ";", "an event source stands behind it"),
    ("SELECT * FROM (t S1 ; )", ")", "an event source stands here"),
    ("SELECT * FROM 't' S1", "'t'", "an event source stands here"),
    ("SELECT * FROM t S1, t S2", ",", "put `;` between the events"),
    ("SELECT * FROM t S1 t S2", "t", "put `;` or `|` between the events"),
    ("SELECT * FROM (t S1) (t S2)", "(", "put `;` or `|` between the events"),
    ("SELECT * FROM t+ T1 ; t T2", "+", "`+` stands behind the alias: `t T1+`"),
    ("SELECT * FROM t S1* ; t S2", "*", "one or more is written `t S1+`"),
    ("SELECT * FROM t S1? ; t S2", "?", "one or more is written `t S1+`"),
    ("SELECT * FROM t S1{2} ; t S2", "{", "one or more is written `t S1+`"),
    ("SELECT * FROM SEQ(t S1, t S2)", "SEQ", "are written `t S1 ; t S2`"),
    ("SELECT * FROM t S1 -> t S2", "->", "are written `t S1 ; t S2`"),
    ("SELECT * FROM t S1 → t S2", "→", "are written `t S1 ; t S2`"),
    ("SELECT * FROM t S1 THEN t S2", "THEN", "are written `t S1 ; t S2`"),
    ("SELECT * FROM t S1 ; !t S2 ; t S3", "!", r"stands behind `\`: `(t S1 ; t S2) \ t X`"),
    ("SELECT * FROM t S1 ; NOT t S2 ; t S3", "NOT", r"stands behind `\`"),
    ("SELECT * FROM NOT t WHERE x = 1", "NOT", r"stands behind `\`"),
    ("SELECT * FROM t S1 - t S2", "-", r"stands behind `\`"),
    ("SELECT * FROM t S1 EXCEPT t S2", "EXCEPT", r"stands behind `\`"),
    ("SELECT * FROM t S1 & t S2", "&", "either order is `(t A ; t B) | (t B ; t A)`"),
    ("SELECT * FROM t S1 AND t S2", "AND", "either order is"),
    ("SELECT * FROM t S1 OR t S2", "OR", "one or the other is written `t S1 | t S2`"),
    ("SELECT * FROM t S1 || t S2", "||", "one or the other is written `t S1 | t S2`"),
    ("SELECT * FROM t S1 ∪ t S2", "∪", "one or the other is written `t S1 | t S2`"),
    ("SELECT * FROM t AS S1 ; t S2", "AS", "an alias stands behind its source: `t S1`"),
    ("SELECT * FROM t S1 ; t S2 S1.acc = S2.acc", "S1", "conditions stand in WHERE"),
    ("SELECT * FROM t S1.acc = 5", ".", "conditions stand in WHERE"),
    ("SELECT * FROM t S1[acc = 5] ; t S2", "[", "conditions stand in WHERE"),
    ("SELECT * FROM (SELECT * FROM t A)", "SELECT", "`SELECT … INTO Pairs` there, `FROM Pairs P` here"),
    ("SELECT * FROM t S1 @ 5 min", "@", "has `.after('5 min')`; `(S1, L) OCCURS WITHIN 5 min` bounds a run"),
    # Parentheses
    ("SELECT * FROM (t S1 ; t S2 WHERE S1.x = 5", "WHERE", "is a `)` missing before it?"),
    ("SELECT * FROM (t S1 ; t S2", "(", "write `)` where it ends"),
    ("SELECT * FROM t S1 ; t S2) WHERE S1.x = 5", ")", "nothing is open that `)` could close"),
    ("SELECT * FROM t S1 WHERE FILTER(S1.x = 1", "(", "write `)` where it ends"),
    ("SELECT * FROM t S1 WHERE S1.x = 1)", ")", "nothing is open that `)` could close"),
    # Lengths of time
    ("SELECT * FROM t A ; t B+ WITHIN 5 min", "WITHIN", "a condition in WHERE: `(A, B) OCCURS WITHIN 5 min`"),
    ("SELECT * FROM (t A ; t B) WITHIN 5", "WITHIN", "`(A, B) OCCURS WITHIN 5`"),
    ("SELECT * FROM t A ; t B WHERE A.x = B.x WITHIN 2 hours", "WITHIN", "`(A, B) OCCURS WITHIN 2 hours`"),
    ("SELECT * FROM t A ; t B WHERE A.x < 100 WITHIN 2 hours", "WITHIN", "`(A, B) OCCURS WITHIN 2 hours`"),
    ("SELECT * FROM t A WHERE (A, B) WITHIN 5", "WITHIN", "write OCCURS WITHIN"),
    ("SELECT * FROM t A WHERE (A, B) OCCURS 5", "5", "write OCCURS WITHIN"),
    ("SELECT * FROM t A WHERE A, B OCCURS WITHIN 5", "OCCURS", "name two events or more in parentheses"),
    ("SELECT * FROM t A WHERE (A) OCCURS WITHIN 5", "OCCURS", "name two events or more in parentheses"),
    ("SELECT * FROM t A WHERE (A; B) OCCURS WITHIN 5", ";", "name two events or more in parentheses"),
    ("SELECT * FROM t A WHERE (A.x, B.x) OCCURS WITHIN 5", ",", "name two events or more in parentheses"),
    ("SELECT * FROM t A WHERE (A, B.x) OCCURS WITHIN 5", ".", "name two events or more in parentheses"),
    ("SELECT * FROM t A WHERE (A, B) = 5", "=", "name two events or more in parentheses"),
    ("SELECT * FROM t A WHERE (A, B)", ")", "name two events or more in parentheses"),
    ("SELECT * FROM t A WHERE (A, B) OCCURS WITHIN", "WITHIN", "a length of time stands behind WITHIN"),
    ("SELECT * FROM t A WHERE (A, B) OCCURS WITHIN A.x", "A", "a length of time stands behind WITHIN"),
    ("SELECT * FROM t A WHERE (A, B) OCCURS WITHIN '5 min'", "'5 min'", "has no quotes: `5 min`"),
    # WHERE
    ("SELECT * FROM t A WHERE", "WHERE", "conditions stand behind it"),
    ("SELECT A.x FROM t A WHERE INTO S", "WHERE", "conditions stand behind it"),
    ("SELECT * FROM t A WHERE A.x = 1; A.y = 2", ";", "separated by commas, or by AND; `;` stands between events"),
    ("SELECT * FROM t A WHERE A.x = 1 A.y = 2", "A", "separated by commas, or by AND"),
    ("SELECT * FROM t A WHERE A.x = A.z A.y = 2", "A", "separated by commas, or by AND"),
    ("SELECT * FROM t A WHERE FILTER(A.x = 1) A.y = 2", "A", "separated by commas, or by AND"),
    ("SELECT * FROM t A WHERE A.x = 1,", ",", "something stands behind a comma"),
    ("SELECT * FROM t A WHERE A.x = 1, INTO S", ",", "leave out the comma before INTO"),
    ("SELECT * FROM t A WHERE A.x = 1, , A.y = 2", ",", "a condition stands before each comma"),
    ("SELECT * FROM t A WHERE A.x = 1 && A.y = 2", "&&", "write AND"),
    ("SELECT * FROM t A WHERE A.x = 1 || A.y = 2", "||", "write OR"),
    ("SELECT * FROM t A WHERE A.x LIKE 'x'", "LIKE", "write CONTAINS"),
    ("SELECT * FROM t A WHERE FILTER A.x = 1", "A", "stands in parentheses: `FILTER(S1.acc = S2.acc)`"),
    ("SELECT * FROM t A WHERE FILTER{A.x = 1}", "{", "stands in parentheses: `FILTER(S1.acc = S2.acc)`"),
    ("SELECT * FROM t A WHERE FILTER()", ")", "a condition stands in FILTER"),
    ("SELECT * FROM t A WHERE FILTER(A.x = 1, A.y = 2)", "A.y = 2", "write `FILTER(p AND q)`, or two filters"),
    ("SELECT * FROM t A WHERE filter(A.x = 1) OR A.y = 2", "filter(A.x = 1)", "FILTER(…) stands between commas"),
    ("SELECT * FROM t A WHERE NOT FILTER(A.x = 1)", "FILTER(A.x = 1)", "FILTER(…) stands between commas"),
    ("SELECT * FROM t A WHERE FILTER(FILTER(A.x = 1))", "FILTER(A.x = 1)", "FILTER(…) stands between commas"),
    # Clauses
    ("SELECT A.x FROM t A INTO", "INTO", "the name of the new stream stands behind it: `INTO Alerts`"),
    ("SELECT A.x FROM t A INTO 5", "5", "the name of the new stream stands behind it"),
    ("SELECT A.x FROM t A INTO S WHERE A.x = 1", "WHERE", "INTO stands at the end"),
    ("SELECT A.x FROM t A FROM t B", "FROM", "SELECT, FROM, WHERE, INTO, in this order, once each"),
    ("SELECT A.x FROM t A WHERE A.x = 1 WHERE A.y = 1", "WHERE", "SELECT, FROM, WHERE, INTO, in this order, once each"),
    ("SELECT A.x FROM t A GROUP BY A.x", "GROUP", "a query has SELECT, FROM, WHERE and INTO, and no GROUP"),
    ("SELECT A.x FROM t A WHERE A.x = 1 ORDER BY A.x", "ORDER", "and no ORDER"),
    ("SELECT A.x FROM t A JOIN t B ON A.x = B.x", "JOIN", "and no JOIN"),
    ("SELECT * FROM t A RETURN A.x", "RETURN", "what is returned stands behind SELECT"),
    ("SELECT * FROM t A WHERE A.x = A.y RETURN A.x", "RETURN", "what is returned stands behind SELECT"),
    ("SELECT * FROM t A /* x", "/*", "end it with `*/`"),
    ("SELECT * FROM t A WHERE A.x = 'y", "'", "write the quote again at its end"),
]

# What stands behind FROM, the code, the column of the caret, and what the hint says.
CODED = [
    (r"t A ; t B \ t C", "KL426", 16, r"write `t A ; (t B \ t C)` or `(t A ; t B) \ t C`"),
    (r"t A | t B \ t C", "KL426", 16, r"write `t A | (t B \ t C)` or `(t A | t B) \ t C`"),
    (r"t A \ t B ; t C", "KL426", 10, r"write `(t A \ t B) ; t C` or `t A \ (t B ; t C)`"),
    (r"t A | t B \ t C ; t D", "KL426", 16, r"write `t A | (t B \ t C) ; t D` or `(t A | t B) \ (t C ; t D)`"),
    (r"t A | t B \ t C | t D", "KL426", 16, r"write `t A | (t B \ t C) | t D` or `(t A | t B) \ (t C | t D)`"),
    (r"t A \ t B \ t C", "KL426", 16, r"write `(t A \ t B) \ t C` or `t A \ (t B \ t C)`"),
    (r"t X ; (t A ; t B+ \ t C)", "KL426", 24, r"write `t A ; (t B+ \ t C)` or `(t A ; t B+) \ t C`"),
    (
        r"CreditCardTransactions First ; CreditCardTransactions Second \ Closed",
        "KL426",
        67,
        r"write `A ; (B \ C)`, or `(A ; B) \ C`",
    ),
    ("t A WHERE (A, B) OCCURS WITHIN -5 min", "KL102", 37, "leave out the sign: `5 minutes`"),
    ("t A WHERE (A, B) OCCURS WITHIN 5 mints", "KL102", 39, "did you mean `min"),
]


@pytest.mark.parametrize(("text", "caret", "hint"), MISTAKES, ids=[text for text, *_ in MISTAKES])
def test_what_to_write_instead(text: str, caret: str, hint: str) -> None:
    for declared in ("", "DECLARE TYPE t (x int)\n"):
        with pytest.raises(QueryError) as caught:
            parse(declared + text)
        error = caught.value
        assert error.code == "KL101", error.render()
        assert error.span is not None
        assert (declared + text)[error.span.start : error.span.end] == caret, error.render()
        assert hint in str(error.hint), error.render()
        # The line is shown as it was written, also below declarations.
        assert f"| {text}\n" in error.render()


@pytest.mark.parametrize(("pattern", "code", "column", "hint"), CODED, ids=[text for text, *_ in CODED])
def test_errors_with_codes_of_their_own(pattern: str, code: str, column: int, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(f"SELECT *\nFROM {pattern}")
    error = caught.value
    assert (error.code, error.line) == (code, 2)
    assert error.column == column, error.render()
    assert hint in str(error.hint), error.render()


@pytest.mark.parametrize("pattern", [text for text, code, *_ in CODED if code == "KL426"])
def test_both_readings_can_be_written(pattern: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(f"SELECT * FROM {pattern}")
    _, first, _, second, *_ = str(caught.value.hint).split("`")
    assert parse(f"SELECT * FROM {first}") != parse(f"SELECT * FROM {second}")


def test_delays_are_not_negative() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT * FROM t A @ -5 min", "next")
    assert (caught.value.code, caught.value.column) == ("KL102", 21)


def test_select_without_from() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT S1.acc")
    assert caught.value.code == "KL107"
    assert "`SELECT * FROM t S1 ; t S2 WHERE …`" in str(caught.value.hint)


def test_a_sign_of_the_builder_is_not_advertised() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT * FROM t 5")
    assert "expected INTO, WHERE, `;`" in str(caught.value.hint)
    assert "@" not in str(caught.value.hint)


@pytest.mark.parametrize("text", ["`not`", "t `as`", "`where` `within`", "t A | `seq` `or`", "`into` B"])
def test_quoted_words_are_names(text: str) -> None:
    parse(f"SELECT * FROM {text}")

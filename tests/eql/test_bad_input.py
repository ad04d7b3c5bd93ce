"""Wrong queries in EQL as a user meets them: one error, with its code, a caret under the whole place, and a hint."""

from __future__ import annotations

import pytest

import kleene
from kleene.errors import KleeneError, QueryWarning

EVENTS = [
    {"type": kind, "ts": ts, "x": ts, "k": 1, "s": "s"} for ts, kind in enumerate(["X", "A", "B", "C", "D"])
]  # fmt: skip

BAD = [
    (r"A a ; B b \ C c", "KL426", "\\", r"write `A a ; (B b \ C c)` or `(A a ; B b) \ C c`"),
    (r"A a | B b \ C c", "KL426", "\\", r"write `A a | (B b \ C c)` or `(A a | B b) \ C c`"),
    ("A a+ WHERE a.x > 1", "KL408", "a.x", "`PREV(a.x)` is that of the last one before"),
    ("A a ; B a", "KL205", "a", "give each place its own name"),
    ("A ; A", "KL205", "A", "give each an alias: `A T1`"),
    ("A a ; B b WHERE c.x > 1", "KL202", "c", "known here: `a`, `b`"),
    ("A a ; B b WHERE (a, c) OCCURS WITHIN 5", "KL202", "c", "known here: `a`, `b`"),
    ("A a ; B b WHERE (a, b) OCCURS WITHIN -5", "KL102", "-5", "leave out the sign: `5`"),
    ("A a+ ; B b WHERE NOT ALL(a.x) > b.x", "KL407", "NOT ALL(a.x) > b.x", "invert the comparison itself"),
    ("A a+ ; B b+ WHERE ALL(a.x) > ALL(b.x)", "KL407", "ALL(a.x) > ALL(b.x)", "compare each with one value"),
    ("A a ; B b WHERE sum(a.x) > 1", "KL409", "sum(a.x)", "PREV(T.x) and ALL(T.x)"),
    (r"(A a \ C c) ; B b WHERE c.k = b.k", "KL427", "c.k = b.k", "name an alias that stands before it"),
    (r"X x ; ((A a ; B b) \ C c) WHERE c.k = a.k + x.k", "KL427", "c.k = a.k + x.k", "compare it with one of the two"),
    ("A a @ 5", "KL101", "@", "`(S1, L) OCCURS WITHIN 5 min` bounds a run"),
]


@pytest.mark.parametrize(("rest", "code", "caret", "hint"), BAD, ids=[rest for rest, *_ in BAD])
def test_one_error_with_its_place(rest: str, code: str, caret: str, hint: str) -> None:
    text = f"SELECT * FROM {rest}"
    with pytest.raises(KleeneError) as caught:
        kleene.match(EVENTS, text)
    _check(caught.value, text, code, caret)
    assert hint in str(caught.value.hint), caught.value.render()


def test_contains_of_a_number() -> None:
    text = "SELECT * FROM A a WHERE a.x CONTAINS '1'"
    with pytest.raises(KleeneError) as caught:
        kleene.match(EVENTS, text)
    _check(caught.value, text, "KL301", "a.x")


WARNED = [
    ("SELECT a.x, b.k FROM A a ; (B b | C c)", "b.k", "`b` by itself shows whether it is there"),
    ("SELECT * FROM A a ; (B b | C c) WHERE a.k = b.k", "a.k = b.k", "write a query for each branch"),
    ("SELECT * FROM A a ; (B b | C c) WHERE FILTER(a.k = b.k)", "a.k = b.k", "write a query for each branch"),
]


@pytest.mark.parametrize(("text", "caret", "hint"), WARNED, ids=[text for text, *_ in WARNED])
def test_one_warning_of_an_absent_branch(text: str, caret: str, hint: str) -> None:
    (warning,) = kleene.query(text).bind().warnings
    _check(warning, text, "KL907", caret)
    assert hint in str(warning.hint), warning.render()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b FROM A a | B b",
        "SELECT * FROM A a ; (B b | C c) WHERE b.x > 1",
        "SELECT * FROM A a ; ((B b ; C c) | D d) WHERE FILTER(b.k = c.k)",
    ],
)
def test_what_lies_in_one_branch_alone_is_no_warning(text: str) -> None:
    assert kleene.query(text).bind().warnings == ()


def _check(problem: KleeneError | QueryWarning, text: str, code: str, caret: str) -> None:
    assert problem.code == code, problem.render()
    assert problem.span is not None
    assert text[problem.span.start : problem.span.end] == caret, problem.render()

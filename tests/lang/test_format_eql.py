"""Queries of EQL, printed: parsed again they are the same, on one line or laid out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lang.test_format import expressions, quantities
from tests.soaking import SOAKING

from kleene.lang import eql_tree as eql
from kleene.lang import format_query, parse, tree
from kleene.lang.format_eql import WIDTH, format_eql_query

WIDTHS = (None, WIDTH, 40, 1)


def _eql(text: str, spelling: str = "eql") -> eql.EqlQuery:
    parsed = parse(text, spelling)
    assert isinstance(parsed, eql.EqlQuery)
    return parsed


# Written, printed on one line, and printed in 60 columns.
PRINTED = [
    (
        "select * from ( t S1 ; t S2 ; t L ) where filter(S1.acc = S2.acc and S2.acc = L.acc),"
        "S1.amount < 100 and L.amount > 250 and (S1,L) occurs within 1 hour",
        "SELECT * FROM t S1 ; t S2 ; t L WHERE FILTER(S1.acc = S2.acc), FILTER(S2.acc = L.acc),"
        " S1.amount < 100, L.amount > 250, (S1, L) OCCURS WITHIN 1 hour",
        "SELECT * FROM t S1 ; t S2 ; t L\n"
        "WHERE FILTER(S1.acc = S2.acc), FILTER(S2.acc = L.acc),\n"
        "      S1.amount < 100, L.amount > 250,\n"
        "      (S1, L) OCCURS WITHIN 1 hour",
    ),
    (
        "SELECT T1.acc, T2.amount * 2 AS twice FROM t T1+; t T2 INTO Alerts",
        "SELECT T1.acc, T2.amount * 2 AS twice FROM t T1+ ; t T2 INTO Alerts",
        "SELECT T1.acc, T2.amount * 2 AS twice FROM t T1+ ; t T2\nINTO Alerts",
    ),
    (
        "SELECT First.acc, Second.acc AS other, Second.amount AS large FROM Visa First ; Visa Second | Amex Second",
        "SELECT First.acc, Second.acc AS other, Second.amount AS large FROM Visa First ; Visa Second | Amex Second",
        "SELECT First.acc, Second.acc AS other,\n"
        "       Second.amount AS large\n"
        "FROM Visa First ; Visa Second | Amex Second",
    ),
    (
        r"SELECT * FROM ((Visa First;Visa Second)\Closed C)|(MasterCard A;(MasterCard B\(Closed C)))",
        r"SELECT * FROM ((Visa First ; Visa Second) \ Closed C) | (MasterCard A ; (MasterCard B \ Closed C))",
        "SELECT *\nFROM ((Visa First ; Visa Second) \\ Closed C)\n   | (MasterCard A ; (MasterCard B \\ Closed C))",
    ),
    (
        "SELECT * FROM t A WHERE A.x = 1, A.note CONTAINS 'a long text to find' OR A.note CONTAINS 'another', A.y = 2",
        "SELECT * FROM t A WHERE A.x = 1, A.note CONTAINS 'a long text to find' OR A.note CONTAINS 'another', A.y = 2",
        "SELECT * FROM t A\n"
        "WHERE A.x = 1,\n"
        "      A.note CONTAINS 'a long text to find'\n"
        "      OR A.note CONTAINS 'another',\n"
        "      A.y = 2",
    ),
    (
        "DECLARE SOURCE t (x int) SELECT (20%), (20%) FROM t",
        "DECLARE SOURCE t (x int)\nSELECT 20%, (20%) FROM t",
        "DECLARE SOURCE t (x int)\nSELECT 20%, (20%) FROM t",
    ),
]


@pytest.mark.parametrize(("written", "line", "laid_out"), PRINTED, ids=[written for written, *_ in PRINTED])
def test_on_one_line_and_laid_out(written: str, line: str, laid_out: str) -> None:
    parsed = _eql(written)
    assert format_eql_query(parsed, None) == line
    assert format_eql_query(parsed, 60) == laid_out
    assert _eql(line) == _eql(laid_out) == parsed


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("(((t A) ; (t B | (t C))))", "t A ; t B | t C"),
        ("(t A ; t B) | t C", "(t A ; t B) | t C"),
        ("((t A)+)", "t A+"),
        ("(t A | t B)+", "(t A | t B)+"),
        ("((t A+)+)", "t A++"),
        (r"((t A) \ (t B))", r"t A \ t B"),
        (r"((t A \ t B)+)", r"(t A \ t B)+"),
        (r"(t A | t B) \ (t C ; t D)", r"(t A | t B) \ (t C ; t D)"),
        (r"t A ; (t B \ (t C))", r"t A ; (t B \ t C)"),
        ("t A+ @ 90 min", "t A+ @ 90 minutes"),
        ("t A @ 90 min + ; t B", "(t A @ 90 minutes)+ ; t B"),
        (r"t A \ t B @ :wait hours", r"t A \ t B @ :wait hours"),
        ("(t A | t B) @ 5", "(t A | t B) @ 5"),
    ],
)
def test_parentheses_stand_only_where_they_are_needed(written: str, printed: str) -> None:
    parsed = _eql(f"SELECT * FROM {written}", "next")
    assert format_query(parsed) == f"SELECT * FROM {printed}"
    assert _eql(f"SELECT * FROM {printed}", "next") == parsed


# Any tree that the parser could build: chains in chains and unions in unions are none, nor is AND a condition.
words = st.sampled_from(
    ["a", "S1", "price", "select", "from", "into", "where", "as", "occurs", "within", "filter", "x y", "m²"]
)
types = st.sampled_from(["t", "CARD-USE", "from", "select", "seq", "not", "into", "x y", "m²"]).map(tree.TypeName)
durations = st.builds(tree.Duration, st.lists(quantities, min_size=1, max_size=2).map(tuple))
sources = st.builds(eql.EventSource, types, st.none() | words)


def _flat(
    node: type[eql.NextChain] | type[eql.EitherPattern], parts: list[eql.EventPattern]
) -> eql.NextChain | eql.EitherPattern:
    return node(tuple(each for part in parts for each in (part.parts if isinstance(part, node) else (part,))))


def grown(inner: st.SearchStrategy[eql.EventPattern]) -> st.SearchStrategy[eql.EventPattern]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda parts: _flat(eql.NextChain, parts)),
        several.map(lambda parts: _flat(eql.EitherPattern, parts)),
        st.builds(eql.Iterated, inner),
        st.builds(eql.Excepted, inner, inner),
        st.builds(eql.Delayed, inner, durations),
    )


patterns = st.recursive(sources, grown, max_leaves=6)
lengths = st.builds(
    tree.OccursWithin, st.lists(st.builds(tree.Name, words), min_size=2, max_size=3).map(tuple), durations
)
conditions = st.one_of(
    expressions,
    lengths,
    st.builds(tree.Not, lengths),
    st.builds(lambda left, right: tree.Or((left, right)), lengths, st.builds(tree.Name, words)),
    st.builds(tree.Comparison, st.just("="), lengths, lengths),
    st.builds(
        tree.Call, st.sampled_from(["PREV", "ALL"]), st.tuples(st.builds(tree.Attribute, words, st.none(), words))
    ),
).filter(lambda condition: not isinstance(condition, tree.And))
selections = st.none() | st.builds(
    tree.Return,
    st.lists(st.builds(tree.ReturnItem, expressions | lengths, st.none() | words), min_size=1, max_size=3).map(tuple),
    st.none() | st.sampled_from(["S", "from", "x y"]),
)
queries = st.builds(
    eql.EqlQuery,
    patterns,
    st.lists(st.builds(eql.Qualification, conditions, st.booleans()), max_size=3).map(tuple),
    selections,
)


@pytest.mark.slow
@settings(max_examples=1_000 if SOAKING else 250, deadline=None)
@given(queries, st.sampled_from(WIDTHS))
def test_random_trees_survive_printing(query: eql.EqlQuery, width: int | None) -> None:
    printed = format_eql_query(query, width)
    assert _eql(printed, "next") == query
    assert format_eql_query(_eql(printed, "next"), width) == printed

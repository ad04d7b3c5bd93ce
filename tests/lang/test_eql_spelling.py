"""EQL's spelling: the queries that NEXT prints, what binds how tightly, and which brackets mean nothing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kleene.lang import eql_tree as eql
from kleene.lang import format_query, parse, recognise, tree
from kleene.lang.eql_spelling import recognises
from kleene.lang.statements import query_start

SMALL_SMALL_LARGE = """\
SELECT * FROM ( t S1 ; t S2 ; t L )
WHERE FILTER(S1.acc = S2.acc), FILTER(S2.acc = L.acc),
      S1.amount < 100 AND S2.amount < 100 AND
      L.amount > 250 AND (S1, L) OCCURS WITHIN 12 hours
"""
THREE_LARGE = """\
SELECT * FROM ( t T1; t T2; t T3 )
WHERE FILTER(T1.acc = T2.acc), FILTER(T2.acc = T3.acc),
      T1.amount > 1000 AND T2.amount > 1000
      AND T3.amount > 1000
"""
NEW_CURRENCY = """\
SELECT * FROM t T1+; t T2
WHERE ALL(T1.currency) <> T2.currency
"""


def _eql(text: str, spelling: str | None = None) -> eql.EqlQuery:
    parsed = parse(text, spelling)
    assert isinstance(parsed, eql.EqlQuery)
    return parsed


def _source(alias: str, kind: str = "t") -> eql.EventSource:
    return eql.EventSource(tree.TypeName(kind), alias)


def _pattern(text: str) -> eql.EventPattern:
    return _eql(f"SELECT * FROM {text}").pattern


def _conditions(text: str) -> tuple[eql.Qualification, ...]:
    return _eql(f"SELECT * FROM t S1 ; t S2 WHERE {text}").qualifications


def _compared(left: str, operator: str, right: str | int) -> tree.Comparison:
    def operand(written: str) -> tree.Attribute:
        name, attribute = written.split(".")
        return tree.Attribute(name, None, attribute)

    other = operand(right) if isinstance(right, str) else tree.Literal(right)
    return tree.Comparison(operator, operand(left), other)


def _hours(amount: int) -> tree.Duration:
    return tree.Duration((tree.Quantity(Fraction(amount), "hours"),))


# What the paper prints -----------------------------------------------------------------------------------------------


def test_two_small_amounts_and_a_large_one() -> None:
    assert _eql(SMALL_SMALL_LARGE) == eql.EqlQuery(
        eql.NextChain((_source("S1"), _source("S2"), _source("L"))),
        (
            eql.Qualification(_compared("S1.acc", "=", "S2.acc"), filters=True),
            eql.Qualification(_compared("S2.acc", "=", "L.acc"), filters=True),
            eql.Qualification(_compared("S1.amount", "<", 100)),
            eql.Qualification(_compared("S2.amount", "<", 100)),
            eql.Qualification(_compared("L.amount", ">", 250)),
            eql.Qualification(tree.OccursWithin((tree.Name("S1"), tree.Name("L")), _hours(12))),
        ),
    )


def test_three_large_amounts() -> None:
    assert _eql(THREE_LARGE) == eql.EqlQuery(
        eql.NextChain((_source("T1"), _source("T2"), _source("T3"))),
        (
            eql.Qualification(_compared("T1.acc", "=", "T2.acc"), filters=True),
            eql.Qualification(_compared("T2.acc", "=", "T3.acc"), filters=True),
            *(eql.Qualification(_compared(f"T{number}.amount", ">", 1000)) for number in (1, 2, 3)),
        ),
    )


def test_a_currency_unlike_all_before() -> None:
    earlier = tree.Call("ALL", (tree.Attribute("T1", None, "currency"),))
    assert _eql(NEW_CURRENCY) == eql.EqlQuery(
        eql.NextChain((eql.Iterated(_source("T1")), _source("T2"))),
        (eql.Qualification(tree.Comparison("!=", earlier, tree.Attribute("T2", None, "currency"))),),
    )


@pytest.mark.parametrize("text", [SMALL_SMALL_LARGE, THREE_LARGE, NEW_CURRENCY])
def test_they_survive_printing(text: str) -> None:
    printed = format_query(parse(text))
    assert parse(printed) == parse(text)
    assert format_query(parse(printed)) == printed


# Which texts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "select * from t",
        "SELECT x FROM (t A)",
        "/* all */ SELECT -- of it\n * FROM t A",
        "DECLARE TYPE t (x int) SELECT * FROM t",
        "DECLARE CLASS g IS t WHERE x > 5 SELECT * FROM g",
        "DECLARE CLASS g IS t WHERE x > 5 min AND active SELECT * FROM g",
        "DECLARE CLASS g IS CARD-USE SELECT * FROM g",
        "DECLARE CLASS g IS ANY(t, u) WHERE NOT x IN (1, 2) SELECT x FROM g",
    ],
)
def test_a_text_with_select_and_from_is_eql(text: str) -> None:
    assert recognise(text) == "eql"
    assert text[query_start(text) :].casefold().startswith("select")
    parse(text)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("select{x > 1}(S)", "cesar"),
        ("select {price > 5} (Stock from)", "cesar"),
        ("select_{x > 1}(S)", "cesar"),
        ("select x > 1 (S)", "cesar"),
        ("A select ; B from", "cesar"),
        ("PATTERN select from WHERE from.select = 1", "kleene"),
        ("SELECT 1", None),
        ("selected from", None),
    ],
)
def test_other_spellings_keep_their_texts(text: str, spelling: str | None) -> None:
    assert not recognises(text)
    assert recognise(text) == spelling


# Patterns ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("t A ; (t B ; t C)", "t A ; t B ; t C"),
        ("((t A ; t B) ; t C)", "t A ; t B ; t C"),
        ("t A | (t B | t C)", "t A | t B | t C"),
        ("(t A | t B) | t C", "t A | t B | t C"),
        ("t A | t B ; t C", "(t A | t B) ; t C"),
        ("t A ; t B | t C+", "t A ; (t B | (t C+))"),
        ("t T1 +", "(t T1)+"),
        ("(((t A)))", "t A"),
        (r"t A ; (t B \ t C)", r"(t A) ; ((t B) \ (t C))"),
        (r"(t A ; t B) \ (t C | t D)", r"(((t A ; t B)) \ (t C | t D))"),
        (r"t A+ \ t B", r"(t A)+ \ t B"),
        ("t A ∖ t B", r"t A \ t B"),
        ("`t` `A`", "t A"),
        ("t A /* ; t X */ ; -- the last\n t B", "t A;t B"),
    ],
)
def test_written_differently_meant_alike(written: str, meant: str) -> None:
    assert _pattern(written) == _pattern(meant)
    assert format_query(_eql(f"SELECT * FROM {written}")) == format_query(_eql(f"select * from {meant}"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("t A ; (t B ; t C)+", "t A ; t B ; t C+"),
        ("(t A | t B)+", "t A | t B+"),
        ("t A | (t B ; t C)", "t A | t B ; t C"),
        (r"(t A \ t B) \ t C", r"t A \ (t B \ t C)"),
        (r"t A ; (t B \ t C)", r"(t A ; t B) \ t C"),
        ("t A+", "(t A+)+"),
        ("t", "t t"),
    ],
)
def test_nearly_alike_is_not_alike(left: str, right: str) -> None:
    assert _pattern(left) != _pattern(right)


def test_trees_of_patterns() -> None:
    a, b, c = (_source(name) for name in "ABC")
    assert _pattern("t A ; t B | t C+") == eql.NextChain((a, eql.EitherPattern((b, eql.Iterated(c)))))
    assert _pattern("(t A ; t B)+") == eql.Iterated(eql.NextChain((a, b)))
    assert _pattern(r"(t A ; t B) \ t C") == eql.Excepted(eql.NextChain((a, b)), c)
    assert _pattern(r"t A \ (t B \ t C)") == eql.Excepted(a, eql.Excepted(b, c))
    assert _pattern("CARD-USE ; t").parts[0] == eql.EventSource(tree.TypeName("CARD-USE"))  # type: ignore[union-attr]


def test_places() -> None:
    text = (
        "DECLARE TYPE t (x int)\n"
        "SELECT S1.x AS y FROM ( t S1 ; t S2 )+ WHERE FILTER(S1.x = 1 AND S2.x = 2), S1.y INTO z"
    )
    query = _eql(text)
    assert isinstance(query.pattern, eql.Iterated)
    chain = query.pattern.operand
    assert isinstance(chain, eql.NextChain)
    assert isinstance(chain.parts[1], eql.EventSource)
    assert query.returns is not None

    def at(node: tree.Node) -> str:
        return text[node.span.start : node.span.end]

    assert at(query.pattern) == "( t S1 ; t S2 )+"
    assert at(chain) == "t S1 ; t S2"
    assert text[chain.parts[1].alias_span.start : chain.parts[1].alias_span.end] == "S2"
    assert [at(each) for each in query.qualifications] == ["S1.x = 1", "S2.x = 2", "S1.y"]
    assert at(query.returns) == "S1.x AS y"


# Conditions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("S1.x = 1 AND S2.x = 2", "S1.x = 1, S2.x = 2"),
        ("(S1.x = 1 and (S2.x = 2 AND S1.y = 3))", "S1.x = 1, S2.x = 2, S1.y = 3"),
        ("filter(S1.x = 1 AND S2.x = 2)", "FILTER(S1.x = 1), Filter (S2.x = 2)"),
        ("FILTER(S1.x = 1) AND S2.x = 2", "FILTER(S1.x = 1), S2.x = 2"),
        ("(FILTER((S1.x = 1)))", "FILTER(S1.x = 1)"),
        ("prev(S1.x) < S1.x", "PREV(S1.x) < S1.x"),
        ("(S1, S2) occurs within 10 msec", "( S1 , /* and */ `S2` ) OCCURS WITHIN 10 milliseconds"),
        ("(S1, S2) OCCURS WITHIN 1 min", "((S1, S2) OCCURS WITHIN 1 minute)"),
        ("(S1, S2) OCCURS WITHIN 5", "(S1, S2) OCCURS WITHIN 5 ticks"),
        ("S1.x <> 1", "S1.x ≠ 1"),
    ],
)
def test_conditions_written_differently(written: str, meant: str) -> None:
    assert _conditions(written) == _conditions(meant)


def test_conditions_that_stay_one() -> None:
    either = _conditions("S1.x = 1 AND S2.x = 2 OR S1.y = 3")
    assert len(either) == 1
    assert isinstance(either[0].condition, tree.Or)
    assert len(_conditions("NOT (S1.x = 1 AND S2.x = 2)")) == 1
    assert len(_conditions("S1.x BETWEEN 1 AND 2")) == 1


def test_a_length_of_time_may_stand_wherever_a_comparison_may() -> None:
    names = (tree.Name("S1"), tree.Name("S2"))
    within = tree.OccursWithin(names, _hours(12))
    text = "(S1, S2) OCCURS WITHIN 12 hours"
    assert _conditions(f"FILTER({text})") == (eql.Qualification(within, filters=True),)
    assert _conditions(f"NOT {text}") == (eql.Qualification(tree.Not(within)),)
    assert _conditions(f"{text} OR S1.x = 1") == (eql.Qualification(tree.Or((within, _compared("S1.x", "=", 1)))),)
    assert _conditions("(S1, S2, S3) OCCURS WITHIN :n hours 30 minutes") == (
        eql.Qualification(
            tree.OccursWithin(
                (*names, tree.Name("S3")),
                tree.Duration((tree.Quantity(tree.Parameter("n"), "hours"), tree.Quantity(Fraction(30), "minutes"))),
            )
        ),
    )


def test_parentheses_with_commas_elsewhere_are_no_names() -> None:
    (listed,) = _conditions("S1.x IN (a, b)")
    assert isinstance(listed.condition, tree.In)
    (called,) = _conditions("f(a, b) = (x)")
    assert called.condition == tree.Comparison("=", tree.Call("f", (tree.Name("a"), tree.Name("b"))), tree.Name("x"))


def test_words_of_the_language_may_be_names() -> None:
    query = _eql(
        "SELECT S1.from, select.where AS into FROM from S1 ; occurs select WHERE S1.filter = select.occurs INTO all"
    )
    assert _eql(format_query(query)) == query
    assert query.makes == ("all",)
    assert query.returns is not None
    assert [item.alias for item in query.returns.items] == [None, "into"]
    assert _conditions("filter = 1 AND occurs > within.prev")


# Results -------------------------------------------------------------------------------------------------------------


def test_what_is_selected() -> None:
    everything = _eql("SELECT * FROM t S1")
    assert everything.returns is None
    assert everything.makes == ()
    chosen = _eql("SELECT S1.acc, S1.amount * 2 AS twice FROM t S1 INTO CARD-ALERTS")
    assert chosen.returns == tree.Return(
        (
            tree.ReturnItem(tree.Attribute("S1", None, "acc")),
            tree.ReturnItem(tree.Arithmetic("*", tree.Attribute("S1", None, "amount"), tree.Literal(2)), "twice"),
        ),
        "CARD-ALERTS",
    )
    assert chosen.makes == ("CARD-ALERTS",)


# `@` -----------------------------------------------------------------------------------------------------------------


def test_delays_are_read_when_the_spelling_is_named() -> None:
    minutes = tree.Duration((tree.Quantity(Fraction(5), "minutes"),))
    a, b = _source("A"), _source("B")
    for text, pattern in [
        ("t A @ 5 min", eql.Delayed(a, minutes)),
        ("t A+ @ 5 min", eql.Delayed(eql.Iterated(a), minutes)),
        ("t A @ 5 min +", eql.Iterated(eql.Delayed(a, minutes))),
        (r"t A \ t B @ 5 min", eql.Excepted(a, eql.Delayed(b, minutes))),
        ("t A ; t B @ 5 min", eql.NextChain((a, eql.Delayed(b, minutes)))),
        ("(t A ; t B) @ 5 min", eql.Delayed(eql.NextChain((a, b)), minutes)),
    ]:
        query = _eql(f"SELECT * FROM {text} WHERE A.x = 1", "next")
        assert query.pattern == pattern
        assert _eql(format_query(query), "next") == query


def test_next_reads_what_eql_reads() -> None:
    for text in (SMALL_SMALL_LARGE, THREE_LARGE, NEW_CURRENCY, "DECLARE TYPE t (x int) SELECT * FROM t"):
        assert parse(text, "next") == parse(text, "eql")

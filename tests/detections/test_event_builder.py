"""Queries built in Python are those of EQL, and whatever takes a query takes them."""

from __future__ import annotations

from collections.abc import Callable
from operator import or_, rshift
from random import Random
from typing import Any

import pytest

import kleene
from kleene import EventExpression, SelectedEvents, events
from kleene.errors import QueryError
from kleene.lang import eql_tree as eql
from kleene.lang import parse
from kleene.lang.format import format_duration, format_expression, format_return_item
from kleene.testing.generators.detections import STRATA, random_detection_case

ROWS = [
    {"type": "t", "ts": ts, "acc": acc, "amount": amount}
    for ts, acc, amount in [(1, 7, 10), (2, 8, 20), (3, 7, 300), (4, 8, 5), (5, 7, 400)]
]
A, B, C = (events(name) for name in "ABC")
S1, S2, L = (events("t", alias) for alias in ("S1", "S2", "L"))
RISE = S1.then(L).filter("S1.acc = L.acc").where("S1.amount < 100", "L.amount > 250")

SAME = [
    (A, "SELECT * FROM A"),
    (S1, "SELECT * FROM t S1"),
    (events("unit price", "where"), "SELECT * FROM `unit price` `where`"),
    (events("SEQ", "ANY"), "SELECT * FROM `SEQ` `ANY`"),
    (A >> B >> C, "SELECT * FROM A ; B ; C"),
    (A >> (B >> C), "SELECT * FROM A ; B ; C"),
    (A.then(B, C), "SELECT * FROM A ; B ; C"),
    (A | (B | C), "SELECT * FROM A | B | C"),
    # Python's `>>` binds tighter than its `|`; EQL's `;` looser.
    (A >> B | C, "SELECT * FROM (A ; B) | C"),
    (A >> (B | C), "SELECT * FROM A ; B | C"),
    ((A >> B).repeated(), "SELECT * FROM (A ; B)+"),
    (A.unless(B), r"SELECT * FROM A \ B"),
    (A >> B.unless(C), r"SELECT * FROM A ; (B \ C)"),
    ((A >> B).unless(C | S1), r"SELECT * FROM (A ; B) \ (C | t S1)"),
    (A.unless(B).unless(C), r"SELECT * FROM (A \ B) \ C"),
    (A >> B.after("90 sec").unless(C), r"SELECT * FROM A ; (B @ 90 sec \ C)"),
    (A.after(5).after(":gap hours"), "SELECT * FROM (A @ 5) @ :gap hours"),
    (A.repeated().after("1 hour 30 min"), "SELECT * FROM A+ @ 1 hour 30 min"),
    (
        RISE,
        "SELECT * FROM t S1 ; t L WHERE FILTER(S1.acc = L.acc), S1.amount < 100, L.amount > 250",
    ),
    # Conditions belong to the query, in the order in which they come.
    (
        S1.where("S1.amount < 100") >> L.where("FILTER(L.acc = S1.acc), L.amount > 5 AND L.amount < 9"),
        "SELECT * FROM t S1 ; t L WHERE S1.amount < 100, FILTER(L.acc = S1.acc), L.amount > 5, L.amount < 9",
    ),
    (
        (S1 >> S2 >> L).occurs_within(("S1", "L"), "12 hours").occurs_within(["S2", "L"], 5),
        "SELECT * FROM t S1 ; t S2 ; t L WHERE (S1, L) OCCURS WITHIN 12 hours, (S2, L) OCCURS WITHIN 5",
    ),
    (
        RISE.select("S1.acc, L", "L.amount - 1 AS rest", large="L.amount").into("Large Ones"),
        "SELECT S1.acc, L, L.amount - 1 AS rest, L.amount AS large FROM t S1 ; t L"
        " WHERE FILTER(S1.acc = L.acc), S1.amount < 100, L.amount > 250 INTO `Large Ones`",
    ),
]


@pytest.mark.parametrize(("built", "text"), SAME, ids=[text for _, text in SAME])
def test_methods_and_text_say_the_same(built: EventExpression | SelectedEvents, text: str) -> None:
    assert built.query_tree == parse(text, "next")
    assert parse(str(built), "next") == built.query_tree
    assert built.query().tree == built.query_tree


@pytest.mark.parametrize("stratum", STRATA)
def test_any_query_can_be_built(stratum: str) -> None:
    """The queries of the random tests, taken apart and built again."""
    for seed in range(60):
        parsed = parse(random_detection_case(Random(seed), stratum).text, "next")
        assert isinstance(parsed, eql.EqlQuery)
        built: EventExpression | SelectedEvents = _built(parsed)
        if parsed.returns is not None:
            built = _built(parsed).select(*map(format_return_item, parsed.returns.items))
            if parsed.returns.into is not None:
                built = built.into(parsed.returns.into)
        assert built.query_tree == parsed


def _built(query: eql.EqlQuery) -> EventExpression:
    built = _pattern(query.pattern)
    for each in query.qualifications:
        text = format_expression(each.condition)
        built = built.filter(text) if each.filters else built.where(text)
    return built


def _pattern(node: eql.EventPattern) -> EventExpression:
    match node:
        case eql.EventSource(kind, alias):
            return events(kind.name, alias)
        case eql.NextChain(parts):
            first, *others = map(_pattern, parts)
            return first.then(*others)
        case eql.EitherPattern(parts):
            first, *others = map(_pattern, parts)
            return first.either(*others)
        case eql.Iterated(operand):
            return _pattern(operand).repeated()
        case eql.Excepted(operand, exception):
            return _pattern(operand).unless(_pattern(exception))
        case eql.Delayed(operand, delay):
            return _pattern(operand).after(format_duration(delay))


# Where queries are taken ---------------------------------------------------------------------------------------------


def test_whatever_takes_a_query_takes_an_expression() -> None:
    text = str(RISE)
    found = kleene.match(ROWS, RISE)
    assert [(row["S1"]["ts"], row["L"]["ts"]) for row in found] == [(1, 3)]
    assert found == kleene.match(ROWS, text)
    assert kleene.outputs(ROWS, RISE).matches == found
    assert kleene.explain(RISE).text == kleene.explain(text).text
    assert kleene.why(ROWS, RISE) == kleene.why(ROWS, text)
    assert kleene.query(RISE, name="rise").explain().text.split()[:2] == ["query", "rise"]
    assert RISE.query("rise").name == "rise"
    assert kleene.query(RISE).spelling == "next"


def test_the_time_operator_runs() -> None:
    found = kleene.match(ROWS, S1.after(2))
    assert [(row["S1"]["ts"], row["start"], row["end"]) for row in found] == [(ts, ts, ts + 2) for ts in range(1, 6)]
    # Within three ticks no other event of the same account: those of 7 are at 1, 3 and 5, those of 8 at 2 and 4.
    quiet = S1.after(3).unless(S2).where("S2.acc = S1.acc", "S2.ts > S1.ts")
    assert [row["S1"]["ts"] for row in kleene.match(ROWS, quiet)] == [4, 5]
    with pytest.raises(QueryError, match="EQL has no sign for the time operator"):
        kleene.query(str(quiet), spelling="eql")


def test_what_it_makes_is_read_by_others() -> None:
    rises = RISE.select(acc="S1.acc", gain="L.amount - S1.amount").into("Rise")
    found = kleene.match(ROWS, [rises, events("Rise", "r").where("r.gain > :low").query("high")], params={"low": 5})
    assert sorted((row["query"], row["end"]) for row in found) == [("Rise", 3), ("high", 3)]


def test_each_class_reads_its_own_texts() -> None:
    for other in (kleene.Query, kleene.StreamQuery):
        with pytest.raises(QueryError, match="this is a query in EQL"):
            other(str(RISE)).bind()
    with pytest.raises(QueryError, match="this is no query in EQL"):
        kleene.EqlQuery("PATTERN A a").bind()
    with pytest.raises(kleene.KleeneError, match="an `Engine` runs patterns"):
        kleene.Engine(RISE.query().bind())


def test_an_expression_stays_as_it_is() -> None:
    S1.where("S1.amount > 5")
    assert str(S1) == "SELECT * FROM t S1"
    assert events("t", "S1") == S1 != S2
    assert len({S1, events("t", "S1")}) == 1
    assert repr(S1.where("S1.amount > 5")) == "<events SELECT * FROM t S1 WHERE S1.amount > 5>"
    assert repr(S1.select("S1.acc")) == "<events SELECT S1.acc FROM t S1>"


# Mistakes ------------------------------------------------------------------------------------------------------------

# For what type checkers would refuse.
UNTYPED: Any = S1
WRONG: list[tuple[Callable[[], object], str, str, str]] = [
    (lambda: S1.where("S1.x >"), "where", ">", "expected"),
    (lambda: S1.where("S1.x > S1.y }"), "where", "}", "expected the end of the condition"),
    (lambda: S1.where("S1.x > 5 && S1.y > 1"), "where", "&&", "write AND"),
    (lambda: S1.filter("S1.x > 5 ; S1.y"), "filter", ";", "separated by commas"),
    (lambda: S1.where("FILTER S1.x > 5"), "where", "S1", "stands in parentheses"),
    (lambda: S1.where("(S1, L) WITHIN 5"), "where", "WITHIN", "OCCURS WITHIN"),
    (lambda: S1.where("FILTER(S1.x > 5) OR S1.y > 1"), "where", "FILTER(S1.x > 5)", "stands between commas"),
    (lambda: S1.select("S1.x FROM t"), "select", "FROM", "expected"),
    (lambda: S1.after("5 parsecs"), "after", "parsecs", "unit"),
    (lambda: S1.occurs_within(("S1", "L"), "soon"), "occurs_within", "soon", ""),
]


@pytest.mark.parametrize(("wrong", "method", "caret", "hint"), WRONG)
def test_a_wrong_text_is_shown_where_it_was_given(
    wrong: Callable[[], object], method: str, caret: str, hint: str
) -> None:
    with pytest.raises(QueryError) as caught:
        wrong()
    error = caught.value
    assert error.origin == method
    assert error.text is not None
    assert error.span is not None
    assert error.text[error.span.start : error.span.end] == caret, error.render()
    assert hint in str(error.hint), error.render()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: UNTYPED.where(5), "where: a condition is a text, not a int"),
        (lambda: UNTYPED.after(1.5), "after: a time is a text, not a float"),
        (lambda: UNTYPED.after(True), "after: a time is a text, not a bool"),
        (lambda: S1.where(), "where needs at least one condition"),
        (lambda: S1.filter(), "filter needs at least one condition"),
        (lambda: S1.filter("FILTER(S1.x > 1)"), "FILTER stands in `where` only"),
        (lambda: S1.then(), "then needs at least one"),
        (lambda: S1.either(), "either needs at least one"),
        (lambda: S1.select(), "select needs at least one field"),
        (lambda: S1.select("*"), "select needs at least one field"),
        (lambda: S1.select(both="S1.x, S1.y"), "`both` is one field, not 2"),
        (lambda: S1.occurs_within("S1", 5), "occurs_within names two events or more"),
        (lambda: UNTYPED.then("t"), "then takes events, not a str"),
        (lambda: UNTYPED.unless(S2.select("S2.x")), "unless takes events, and of these fields are selected"),
        (lambda: S1.select("S1.x").into("a`b"), "a stream's name cannot be 'a`b'"),
        (lambda: events(""), "a type cannot be ''"),
        (lambda: events("A", "b\nc"), r"an alias cannot be 'b\\nc'"),
    ],
)
def test_what_is_no_text_or_name(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        wrong()


@pytest.mark.parametrize("operator", [or_, rshift])
def test_operators_take_expressions_only(operator: Callable[[Any, Any], object]) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        operator(S1, "t")
    with pytest.raises(TypeError, match="unsupported operand"):
        operator(S1, kleene.stream("t"))


def test_names_are_resolved_in_the_text_of_the_whole() -> None:
    with pytest.raises(QueryError) as caught:
        kleene.match(ROWS, (S1 >> L).where("L.amont > 5"))
    assert caught.value.render().splitlines()[3:5] == [" 2 | WHERE L.amont > 5", "   |         ^^^^^"]
    assert caught.value.hint == "did you mean `amount`?"

"""Expressions built in Python are those of CESAR's spelling, and whatever takes a query takes them."""

from __future__ import annotations

from collections.abc import Callable
from operator import or_, rshift
from random import Random
from typing import Any, TypeVar

import pytest
from tests.soaking import rounds

import kleene
from kleene import StreamExpression, carried, stream
from kleene.errors import QueryError
from kleene.lang import parse, tree
from kleene.lang import stream_tree as streams
from kleene.lang.format import format_expression
from kleene.testing.generators.streams import random_stream_case

T = TypeVar("T", StreamExpression, kleene.FoldStep)
QUOTES = [
    {"type": "Stock", "ts": ts, "name": name, "price": price}
    for ts, name, price in [
        (1, "IBM", 10),
        (2, "Dell", 22),
        (3, "IBM", 19),
        (4, "Dell", 24),
        (5, "IBM", 22),
        (6, "Dell", 22),
    ]
]
RISING = stream("Stock", "S1").fold(
    stream("Stock", "S2"), "S1.name = S2.name", step=carried().select("S2.price > S2.price.last")
)

SAME = [
    (stream("Stock"), "(Stock)"),
    (stream("SHELF-READING", "r"), "(SHELF-READING r)"),
    (stream("unit price", "next"), "(`unit price` `next`)"),
    (stream("S").select("price > 5 ∧ name = 'IBM'"), "σ{price > 5 AND name = 'IBM'}(S)"),
    (stream("S").project("name", "S.price"), "π{name, S.price}(S)"),
    (stream("S").rename({"S.price": "unit price"}, name="n"), "ρ{S.price ↦ `unit price`, name ↦ n}(S)"),
    (stream("S").compute({"S.n": "n + 1"}, m=-2, r=0.5, b=True), "α{S.n ↦ n + 1, m ↦ -2, r ↦ 0.5, b ↦ TRUE}(S)"),
    (stream("A").union(stream("B"), stream("C") | stream("D")), "A ∪ B ∪ C ∪ D"),
    (stream("A") >> stream("B") >> stream("C"), "A ; B ; C"),
    (stream("A") >> (stream("B") >> stream("C")), "A ; (B ; C)"),
    # Python's `>>` binds tighter than its `|`; CESAR's `;` looser than its `∪`.
    (stream("A") >> stream("B") | stream("C"), "(A ; B) ∪ C"),
    (stream("A", "a").next(stream("B", "b"), "a.x = b.x"), "A a ;{a.x = b.x} B b"),
    (stream("A").fold(stream("B")), "μ(A, B)"),
    (RISING, "μ{σ{S2.price > S2.price.last}, S1.name = S2.name}(Stock S1, Stock S2)"),
    (
        stream("A").fold(
            stream("B"), step=carried().select("x > 1").compute(n="n + 1"), init={"B.y": "A.x + 1", "B.z": 0}
        ),
        "μ{α{n ↦ n + 1} ∘ σ{x > 1}, init B.y ↦ A.x + 1, init B.z ↦ 0}(A, B)",
    ),
    (stream("A").select("x > 1").project("x").publish("Large Ones"), "π{x} ∘ σ{x > 1}(A) publish `Large Ones`"),
]


@pytest.mark.parametrize(("built", "text"), SAME, ids=[text for _, text in SAME])
def test_methods_and_text_say_the_same(built: kleene.StreamExpression | kleene.PublishedStream, text: str) -> None:
    assert built.query_tree == parse(text, "cesar")
    assert parse(str(built), "cesar") == built.query_tree
    assert built.query().tree == built.query_tree


@pytest.mark.slow
def test_any_expression_can_be_built() -> None:
    """The expressions of the random tests, taken apart and built again."""
    for seed in range(rounds(1_600)):
        parsed = parse(random_stream_case(Random(seed)).text, "cesar")
        assert isinstance(parsed, streams.StreamQuery)
        assert _built(parsed.stream).query_tree == parsed


def _built(node: streams.Stream) -> StreamExpression:
    match node:
        case streams.StreamSource(kind, name):
            return stream(kind.name, name)
        case streams.StreamUnion(parts):
            first, *others = map(_built, parts)
            return first.union(*others)
        case streams.Next(left, right, condition):
            return _built(left).next(_built(right), _text(condition))
        case streams.Fold(left, right, step, condition, init):
            first_values = {format_expression(each.attribute): format_expression(each.value) for each in init}
            return _built(left).fold(_built(right), _text(condition), step=_step(step), init=first_values)
        case streams.Carried():
            raise AssertionError("only a step carries")
    return _applied(_built(node.operand), node)


def _step(node: streams.Stream) -> kleene.FoldStep:
    return _applied(_step(node.operand), node) if isinstance(node, streams.Unary) else carried()


def _applied(operand: T, node: streams.Unary) -> T:
    match node:
        case streams.Select(_, condition):
            return operand.select(format_expression(condition))
        case streams.Project(_, attributes):
            return operand.project(*map(format_expression, attributes))
        case streams.Rename(_, renamings):
            return operand.rename({format_expression(each.attribute): each.name for each in renamings})
        case streams.Compute(_, assignments):
            return operand.compute(
                {format_expression(each.attribute): format_expression(each.value) for each in assignments}
            )


def _text(condition: tree.Expression | None) -> str | None:
    return None if condition is None else format_expression(condition)


# Where queries are taken ---------------------------------------------------------------------------------------------


def test_whatever_takes_a_query_takes_an_expression() -> None:
    text = str(RISING)
    assert kleene.match(QUOTES, RISING) == kleene.match(QUOTES, text)
    assert len(kleene.match(QUOTES, RISING)) == 4
    assert kleene.outputs(QUOTES, RISING).matches == kleene.match(QUOTES, text)
    assert kleene.explain(RISING).text == kleene.explain(text).text
    assert kleene.why(QUOTES, RISING) == kleene.why(QUOTES, text)
    assert kleene.query(RISING, name="rising").explain().text.split()[:2] == ["query", "rising"]
    assert RISING.query("rising").name == "rising"


def test_expressions_patterns_and_texts_run_together() -> None:
    found = kleene.match(
        QUOTES,
        [
            RISING.project("S1.name", "S2.price").publish("Rise"),
            stream("Rise", "r").select("price > :low").query("dear"),
            "PATTERN Rise r WHERE r.name = 'IBM'",
        ],
        params={"low": 22},
    )
    ends = {name: sorted(match["end"] for match in found if match["query"] == name) for name in ("Rise", "dear")}
    assert ends == {"Rise": [3, 4, 5, 5], "dear": [4]}
    assert len(found) == 4 + 1 + 3


def test_a_stream_alone_is_a_query() -> None:
    assert [match["Stock"]["name"] for match in kleene.match(QUOTES, stream("Stock"))][:2] == ["IBM", "Dell"]


def test_parameters_are_given_to_the_query_or_to_the_run() -> None:
    dear = stream("Stock").select("price > :low")
    assert len(kleene.match(QUOTES, dear, params={"low": 22})) == 1
    assert len(kleene.match(QUOTES, dear.query(params={"low": 22}))) == 1
    assert len(kleene.match(QUOTES, dear.query(params={"low": 22}), params={"low": 21})) == 4


def test_an_expression_stays_as_it_is() -> None:
    base = stream("Stock", "S1")
    base.select("price > 5")
    assert str(base) == "(Stock S1)"
    assert base == stream("Stock", "S1") != stream("Stock", "S2")
    assert len({base, stream("Stock", "S1")}) == 1
    assert repr(base.select("price > 5")) == "<stream σ{price > 5}(Stock S1)>"
    assert repr(carried().select("x > 1")) == "<step σ{x > 1}>"
    assert str(carried()) == "ID"


def test_no_spelling_may_be_named_for_what_is_built() -> None:
    assert kleene.query(stream("Stock")).spelling == "cesar"


def test_each_class_reads_its_own_texts() -> None:
    with pytest.raises(QueryError, match="this is an expression of streams"):
        kleene.Query(str(RISING)).bind()
    with pytest.raises(QueryError, match="this is a pattern"):
        kleene.StreamQuery("PATTERN A a").bind()


# Mistakes ------------------------------------------------------------------------------------------------------------

S = stream("Stock", "S")
# For what type checkers would refuse.
UNTYPED: Any = S
WRONG: list[tuple[Callable[[], object], str, str, str]] = [
    (lambda: S.select("price >"), "select", ">", "expected a value or a condition"),
    (lambda: S.select("price > 5}(A"), "select", "}", "expected the end of the condition"),
    (lambda: S.select("price > 5 && vol > 1"), "select", "&&", "write AND"),
    (lambda: S.project("name, price"), "project", ",", "give others by themselves"),
    (lambda: S.rename({"a.b.c": "d"}), "rename", ".", "one attribute is wanted"),
    (lambda: S.compute(n="price > 5"), "compute", ">", "a value is wanted, and this is a condition"),
    (lambda: S.compute({"a b": "1"}), "compute", "b", "one attribute is wanted"),
    (lambda: S.next(S, "S.x = "), "next", "=", "expected a value or a condition"),
    (lambda: S.fold(S, init={"x": "y >"}), "init of fold", ">", "a value is wanted"),
    (lambda: carried().select("a = = b"), "select", "=", "expected a value or a condition"),
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
        (lambda: UNTYPED.select(5), "select: a condition is a text, not a int"),
        (lambda: S.project(), "project needs at least one"),
        (lambda: S.rename(), "rename needs at least one"),
        (lambda: S.compute({}), "compute needs at least one"),
        (lambda: S.union(), "union needs at least one"),
        (lambda: UNTYPED.next("Stock"), "next takes an expression, not a str"),
        (lambda: UNTYPED.next(S.publish("E")), "next takes an expression, and `E` is published"),
        (lambda: UNTYPED.fold(S, step="σ{x > 1}"), "the step of a fold is no str"),
        (lambda: S.compute(n=float("inf")), "`inf` is no value of a query"),
        (lambda: S.publish("a`b"), "a stream's name cannot be 'a`b'"),
        (lambda: stream(""), "a type cannot be ''"),
        (lambda: stream("A", "b\nc"), r"an id cannot be 'b\\nc'"),
        (lambda: stream("a\ud83d"), "half a character"),
    ],
)
def test_what_is_no_text_or_name(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        wrong()


@pytest.mark.parametrize("operator", [or_, rshift])
def test_operators_take_expressions_only(operator: Callable[[Any, Any], object]) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        operator(S, "Stock")


def test_names_are_resolved_in_the_text_of_the_whole() -> None:
    with pytest.raises(QueryError) as caught:
        kleene.match(QUOTES, S.select("prize > 5").project("name"))
    assert caught.value.render().splitlines()[3] == " 1 | π{name} ∘ σ{prize > 5}(Stock S)"
    assert caught.value.hint == "did you mean `price`?"

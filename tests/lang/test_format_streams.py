"""Expressions of streams, printed: parsed again they are the same, on one line or on several."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lang.test_format import expressions
from tests.soaking import rounds

from kleene.lang import format_query, parse, tree
from kleene.lang import stream_tree as streams
from kleene.lang.format_streams import WIDTH, format_stream_query
from kleene.testing.generators.streams import random_stream_case


def _parsed(text: str) -> streams.StreamQuery:
    parsed = parse(text, "cesar")
    assert isinstance(parsed, streams.StreamQuery)
    return parsed


def _value(text: str) -> tree.Expression:
    stream = _parsed(f"α{{v ↦ {text}}}(A)").stream
    assert isinstance(stream, streams.Compute)
    return stream.assignments[0].value


def _union(parts: list[streams.Stream]) -> streams.StreamUnion:
    return streams.StreamUnion(
        tuple(each for part in parts for each in (part.parts if isinstance(part, streams.StreamUnion) else (part,)))
    )


QUERY_7 = """
σ{finalP > 1.05 * minP}(
  σ{DUR >= 10}(
    μ{σ{minP < minP.last}, company = company.last, init minP ↦ maxP}(
      ρ{(name, price) ↦ (company, maxP)} ∘ π{name, price} ∘ σ{vol > 10000}(Stock),
      ρ{(name, price) ↦ (company, minP)} ∘ π{name, price}(Stock)
    )
  ) ;{company = company.last} ρ{(name, price) ↦ (company, finalP)} ∘ π{name, price}(Stock)
) publish Falls
"""

PRINTED = rounds(4_000, share=40)
# Written, and printed in 40 columns.
LAID_OUT = [
    ("select{price>5}(Stock S1)", "σ{price > 5}(Stock S1)"),
    (
        "σ{Stock.price > 100 and Stock.name = 'IBM'}(Stock)",
        "σ{\n  Stock.price > 100\n  AND Stock.name = 'IBM'\n}(Stock)",
    ),
    (
        "σ{price > 100 and (name = 'IBM' or name = 'Dell')}(Stock)",
        "σ{\n  price > 100\n  AND (name = 'IBM' OR name = 'Dell')\n}(Stock)",
    ),
    (
        "σ{b.price > a.price}(Stock a ;{a.name = b.name} Stock b)",
        "σ{b.price > a.price}(\n  Stock a ;{a.name = b.name} Stock b\n)",
    ),
    (
        "Stock a ;{a.name = b.name} Stock b ;{b.name = c.name} Stock c publish Triple",
        "Stock a\n;{a.name = b.name} Stock b\n;{b.name = c.name} Stock c\npublish Triple",
    ),
    (
        "Stock a ; (σ{price > 100 and vol > 9}(Stock b) ; Stock c)",
        "Stock a\n; (\n  σ{price > 100 AND vol > 9}(Stock b)\n  ; Stock c\n)",
    ),
    (
        "π{name} ∘ σ{price > 100}(Stock) ∪ π{name} ∘ σ{size > 100}(Trade) ; Stock S",
        "π{name} ∘ σ{price > 100}(Stock)\n  ∪ π{name} ∘ σ{size > 100}(Trade)\n; Stock S",
    ),
    (
        "fold{S1.name = S2.name, select{S2.price > S2.price.last}}(Stock S1, Stock S2)",
        "μ{\n  σ{S2.price > S2.price.last},\n  S1.name = S2.name\n}(Stock S1, Stock S2)",
    ),
    (
        "DECLARE TYPE Stock (name string)\nStock a ;{a.name = b.name} σ{name = 'a long one'}(Stock b)",
        "DECLARE TYPE Stock (name string)\nStock a\n;{a.name = b.name}\n  σ{name = 'a long one'}(Stock b)",
    ),
]


@pytest.mark.parametrize(("written", "printed"), LAID_OUT, ids=[written for written, _ in LAID_OUT])
def test_a_long_expression_has_several_lines(written: str, printed: str) -> None:
    parsed = _parsed(written)
    assert format_stream_query(parsed, 40) == printed
    assert parse(printed) == parsed


def test_the_usual_width() -> None:
    lines = format_query(_parsed(QUERY_7)).splitlines()
    assert lines[0] == "σ{finalP > 1.05 * minP}("
    assert lines[-1] == "publish Falls"
    assert max(map(len, lines)) <= WIDTH
    short = "σ{b.price > a.price}(Stock a ;{a.name = b.name} Stock b) publish Rise"
    assert format_query(_parsed(short)) == short


def test_parentheses_stand_only_where_they_are_needed() -> None:
    assert format_query(_parsed("((A ; B) ; (C ∪ (D ∪ E)))")) == "A ; B ; C ∪ D ∪ E"
    assert format_query(_parsed("(A ; (B ; C)) ∪ (D)")) == "(A ; (B ; C)) ∪ D"


@pytest.mark.parametrize(
    "text",
    [
        "A `next` ; B `union` ; C `publish`",
        "μ{ID, `id`}(A, B)",
        "μ{ID, init > 5 AND id, init init ↦ id}(A, B)",
        "μ{ID, init IS NULL}(A, B)",
        "σ{of = union AND next.publish > select.last}(`fold` of)",
        "ρ{init ↦ of, `x y` ↦ `in`}(SHELF-READING r) publish `x y`",
        "σ{s = 'one\n  two'}(A)",
    ],
)
def test_words_of_the_algebra_may_be_names(text: str) -> None:
    parsed = _parsed(text)
    for width in (None, WIDTH, 1):
        assert _parsed(format_stream_query(parsed, width)) == parsed


@pytest.mark.slow
def test_random_expressions_survive_printing() -> None:
    broken = 0
    for seed in range(PRINTED):
        parsed = _parsed(random_stream_case(Random(seed)).text)
        for width in (None, WIDTH, 40, 1):
            printed = format_stream_query(parsed, width)
            assert _parsed(printed) == parsed
            assert format_stream_query(_parsed(printed), width) == printed
        broken += "\n" in format_query(parsed)
    assert broken > PRINTED // 4


# Any name and any condition, whether it means something or not.
words = st.sampled_from(
    ["a", "price", "next", "union", "publish", "of", "init", "id", "select", "fold", "last", "x y", "in"]
)
names = words.map(tree.Name) | st.builds(tree.Attribute, words, st.none(), words)
values = st.sampled_from(["1", "a + 1", "b.x * (a - 2)", "-a.x", "'s'", "x.last", "a.x.last", "20%", ":p"]).map(_value)
assignments = st.lists(st.builds(streams.Assignment, names, values), min_size=1, max_size=2).map(tuple)
sources = st.builds(streams.StreamSource, words.map(tree.TypeName), st.none() | words)


def unary(inner: st.SearchStrategy[streams.Stream]) -> st.SearchStrategy[streams.Stream]:
    return st.one_of(
        st.builds(streams.Select, inner, expressions),
        st.builds(streams.Project, inner, st.lists(names, min_size=1, max_size=3).map(tuple)),
        st.builds(
            streams.Rename,
            inner,
            st.lists(st.builds(streams.Renaming, names, words), min_size=1, max_size=2).map(tuple),
        ),
        st.builds(streams.Compute, inner, assignments),
    )


steps = st.recursive(st.just(streams.Carried()), unary, max_leaves=3)


def grown(inner: st.SearchStrategy[streams.Stream]) -> st.SearchStrategy[streams.Stream]:
    return st.one_of(
        unary(inner),
        st.lists(inner, min_size=2, max_size=3).map(_union),
        st.builds(streams.Next, inner, inner, st.none() | expressions),
        st.builds(streams.Fold, inner, inner, steps, st.none() | expressions, st.just(()) | assignments),
    )


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.recursive(sources, grown, max_leaves=6), st.none() | words, st.sampled_from([None, WIDTH, 40, 1]))
def test_random_trees_survive_printing(stream: streams.Stream, publish: str | None, width: int | None) -> None:
    query = streams.StreamQuery(stream, publish)
    assert _parsed(format_stream_query(query, width)) == query

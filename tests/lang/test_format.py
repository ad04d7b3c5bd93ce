"""Parse → print → parse gives the same tree, for random trees and for every query at hand."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.case_files import CASES
from tests.soaking import SOAKING

from kleene.errors import BadRepetition, KleeneError
from kleene.lang import format_query, parse, tree

ROOT = Path(__file__).parents[2]
QUERIES = sorted(
    {path.read_text(encoding="utf-8") for path in (ROOT / "examples" / "papers").glob("*.kleene")}
    | {text for case in CASES for text in case.queries}
)

words = st.sampled_from(
    ["a", "b", "price", "tag_id", "type", "from", "within", "seq", "Größe", "x y", "i", "LEN", "m²", "²"]
)
types = st.sampled_from(["A", "SHELF-READING", "Stock", "any", "where", "x y", "m²"]).map(tree.TypeName)
numbers = st.integers(0, 2**63 - 1) | st.floats(0, 1e300, allow_nan=False)
literals = st.builds(tree.Literal, numbers | st.text(max_size=5) | st.booleans() | st.none())
quantities = st.builds(
    tree.Quantity,
    st.builds(Fraction, st.integers(0, 999), st.sampled_from([1, 2, 4, 10]))
    | st.builds(tree.Parameter, st.sampled_from(["p", "q"])),
    st.sampled_from(["seconds", "hours", "ticks", "events"]),
)
numbered = st.builds(tree.Nth, st.integers(2, 999_999_999))
attributes = st.builds(tree.Attribute, words, st.none() | st.sampled_from(tree.Index) | numbered, words)
atoms = (
    literals
    | attributes
    | st.builds(tree.Name, words)
    | st.builds(tree.Parameter, st.sampled_from(["p", "q"]))
    | st.builds(tree.Timestamp, st.just("2024-01-31T12:00:00"))
    | st.builds(
        lambda amount: tree.Duration((tree.Quantity(amount, "seconds"),)), st.builds(Fraction, st.integers(0, 99))
    )
    | st.builds(
        lambda names: tree.Equivalence(tuple(tree.EquivalenceItem(name) for name in names)),
        st.lists(words, min_size=1, max_size=3),
    )
)


def grown(inner: st.SearchStrategy[tree.Expression]) -> st.SearchStrategy[tree.Expression]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(tree.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        st.builds(tree.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(tree.EqualityChain, st.lists(inner, min_size=3, max_size=4).map(tuple)),
        st.builds(tree.Contains, inner, inner),
        st.builds(tree.In, inner, several, st.booleans()),
        st.builds(tree.Between, inner, inner, inner, st.booleans()),
        st.builds(tree.IsNull, inner, st.booleans()),
        st.builds(tree.Percent, inner),
        st.builds(tree.Negative, inner),
        st.builds(tree.Not, inner),
        several.map(lambda parts: tree.And(_flat(parts, tree.And))),
        several.map(lambda parts: tree.Or(_flat(parts, tree.Or))),
        st.builds(tree.Call, st.sampled_from(["avg", "count"]), st.tuples(inner)),
    )


def _flat(parts: tuple[tree.Expression, ...], kind: type[tree.And] | type[tree.Or]) -> tuple[tree.Expression, ...]:
    """The parser joins nested lists of the same kind, so the drawn trees have none."""
    found: list[tree.Expression] = []
    for part in parts:
        found.extend(part.operands if isinstance(part, kind) else [part])
    return tuple(found)


expressions = st.recursive(atoms, grown, max_leaves=12)
repetitions = st.sampled_from(
    [
        None,
        tree.Repetition(tree.Mark.PLUS, 1, None),
        tree.Repetition(tree.Mark.STAR, 0, None),
        tree.Repetition(tree.Mark.OPTIONAL, 0, 1),
        tree.Repetition(tree.Mark.POWER, 5, 5),
        tree.Repetition(tree.Mark.BRACES, 2, 5),
        tree.Repetition(tree.Mark.BRACES, 2, None),
        tree.Repetition(tree.Mark.BRACES, 3, 3),
    ]
)


@st.composite
def components(draw: st.DrawFn) -> tree.Component:
    any_of = draw(st.booleans())
    names = tuple(draw(st.lists(types, min_size=1, max_size=3 if any_of else 1)))
    variable = draw(st.none() | words)
    return tree.Component(names, any_of, draw(repetitions), variable, variable is not None and draw(st.booleans()))


def combined(inner: st.SearchStrategy[tree.Pattern]) -> st.SearchStrategy[tree.Pattern]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(tree.Sequence, several),
        st.builds(tree.Conjunction, several),
        st.builds(tree.Disjunction, several),
        st.builds(tree.Negation, inner),
    )


patterns = st.recursive(components(), combined, max_leaves=6)
strategies_ = st.builds(
    tree.Strategy,
    st.sampled_from(tree.SelectionStrategy),
    st.none() | st.lists(st.builds(tree.StrategyVariable, words, st.booleans()), min_size=1, max_size=3).map(tuple),
)
queries = st.builds(
    tree.Query,
    patterns,
    st.none() | strategies_,
    st.none() | expressions,
    st.none() | st.builds(tree.Within, st.builds(tree.Duration, st.tuples(quantities)), st.booleans()),
    st.none() | st.builds(tree.Output, st.sampled_from(tree.OutputMode)),
    st.none() | st.just("Late-Ones"),
    st.none()
    | st.builds(
        tree.Return,
        st.lists(st.builds(tree.ReturnItem, expressions, st.none() | words), min_size=1, max_size=3).map(tuple),
        st.none() | st.just("S"),
    ),
)


@pytest.mark.slow
@settings(max_examples=1_000 if SOAKING else 250, deadline=None)
@given(queries)
def test_random_trees_survive_printing(query: tree.Query) -> None:
    assert parse(format_query(query)) == query


@pytest.mark.parametrize("text", QUERIES, ids=range(len(QUERIES)))
def test_known_queries_survive_printing(text: str) -> None:
    try:
        parsed = parse(text)
    except KleeneError:
        return
    printed = format_query(parsed)
    assert parse(printed) == parsed
    assert format_query(parse(printed)) == printed


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("A a ; B² ; C c", "SEQ(A a, B^2, C c)"),
        ("A a ; B¹⁰ b ; C c", "SEQ(A a, B^10 b, C c)"),
        ("SHELF-READING³ r[]", "SHELF-READING^3 r[]"),
        ("ANY(A, B)⁵ v[]", "ANY(A, B)^5 v[]"),
        ("A⁺ a[]", "A+ a[]"),
        ("A a & !B b & (!C c ; D d)", "A a & !(B b) & SEQ(!(C c), D d)"),
        ("A a ; (B b & ~C c) ; !(D d ; E e)", "SEQ(A a, B b & !(C c), !(SEQ(D d, E e)))"),
        # A name that holds raised digits is quoted where a type is expected.
        ("`m²` a", "`m²` a"),
        ("A a WHERE a.m² > 1", "A a\nWHERE a.m² > 1"),
    ],
)
def test_raised_digits_are_a_count(written: str, printed: str) -> None:
    assert format_query(parse(f"PATTERN {written}")) == f"PATTERN {printed}"
    assert parse(f"PATTERN {printed}") == parse(f"PATTERN {written}")


def test_no_event_at_all_is_no_count() -> None:
    with pytest.raises(BadRepetition):
        parse("PATTERN A⁰ a[]")

"""Binding: names, types, P₊ and P₋, normal form, and the edge of each conjunct (SASE+ §3.2 step 2)."""

from __future__ import annotations

import pytest

from kleene.errors import NotSeparable, TooComplex, UnknownAttribute
from kleene.pattern import Query, Schema
from kleene.pattern.conditions import LinearPattern, assign_edges
from kleene.pattern.expressions import Attribute, references, variables
from kleene.pattern.nodes import components

QUERY_3 = """
PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
    [symbol] and a[1].volume > 1000 and a[i].price > avg(a[..i-1].price) and b.volume < 80% * a[a.LEN].volume }
WITHIN 1 hour
"""


def line_of(text: str) -> LinearPattern:
    bound = Query(text).bind()
    return assign_edges(tuple(components(bound.alternatives[0])), bound.conditions.positive)


def names(clauses: tuple[object, ...]) -> list[set[str]]:
    return [
        {f"{r.which.value}.{r.attribute}" for r in references(c) if isinstance(r, Attribute)}  # type: ignore[arg-type]
        for c in clauses
    ]


def test_query_3_is_placed_as_in_figure_2() -> None:
    first, last = line_of(QUERY_3).states
    assert names(first.begin) == [{"a[1].volume"}]
    assert names(first.take) == [{"a[i].symbol", "a[1].symbol"}, {"a[i].price"}]
    assert first.proceed == ()
    assert names(last.begin) == [{"x.symbol", "a[1].symbol"}, {"x.volume", "a[a.LEN].volume"}]


def test_the_last_identifier_decides_whatever_side_it_stands_on() -> None:
    states = line_of("PATTERN SEQ(A a, B b, C c) WHERE c.x > a.x AND a.x = b.x AND a.y = 1").states
    assert [len(state.begin) for state in states] == [1, 1, 1]


def test_whole_aggregates_sit_on_the_proceed_edge() -> None:
    (kleene_state, _) = line_of("PATTERN SEQ(A+ a[], B b) WHERE sum(a.x) > 5 AND a[a.LEN].x = 1 AND a.LEN < 4").states
    assert len(kleene_state.proceed) == 3
    assert kleene_state.take == ()


def test_conjuncts_come_from_the_normal_form() -> None:
    bound = Query("PATTERN SEQ(A a, B b) WHERE (a.x = 1 AND b.x = 2) OR a.y = 3").bind()
    assert [variables(clause) for clause in bound.conditions.positive] == [{"a"}, {"a", "b"}]


def test_absorption_finds_the_split_that_is_there() -> None:
    """(p ∧ n) ∨ (p ∧ m) is p ∧ (n ∨ m): P₊ is p, P₋ is n ∨ m."""
    text = "PATTERN SEQ(A a, !(B b), C c) WHERE (a.x = 1 AND b.x = 2) OR (a.x = 1 AND b.x = 3)"
    conditions = Query(text).bind().conditions
    assert [variables(clause) for clause in conditions.positive] == [{"a"}]
    assert [len(clause.literals) for clause in conditions.negative["b"]] == [2]


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(NotSeparable, match="mixes the negated `b`"):
        Query("PATTERN SEQ(A a, !(B b), C c) WHERE a.x = 1 OR b.x = 2").bind()


def test_a_condition_that_multiplies_out_is_refused() -> None:
    terms = " OR ".join(f"(a.x = {n} AND b.x = {n})" for n in range(40))
    with pytest.raises(TooComplex, match="conjuncts in normal form"):
        Query(f"PATTERN SEQ(A a, B b) WHERE {terms}").bind()


def test_the_partition_is_what_every_component_has() -> None:
    schema = Schema(types={"A": ["id", "x"], "B": ["id", "x"], "C": ["id"]})
    assert Query("PATTERN SEQ(A a, B b) WHERE [id, x]").bind(schema).partition == ("id", "x")
    assert Query("PATTERN SEQ(A a, !(C c), B b) WHERE [id, x]").bind(schema).partition == ("id",)
    assert Query("PATTERN SEQ(A a, B b) WHERE [id] OR a.x = 1").bind(schema).partition == ()


def test_attributes_of_the_variables_types_only() -> None:
    schema = Schema(types={"A": ["id"], "B": ["x"]})
    Query("PATTERN ANY(A, B) v WHERE v.x = 1").bind(schema)
    with pytest.raises(UnknownAttribute) as problem:
        Query("PATTERN SEQ(A a, B b) WHERE a.x = 1").bind(schema)
    assert (problem.value.line, problem.value.column) == (1, 31)


def test_one_query_binds_to_many_schemas() -> None:
    query = Query("PATTERN SEQ(A a, B b) WHERE [id]")
    assert query.bind(Schema(types={"A": ["id"], "B": ["id"]})).partition == ("id",)
    assert query.bind(Schema(types={"A": ["id"], "B": []})).partition == ()
    assert query.inputs == ("A", "B")

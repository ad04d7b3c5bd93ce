"""Bound nodes in query syntax: what is printed binds to what it was printed from."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from kleene import Query, Schema
from kleene.lang import recognise
from kleene.lang.format import format_declaration
from kleene.pattern import BoundQuery
from kleene.pattern.expressions import Agrees, Clause
from kleene.pattern.printing import (
    print_alternative,
    print_clause,
    print_clauses,
    print_nanoseconds,
    print_pattern,
    print_value,
)

ROOT = Path(__file__).parents[2]
# Those of streams are printed in `tests/streams/test_papers.py`, those of EQL in `tests/lang/test_format_eql.py`.
EXAMPLES = sorted(
    path for path in (ROOT / "examples").rglob("*.kleene") if recognise(path.read_text(encoding="utf-8")) == "kleene"
)
SCHEMA = Schema(columns={"type": "string", "ts": "timestamp", "x": "float", "n": "int", "s": "string", "b": "bool"})


def bound(text: str) -> BoundQuery:
    return Query(text).bind(SCHEMA, checking=True)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_is_printed_of_an_example_means_the_same(path: Path) -> None:
    query = Query(path.read_text(encoding="utf-8"))
    first = query.bind(checking=True)
    clauses = _every_clause(first)
    assert not any(isinstance(literal, Agrees) for clause in clauses for literal in clause.literals)
    head = "\n".join(map(format_declaration, query.tree.declarations))
    body = f"\n{{ {print_clauses(clauses)} }}" if clauses else " { }"
    text = f"{head}\nPATTERN {print_pattern(first.pattern)}\nWHERE {first.strategy.value}{body}\nWITHIN 1 hour"
    again = Query(text).bind(Schema(clock=first.schema.clock), checking=True)
    assert again.pattern == first.pattern
    assert set(_every_clause(again)) == set(clauses)


def _every_clause(query: BoundQuery) -> list[Clause]:
    conditions = query.conditions
    groups = [conditions.positive, *conditions.negative.values(), *conditions.members.values()]
    return [clause for group in groups for clause in group]


@pytest.mark.parametrize(
    "condition",
    [
        "a.x = 1.5",
        "a.n = - 3",
        "a.s = 'it''s'",
        "a.b = TRUE",
        "a.s IS NOT NULL",
        "NOT a.s CONTAINS 'x'",
        "a.x > 1 OR a.n < :limit",
        "a.x > (1 + :p%) * a.n",
        "a.x > :p / 100",
        "a.x * (a.n + 2) >= a.x - (a.n - 1)",
        "a.ts - c[1].ts < 90 minutes",
        "a.ts > TIMESTAMP '2024-01-31T12:00:00.250000'",
        "c[i].x > c[i-1].x",
        "c[i].x > avg(c[..i-1].x)",
        "c[c.LEN].x > max(c.x)",
        "count(c) > 3",
        "count(c[..i-1]) > 3",
    ],
)
def test_a_condition_is_printed_as_it_was_written(condition: str) -> None:
    query = bound(f"PATTERN SEQ(C+ c[], A a) WHERE {condition}")
    assert [print_clause(clause) for clause in query.conditions.positive] == [condition]


@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(A a, !(B b), C c)",
        "SEQ(A, ANY(B, C) d, !(ANY(D, E) e))",
        "SEQ(A+ a[], B* b[], C? c, D{2,5} d[], E{3} e[], F{2,} f[])",
        "SEQ(A, B^5, C)",
        "SEQ(A, B*, C)",
        "A a & (B b | C c)",
        "SEQ(`odd name` a, SHELF-READING b)",
    ],
)
def test_a_pattern_is_printed_as_it_was_written(pattern: str) -> None:
    assert print_pattern(bound(f"PATTERN {pattern} WITHIN 1 hour").pattern) == pattern


def test_an_alternative_has_nothing_optional() -> None:
    query = bound("PATTERN SEQ(A a, B? b)")
    assert [print_alternative(option) for option in query.alternatives] == ["SEQ(A a, B b)", "A a"]


def test_an_agreement_and_no_condition() -> None:
    schema = Schema(types={"A": {"id": "int"}, "B": {}})
    query = Query("PATTERN SEQ(A a, ANY(A, B)+ c[]) WHERE [id]").bind(schema)
    printed = [print_clause(clause) for clause in query.conditions.positive]
    assert "c[i].id = c[..i-1].id" in printed
    assert print_clauses([]) == "TRUE"


def test_returned_values() -> None:
    query = bound("PATTERN SEQ(C+ c[], A a) RETURN a, c, sum(c.x) / 2, a.x AS y")
    assert query.returns is not None
    assert [print_value(column.value) for column in query.returns] == ["a", "c", "sum(c.x) / 2", "a.x"]


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (3_600_000_000_000, "1 hour"),
        (5_400_000_000_000, "90 minutes"),
        (86_400_000_000_000, "1 day"),
        (3_661_000_000_000, "3661 seconds"),
        (1_500_000, "1500 microseconds"),
        (Fraction(1, 2), "0.5 nanoseconds"),
    ],
)
def test_a_length_of_time(length: int | Fraction, text: str) -> None:
    assert print_nanoseconds(length) == text

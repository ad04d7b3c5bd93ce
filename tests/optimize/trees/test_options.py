"""Which patterns a query stands for when its disjunctions stay."""

from __future__ import annotations

from random import Random

import pytest
from tests.soaking import rounds

from kleene.errors import QueryError
from kleene.optimize.trees.options import options
from kleene.pattern import Query, Schema
from kleene.pattern.nodes import Conjunction, Disjunction, Leaf, Pattern, Sequence, components
from kleene.pattern.printing import print_alternative
from kleene.testing.generators import random_case, schema_of


def printed(text: str) -> list[str]:
    return [print_alternative(option.pattern) for option in options(Query(f"PATTERN {text} WITHIN 9").bind(Schema()))]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A", ["A"]),
        ("A ; B ; C", ["SEQ(A, B, C)"]),
        ("A & B", ["A & B"]),
        ("A ; (B | C)", ["SEQ(A, B | C)"]),
        # Associative: one list.
        ("A ; (B ; C)", ["SEQ(A, B, C)"]),
        ("A & (B & C)", ["A & B & C"]),
        ("A ; (B | (C | D))", ["SEQ(A, B | C | D)"]),
        ("A & (B ; C)", ["A & SEQ(B, C)"]),
        ("A ; ((B ; C) | D)", ["SEQ(A, SEQ(B, C) | D)"]),
        ("A ; !(B | C) ; D", ["SEQ(A, !(B), !(C), D)"]),
        ("A ; (!B & !C) ; D", ["SEQ(A, !(B), !(C), D)"]),
        # What may be absent.
        ("A ; B?", ["SEQ(A, B)", "A"]),
        ("A? ; B ; C* c[]", ["SEQ(A, B, C+ c[])", "SEQ(A, B)", "SEQ(B, C+ c[])", "B"]),
        ("A? & B", ["A & B", "B"]),
        ("A ; (B? | C) ; D", ["SEQ(A, B | C, D)", "SEQ(A, D)"]),
        ("A ; (B? | C?)", ["SEQ(A, B | C)", "A"]),
        ("A? ; !B ; C", ["SEQ(A, !(B), C)", "SEQ(!(B), C)"]),
        # A group of which only what it forbids is left.
        ("A ; (B? & !C) ; D", ["SEQ(A, B & !(C), D)", "SEQ(A, !(C), D)"]),
        ("A & (B? ; !C ; !D)", ["A & SEQ(B, !(C), !(D))", "A & !(C) & !(D)"]),
        # A branch whose group looks out of it is a pattern of its own.
        ("A ; ((B & !C) | D) ; E", ["SEQ(A, B & !(C), E)", "SEQ(A, D, E)"]),
        ("A ; ((B ; (C & !D) ; E) | F)", ["SEQ(A, SEQ(B, C & !(D), E) | F)"]),
        # Both options of a part bind C: they cannot stand in one tree.
        ("A ; ((B? ; C) | D)", ["SEQ(A, SEQ(B, C) | D)", "SEQ(A, C)"]),
        ("A ; ((B? & C) | (D? & E))", ["SEQ(A, B & C | D & E)", "SEQ(A, C | E)"]),
        # A disjunction of whole patterns.
        ("A | B", ["A", "B"]),
        ("(A ; B) | (C & (D | E))", ["SEQ(A, B)", "C & (D | E)"]),
        ("(A | B) ; C?", ["SEQ(A | B, C)", "A", "B"]),
    ],
)
def test_disjunctions_stay_and_optional_components_do_not(pattern: str, expected: list[str]) -> None:
    assert printed(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("(A ; !B) | C", ["SEQ(A, !(B))", "C"]),
        ("(!A ; B) | C", ["SEQ(!(A), B)", "C"]),
        ("(A ; B+) | C", ["SEQ(A, B+)", "C"]),
        ("A ; ((B ; !C) | D)", ["SEQ(A, B, !(C))", "SEQ(A, D)"]),
        ("A ; ((B ; !C) | D) ; E", ["SEQ(A, B, !(C), E)", "SEQ(A, D, E)"]),
        ("A ; ((B ; C+) | D) ; E", ["SEQ(A, B, C+, E)", "SEQ(A, D, E)"]),
        ("A ; ((B* ; C) | D)", ["SEQ(A, B*, C)", "SEQ(A, D)"]),
        ("A ; (B+ | C) ; D", ["SEQ(A, B+, D)", "SEQ(A, C, D)"]),
        ("A ; ((B? ; !C) | D) ; E", ["SEQ(A, B, !(C), E)", "SEQ(A, !(C), E)", "SEQ(A, D, E)"]),
        ("A ; (((B ; !C) | D) | E) ; F", ["SEQ(A, B, !(C), F)", "SEQ(A, D, F)", "SEQ(A, E, F)"]),
        # A disjunction within a part that is distributed stays.
        ("A ; ((B ; !C) | ((D | E) ; F))", ["SEQ(A, B, !(C))", "SEQ(A, D | E, F)"]),
        # Between other components of its part it has its neighbours.
        ("A ; ((B ; !C ; D) | E)", ["SEQ(A, SEQ(B, !(C), D) | E)"]),
        ("A ; ((B ; C+ ; D) | E)", ["SEQ(A, SEQ(B, C+, D) | E)"]),
        # The disjunction itself is a neighbour.
        ("(A | B) ; !C ; D", ["SEQ(A | B, !(C), D)"]),
        ("A ; B+ ; (C | D)", ["SEQ(A, B+, C | D)"]),
    ],
)
def test_a_part_with_an_open_end_is_no_branch(pattern: str, expected: list[str]) -> None:
    assert printed(pattern) == expected


def test_the_conditions_come_along() -> None:
    query = Query("PATTERN A a ; !B b ; C+ ; D d WHERE a.x = d.x AND b.x = 1 AND C.x = 2 WITHIN 9").bind(Schema())
    (option,) = options(query)
    assert option.positive == query.conditions.positive
    assert option.negative == query.conditions.negative
    assert option.members == query.conditions.members


@pytest.mark.parametrize("stratum", ["conjunction", "disjunction", "nested", "closure", "negation", "optional"])
def test_options_stand_for_the_alternatives_one_for_one(stratum: str) -> None:
    rng = Random(5)
    for _ in range(rounds(480)):
        case = random_case(rng, stratum)
        try:
            query = Query(case.query_text, params=case.params).bind(Schema(**schema_of(case)))
        except QueryError:
            continue
        found = [pattern for option in options(query) for pattern in distributed(option.pattern)]
        assert sorted(map(print_alternative, found)) == sorted(map(print_alternative, query.alternatives))
        for option in options(query):
            names = [component.variable for component in components(option.pattern)]
            assert len(set(names)) == len(names)


def distributed(pattern: Pattern) -> list[Pattern]:
    """Every choice of one part of each disjunction."""
    if isinstance(pattern, Leaf):
        return [pattern]
    if isinstance(pattern, Disjunction):
        return [option for part in pattern.parts for option in distributed(part)]
    chosen: list[tuple[Pattern, ...]] = [()]
    for part in pattern.parts:
        chosen = [(*before, *_parts(option, type(pattern))) for before in chosen for option in distributed(part)]
    return [type(pattern)(parts) for parts in chosen]


def _parts(pattern: Pattern, kind: type[Sequence | Conjunction]) -> tuple[Pattern, ...]:
    return pattern.parts if isinstance(pattern, kind) else (pattern,)

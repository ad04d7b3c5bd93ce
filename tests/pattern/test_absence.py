"""What is known of conditions where variables are absent: which are present together, and what that makes true."""

from __future__ import annotations

import pytest

from kleene.pattern import Query
from kleene.pattern.absence import holds_by_absence, presences
from kleene.pattern.nodes import Sequence
from kleene.pattern.query import BoundQuery

BRANCHES = "((C c & A a) | (C e & B b)) ; D d"


def bound(text: str) -> BoundQuery:
    return Query(f"PATTERN {text} WITHIN 9").bind()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("ab", {"a", "b"}),
        ("ac", {"ac", ""}),
        ("abd", {"ad", "bd"}),
        ("d", {"d"}),
        ("abcde", {"acd", "bde"}),
    ],
)
def test_which_variables_a_match_can_have_together(names: str, expected: set[str]) -> None:
    found = presences(bound(BRANCHES).pattern, names)
    assert {"".join(sorted(each)) for each in found} == expected


def test_many_disjunctions_are_no_more_choices_than_the_names_tell_apart() -> None:
    """Sixty-four of them stand for 2⁶⁴ patterns."""
    pattern = bound(" ; ".join(f"(A a{number} | B b{number})" for number in range(8))).pattern
    assert isinstance(pattern, Sequence)
    wide = Sequence(pattern.parts * 8)
    assert presences(wide, {"a0"}) == {frozenset(), frozenset({"a0"})}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("a.k = b.k", True),
        ("a.x + b.x > d.x", True),
        ("a.x > 1 OR b.x > 1", True),
        ("a.x IS NULL OR b.x IS NULL", True),
        ("a.x = c.x", False),
        ("a.x > 1", False),
        ("a.x = d.x", False),
        ("a.x IS NOT NULL OR b.x IS NOT NULL", False),
        ("a.x > 1 OR d.x > 1", False),
    ],
)
def test_conditions_that_no_match_can_violate(condition: str, holds: bool) -> None:
    query = bound(f"{BRANCHES} WHERE {condition}")
    (clause,) = query.conditions.positive
    assert holds_by_absence(clause, query.pattern) is holds


@pytest.mark.parametrize(("other", "holds"), [("d", True), ("b", False), ("f", False)])
def test_of_a_negated_component_only_its_own_branch_counts(other: str, holds: bool) -> None:
    """Where `n` is looked for, `d` is absent; that it is present elsewhere says nothing."""
    query = bound(f"((B b ; !(E n) ; C c) | D d) ; F f WHERE n.x = {other}.x")
    (clause,) = query.conditions.negative["n"]
    assert holds_by_absence(clause, query.pattern, "n") is holds

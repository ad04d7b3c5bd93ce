"""The reference evaluator and the brute force agree: two readings of the semantics page, made apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.soaking import few_of, least, rounds

from kleene import Schema
from kleene.testing import reference_match
from kleene.testing.brute import Match, brute_force_counts, brute_force_match
from kleene.testing.generators import STRATA, GeneratedCase, random_case, schema_of

CASES_A_STRATUM = rounds(560)
# A stratum whose cases hardly ever match would agree about nothing.
LEAST_WITH_MATCHES = least(150)


def brute_arguments(case: GeneratedCase) -> dict[str, Any]:
    return {"types": case.types, "tie_breaker": case.tie_breaker, "start": case.start, "params": case.params}


def reference(case: GeneratedCase) -> tuple[set[Match], dict[int, int]]:
    """The reference's matches and counts in the shape of the brute force's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = reference_match(case.events, case.query_text, schema=Schema(**schema_of(case)), params=case.params)
    matches = [tuple((name, indices(rows)) for name, rows in match.bindings.items()) for match in result.matches]
    assert len(set(matches)) == len(matches), f"a match is given twice by {case}"
    return set(matches), dict(result.compressed)


def indices(rows: int | tuple[int, ...] | None) -> tuple[int, ...] | None:
    return (rows,) if isinstance(rows, int) else rows or None


def explain(case: GeneratedCase, brute: set[Match], found: set[Match]) -> str:
    schema = f"types={case.types} tie_breaker={case.tie_breaker} start={case.start} params={case.params}"
    lines = [case.query_text, schema, *(f"  {i} {row}" for i, row in enumerate(case.events))]
    lines += [f"only the brute force: {match}" for match in sorted(brute - found, key=str)]
    lines += [f"only the reference:   {match}" for match in sorted(found - brute, key=str)]
    return "\n".join(lines)


@pytest.mark.parametrize("stratum", few_of(STRATA, 3))
def test_reference_agrees_with_brute_force(stratum: str, record_property: Callable[[str, object], None]) -> None:
    with_matches = 0
    for number in range(CASES_A_STRATUM):
        case = random_case(Random(f"{stratum} {number}"), stratum)
        expected = brute_force_match(case.events, case.query_text, **brute_arguments(case))
        found, counts = reference(case)
        assert found == expected, f"{stratum} {number}\n{explain(case, expected, found)}"
        if STRATA[stratum].output == "COMPRESSED":
            assert counts == brute_force_counts(case.events, case.query_text, **brute_arguments(case)), case
        with_matches += bool(expected)
    counted = f"reference = brute force: {stratum:22} {CASES_A_STRATUM} pairs, {with_matches} with matches"
    record_property("counted", counted)
    assert with_matches >= LEAST_WITH_MATCHES


# Shapes and conditions that chance seldom draws; changes to the brute force went unnoticed without them.
WRITTEN = """
B b ; A+ a[] WHERE skip_till_next_match { first(a.x) > 1 }
B b ; A+ a[] WHERE skip_till_next_match { a[1].x > 1 }
B b ; A+ a[] ; C c WHERE skip_till_next_match { sum(a.x) > 2 AND a[i].x >= a[i-1].x }
A+ a[] ; B b WHERE skip_till_next_match { a[1].x > 0 OR b.x > 1 }
A+ a[] ; A+ b[] WHERE skip_till_next_match { a[i].x >= a[i-1].x AND b[1].x < a[a.LEN].x AND b[i].x > sum(a.x) }
A a ; B? b ; C c WHERE skip_till_next_match { b.x > 1 OR c.x > 1 }
A a ; B* b[] ; C c WHERE skip_till_next_match { b[1].x > a.x AND c.x >= count(b) }
A+ a[] ; B b WHERE count(a.x) < count(a)
A+ a[] ; B b WHERE a[i].x > a[i-1].x AND a[i].x > avg(a[..i-1].x)
A a ; !(D d) ; B b WHERE [id] WITHIN 2 EVENTS
A a ; !(D d) ; B b WHERE partition_contiguity { [id] }
A a ; B b WHERE partition_contiguity { [id = 1] }
A a ; B{2,3} b[] ; C c OUTPUT NON_OVERLAP
A a ; B+ b[] ; C c WHERE sum(b.x) = 3 OUTPUT NON_OVERLAP
A a ; B b WHERE strict_contiguity { [id] } OUTPUT NON_OVERLAP
A a & B b WHERE [id] WITHIN 6 OUTPUT NON_OVERLAP
A a ; B^2 ; C c OUTPUT NON_OVERLAP
A a ; B+ ; C c ; B* d ; A e WHERE sum(B.x) >= sum(d.x) AND B.x >= a.x
A a ; B* ; !(C c) ; A e WITHIN 9
B* ; !(C c) ; A e WITHIN 9
A a ; !(C c) ; B* WITHIN 9
(A a & C c) ; B+ ; A e WITHIN 12
(A a ; B+ ; A e) & B c WITHIN 12
(A+ a[] ; !(B b) ; C c) & D d WHERE b.x > a[a.LEN].x WITHIN 9
((A a ; !(B b)) | C c) ; D d WITHIN 9
A a ; B? b ; !(C c) ; D? d WHERE c.x = b.x OR c.x = d.x WITHIN 8
A a ; B b ; A c WHERE NOT [id]
A a ; B b WHERE (1 / a.x) IS NULL OR NOT a.x = b.x = a.id
A+ a[] ; B b WHERE sum(a.x) * 4611686018427387904 > 0
"""


def draw_rows(rng: Random, query: str) -> list[dict[str, Any]]:
    """Rows of the types that the query names, at most eight, some of them simultaneous and some values NULL."""
    kinds = [kind for kind in "ABCD" if kind in query] * 3 + ["E"]
    rows, now, gaps = [], 0, rng.choice(((0, 1, 1, 2), (1, 1, 2)))
    for _ in range(rng.randint(4, 8)):
        now += rng.choice(gaps)
        values = {"id": rng.choice((1, 1, 1, 2)), "x": rng.choice((0, 1, 2, 3, None))}
        rows.append({"type": rng.choice(kinds), "ts": now, **values})
    return rows


@pytest.mark.parametrize("query", few_of(WRITTEN.strip().splitlines(), 3))
def test_reference_agrees_on_written_queries(query: str) -> None:
    rng = Random(query)
    for number in range(30):
        types = rng.choice((None, {"A": {"id", "x"}, "B": {"id", "x"}, "C": {"id", "x"}, "D": {"x"}}))
        case = GeneratedCase(f"PATTERN {query}", draw_rows(rng, query), types)
        expected = brute_force_match(case.events, case.query_text, **brute_arguments(case))
        found, _ = reference(case)
        assert found == expected, f"{number}\n{explain(case, expected, found)}"


@pytest.mark.parametrize(
    ("query", "kinds", "times", "ids", "xs"),
    [
        ("A a ; B+ b[] ; C c WHERE sum(b.x) = 3 OUTPUT NON_OVERLAP", "ABBBC", "12345", "11111", "01230"),
        ("A a ; B b WHERE strict_contiguity { [id] } OUTPUT NON_OVERLAP", "AABB", "1122", "1212", "0000"),
    ],
)
def test_reference_agrees_on_written_streams(query: str, kinds: str, times: str, ids: str, xs: str) -> None:
    columns = zip(kinds, times, ids, xs, strict=True)
    rows = [{"type": kind, "ts": int(time), "id": int(key), "x": int(x)} for kind, time, key, x in columns]
    case = GeneratedCase(f"PATTERN {query}", rows)
    expected = brute_force_match(rows, case.query_text)
    assert len(expected) == 1
    assert reference(case)[0] == expected


def test_a_case_can_be_drawn_again() -> None:
    for stratum in STRATA:
        assert random_case(Random(3), stratum) == random_case(Random(3), stratum)


def test_cases_are_drawn_by_hypothesis_too() -> None:
    from hypothesis import find

    from kleene.testing.generators import cases

    found = find(cases("negation"), lambda case: "!" in case.query_text)
    assert len(found.events) <= 8

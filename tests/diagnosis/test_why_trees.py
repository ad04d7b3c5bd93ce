"""Why a tree of joins made no match, on streams where the reason is planted."""

from __future__ import annotations

import pytest
from tests.diagnosis.test_why import rows, verdict

import kleene

EVENTS = rows(("A", 1, 1, 1), ("B", 2, 1, 1), ("A", 3, 5, 2), ("C", 4, 0, 1), ("D", 5, 2, 2))


def test_components_and_joins_are_counted() -> None:
    said = kleene.why(EVENTS, kleene.query("PATTERN SEQ(A a & B b, C c) WHERE a.x > 1 WITHIN 10", name="three"))
    assert said.splitlines() == [
        "`three`: 1 match in 5 events",
        "  a                   2 events of A, 1 with `a.x > 1`",
        "  b                   1 event of B",
        "  c                   1 event of C",
        "  CONJ(a, b)          1 pair tried, 1 made",
        "  SEQ(CONJ(a, b), c)  1 pair tried, 1 made",
    ]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("PATTERN A a & X x", "nothing reached x: no event of X came (there are only A, B, C, D)"),
        ("PATTERN A a & B b WHERE b.x > 4", "nothing reached b: no event of B has `b.x > 4`"),
        ("PATTERN A a & (X x | Y y)", "nothing reached x: no event of X came (there are only A, B, C, D)"),
        (
            "PATTERN A a & B b WHERE a.x > b.x + 10",
            "nothing was made by CONJ(a, b): 2 pairs failed `a.x > b.x + 10`",
        ),
        (
            "PATTERN A a & A b WHERE a.x = b.x",
            "nothing was made by CONJ(a, b): 2 pairs are the same event",
        ),
        (
            "PATTERN SEQ(D d, A a & B b)",
            "nothing was made by SEQ(d, CONJ(a, b)): no two of its parts came in this order",
        ),
        (
            "PATTERN SEQ(A a & B b, D d) WHERE [k] WITHIN 10",
            "nothing was made by SEQ(CONJ(a, b), d): "
            "no two of its parts came in this order, with the same `k`, in time (WITHIN 10)",
        ),
        (
            "PATTERN SEQ(A a, B b & D d) WITHIN 2",
            "nothing was made by CONJ(b, d): no two of its parts came in time (WITHIN 2)",
        ),
        (
            "PATTERN SEQ(A a & B b, C c, !(D d)) WITHIN 10",
            "nothing was made by NEG(SEQ(CONJ(a, b), c), !d): "
            "2 records stopped by a negated d after c within the window",
        ),
        (
            "PATTERN B b & C c & !(D d) WITHIN 10",
            "nothing was made by NEG(CONJ(b, c), !d): 1 record stopped by a negated d around (b, c) within the window",
        ),
        (
            "PATTERN SEQ(A a, B b & !(C c), D d) WITHIN 10",
            "nothing was made by NEG(SEQ(a, SEQ(b, d)), !c): 1 record stopped by a negated c between a and d",
        ),
        (
            "PATTERN SEQ(B b, !(A a ; C c), D d) WITHIN 10",
            "nothing was made by NEG(SEQ(b, d), !(a ; c)): 1 record stopped by a negated (a ; c) between b and d",
        ),
        (
            "PATTERN SEQ(A a, B+ b, C c) WHERE b.x > a.x + 1",
            "nothing was made by KSEQ(SEQ(a, c), b): no record has B with `b.x > a.x + 1` between a and c",
        ),
        (
            "PATTERN SEQ(A a, C+ c, B+ b, D d)",
            "nothing was made by KSEQ(SEQ(a, d), c): no record has C between a and d, leaving b",
        ),
        (
            "PATTERN A a & D+ d WITHIN 2",
            "nothing was made by KSEQ(a, d): no record has D around a within the window",
        ),
        ("PATTERN A+ a[] & B b WHERE a[1].x > 40", "nothing was made of a: no list of its events has `a[1].x > 40`"),
    ],
)
def test_where_the_records_became_none(query: str, why: str) -> None:
    assert verdict(EVENTS, query) == why


def test_a_negated_event_between_two_sides() -> None:
    said = verdict(EVENTS, "PATTERN SEQ(A a & B b, !(C c), D d) WITHIN 10")
    assert said.startswith("nothing was made by ")
    assert "c" in said.split(": ")[1].split()


def test_each_alternative_has_its_own_reason() -> None:
    said = kleene.why(EVENTS, "PATTERN SEQ(A a, B b & X? x) WHERE b.x > 5").splitlines()
    assert "alternative 2 of 2: SEQ(A a, B b)" in said
    assert [line.split(":")[0].strip() for line in said if "nothing" in line] == [
        "nothing reached b",
        "nothing reached b",
    ]


def test_events_without_their_key() -> None:
    events = rows(("A", 1, 1, 1), ("B", 2, 1, None))
    said = kleene.why(events, "PATTERN A a & B b WHERE [k]")
    assert "nothing reached b: every event of B lacks `k`" in said
    assert said.endswith("1 event has no `k` (NULL or NaN) and can be in no match")


def test_no_events() -> None:
    said = kleene.why([], "DECLARE TYPE A (x int) PATTERN A a & A b")
    assert said.endswith("nothing reached a: no event of A came (there are no events)")

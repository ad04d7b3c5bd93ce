"""Why a query in EQL found nothing, on events where the reason is planted."""

from __future__ import annotations

from typing import Any

import pytest

import kleene


def rows(*events: tuple[object, ...]) -> list[dict[str, object]]:
    return [dict(zip(("type", "ts", "x", "k"), event, strict=False)) for event in events]


EVENTS = rows(("A", 1, 1, 1), ("B", 2, 1, 1), ("A", 3, 5, 2), ("B", 4, 2, 3), ("B", 9, 7, 2))


def verdict(query: str, events: list[dict[str, Any]] = EVENTS) -> str:
    """The line that says what stopped the detections."""
    said = kleene.why(events, query).splitlines()
    (line,) = [line.strip() for line in said if line.startswith("  nothing came of ")]
    assert said[0].endswith(f": no match in {len(events)} events")
    return line.removeprefix("nothing came of ")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM A a ; B b ; C c", "C c: no event of C came (there are only A, B)"),
        ("SELECT * FROM A ; b", "b: no event of b came (did you mean `B`?)"),
        (
            "SELECT * FROM A a ; (C c | D d)",
            "C c: no event of C came (there are only A, B);"
            " nothing came of D d: no event of D came (there are only A, B)",
        ),
        (
            "DECLARE CLASS Big IS A WHERE x > 9 SELECT * FROM Big b ; B c WHERE b.k = 1",
            "Big b: no event of A is one of Big",
        ),
        ("SELECT * FROM A a ; B b WHERE a.x > 9 and a.k < 2", "A a: 2 failed `a.x > 9`, 1 failed `a.k < 2`"),
        # A1 and A3 have B2 and B4 next: of these x is not larger, and k is 1 and 3.
        ("SELECT * FROM A a ; B b WHERE b.x > a.x, b.k != 1", "A a ; B b: 2 failed `b.x > a.x`, 1 failed `b.k != 1`"),
        # Only B9 has a larger x; with the same k, it is that of A3.
        (
            "SELECT * FROM A a ; B b WHERE FILTER(b.x > a.x), FILTER(b.k > 7), FILTER(a.k = b.k)",
            "A a ; B b: without `b.k > 7` 1 more would have had a next b",
        ),
        # A1 has B2, and A3 has B9, which is next for it only without the comparison.
        (
            "SELECT * FROM A a ; B b WHERE FILTER(a.k = b.k), FILTER(b.x > 100)",
            "A a ; B b: without `b.x > 100` 2 more would have had a next b",
        ),
        ("SELECT * FROM B b ; A a WHERE b.ts > 3", "B b ; A a: no a came after b"),
        (
            "SELECT * FROM A a ; B b WHERE FILTER(b.x > 6), (a, b) OCCURS WITHIN 2",
            "A a ; B b: 2 expired (2 after a began: (a, b) OCCURS WITHIN 2),"
            " without `b.x > 6` 2 more would have had a next b",
        ),
        (r"SELECT * FROM A a ; (A b \ B e)", r"A a ; (A b \ B e): e ended 2"),
        (r"SELECT * FROM (A a ; A b) \ B e", r"(A a ; A b) \ B e: e ended 1 of 1"),
    ],
)
def test_what_stopped_most(query: str, said: str) -> None:
    assert verdict(query) == said


def test_each_operator_says_what_came_of_it() -> None:
    said = kleene.why(EVENTS, r"SELECT * FROM (A a ; B b) \ A e WHERE a.x < 9, b.x > 1, (a, b) OCCURS WITHIN 5")
    assert said.splitlines()[1:] == [
        "  A a                2 events, 2 with `a.x < 9`",
        "  B b                3 events",
        # A3 ends its own pair with B4: an exception may be the event that begins it.
        "  A a ; B b          2 came: 1 was served by what came next, 1 over: what came next failed; 1 given",
        "  A e                2 events",
        r"  (A a ; B b) \ A e  1 came, 1 ended by e, 0 given",
        r"  nothing came of (A a ; B b) \ A e: e ended 1 of 1",
    ]


def test_a_query_with_matches_has_no_verdict() -> None:
    said = kleene.why(EVENTS, "SELECT * FROM A a ; B T+ WHERE PREV(T.x) < 2")
    assert said.startswith("`q")
    assert "match" in said.splitlines()[0]
    assert "nothing" not in said
    assert "B T+" in said


def test_a_key_without_a_value() -> None:
    events = rows(("A", 1, 1, None), ("B", 2, 1, None), ("C", 3, 1, 1))
    assert verdict("SELECT * FROM A a ; B b WHERE FILTER(a.k = b.k), FILTER(a.x = b.x)", events).startswith(
        "A a ; B b: 1 had no value for the key"
    )


def test_without_events() -> None:
    assert verdict("SELECT * FROM A a ; B b", []) == "A a: no event of A came (there are no events)"


def test_the_reference_evaluator_counts_nothing() -> None:
    said = kleene.why(EVENTS, "SELECT * FROM A a ; B T+ WHERE ALL(T.x) > 1 or ALL(T.k) > 1")
    assert "runs on the reference evaluator, which counts nothing (two conditions on ALL in one OR)" in said

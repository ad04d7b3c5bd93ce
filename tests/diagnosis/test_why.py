"""Why nothing matched, on streams where the reason is planted; on stacks and on runs where both can tell."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import kleene

NEXT = "skip_till_next_match"


def rows(*events: tuple[object, ...]) -> list[dict[str, object]]:
    return [dict(zip(("type", "ts", "x", "k"), event, strict=False)) for event in events]


def verdict(events: list[dict[str, Any]], query: str) -> str:
    """The line that says what stopped the runs."""
    (line,) = [line.strip() for line in kleene.why(events, query).splitlines() if line.startswith("  nothing")]
    return line


A_B = rows(("A", 1, 1, 1), ("B", 2, 1, 1))


@pytest.mark.parametrize("where", ["", f"WHERE {NEXT} {{ }}"])
def test_no_event_of_a_type(where: str) -> None:
    query = f"PATTERN SEQ(A a, B b, C c) {where}"
    assert verdict(A_B, query) == "nothing reached c: no event of C came (there are only A, B)"
    shelf = rows(("SHELF", 1), ("B", 2))
    assert verdict(shelf, f"PATTERN SEQ(Shelf a, B b) {where}").endswith(
        "no event of Shelf came (did you mean `SHELF`?)"
    )


@pytest.mark.parametrize("where", ["b.x > 3", f"{NEXT} {{ b.x > 3 }}"])
def test_a_condition_on_one_event_is_too_strict(where: str) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE {where}"
    assert verdict(A_B, query) == "nothing reached b: no event of B has `b.x > 3`"
    assert "b  1 event of B, none with `b.x > 3`" in kleene.why(A_B, query)


def test_some_pass_their_own_condition() -> None:
    events = rows(("A", 1, 1), ("A", 2, 9), ("A", 3, 8), ("B", 4, 0))
    said = kleene.why(events, "PATTERN SEQ(A a, B b) WHERE a.x > 5 AND b.x > a.x")
    assert "a  3 events of A, 2 with `a.x > 5`; 2 sequences failed `b.x > a.x`" in said


def test_a_class_that_no_event_is_in() -> None:
    query = "DECLARE CLASS Big IS B WHERE x > 3 PATTERN SEQ(A a, Big b)"
    assert verdict(A_B, query) == "nothing reached b: no event of B is one of Big"


def test_a_condition_across_events_fails() -> None:
    events = rows(("A", 1, 1), ("B", 2, 1), ("B", 3, 0))
    on_stacks = "PATTERN SEQ(A a, B b) WHERE b.x > a.x"
    assert verdict(events, on_stacks) == "nothing that reached b is a match: 2 sequences failed `b.x > a.x`"
    on_runs = f"PATTERN SEQ(A a, B b) WHERE {NEXT} {{ b.x > a.x }}"
    assert verdict(events, on_runs).startswith("nothing reached b: 2 tries failed `b.x > a.x`")


def test_several_conditions_are_counted_together() -> None:
    said = verdict(A_B, "PATTERN SEQ(A a, B b) WHERE b.x > a.x AND b.ts > a.ts + 5")
    assert said.endswith("1 sequence failed one of `b.x > a.x`, `b.ts > a.ts + 5`")


def test_the_window_is_too_short() -> None:
    events = rows(("A", 1, 1, 1), ("B", 20, 1, 1), ("A", 30, 1, 1))
    on_stacks = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5"
    late = "1 event for b came after a with the same `k`, too late for the window (WITHIN 5)"
    assert verdict(events, on_stacks) == f"nothing reached b: {late}"
    on_runs = f"PATTERN SEQ(A a, B b) WHERE {NEXT} {{ [k] }} WITHIN 5"
    waited = "1 run at a waited until the window closed (WITHIN 5), 1 still waited when the stream ended"
    assert verdict(events, on_runs) == f"nothing reached b: {waited}"


def test_each_step_is_in_the_window_and_the_whole_is_not() -> None:
    events = rows(("A", 1), ("B", 4), ("C", 8))
    said = verdict(events, "PATTERN SEQ(A a, B b, C c) WITHIN 5")
    assert said == "nothing that reached c is a match: first and last event lie further apart than WITHIN 5"


@pytest.mark.parametrize("where", ["strict_contiguity { }", "partition_contiguity { [k] }"])
def test_contiguity_is_broken(where: str) -> None:
    events = rows(("A", 1, 1, 1), ("X", 2, 1, 1), ("B", 3, 1, 1))
    assert (
        verdict(events, f"PATTERN SEQ(A a, B b) WHERE {where}")
        == "nothing reached b: 1 run at a met another event next"
    )


def test_a_negated_event_stops_the_runs() -> None:
    events = rows(("A", 1), ("C", 2), ("B", 3))
    stopped = "stopped by a negated c"
    on_stacks, on_runs = "PATTERN SEQ(A a, !(C c), B b)", f"PATTERN SEQ(A a, !(C c), B b) WHERE {NEXT} {{ }}"
    assert verdict(events, on_stacks) == f"nothing that reached b is a match: 1 sequence {stopped}"
    assert verdict(events, on_runs) == f"nothing reached b: 1 run {stopped}"
    at_the_end = rows(("A", 1), ("B", 2), ("C", 3))
    assert verdict(at_the_end, "PATTERN SEQ(A a, B b, !(C c)) WITHIN 5").endswith(f"1 sequence {stopped}")


def test_keys_that_are_null_or_differ() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE [k]"
    without = rows(("A", 1, 1, 1), ("B", 2, 1, None))
    assert verdict(without, query) == "nothing reached b: every event of B lacks `k`"
    assert "1 event has no `k` (NULL or NaN) and can be in no match" in kleene.why(without, query)
    other = rows(("A", 1, 1, 1), ("B", 2, 1, 2))
    assert verdict(other, query) == "nothing reached b: 1 event for b came after a, none with the same `k`"


@pytest.mark.parametrize("where", ["", f"WHERE {NEXT} {{ }}"])
def test_the_order_is_another(where: str) -> None:
    events = rows(("B", 1), ("B", 2), ("A", 3))
    assert verdict(events, f"PATTERN SEQ(A a, B b) {where}") == "nothing reached b: no event for b came after a"


def test_a_closure_that_cannot_begin_or_end() -> None:
    events = rows(("A", 1, 1), ("A", 2, 1), ("B", 3, 1))
    first = f"PATTERN SEQ(A+ a[], B b) WHERE {NEXT} {{ a[1].x > 5 }}"
    assert verdict(events, first) == "nothing reached a: no event of A has `a[1].x > 5`"
    whole = f"PATTERN SEQ(A+ a[], B b) WHERE {NEXT} {{ avg(a.x) > 5 }}"
    assert verdict(events, whole) == "nothing reached b: no run could leave a: it needs avg(a.x) > 5"
    least = f"PATTERN SEQ(A{{3,}} a[], B b) WHERE {NEXT} {{ }}"
    assert verdict(events, least) == "nothing reached b: no run could leave a: it needs at least 3 events"


def test_matches_need_no_verdict() -> None:
    said = kleene.why(A_B, kleene.query("PATTERN SEQ(A a, B b) WITHIN 5", name="pair"))
    assert said.splitlines() == [
        "`pair`: 1 match in 2 events",
        "  a  1 event of A",
        "  b  1 event of B; 1 came after a in time",
    ]


def test_each_alternative_has_its_own_reason() -> None:
    said = kleene.why(A_B, "PATTERN SEQ(A a, C? c, B b) WHERE b.x > 4").splitlines()
    assert "alternative 1 of 2: SEQ(A a, C c, B b)" in said
    assert [line.split(":")[0].strip() for line in said if "nothing" in line] == [
        "nothing reached c",
        "nothing reached b",
    ]


def test_no_events_and_bad_rows() -> None:
    query = "DECLARE TYPE A (x int) PATTERN A a"
    assert kleene.why([], query).splitlines()[-1].endswith("no event of A came (there are no events)")
    said = kleene.why([{"type": "A", "ts": None, "x": 1}, {"type": "B", "ts": 1, "x": 1}], "PATTERN A a")
    assert said.splitlines()[0].endswith("no match in 1 event")
    assert said.endswith("nothing reached a: no event of A came (there are only B)")


def test_the_reference_evaluator_counts_nothing() -> None:
    events = [{"type": kind, "ts": 1, "x": Decimal("1.5")} for kind in "AB"]
    said = kleene.why(events, kleene.query("PATTERN A & B WHERE A.x < B.x", name="both"))
    assert said == (
        "why is not available: `both` runs on the reference evaluator, which counts nothing (decimal < decimal)"
    )

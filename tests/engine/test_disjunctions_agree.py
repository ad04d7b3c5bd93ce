"""Nested disjunctions with common parts and conditions across branches: the reference, and every plan."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.engine.agreement import Pair, content
from tests.engine.batches import bound
from tests.engine.disjunction_agreement import Counted, compare, compare_pair
from tests.soaking import rounds

import kleene
from kleene.pattern import Query, Schema
from kleene.testing.reference_outputs import table_outputs

PAIRS, PARTS = rounds(2_000), 4


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_every_plan_of_nested_disjunctions(part: int, record_property: Callable[[str, object], None]) -> None:
    counted = compare(PAIRS // PARTS, first=part * PAIRS)
    record_property("counted", f"nested disjunctions, every plan = reference: {counted}")
    assert counted.pairs == PAIRS // PARTS
    assert counted.matched > counted.pairs / 3
    assert counted.merged > counted.pairs / 3
    assert counted.plans > 2 * counted.pairs


@pytest.mark.slow
def test_some_nested_disjunctions() -> None:
    """Others than the many."""
    counted = compare(25, first=1_000_000)
    assert counted.matched > counted.pairs / 3
    assert counted.merged > counted.pairs / 3
    assert counted.plans > 2 * counted.pairs


EVENTS = [
    {"type": kind, "ts": time, "k": key, "x": value}
    for time, (kind, key, value) in enumerate(
        [("C", 1, 5), ("A", 1, 2), ("B", 2, 7), ("D", 1, 4), ("C", 2, 1), ("B", 1, 3), ("A", 2, 6), ("D", 2, 9)]
    )
]
# Each with the number of its matches over these events, counted by hand.
COUNTED_BY_HAND = {
    # Before D3 there are C0 with A1 and with B2; before D7, C0 and C4 with each of A1, B2, B5 and A6.
    "PATTERN ((C c & A a) | (C e & B b)) ; D d WHERE a.k = b.k WITHIN 9": 10,
    # The same: of a match with A1 the condition on B is true, since it has none; of one with B5 that on A.
    "PATTERN ((C c & A a) | (C e & B b)) ; D d WHERE (a.x > 3 OR b.x > 3) WITHIN 9": 10,
    # Of an A its k is asked: before D3 C0 A1 and C0 B2; before D7 C0 A1, C4 A6, and both C with both B.
    "PATTERN ((C c & A a) | (C e & B b)) ; D d WHERE c.k = a.k AND a.x != b.x WITHIN 9": 8,
}


@pytest.mark.parametrize("text", COUNTED_BY_HAND)
def test_conditions_across_branches_hold_of_matches_that_lack_a_branch(text: str) -> None:
    assert len(kleene.match(EVENTS, text)) == COUNTED_BY_HAND[text]


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(C c, B* b[], D d) WHERE b[1].x > c.x WITHIN 9",
        "PATTERN SEQ(C c, B* b[], D d) WHERE b[b.LEN].x > c.x WITHIN 9",
        "PATTERN (C c ; !(B n) ; D d) | (C e ; B+ b[] ; D f) WHERE n.x > b[1].x WITHIN 9",
        "PATTERN (C c ; B+ b[] ; D d) | (A a ; D e) WHERE b[1].k = a.k AND b[b.LEN].x < a.x WITHIN 9",
    ],
)
def test_conditions_may_name_a_list_that_an_alternative_lacks(text: str) -> None:
    """On stacks as elsewhere: such a query does not go to the reference evaluator."""
    assert "reference" not in kleene.explain(text, events=EVENTS).text
    table = pa.Table.from_pylist(EVENTS)
    query = bound(text, table)
    expected = table_outputs(table, [Query(text)], schema=Schema())
    compare_pair(Pair(text, query, table, expected), random.Random(text), Counted())
    assert content(expected.matches)

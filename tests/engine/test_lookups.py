"""Events found by value: equalities of other attributes, of whole with real numbers, and in conditions of negation."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import check, pair_of
from tests.engine.test_adapting import bound
from tests.soaking import rounds

from kleene.engine.engine import Engine
from kleene.engine.executors import negation
from kleene.optimize.planner import may_be_trees
from kleene.plan.settings import ExecutorKind, Settings
from kleene.plan.trees import JoinNode, TreePlan, walk
from kleene.testing.generators import GeneratedCase

# x and z are whole, y is real.
QUERIES = (
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.x = a.x",
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.x = c.z AND a.s = b.s",
    "PATTERN SEQ(A a, !(B b), C c) WHERE b.y = a.x",
    "PATTERN SEQ(A a, !(B b), C c) WHERE [id] AND b.x = a.z AND b.y < c.y",
    "PATTERN SEQ(A a, C c, !(B b)) WHERE b.z = c.x",
    "PATTERN SEQ(!(B b), A a, C c) WHERE a.x = b.x",
    "PATTERN SEQ(A a, !(B b), C c, !(A d), B e) WHERE b.s = c.s AND d.y = e.x",
    "PATTERN SEQ(A a, B? e, !(B b), C c) WHERE b.x = e.x",
    "PATTERN SEQ(A+ a[], C c, !(B b)) WHERE b.x = a[1].x AND b.y = a[a.LEN].z",
    "PATTERN SEQ(A a, B b) WHERE a.x = b.z",
    "PATTERN SEQ(A a, B b) WHERE a.x = b.y",
    "PATTERN SEQ(A a, B b, C c) WHERE a.y = c.x AND b.z = c.x",
    "PATTERN A a & B b WHERE a.y = b.x",
)
REALS = (0.0, -0.0, 1.0, 2.0, 1.5, float("nan"), 2.0**53, None)
WHOLES = (0, 1, 2, 2**53, 2**53 + 1, None)


def a_case(draw: random.Random) -> GeneratedCase:
    now, rows = 0, []
    for _ in range(draw.randint(8, 14)):
        now += draw.choice((0, 0, 1, 1, 2))
        row = {
            "type": draw.choice("AABBBCC"),
            "ts": now,
            "id": draw.choice((1, 1, 2)),
            "s": draw.choice(("u", "v", None)),
        }
        rows.append({**row, "x": draw.choice(WHOLES), "z": draw.choice(WHOLES[:3]), "y": draw.choice(REALS)})
    return GeneratedCase(f"{draw.choice(QUERIES)} WITHIN {draw.randint(5, 14)}", rows)


@pytest.mark.slow
@pytest.mark.parametrize("executor", [None, ExecutorKind.AUTOMATON, ExecutorKind.TREES])
def test_what_is_looked_up_agrees_with_the_reference(
    executor: ExecutorKind | None, record_property: Callable[[str, object], None]
) -> None:
    """At once and in pieces, restored from snapshots; few negated events are looked up by value, too."""
    pairs = matched = 0
    for seed in range(rounds(800, 40)):
        draw = random.Random(f"look-ups {seed}")
        pair = pair_of(a_case(draw))
        with mock.patch.object(negation, "_MANY", 0):
            if pair is not None and check(pair, Settings(executor=executor), draw):
                pairs, matched = pairs + 1, matched + (pair.expected.matches.num_rows > 0)
    record_property("counted", f"look-ups = reference: {executor} {pairs} pairs, {matched} with matches")
    assert matched >= rounds(800, 40) // 6


def linked(events: int) -> pa.Table:
    draw = np.random.default_rng(3)
    return pa.table(
        {
            "type": draw.choice(["A", "B", "C"], events),
            "ts": np.arange(events),
            "src": draw.integers(0, 500, events),
            "dst": draw.integers(0, 500, events).astype(np.float64),
        }
    )


def test_two_events_are_looked_up_where_the_attributes_differ() -> None:
    """Stacks would try every A of the window with each B."""
    table = linked(6000)
    query = bound(table, "PATTERN SEQ(A a, B b) WHERE a.src = b.dst WITHIN 1000")
    engine = Engine(query)
    found = engine.finish(table).matches
    (tree,) = engine.plan.alternatives
    assert isinstance(tree, TreePlan)
    assert [len(node.equalities) for node in walk(tree.root) if isinstance(node, JoinNode)] == [1]
    (measured,) = engine.measured
    assert measured is not None
    assert found is not None
    # The pairs tried are those that are equal.
    assert measured.nodes[-1][0] == found.num_rows > 1000
    stacks = Engine(query, Settings(executor=ExecutorKind.STACKS)).finish(table).matches
    assert stacks is not None
    assert stacks["match_id"].to_pylist() == found["match_id"].to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PATTERN SEQ(A a, B b) WHERE a.src = b.dst WITHIN 9", True),
        ("PATTERN SEQ(A a, B b) WHERE a.src = b.src WITHIN 9", False),  # a key
        ("PATTERN SEQ(A a, B b) WHERE a.src < b.dst WITHIN 9", False),
        ("PATTERN SEQ(A a, B b) WHERE a.src = 3 WITHIN 9", False),
        ("PATTERN SEQ(A a, !(B b)) WHERE a.src = b.dst WITHIN 9", False),
    ],
)
def test_which_pairs_may_be_trees(text: str, expected: bool) -> None:
    assert may_be_trees(bound(linked(1), text), Settings()) is expected


def test_negated_events_are_looked_up_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the negated events in a gap only those are tried that have the value."""
    table = linked(3000)
    query = bound(table, "PATTERN SEQ(A a, !(C c), B b) WHERE a.src = b.src AND c.src = a.dst WITHIN 2000")
    tried: list[int] = []
    plain: Any = vars(negation)["forbidden"]

    def counting(gaps: Any, negated: Any, *others: Any) -> None:
        tried.append(len(negated.begins) - 1)
        plain(gaps, negated, *others)

    monkeypatch.setattr(negation, "forbidden", counting)
    settings = Settings(executor=ExecutorKind.STACKS)
    found = Engine(query, settings).finish(table).matches
    assert max(tried) > 400
    monkeypatch.setattr(negation, "_MANY", 10**9)
    tried.clear()
    slowly = Engine(query, settings).finish(table).matches
    assert max(tried) == 1
    assert found is not None
    assert slowly is not None
    assert found["match_id"].to_pylist() == slowly["match_id"].to_pylist()

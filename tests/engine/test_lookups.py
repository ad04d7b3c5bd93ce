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
from tests.engine.lookup_cases import QUERIES, lookup_case
from tests.engine.test_adapting import bound
from tests.soaking import rounds

from kleene.engine.engine import Engine
from kleene.engine.executors import negation
from kleene.engine.executors.trees import closures, negations
from kleene.kernels.joins import LinkedEvents
from kleene.kernels.negation import EventsByKey
from kleene.optimize.planner import may_be_trees
from kleene.optimize.trees import parts
from kleene.plan.settings import ExecutorKind, Settings
from kleene.plan.trees import JoinNode, TreePlan, walk

# Each query is drawn in turn.
ROUNDS = 40 * len(QUERIES)


@pytest.mark.slow
@pytest.mark.parametrize("executor", [None, ExecutorKind.AUTOMATON, ExecutorKind.TREES])
def test_what_is_looked_up_agrees_with_the_reference(
    executor: ExecutorKind | None, record_property: Callable[[str, object], None]
) -> None:
    """At once and in pieces, restored from snapshots; few negated events are looked up by value, too."""
    pairs = matched = 0
    for seed in range(rounds(ROUNDS, 40)):
        draw = random.Random(f"look-ups {seed}")
        pair = pair_of(lookup_case(draw, QUERIES[seed % len(QUERIES)]))
        with mock.patch.object(negation, "_MANY", 0):
            if pair is not None and check(pair, Settings(executor=executor), draw):
                pairs, matched = pairs + 1, matched + (pair.expected.matches.num_rows > 0)
    record_property("counted", f"look-ups = reference: {executor} {pairs} pairs, {matched} with matches")
    assert matched >= rounds(ROUNDS, 40) // 6


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


@pytest.mark.parametrize(
    "equality", ["a.src = b.dst", "a.src + 1 = b.dst", "a.src % 100 = b.src - b.src % 50", "a.src * 2 = b.dst"]
)
def test_two_events_are_looked_up_where_the_values_differ(equality: str) -> None:
    """Stacks would try every A of the window with each B."""
    table = linked(6000)
    query = bound(table, f"PATTERN SEQ(A a, B b) WHERE {equality} WITHIN 1000")
    engine = Engine(query)
    found = engine.finish(table).matches
    (tree,) = engine.plan.alternatives
    assert isinstance(tree, TreePlan)
    assert [len(node.equalities) for node in walk(tree.root) if isinstance(node, JoinNode)] == [1]
    (measured,) = engine.measured
    assert measured is not None
    assert found is not None
    # The pairs tried are those that are equal.
    assert measured.nodes[-1][0] == found.num_rows > 500
    stacks = Engine(query, Settings(executor=ExecutorKind.STACKS)).finish(table).matches
    assert stacks is not None
    assert stacks["match_id"].to_pylist() == found["match_id"].to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PATTERN SEQ(A a, B b) WHERE a.src = b.dst WITHIN 9", True),
        ("PATTERN SEQ(A a, B b) WHERE a.src = b.src WITHIN 9", False),  # a key
        ("PATTERN SEQ(A a, B b) WHERE a.src + 1 = b.src WITHIN 9", True),
        ("PATTERN SEQ(A a, B b) WHERE a.src - b.src = 1 WITHIN 9", False),  # of both on one side
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


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("A a ; !(C c) ; B b WHERE c.src = b.dst", "last_negating"),
        ("A a ; !(C c) ; B b WHERE c.src + 1 = a.dst", "first_negating"),
        ("A a ; !(C c) ; B b WHERE c.src = a.src + b.src", "forbidden"),
        ("A a ; B b ; !(C c) WHERE c.src = a.dst", "forbidden"),
        ("A a ; C+ ; B b WHERE C.src % 100 = a.src", "members"),
    ],
)
def test_trees_find_negated_events_and_members_by_value(text: str, kernel: str) -> None:
    """In each place where a tree looks for events of a class, these lie under as many codes as they have values."""
    module: Any = closures if kernel == "members" else negations
    table, codes, plain = linked(2000), [0], vars(module)[kernel]

    def counting(*given: Any) -> Any:
        for each in given:
            if isinstance(each, LinkedEvents):
                codes.append(int(np.count_nonzero(each.heads >= 0)))
            elif isinstance(each, EventsByKey):
                codes.append(len(each.begins) - 1)
        return plain(*given)

    query = bound(table, f"PATTERN {text} WITHIN 200")
    with mock.patch.object(module, kernel, counting):
        found = Engine(query, Settings(executor=ExecutorKind.TREES)).finish(table).matches
    assert max(codes) > 50
    with mock.patch.object(parts, "finds_events", return_value=False):
        slowly = Engine(query, Settings(executor=ExecutorKind.TREES)).finish(table).matches
    assert found is not None
    assert slowly is not None
    assert found.num_rows > 0
    assert sorted(found["match_id"].to_pylist()) == sorted(slowly["match_id"].to_pylist())


def test_times_of_different_steps_are_equal_where_they_are_the_same_moment() -> None:
    """Seconds are looked up among nanoseconds; one beyond the nanoseconds of 64 bits equals none of them."""
    moments = [0, 1, 5, 6, 2**34]
    rows = {
        "type": ["A"] * len(moments) + ["B"] * 4,
        "ts": list(range(len(moments) + 4)),
        "t": pa.array([*moments, 0, 0, 0, 0], pa.timestamp("s")),
        "u": pa.array([0] * len(moments) + [10**9, 5 * 10**9, 11 * 10**9, None], pa.timestamp("ns")),
    }
    table = pa.table(rows)
    for condition, pairs in (("a.t = b.u", {(1, 5), (2, 6)}), ("a.t + 5 secs = b.u", {(0, 6), (3, 7)})):
        query = bound(table, f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 99")
        engine = Engine(query, Settings(executor=ExecutorKind.TREES))
        found = engine.finish(table).matches
        (measured,) = engine.measured
        assert found is not None
        assert measured is not None
        assert measured.nodes[-1][0] == len(pairs)
        assert {(row["a"]["ts"], row["b"]["ts"]) for row in found.to_pylist()} == pairs

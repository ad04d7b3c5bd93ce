"""Every tree plan of random queries against the reference, whole, in pieces, and with another plan after a restore."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice

import pyarrow as pa
import pytest
from tests.engine.agreement import Pair
from tests.engine.batches import bound
from tests.engine.tree_agreement import STRATA, Counted, agree, agree_at_a_glance, try_plans
from tests.soaking import some_of

from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.options import options
from kleene.pattern import Query, Schema
from kleene.testing.reference_outputs import table_outputs


@pytest.mark.slow
@pytest.mark.parametrize("stratum", some_of(STRATA, 4))
def test_every_plan_agrees_with_the_reference(stratum: str, record_property: Callable[[str, object], None]) -> None:
    agree(stratum, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("stratum", some_of(STRATA, 2))
def test_some_plans_agree_with_the_reference(stratum: str) -> None:
    agree_at_a_glance(stratum)


# Longer patterns than random ones, and how many trees they have: 14 orders of five parts, 105 in any order. What stands
# above the last join stands on top: where it is between the sides of that, there is one tree fewer.
LONG = {
    "PATTERN SEQ(A a, B b, C c, D d, E e) WHERE a.x <= c.x AND b.x = e.x WITHIN 30": 14,
    "PATTERN A a & B b & C c & D d & E e WHERE a.x < c.x AND b.x = e.x WITHIN 9": 105,
    "PATTERN SEQ(A a, B b, !(C c), D d, E e) WHERE c.x > d.x WITHIN 20": 5 * 3 - 1,
    "PATTERN SEQ(A a, B b, C, D d, !(E e)) WHERE e.x != a.x WITHIN 15": 5,
    "PATTERN SEQ(A a, B b, C+, D d, E e) WHERE C.x >= 0 WITHIN 25": 5 * 2 - 1,
    "PATTERN (A a ; B b) & (C c | (D d ; !(A k) ; E e)) WHERE a.x != c.x WITHIN 9": 4,
}


def stream(draw: random.Random) -> pa.Table:
    return pa.table(
        {
            "type": [draw.choice("ABCDE") for _ in range(50)],
            "ts": pa.array(sorted(draw.randint(0, 50) for _ in range(50)), pa.int64()),
            "x": pa.array([draw.randint(0, 3) for _ in range(50)], pa.int64()),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("text", some_of(LONG, 2))
def test_every_plan_of_a_longer_pattern(text: str, record_property: Callable[[str, object], None]) -> None:
    draw = random.Random(text)
    counted = Counted()
    table = stream(draw)
    expected = table_outputs(table, [Query(text)], schema=Schema())
    pair = Pair(text, bound(text, table), table, expected)
    (option,) = options(pair.bound)
    assert len(list(islice(all_trees(pair.bound, option), 200))) == LONG[text]
    assert expected.matches.num_rows > 0
    assert try_plans(pair, draw, counted)
    record_property("counted", f"trees = reference: {counted.plans:3} plans of {text}")

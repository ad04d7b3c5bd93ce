"""Closures side by side, under `&` and at both ends: brute force, reference and every tree plan give the same.

The brute force reads the semantics page by itself. Plans run whole, in pieces, and with another plan after a restore.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.engine.agreement import pair_of
from tests.engine.tree_agreement import Counted, compare, try_plans
from tests.soaking import rounds
from tests.testing.test_reference_agrees import brute_arguments, explain, reference

from kleene.optimize.trees.building import why_not_trees
from kleene.testing.brute import brute_force_match
from kleene.testing.generators import random_case

# So many parts of so many pairs each in `make soak`.
PARTS, PAIRS = 8, 280
MOST_PLANS = 12


@pytest.mark.parametrize("part", range(PARTS))
def test_every_plan_gives_what_the_brute_force_gives(part: int, record_property: Callable[[str, object], None]) -> None:
    counted, number = Counted(), rounds(PAIRS, share=140)
    for seed in range(part * 10_000, part * 10_000 + number):
        draw = random.Random(f"closures {seed}")
        case = random_case(draw, "closures")
        expected = brute_force_match(case.events, case.query_text, **brute_arguments(case))
        by_reference, _ = reference(case)
        assert by_reference == expected, f"{seed}\n{explain(case, expected, by_reference)}"
        pair = pair_of(case)
        assert pair is not None, case.query_text
        assert pair.expected.matches.num_rows == len(expected)
        assert why_not_trees(pair.bound) is None
        # Some conditions, such as CONTAINS of a variable, stay on the reference.
        if try_plans(pair, draw, counted, most=MOST_PLANS):
            counted.pairs += 1
            counted.matched += bool(expected)
    record_property("counted", f"closures: brute force = reference = trees: {counted}")
    assert counted.pairs >= number * 9 // 10
    assert counted.matched >= number // 4


def test_matches_that_do_not_overlap(record_property: Callable[[str, object], None]) -> None:
    wanted = rounds(160, share=80)
    counted = compare("non_overlap_closures", wanted, seeds=2 * wanted, most=3)
    record_property("counted", f"closures, NON_OVERLAP: reference = trees: {counted}")
    assert counted.pairs == wanted

"""Negation in groups, negated pairs: every tree plan gives what the brute force gives, whole, in pieces, restored."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.negation_agreement import CRAFTED, compare
from tests.soaking import rounds

# So many pairs of each stratum in `make soak`.
PAIRS = {"negated_groups": 1_000, "negated_pairs": 400, CRAFTED: 700}


@pytest.mark.slow
@pytest.mark.parametrize("stratum", PAIRS)
def test_every_plan_gives_what_the_brute_force_gives(
    stratum: str, record_property: Callable[[str, object], None]
) -> None:
    wanted = rounds(PAIRS[stratum], share=100)
    counted = compare(stratum, wanted)
    said = f"trees = reference = brute force: {stratum:14} {counted}, and {counted.off_trees} that no tree runs"
    record_property("counted", said)
    assert counted.pairs == wanted
    assert counted.matched >= wanted // 5

"""The engine against the reference on random queries and streams: every rule on and each off, whole and in pieces."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.engine.agreement import SETTINGS, case_of, check, pair_of

# How many random cases each stratum draws: as many as give fifty pairs with a match.
STRATA = {
    "sequence": 160,
    "strict_contiguity": 160,
    "partition_contiguity": 160,
    "skip_till_next_match": 140,
    "kleene_any": 140,
    "negation": 140,
    "optional": 110,
    "disjunction": 170,
    "ties": 150,
    "tie_breaker": 140,
    "durations": 420,
    "nulls_missing": 200,
    "count_window": 140,
    "non_overlap": 120,
    "compressed": 140,
    "arithmetic": 130,
    "boolean_conditions": 240,
    "timeouts": 330,
}
MATCHED = 50

compared: Counter[str] = Counter()
matched: Counter[str] = Counter()


@pytest.mark.parametrize("stratum", STRATA)
def test_engine_and_reference_agree(stratum: str) -> None:
    for seed in range(STRATA[stratum]):
        draw = random.Random(f"{stratum} {seed}")
        pair = pair_of(case_of(draw, stratum))
        if pair is None or not check(pair, SETTINGS[seed % len(SETTINGS)], draw):
            continue
        compared[stratum] += 1
        outputs = pair.expected.matches if stratum != "timeouts" else pair.expected.timeouts
        matched[stratum] += outputs is not None and outputs.num_rows > 0
    print(f"{stratum:22} {compared[stratum]:4} pairs, {matched[stratum]:4} with matches")
    assert matched[stratum] >= MATCHED


def test_enough_was_compared() -> None:
    """Runs after the strata; alone it has nothing to count."""
    print(f"{sum(compared.values())} pairs, {sum(matched.values())} with matches")
    assert len(compared) < len(STRATA) or sum(compared.values()) >= 2_000

"""The engine against the reference on random queries and streams: every rule on and each off, whole and in pieces."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.engine.agreement import SETTINGS, case_of, check, pair_of

# How many random cases each stratum draws: as many as give enough pairs, and enough of them with a match.
STRATA = {
    "sequence": 160,
    "strict_contiguity": 160,
    "partition_contiguity": 160,
    "skip_till_next_match": 140,
    "kleene_any": 140,
    "negation": 140,
    "optional": 120,
    "disjunction": 310,
    "ties": 150,
    "tie_breaker": 140,
    "durations": 150,
    "durations_strict": 150,
    "durations_partition": 170,
    "durations_counted": 170,
    "nulls_missing": 200,
    "count_window": 140,
    "non_overlap": 120,
    "compressed": 140,
    "arithmetic": 130,
    "boolean_conditions": 240,
    "timeouts": 330,
    "agreeing": 130,
    "timeouts_agreeing": 170,
    "mixed_ends": 140,
    "non_overlap_mixed_ends": 120,
    "compressed_mixed_ends": 120,
    "timeouts_mixed_ends": 140,
}
# In each stratum: three thousand pairs in all.
PAIRS, MATCHED = 112, 50


@pytest.mark.slow
@pytest.mark.parametrize("stratum", STRATA)
def test_engine_and_reference_agree(stratum: str, record_property: Callable[[str, object], None]) -> None:
    pairs, matched = _compare(stratum, range(STRATA[stratum]))
    record_property("counted", f"engine = reference: {stratum:22} {pairs:4} pairs, {matched:4} with matches")
    assert pairs >= PAIRS
    assert matched >= MATCHED


@pytest.mark.parametrize("stratum", STRATA)
def test_engine_and_reference_agree_at_a_glance(stratum: str) -> None:
    """Other cases than the many, so that these too are worth their time."""
    _, matched = _compare(stratum, range(10_000, 10_012))
    assert matched


def _compare(stratum: str, seeds: range) -> tuple[int, int]:
    """How many pairs ran on the engine, and how many of them had a match."""
    pairs = matched = 0
    for seed in seeds:
        draw = random.Random(f"{stratum} {seed}")
        pair = pair_of(case_of(draw, stratum))
        if pair is None or not check(pair, SETTINGS[seed % len(SETTINGS)], draw):
            continue
        pairs += 1
        expected = pair.expected
        outputs = expected.matches if expected.timeouts is None else expected.timeouts
        matched += outputs.num_rows > 0
    return pairs, matched

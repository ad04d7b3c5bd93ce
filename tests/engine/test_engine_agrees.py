"""The engine against the reference on random queries and streams: every rule on and each off, whole and in pieces."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.agreement import MATCHED, PAIRS, STRATA, compare

HALF = list(STRATA)[:14]


@pytest.mark.slow
@pytest.mark.parametrize("stratum", HALF)
def test_engine_and_reference_agree(stratum: str, record_property: Callable[[str, object], None]) -> None:
    pairs, matched = compare(stratum, range(STRATA[stratum]))
    record_property("counted", f"engine = reference: {stratum:22} {pairs:4} pairs, {matched:4} with matches")
    assert pairs >= PAIRS
    assert matched >= MATCHED


@pytest.mark.parametrize("stratum", HALF)
def test_engine_and_reference_agree_at_a_glance(stratum: str) -> None:
    """Other cases than the many, so that these too are worth their time."""
    _, matched = compare(stratum, range(10_000, 10_012))
    assert matched

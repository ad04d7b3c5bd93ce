"""Times at the edges of 64 bits: brute force, reference and engine agree on them, at once and in pieces."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.engine.agreement import SETTINGS, STRATA, case_of, check, pair_of
from tests.soaking import SOAKING, TIMES, some_of
from tests.testing.test_reference_agrees import brute_arguments, explain, reference

import kleene
from kleene.errors import BadDuration
from kleene.testing.brute import brute_force_match
from kleene.testing.generators.edges import EARLIEST, LATEST

# Three hundred and thirteen in each stratum: ten thousand in all.
PAIRS = 10_000
EACH = -(-PAIRS // len(STRATA))


@pytest.mark.slow
@pytest.mark.parametrize("stratum", some_of(STRATA, 6))
def test_they_agree(stratum: str, record_property: Callable[[str, object], None]) -> None:
    pairs = matched = number = 0
    # Of rules that each have a test of their own; what is new here are the times.
    while pairs < (EACH * TIMES if SOAKING else EACH // 24):
        draw = random.Random(f"edge {stratum} {number}")
        number += 1
        case = case_of(draw, f"edge {stratum}")
        pair = pair_of(case)
        if pair is None or not check(pair, SETTINGS[number % len(SETTINGS)], draw):
            continue
        if "TIMEOUTS" not in case.query_text:
            expected = brute_force_match(case.events, case.query_text, **brute_arguments(case))
            found, _ = reference(case)
            assert found == expected, explain(case, expected, found)
        pairs += 1
        matched += pair.expected.matches.num_rows > 0
    record_property("counted", f"at the edges of time: {stratum:22} {pairs} pairs, {matched} with matches")
    assert matched >= pairs // 8


SENTINELS = [EARLIEST, EARLIEST + 1, -5, 0, LATEST - 1, LATEST]
QUERIES = [
    "PATTERN SEQ(A a, B b) WITHIN 30",
    "PATTERN A a & B b WITHIN 30",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { } WITHIN 30",
    "PATTERN SEQ(A a, !(C c), B b) WITHIN 30 INCLUSIVE",
]


@pytest.mark.parametrize("query", QUERIES)
def test_sentinels_are_far_from_everything_else(query: str) -> None:
    """Of each two sentinels only neighbours are in one window."""
    for first in SENTINELS:
        for last in SENTINELS:
            events = [{"type": "A", "ts": first}, {"type": "B", "ts": last}]
            near = abs(last - first) < 30 and (first < last or "&" in query)
            assert len(kleene.match(events, query)) == near, (first, last)


def test_a_window_longer_than_time() -> None:
    events = [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}]
    assert len(kleene.match(events, f"PATTERN SEQ(A a, B b) WITHIN {LATEST}")) == 1
    for size in (f"{LATEST + 1}", "99999999999999999999999999", f"{LATEST + 1} EVENTS"):
        with pytest.raises(BadDuration, match="at most"):
            kleene.match(events, f"PATTERN SEQ(A a, B b) WITHIN {size}")

"""Random queries in EQL mean one thing: their definitions, the engine, and the engine in pieces with restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.detections.agreement import INPUTS, check
from tests.soaking import SOAKING, TIMES

from kleene.testing.generators.detections import STRATA

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]
# Of each stratum, over some inputs each: 5,500 pairs in `make soak`, 350 otherwise.
ALL, SHARE = 220, 14
QUERIES = ALL * TIMES if SOAKING else SHARE

OPERATORS = ("next", "union", "iteration", "exception", "timer", "filter")
CONDITIONS = ("φ", "θ", "keys", "residual φ", "residual φ beside a key", "PREV", "ALL", "OCCURS WITHIN")
EXCEPTIONS = (
    "λ on E1",
    "λ on what was bound before",
    "no λ",
    "∅ by the key",
    "∅ through another `;`",
    "cancelled",
    "prevented by ∅",
)
EVENTS = ("start column", "tie-breaker", "simultaneous", "NULL", "ties of other lengths", "long")


@pytest.fixture(scope="module")
def counts() -> dict[str, Counter[str]]:
    """Of each stratum that was compared: what its pairs were like."""
    return {}


@pytest.mark.parametrize("stratum", STRATA)
def test_definitions_and_engine_agree(stratum: str, counts: dict[str, Counter[str]], record_property: Record) -> None:
    counted: Counter[str] = Counter()
    for seed in range(QUERIES):
        counted += check(stratum, seed, traits=True)
    counts[stratum] = counted
    record_property(
        "counted",
        f"EQL, {stratum}: definitions = engine = engine in pieces: {counted['pairs']:,} pairs,"
        f" {counted['with matches']:,} with matches, {counted['matches']:,} matches, {counted['events']:,} events,"
        f" {counted['from snapshots']:,} restarts from snapshots",
    )
    assert counted["pairs"] == QUERIES * INPUTS
    assert counted["with matches"] > counted["pairs"] / 2
    assert counted["simultaneous"] > counted["pairs"] / 2
    assert counted["from snapshots"] > QUERIES / 2


def test_pairs_are_of_every_kind(counts: dict[str, Counter[str]], record_property: Record) -> None:
    missing = [stratum for stratum in STRATA if stratum not in counts]
    if missing:
        pytest.skip(f"nothing was compared of {', '.join(missing)}")
    total = sum(counts.values(), Counter[str]())
    listed = {name: total[name] for name in (*OPERATORS, *CONDITIONS, *EXCEPTIONS, *EVENTS)}
    record_property("counted", f"of {total['pairs']:,} pairs of EQL: {listed}")
    few = {name: number for name, number in listed.items() if number < total["pairs"] / 100}
    assert not few

"""A few hundred failures of the simulated tier, and that it notices what it is there for; `make chaos` has all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.chaos import stream_run
from tests.chaos.disk import OPERATIONS, STATE
from tests.chaos.simulation import run_seed
from tests.chaos.tally import Tally
from tests.soaking import SOAKING

pytestmark = pytest.mark.slow

# Other seeds than those of `make chaos`.
FIRST = 10_000


def tally_of(kind: str, seeds: int, mutation: str | None = None) -> Tally:
    whole = Tally()
    for seed in range(FIRST, FIRST + seeds):
        whole.add(run_seed(kind, seed, mutation))
    return whole


def test_nothing_is_lost_and_nothing_doubled(record_property: Callable[[str, object], None]) -> None:
    whole = tally_of("stream", 5)
    whole.add(tally_of("batch", 8 if SOAKING else 3))
    assert whole.is_right, whole.report()
    assert whole.failures.total() >= (500 if SOAKING else 150)
    assert all(whole.operations[name] for name in (*OPERATIONS, *STATE)), whole.report()
    rows = sum(rows.wanted for rows in whole.outputs.values())
    assert rows > 500
    record_property("counted", f"simulated chaos: {whole.failures.total()} failures, {rows} rows, each exactly once")


@pytest.mark.parametrize(("mutation", "kind"), [("copy", "stream"), ("copy", "batch"), ("nosync", "batch")])
def test_a_commit_that_is_none_is_noticed(mutation: str, kind: str) -> None:
    whole = tally_of(kind, 1, mutation)
    assert not whole.is_right
    assert any("half" in text for text in whole.wrong)


@pytest.mark.parametrize(("mutation", "losing"), [("nosync", "any"), ("unplanned", "by folder")])
def test_rows_are_missed_when_what_stands_for_them_was_not_synced(
    mutation: str, losing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_run, "LOSING", (losing,))
    seeds = range(FIRST, FIRST + 10)
    assert any(not run_seed("stream", seed, mutation).is_right for seed in seeds), f"{mutation} was not noticed"

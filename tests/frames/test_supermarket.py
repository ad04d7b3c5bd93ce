"""The made-up supermarket: as many events as asked for, and exactly the planted cases in them."""

from __future__ import annotations

from datetime import timedelta

import pytest

import kleene
from kleene.cli.demo import QUERIES, query_text
from kleene.frames.supermarket import Supermarket, supermarket


def planted(made: Supermarket, case: str) -> list[tuple[object, object, object]]:
    return sorted((row["who"], row["first"], row["last"]) for row in made.planted.to_pylist() if row["case"] == case)


@pytest.mark.parametrize("size", [200, 613, 3_000, 3_001, 7_777])
def test_the_number_of_events_is_exact_and_times_ascend(size: int) -> None:
    made = supermarket(size, seed=5)
    times = made.events.column("ts").to_pylist()
    assert len(times) == size
    assert times == sorted(times)
    days = -(-size // 3_000)
    assert times[-1] - times[0] < timedelta(days=days)
    assert len(planted(made, "overdose")) == 2 * days


def test_the_seed_decides() -> None:
    assert supermarket(400, 1).events.equals(supermarket(400, 1).events)
    assert not supermarket(400, 1).events.equals(supermarket(400, 2).events)


def test_too_few_events_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 200"):
        supermarket(199, 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", QUERIES)
def test_a_query_finds_its_planted_cases_and_no_others(case: str, seed: int) -> None:
    made = supermarket(260, seed)
    matches = kleene.match(made.events, query_text(case))
    who, last = ("name", "y") if case == "overdose" else ("id", matches.column_names[-1])
    found = sorted((row["key"][who], row["x"]["ts"], row[last]["ts"]) for row in matches.to_pylist())
    assert found == planted(made, case)
    assert found

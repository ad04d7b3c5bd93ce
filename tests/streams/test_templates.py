"""What CESAR §5.1 says of its templates: with equal formulas, NonDeterministic finds what Filter finds, and more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.soaking import rounds

import kleene

PAPERS = Path(__file__).parents[2] / "examples" / "papers"
ROUNDS = rounds(800)


def results(rows: list[dict[str, Any]], name: str, params: dict[str, object]) -> set[str]:
    text = (PAPERS / f"cayuga-s51-{name}.kleene").read_text(encoding="utf-8")
    found = kleene.match(rows, text, params=params)
    return {repr({key: value for key, value in row.items() if key not in ("match_id", "query")}) for row in found}


@pytest.mark.slow
def test_filter_is_a_part_of_non_deterministic(record_property: Callable[[str, object], None]) -> None:
    both = more = 0
    for seed in range(ROUNDS):
        draw = Random(f"templates {seed}")
        rows = [
            {
                "ts": draw.randint(0, 25),
                **{f"d{place}": draw.randint(0, 1) for place in range(1, 5)},
                **{f"c{place}": draw.randint(0, 9) / 2 for place in range(1, 5)},
            }
            for _ in range(40)
        ]
        params: dict[str, object] = {"primary": 1, "t": draw.randint(3, 15)}
        for step in (1, 2, 3):
            params |= {f"second{step}": draw.randint(0, 1), f"low{step}": draw.randint(0, 2), f"high{step}": 4}
        first, every = (results(rows, name, params) for name in ("filter", "nondeterministic"))
        assert first <= every
        both += bool(first)
        more += len(every) > len(first)
    record_property(
        "counted", f"Filter ⊆ NonDeterministic: {ROUNDS} streams, {both} with results of both, {more} with more"
    )
    assert both >= ROUNDS / 3
    assert more >= ROUNDS / 3

"""Cases whose times lie where 64 bits end: the smallest and the largest integers are common sentinels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from kleene.testing.generators.cases import GeneratedCase

EARLIEST, LATEST = -(2**63), 2**63 - 1
_MIDDLE = 2**62
Move = Callable[[int], int]


def at_the_edge(rng: Random, case: GeneratedCase) -> GeneratedCase:
    """The case with its times at an edge, on both sides of it, or some of them at sentinels; the order stays."""
    times = sorted({row["ts"] for row in case.events if row.get("ts") is not None})
    if not times:
        return case
    move = rng.choice((_low, _high, _torn, _torn, _low_sentinel, _high_sentinel))(rng, times)
    events = [_moved(rng, row, case.start, move) for row in case.events]
    return replace(case, events=events, query_text=_window(rng, case.query_text))


def _low(rng: Random, times: list[int]) -> Move:
    """The first at the smallest integer, or just after it."""
    by = EARLIEST + rng.choice((0, 0, 1, 5)) - times[0]
    return lambda time: time + by


def _high(rng: Random, times: list[int]) -> Move:
    """The last at the largest integer, or just before it."""
    by = LATEST - rng.choice((0, 0, 1, 5)) - times[-1]
    return lambda time: time + by


def _torn(rng: Random, times: list[int]) -> Move:
    """Moves times before a cut to one edge, those after it to another: their difference may exceed 64 bits."""
    cut = rng.choice(times)
    before = rng.choice((EARLIEST, EARLIEST + 3, -_MIDDLE, -_MIDDLE - 2, -5)) - times[0]
    after = rng.choice((LATEST, LATEST - 3, _MIDDLE, _MIDDLE + 2)) - times[-1]
    return lambda time: time + (before if time < cut else after)


def _low_sentinel(rng: Random, times: list[int]) -> Move:
    first = times[0]
    return lambda time: EARLIEST if time == first else time


def _high_sentinel(rng: Random, times: list[int]) -> Move:
    last = times[-1]
    return lambda time: LATEST if time == last else time


def _moved(rng: Random, row: dict[str, Any], start: str | None, move: Move) -> dict[str, Any]:
    if row.get("ts") is None:
        return row
    moved = {**row, "ts": move(row["ts"])}
    if start is not None and row.get(start) is not None:
        length = row["ts"] - row[start]
        began = moved["ts"] - length
        # Some events begin at the earliest time there is.
        moved[start] = EARLIEST if length > 0 and rng.random() < 0.15 else min(max(began, EARLIEST), LATEST)
    return moved


def _window(rng: Random, text: str) -> str:
    """Now and then a window as long as time, or half of it."""
    if rng.random() < 0.75:
        return text
    size = rng.choice((LATEST, LATEST - 1, _MIDDLE, _MIDDLE + 3))
    return re.sub(r"WITHIN \d+(?! EVENTS)(?=$|\D)", f"WITHIN {size}", text)

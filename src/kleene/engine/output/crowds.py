"""Events that complete more matches than the budget allows, and what is kept of these matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kleene.engine.output.graphs import Completed, counts_of
from kleene.engine.state.budget import Accounts
from kleene.kernels.expression import Ints
from kleene.kernels.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Crowd:
    """One event with too many matches."""

    event: int
    count: int
    # By executor: which of its completed runs the event completed.
    places: tuple[Ints, ...]


def crowds(completed: Sequence[Completed], most: int, time: Timeline) -> list[Crowd]:
    """The events that complete more than `most` matches. Matches are counted only where runs could be that many."""
    totals = [each.executor.total(each.nodes).astype(np.float64) for each in completed]
    if sum(float(total.sum()) for total in totals) <= most:
        return []
    events = [each.executor.event(each.nodes) for each in completed]
    distinct, of_run = np.unique(np.concatenate(events), return_inverse=True)
    upper = np.bincount(of_run, weights=np.concatenate(totals), minlength=len(distinct))
    over_budget = []
    for event in distinct[upper > most].tolist():
        places = tuple(np.flatnonzero(of_executor == event) for of_executor in events)
        count = _count(completed, places, None, time)
        if count > most:
            over_budget.append(Crowd(event, count, places))
    return over_budget


def _count(completed: Sequence[Completed], places: Sequence[Ints], low: int | None, time: Timeline) -> int:
    """How many matches some runs stand for, of those that begin at `low` or later."""
    total = 0
    for each, at in zip(completed, places, strict=True):
        part = each.take(at)
        lowest = part.lowest if low is None else np.maximum(part.lowest, low)
        total += sum(counts_of(replace(part, lowest=lowest), time))
    return total


def without(completed: Sequence[Completed], crowded: Sequence[Crowd]) -> tuple[list[Completed], list[Completed]]:
    """Completed runs in two parts: those of other events, and those of the crowded ones."""
    few, many = [], []
    for number, each in enumerate(completed):
        own = np.concatenate([np.zeros(0, np.int64), *(crowd.places[number] for crowd in crowded)])
        is_crowded = np.zeros(len(each.nodes), np.bool_)
        is_crowded[own] = True
        few.append(each.take(np.flatnonzero(~is_crowded)))
        many.append(each.take(np.flatnonzero(is_crowded)))
    return few, many


def drop_oldest(
    completed: Sequence[Completed], crowded: Sequence[Crowd], accounts: Accounts, time: Timeline
) -> list[Completed]:
    """Keep the matches of as many starts, the latest ones, as the budget allows; of one start, as many as it allows."""
    most = accounts.matches_per_event
    dropping = [replace(each, lowest=each.lowest.copy(), most=each.most.copy()) for each in completed]
    for crowd in crowded:
        low = _latest(completed, crowd, most, time)
        left = most
        for each, places in zip(dropping, crowd.places, strict=True):
            each.lowest[places] = np.maximum(each.lowest[places], low)
            for place, count in zip(places.tolist(), counts_of(each.take(places), time), strict=True):
                each.most[place] = min(count, left)
                left -= min(count, left)
        accounts.dropped_matches += crowd.count - (most - left)
    return [each.take(np.flatnonzero(each.most > 0)) for each in dropping]


def _latest(completed: Sequence[Completed], crowd: Crowd, most: int, time: Timeline) -> int:
    """The earliest start from which on an event has at most `most` matches; the latest start when none is enough."""
    starts = np.unique(time.starts[: crowd.event + 1])
    low, high = 0, len(starts) - 1
    while low < high:
        middle = (low + high) // 2
        few = _count(completed, crowd.places, int(starts[middle]), time) <= most
        low, high = (low, middle) if few else (middle + 1, high)
    # After the last start with matches there are none: go back to it.
    while low > 0 and _count(completed, crowd.places, int(starts[low]), time) == 0:
        low -= 1
    return int(starts[low])

"""Drops of runs by a budget, which cannot be recovered from the events when the runs are rebuilt."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from kleene.kernels.expression import Ints


class Drop(NamedTuple):
    """The oldest runs of one partition, dropped before an event.

    event    the event of the store; its partition is that of the runs
    start    where the window of the last dropped run begins; all runs that begin before it were dropped
    number   how many of the runs that begin there were dropped
    """

    event: int
    start: int
    number: int


@dataclass
class Drops:
    """Drops in the order of events, at most one at an event."""

    _drops: list[Drop] = field(default_factory=list)

    def add(self, drop: Drop) -> None:
        self._drops.append(drop)

    def after(self, begin: int) -> list[Drop]:
        """The drops at this event and at later ones."""
        return self._drops[bisect_left(self._drops, begin, key=attrgetter("event")) :]

    def saved(self, events: Ints) -> dict[str, Ints]:
        """[event]: the drops before some of the store's events; empty where there was no drop.

        Runs dropped before an event that is not among these began before it, and with none of these.
        """
        if not self._drops:
            return {}
        event, start, number = np.array(self._drops, np.int64).T
        at = np.searchsorted(events, event)
        there = np.append(events, -1)[at] == event
        starts, numbers = np.zeros(len(events), np.int64), np.zeros(len(events), np.int64)
        starts[at[there]], numbers[at[there]] = start[there], number[there]
        return {"drop_start": starts, "drop_number": numbers}

    def __len__(self) -> int:
        return len(self._drops)

    @staticmethod
    def restored(saved: Mapping[str, Ints], place: int) -> Drops:
        """The drops of the alternative with this number."""
        if f"drop_number_{place}" not in saved:
            return Drops()
        starts, numbers = saved[f"drop_start_{place}"], saved[f"drop_number_{place}"]
        events = np.flatnonzero(numbers)
        each = zip(events.tolist(), starts[events].tolist(), numbers[events].tolist(), strict=True)
        return Drops([Drop(*drop) for drop in each])

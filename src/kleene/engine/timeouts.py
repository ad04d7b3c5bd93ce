"""Run starts that never became a match when their window closed, with their longest prefixes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kleene.engine.automaton import AutomatonExecutor
from kleene.engine.graphs import Completed
from kleene.engine.growing import with_room
from kleene.engine.matches import Matches
from kleene.engine.runs import matches_of
from kleene.engine.store import EventStore
from kleene.engine.windows import Closing
from kleene.kernels import runs as kernel
from kleene.kernels.expression import Ints
from kleene.kernels.paths import longest_prefixes
from kleene.kernels.timeline import Timeline
from kleene.pattern.query import BoundQuery


class Timeouts:
    """Follows every run start of a query until its window closes."""

    def __init__(self, query: BoundQuery) -> None:
        self._query = query
        # By alternative: how many nodes were looked at, and [event] the run from it that came furthest.
        self._looked: dict[int, int] = {}
        self._best: dict[int, np.ndarray] = {}
        # By first variable, [event]: whether nothing more is to be said of it, because of a match or of a timeout.
        self._done: dict[int, np.ndarray] = {}

    def closed(
        self, found: Sequence[tuple[AutomatonExecutor, Ints]], store: EventStore, time: Timeline, closing: Closing
    ) -> Matches:
        """The prefixes of starts that are certain by now to be no match's."""
        for number, (executor, nodes) in enumerate(found):
            done = self._flags(executor, store.size)
            done[executor.first(nodes)] = True
            self._look(number, executor, store.size, time)
        parts: list[Matches] = []
        decided: list[tuple[int, Ints]] = []
        for number, (executor, _) in enumerate(found):
            best = self._best[number]
            waiting = np.flatnonzero((best[: store.size] >= 0) & ~self._flags(executor, store.size)[: store.size])
            over = waiting[closing.closed(waiting)]
            decided.append((int(executor.variables[0]), over))
            lowest, one = np.full(len(over), np.iinfo(np.int64).min), np.ones(len(over), np.int64)
            parts.append(matches_of(Completed(executor, best[over].astype(np.int64), lowest, one), time.starts))
        for variable, over in decided:
            self._done[variable][over] = True
        prefixes = Matches.together(parts)
        return prefixes if len(parts) == 1 else _longest(prefixes)

    def _flags(self, executor: AutomatonExecutor, size: int) -> np.ndarray:
        variable = int(executor.variables[0])
        known = self._done.get(variable, np.zeros(0, np.bool_))
        self._done[variable] = with_room(known, size, 0)
        return self._done[variable]

    def _look(self, number: int, executor: AutomatonExecutor, size: int, time: Timeline) -> None:
        """Look at the runs that are new."""
        window = self._query.window
        assert window is not None, "TIMEOUTS needs a window"
        best = with_room(self._best.get(number, np.zeros(0, np.int32)), size, -1)
        nodes = int(executor.pool.sizes[kernel.NODES])
        begin = self._looked.get(number, 1)
        longest_prefixes(begin, nodes, time.starts, time.ends, window.size, window.inclusive, executor.pool, best)
        self._looked[number], self._best[number] = nodes, best


def _longest(prefixes: Matches) -> Matches:
    """Of prefixes from the same start, which alternatives of a query found, the longest, then the canonically first."""
    chosen: dict[tuple[int, int], tuple[tuple[int, list[tuple[int, int]]], int]] = {}
    for place in range(len(prefixes)):
        part = slice(prefixes.offsets[place], prefixes.offsets[place + 1])
        variables, events = prefixes.variables[part].tolist(), prefixes.events[part].tolist()
        # A list that ends comes before one that goes on, so a later variable comes first.
        rank = -len(set(variables)), [(-variable, event) for variable, event in zip(variables, events, strict=True)]
        start = variables[0], events[0]
        if start not in chosen or rank < chosen[start][0]:
            chosen[start] = rank, place
    return prefixes.take(np.array(sorted(place for _, place in chosen.values()), np.int64))

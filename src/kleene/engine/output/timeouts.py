"""Run starts that never became a match when their window closed, with their longest prefixes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kleene.engine.executors.automaton import AutomatonExecutor
from kleene.engine.executors.contract import CompletedRuns
from kleene.engine.executors.windows import Closing, within
from kleene.engine.output.graphs import Completed
from kleene.engine.output.matches import Matches
from kleene.engine.output.runs import matches_of
from kleene.engine.state.growing import with_room
from kleene.engine.state.store import EventStore
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
        # By first variable, [event]: whether the start is decided, by a match or by a timeout.
        self._done: dict[int, np.ndarray] = {}

    def closed(
        self, completed: Sequence[CompletedRuns], store: EventStore, time: Timeline, closing: Closing
    ) -> tuple[Matches, Ints]:
        """The longest prefixes of starts that can no longer become a match, and when their windows closed."""
        for number, runs in enumerate(completed):
            done = self._flags(runs.graph, store.size)
            done[runs.graph.first(runs.nodes)] = True
            self._look(number, runs.graph, store.size, time)
        parts: list[Matches] = []
        decided: list[tuple[int, Ints]] = []
        for number, executor in enumerate(runs.graph for runs in completed):
            best = self._best[number]
            waiting = np.flatnonzero((best[: store.size] >= 0) & ~self._flags(executor, store.size)[: store.size])
            over = waiting[closing.closed(waiting)]
            decided.append((int(executor.variables[0]), over))
            lowest, one = np.full(len(over), np.iinfo(np.int64).min), np.ones(len(over), np.int64)
            parts.append(matches_of(Completed(executor, best[over].astype(np.int64), lowest, one), time.starts))
        for variable, over in decided:
            self._done[variable][over] = True
        prefixes = Matches.together(parts)
        prefixes = prefixes if len(parts) == 1 else longest_of_each_start(prefixes)
        assert self._query.window is not None, "TIMEOUTS needs a window"
        return prefixes, closing.moments(self._query.window, prefixes.first)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in (*self._best.values(), *self._done.values()))

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
        longest_prefixes(begin, nodes, time.starts, time.ends, within(window), executor.pool, best)
        self._looked[number], self._best[number] = nodes, best


def longest_of_each_start(prefixes: Matches) -> Matches:
    """One prefix for each start, among those of all alternatives: the longest, then the canonically first.

    Those that are still equal are compared place by place, all starts at once. A list that ends comes before one that
    goes on, and so does a later variable; of prefixes that are equal throughout the first stays.
    """
    reached = _reached(prefixes)
    starts = _starts(prefixes)
    # In the order of their starts, the longest first; of as long ones, the earlier alternative first.
    order = np.lexsort((-reached, starts))
    starts, reached = starts[order], reached[order]
    begins = np.flatnonzero(np.diff(starts, prepend=-1))
    group = np.cumsum(np.diff(starts, prepend=-1) != 0) - 1
    tied = reached == reached[begins[group]]
    chosen = order[begins]
    order, group = order[tied], group[tied]
    place = 1
    while True:
        several = np.bincount(group, minlength=len(chosen))[group] > 1
        order, group = order[several], group[several]
        if not len(order):
            break
        ranks = _ranks(prefixes, order, place)
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        least = np.repeat(np.minimum.reduceat(ranks, begins), np.diff(begins, append=len(group)))
        order, group = order[ranks == least], group[ranks == least]
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        chosen[group[begins]] = order[begins]
        goes_on = ranks[ranks == least] != _ENDED
        order, group = order[goes_on], group[goes_on]
        place += 1
    return prefixes.take(np.sort(chosen))


# Variables are bytes and events fewer than this, so that both are one number.
_EVENTS = 1 << 48
_ENDED = -1


def _starts(prefixes: Matches) -> Ints:
    """[prefix]: its first variable and first event as one number."""
    return prefixes.variables[prefixes.offsets[:-1]].astype(np.int64) * _EVENTS + prefixes.first


def _reached(prefixes: Matches) -> Ints:
    """[prefix]: how many variables it has."""
    if not len(prefixes):
        return np.zeros(0, np.int64)
    reached: Ints = np.add.reduceat((prefixes.positions == 1).astype(np.int64), prefixes.offsets[:-1])
    return reached


def _ranks(prefixes: Matches, places: Ints, at: int) -> Ints:
    """[prefix]: the rank of its event `at` places after its start, so that the canonically first is the least."""
    references = prefixes.offsets[places] + at
    there = references < prefixes.offsets[places + 1]
    ranks = np.full(len(places), _ENDED, np.int64)
    present = references[there]
    ranks[there] = (255 - prefixes.variables[present].astype(np.int64)) * _EVENTS + prefixes.events[present]
    return ranks

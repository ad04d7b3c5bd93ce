"""Matches that are certain and wait for others that are not, under OUTPUT NON_OVERLAP and COMPRESSED.

A match with a negated end is decided when its window has closed, others of the query perhaps long before. What does not
overlap is chosen by end, and what one event completes is one row, so a match waits for those that end no later, or with
the same event. Which ones wait follows from the events held and from time alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kleene.engine.automaton import AutomatonExecutor
from kleene.engine.growing import with_room
from kleene.engine.matches import Matches
from kleene.engine.trees.executor import TreeExecutor
from kleene.kernels.expression import Ints
from kleene.lang.tree import OutputMode
from kleene.pattern.query import BoundQuery

_NEVER = np.iinfo(np.int64).max
# What an executor found: completed runs, or matches.
Found = tuple[AutomatonExecutor | TreeExecutor, Ints | Matches]


class Waiting:
    def __init__(self, query: BoundQuery) -> None:
        self._one_row = query.output is OutputMode.COMPRESSED
        # By alternative: the runs that are matches and wait, and the matches of trees that do.
        self._nodes: dict[int, Ints] = {}
        self._matches: dict[int, Matches] = {}
        # [partition]: when the first match ends that is undecided.
        self._since = np.full(1, _NEVER)

    def released(self, found: Sequence[Found], ends: Ints, partitions: Ints) -> list[Found]:
        """Of the matches found and those that waited, the ones that need not wait; `ends`, `partitions`: [event]."""
        undecided = np.concatenate([executor.undecided_events for executor, _ in found])
        self._since = np.full(int(partitions[undecided].max(initial=0)) + 1, _NEVER)
        np.minimum.at(self._since, partitions[undecided], ends[undecided])
        released: list[Found] = []
        for number, (executor, nodes) in enumerate(found):
            if isinstance(nodes, Matches):
                matches = Matches.together([self._matches.get(number, nodes.take(np.zeros(0, np.int64))), nodes])
                waits = self._waits(matches.latest, undecided, ends, partitions)
                self._matches[number] = matches.take(np.flatnonzero(waits))
                released.append((executor, matches.take(np.flatnonzero(~waits))))
                continue
            assert isinstance(executor, AutomatonExecutor), "trees give matches"
            # In the order of their events, as if none had waited.
            every = np.sort(np.concatenate([self._nodes.get(number, nodes[:0]), nodes]))
            waits = self._waits(executor.event(every), undecided, ends, partitions)
            self._nodes[number] = every[waits]
            released.append((executor, every[~waits]))
        return released

    def _waits(self, last: Ints, undecided: Ints, ends: Ints, partitions: Ints) -> npt.NDArray[np.bool_]:
        return np.isin(last, undecided) if self._one_row else ends[last] >= self.since(partitions[last])

    def since(self, partitions: Ints) -> Ints:
        """When the first undecided match of each partition ends: what waits there ends no earlier."""
        known: Ints = with_room(self._since, int(partitions.max(initial=0)) + 1, _NEVER)
        return known[np.maximum(partitions, 0)]

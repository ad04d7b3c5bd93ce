"""Matches that are certain and wait for others that are not, under OUTPUT NON_OVERLAP and COMPRESSED.

A match with a negated end is decided when its window has closed, others of the query perhaps long before. What does not
overlap is chosen by end, and what one event completes is one row, so a match waits for those that end no later, or with
the same event. Which ones wait follows from the events held and from time alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.contract import CompletedRuns, Completions, Executor
from kleene.engine.output.matches import Matches
from kleene.engine.state.growing import with_room
from kleene.kernels.expression import Ints
from kleene.lang.tree import OutputMode
from kleene.pattern.query import BoundQuery

_NEVER = np.iinfo(np.int64).max


class Waiting:
    def __init__(self, query: BoundQuery) -> None:
        self._one_row = query.output is OutputMode.COMPRESSED
        # By alternative: the completed runs that wait, and the matches of trees that wait.
        self._nodes: dict[int, Ints] = {}
        self._matches: dict[int, Matches] = {}
        # [partition]: the end of the first undecided match.
        self._since = np.full(1, _NEVER)

    def released(
        self, executors: Sequence[Executor], completed: Sequence[Completions], ends: Ints, partitions: Ints
    ) -> list[Completions]:
        """The completed and the waiting matches that need not wait any longer; `ends`, `partitions`: [event]."""
        undecided = np.concatenate([executor.undecided_events for executor in executors])
        self._since = np.full(int(partitions[undecided].max(initial=0)) + 1, _NEVER)
        np.minimum.at(self._since, partitions[undecided], ends[undecided])
        released: list[Completions] = []
        for number, each in enumerate(completed):
            matches, runs = each.matches, each.runs
            if matches is not None:
                matches = Matches.together([self._matches.get(number, matches.take(np.zeros(0, np.int64))), matches])
                waits = self._waits(matches.latest, undecided, ends, partitions)
                self._matches[number] = matches.take(np.flatnonzero(waits))
                matches = matches.take(np.flatnonzero(~waits))
            if runs is not None:
                # In the order of their events, as if none had waited.
                nodes = np.sort(np.concatenate([self._nodes.get(number, runs.nodes[:0]), runs.nodes]))
                waits = self._waits(runs.graph.event(nodes), undecided, ends, partitions)
                self._nodes[number] = nodes[waits]
                runs = CompletedRuns(runs.graph, nodes[~waits])
            released.append(Completions(matches, runs))
        return released

    @property
    def nbytes(self) -> int:
        nodes = sum(int(nodes.nbytes) for nodes in self._nodes.values())
        return int(self._since.nbytes) + nodes + sum(matches.nbytes for matches in self._matches.values())

    def _waits(self, last: Ints, undecided: Ints, ends: Ints, partitions: Ints) -> npt.NDArray[np.bool_]:
        if self._one_row:
            return np.isin(last, undecided)
        # An end may be the last moment of time, which is `_NEVER` too, so the partition must have an undecided match.
        among = np.isin(partitions[last], partitions[undecided])
        return among & (ends[last] >= self.since(partitions[last]))

    def since(self, partitions: Ints) -> Ints:
        """When the first undecided match of each partition ends: what waits there ends no earlier."""
        known: Ints = with_room(self._since, int(partitions.max(initial=0)) + 1, _NEVER)
        return known[np.maximum(partitions, 0)]

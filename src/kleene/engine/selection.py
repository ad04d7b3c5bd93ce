"""From what executors found to what a query gives: all matches, those that do not overlap, graphs, timeouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kleene.engine.automaton import AutomatonExecutor
from kleene.engine.budget import Accounts
from kleene.engine.columns import ColumnStore
from kleene.engine.graphs import Completed, compressed, counts_of
from kleene.engine.growing import with_room
from kleene.engine.matches import Matches
from kleene.engine.ordering import Spans, in_order
from kleene.engine.runs import matches_of
from kleene.engine.sequence import SequenceExecutor
from kleene.engine.store import EventStore
from kleene.engine.strings import StringPool
from kleene.engine.tables import match_table, timeout_table
from kleene.engine.timeouts import Timeouts
from kleene.engine.windows import Closing
from kleene.kernels.expression import Ints
from kleene.kernels.selection import choose
from kleene.kernels.timeline import Timeline
from kleene.lang.tree import OutputMode
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Policy, Settings

_EVERYTHING = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Results:
    """The tables of one batch; None where a query has no such output."""

    matches: pa.Table | None = None
    timeouts: pa.Table | None = None
    compressed: pa.Table | None = None


class Selection:
    def __init__(self, query: BoundQuery, settings: Settings, accounts: Accounts, strings: StringPool) -> None:
        self._query, self._settings, self._accounts, self._strings = query, settings, accounts, strings
        # [partition]: the step with which the match chosen last ended.
        self._frontier = np.full(1, -1, np.int64)
        self._timeouts = None if query.timeouts is None else Timeouts(query)

    # NON_OVERLAP's state

    def frontier_of(self, partitions: Ints) -> Ints:
        known: Ints = with_room(self._frontier, int(partitions.max(initial=0)) + 1, -1)
        return known[np.maximum(partitions, 0)]

    def set_frontier(self, partitions: Ints, steps: Ints) -> Ints:
        """The last step of each partition, by its code."""
        self._frontier = with_room(self._frontier, int(partitions.max(initial=0)) + 1, -1)
        self._frontier[partitions[partitions >= 0]] = steps[partitions >= 0]
        return self._frontier

    # Outputs

    def outputs(
        self,
        store: EventStore,
        found: Sequence[tuple[SequenceExecutor | AutomatonExecutor, Matches | Ints]],
        time: Timeline,
        closing: Closing,
        *,
        quietly: bool,
    ) -> Results:
        """`quietly`: what was said before is not said again."""
        late = None
        if self._timeouts is not None:
            prefixes = self._timeouts.closed(found, store, time, closing)  # type: ignore[arg-type]
            late = None if quietly else timeout_table(self._query, store.rows, self._spans(store), prefixes)
        if quietly:
            return Results()
        completed = [
            Completed(e, n) for e, n in found if isinstance(e, AutomatonExecutor) and isinstance(n, np.ndarray)
        ]
        if self._query.output is OutputMode.COMPRESSED:
            return Results(self._compressed(completed, store, time), late)
        dense = None
        if self._settings.budget.policy is Policy.EMIT_COMPRESSED:
            completed, many = self._affordable(completed)
            dense = self._compressed(many, store, time) if any(len(each.nodes) for each in many) else None
        parts = [matches for _, matches in found if isinstance(matches, Matches)]
        parts += [self._paths(each, store, time) for each in completed]
        matches = Matches.together(parts)
        if self._query.output is OutputMode.NON_OVERLAP:
            matches = self._not_overlapping(matches, store, time)
        columns = ColumnStore(store.columns, store.events, np.zeros(0, np.int64))
        table = match_table(self._query, store.rows, self._spans(store), matches, columns, self._strings)
        return Results(table, late, dense)

    @staticmethod
    def _spans(store: EventStore) -> Spans:
        size = store.size
        return Spans(store.step[:size], store.start[:size], store.end[:size])

    def _lowest(self, nodes: Ints, executor: AutomatonExecutor, time: Timeline) -> Ints:
        """Where the first event of each completed run must start, or later."""
        if self._query.output is OutputMode.NON_OVERLAP:
            # Of the matches that end here, one of the latest start is chosen, if any is.
            return time.starts[executor.first(nodes)]
        window = self._query.window
        if window is None:
            return np.full(len(nodes), _EVERYTHING)
        return time.ends[executor.event(nodes)] - window.size + (0 if window.inclusive else 1)

    def _paths(self, completed: Completed, store: EventStore, time: Timeline) -> Matches:
        """Every match by itself; too many of one event are an error, or the oldest of them are dropped."""
        executor, nodes = completed.executor, completed.nodes
        most = self._accounts.matches_per_event
        lowest = self._lowest(nodes, executor, time)
        for place in np.flatnonzero(executor.total(nodes) > most).tolist():
            one = Completed(executor, nodes[place : place + 1])
            count = counts_of(one, lowest[place : place + 1], time)[0]
            if count > most:
                if not self._accounts.drops:
                    self._accounts.too_many_matches(store, int(executor.event(one.nodes)[0]), count)
                lowest[place] = self._latest(one, int(lowest[place]), count, time)
        return matches_of(executor, nodes, lowest, time.starts, most)

    def _latest(self, one: Completed, low: int, count: int, time: Timeline) -> int:
        """The earliest start from which on the matches of a completed run are not too many; the others are dropped."""
        executor, most = one.executor, self._accounts.matches_per_event
        candidates = np.unique(time.starts[: int(executor.event(one.nodes)[0]) + 1])
        candidates = candidates[(candidates >= low) & (candidates <= time.starts[executor.first(one.nodes)[0]])]
        low_at, high_at = 0, len(candidates) - 1
        while low_at < high_at:
            middle = (low_at + high_at) // 2
            few = counts_of(one, candidates[middle : middle + 1], time)[0] <= most
            low_at, high_at = (low_at, middle) if few else (middle + 1, high_at)
        bound = candidates[low_at : low_at + 1]
        self._accounts.dropped_matches += count - min(counts_of(one, bound, time)[0], most)
        return int(bound[0])

    def _affordable(self, completed: list[Completed]) -> tuple[list[Completed], list[Completed]]:
        """Runs that stand for few enough matches, and those that stand for too many."""
        few, many = [], []
        for each in completed:
            over = each.executor.total(each.nodes) > self._accounts.matches_per_event
            few.append(Completed(each.executor, each.nodes[~over]))
            many.append(Completed(each.executor, each.nodes[over]))
        return few, many

    def _compressed(self, completed: list[Completed], store: EventStore, time: Timeline) -> pa.Table:
        lowest = [self._lowest(each.nodes, each.executor, time) for each in completed]
        spans = self._spans(store)
        # Too many matches of a query that asks for all are emitted so too, with the ids of its own.
        query = replace(self._query, output=OutputMode.COMPRESSED)
        return compressed(query, store.rows, spans, completed, lowest, time, graphs=self._settings.graphs)

    def _not_overlapping(self, matches: Matches, store: EventStore, time: Timeline) -> Matches:
        order = in_order(matches, self._spans(store)).order
        first, last = matches.first, matches.last
        partitions = time.partitions[first]
        self._frontier = with_room(self._frontier, int(partitions.max(initial=0)) + 1, -1)
        chosen = np.zeros(len(matches), np.bool_)
        choose(order, partitions, time.lefts[first], time.steps[last], self._frontier, chosen)
        return matches.take(np.flatnonzero(chosen))

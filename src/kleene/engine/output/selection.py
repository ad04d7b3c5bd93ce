"""From what executors found to what a query gives: all matches, those that do not overlap, graphs, timeouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kleene.engine.executors.contract import CompletedRuns, Completions, Executor
from kleene.engine.executors.windows import Closing
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.row_types import RowTypes
from kleene.engine.intake.strings import StringPool
from kleene.engine.output.compressed import compressed
from kleene.engine.output.crowds import crowds, drop_oldest, without
from kleene.engine.output.graphs import ALL, Completed
from kleene.engine.output.matches import Matches
from kleene.engine.output.ordering import Spans, distinct, in_order
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.output.runs import matches_of
from kleene.engine.output.tables import match_table, timeout_table
from kleene.engine.output.timeouts import Timeouts
from kleene.engine.output.waiting import Waiting
from kleene.engine.state.budget import Accounts
from kleene.engine.state.growing import with_room
from kleene.engine.state.store import EventStore
from kleene.kernels.expression import Ints
from kleene.kernels.selection import choose
from kleene.kernels.timeline import Timeline, shifted
from kleene.lang.tree import OutputMode
from kleene.pattern.closures import is_closure
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Policy, Settings

_EVERYTHING = np.iinfo(np.int64).min


class Selection:
    def __init__(
        self, query: BoundQuery, settings: Settings, accounts: Accounts, strings: StringPool, *, late: bool
    ) -> None:
        """`late`: some alternative has a negated end."""
        self._query, self._settings, self._accounts, self._strings = query, settings, accounts, strings
        # [partition]: the first step after the match chosen last.
        self._frontier = np.full(1, -1, np.int64)
        self._timeouts = None if query.timeouts is None else Timeouts(query)
        # Of two alternatives with closures that may be empty, both may give a match without any of their events.
        self._may_repeat = any(is_closure(each) and not each.minimum for each in query.components)
        self._waiting = Waiting(query) if late and query.output is not OutputMode.ALL else None

    # NON_OVERLAP's state

    def frontier_of(self, partitions: Ints) -> Ints:
        known: Ints = with_room(self._frontier, int(partitions.max(initial=0)) + 1, -1)
        return known[np.maximum(partitions, 0)]

    def set_frontier(self, partitions: Ints, steps: Ints) -> Ints:
        """The last step of each partition, by its code."""
        self._frontier = with_room(self._frontier, int(partitions.max(initial=0)) + 1, -1)
        self._frontier[partitions[partitions >= 0]] = steps[partitions >= 0]
        return self._frontier

    @property
    def nbytes(self) -> int:
        waiting = 0 if self._waiting is None else self._waiting.nbytes
        return int(self._frontier.nbytes) + waiting + (0 if self._timeouts is None else self._timeouts.nbytes)

    # What waits

    def waiting_since(self, partitions: Ints) -> Ints | None:
        """[partition]: no waiting match ends before this time; None when no match ever waits for others."""
        return None if self._waiting is None else self._waiting.since(partitions)

    # Outputs

    def outputs(
        self,
        store: EventStore,
        executors: Sequence[Executor],
        completions: Sequence[Completions],
        time: Timeline,
        closing: Closing,
        *,
        replaying: bool,
        since: int | None = None,
    ) -> EngineOutputs:
        """The outputs of what executors completed; none while `replaying`, since they were given before.

        since   when the first matches end that are wanted, all of which are certain; None: all are
        """
        late = None
        if self._timeouts is not None:
            runs = [each.runs for each in completions if each.runs is not None]
            prefixes, moments = self._timeouts.closed(runs, store, time, closing)
            late = None if replaying else timeout_table(self._query, store.rows, self._spans(store), prefixes, moments)
        if self._waiting is not None:
            completions = self._waiting.released(executors, completions, store.end, time.partitions)
        if replaying:
            return EngineOutputs()
        runs = [each.runs for each in completions if each.runs is not None]
        if since is not None:
            runs = [each.ending(store.end, since) for each in runs]
        completed = [self._completed(each, time) for each in runs]
        if self._query.output is OutputMode.COMPRESSED:
            return EngineOutputs(self._compressed(completed, store, time), late)
        dense = None
        crowded = crowds(completed, self._accounts.matches_per_event, time) if completed else []
        if crowded and self._accounts.drops:
            completed = drop_oldest(completed, crowded, self._accounts, time)
        elif crowded and self._compresses:
            completed, many = without(completed, crowded)
            dense = self._compressed(many, store, time)
        elif crowded and self._accounts.fails:
            self._accounts.too_many_matches(store, crowded[0].event, crowded[0].count)
        parts = [each.matches for each in completions if each.matches is not None]
        parts += [matches_of(each, time.starts) for each in completed]
        matches = Matches.together(parts)
        if self._may_repeat and len(parts) > 1:
            matches = distinct(matches, self._spans(store))
        if self._query.output is OutputMode.NON_OVERLAP:
            matches = self._not_overlapping(matches, store, time)
        columns = ColumnStore(store.columns, store.events, RowTypes((), np.zeros(0, np.int32)))
        table = match_table(self._query, store.rows, self._spans(store), matches, columns, self._strings, since=since)
        return EngineOutputs(table, late, dense)

    @property
    def _compresses(self) -> bool:
        """Whether too many matches are emitted compressed; graphs show neither NON_OVERLAP's choice nor RETURN."""
        plain = self._query.output is OutputMode.ALL and self._query.returns is None
        return plain and self._settings.budget.policy is Policy.EMIT_COMPRESSED

    @staticmethod
    def _spans(store: EventStore) -> Spans:
        size = store.size
        return Spans(store.step[:size], store.start[:size], store.end[:size])

    def _completed(self, runs: CompletedRuns, time: Timeline) -> Completed:
        """Completed runs, each with the earliest start that the first event of its matches may have."""
        window, executor, nodes = self._query.window, runs.graph, runs.nodes
        if self._query.output is OutputMode.NON_OVERLAP:
            # Of the matches that end here, one of the latest start is chosen, if any is.
            lowest = time.starts[executor.first(nodes)]
        elif window is None:
            lowest = np.full(len(nodes), _EVERYTHING)
        else:
            lowest = shifted(time.ends[executor.event(nodes)], (0 if window.inclusive else 1) - window.size)
        return Completed(executor, nodes, lowest, np.full(len(nodes), ALL))

    def _compressed(self, completed: Sequence[Completed], store: EventStore, time: Timeline) -> pa.Table:
        query = self._query
        if query.output is not OutputMode.COMPRESSED:
            query = replace(query, output=OutputMode.COMPRESSED, returns=None)
        return compressed(query, store.rows, self._spans(store), completed, time, graphs=self._settings.graphs)

    def _not_overlapping(self, matches: Matches, store: EventStore, time: Timeline) -> Matches:
        order = in_order(matches, self._spans(store)).numbers
        partitions = time.partitions[matches.first]
        lefts = matches.across(np.minimum, time.lefts[matches.events])
        rights = matches.across(np.maximum, time.rights[matches.events])
        self._frontier = with_room(self._frontier, int(partitions.max(initial=0)) + 1, -1)
        chosen = np.zeros(len(matches), np.bool_)
        choose(order, partitions, lefts, rights, self._frontier, chosen)
        return matches.take(np.flatnonzero(chosen))

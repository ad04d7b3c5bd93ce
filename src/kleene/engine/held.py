"""What an engine holds: events, their partitions, and the executors whose state is made of these events alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from kleene.engine import snapshots
from kleene.engine.automaton import AutomatonExecutor
from kleene.engine.budget import Accounts
from kleene.engine.columns import ColumnStore
from kleene.engine.growing import Growing
from kleene.engine.intake import Intake
from kleene.engine.keys import KeyCoder
from kleene.engine.returned import check_returns
from kleene.engine.selection import Results, Selection
from kleene.engine.sequence import SequenceExecutor
from kleene.engine.statistics import Alive
from kleene.engine.store import Arrived, EventStore
from kleene.engine.strings import StringPool
from kleene.engine.timeline import integers
from kleene.engine.trees.executor import TreeExecutor
from kleene.engine.trees.planning import Planning
from kleene.engine.windows import Closing, has_negated_end, has_negated_start
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.kernels.expression import Ints
from kleene.kernels.keys import BEFORE, COUNTED
from kleene.kernels.timeline import Timeline
from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.pattern.clock import Window
from kleene.pattern.expressions import Clause, Node, references
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan, Plan
from kleene.plan.settings import Settings
from kleene.plan.trees import Alternative, TreePlan

Executor = SequenceExecutor | AutomatonExecutor | TreeExecutor
# The store is made anew when it holds more dead events than living ones, and at least so many.
_WORTH_IT = 1 << 16
# As windows are measured, nothing starts after here.
_HIGHEST = 2**62


class Held:
    """What an engine holds: events, their partitions, executors."""

    def __init__(
        self,
        query: BoundQuery,
        plan: Plan,
        settings: Settings,
        accounts: Accounts,
        table: pa.Table,
        planning: Planning | None = None,
    ) -> None:
        """Nothing yet; of the table only the columns matter.

        planning   who finds better plans; None: the plan is not to be changed
        """
        self._query, self._plan, self._settings, self._accounts = query, plan, settings, accounts
        self._planning = planning
        check_returns(query, table.schema)
        self.strings = StringPool()
        self._empty = table.slice(0, 0)
        self._columns = _columns_read(query)
        columns = ColumnStore.from_table(self._empty, self._columns, query.schema, self.strings)
        self.store = EventStore(columns, self._empty, query.schema)
        self._intake = Intake(query, self._columns, self.strings)
        self._layout = columns.columns
        self._begin(plan)
        self._late = any(map(has_negated_end, plan.alternatives))
        self._selection = Selection(query, settings, accounts, self.strings, late=self._late)

    def _begin(self, plan: Plan) -> None:
        """Run a plan, of which nothing has seen any event."""
        self._plan = plan
        self._routing = {
            alternative.key: (KeyCoder(alternative.key, self.strings), Growing(np.zeros(0, np.int64)))
            for alternative in plan.alternatives
            if alternative.key != self._query.partition
        }
        self.executors = [self._executor(number, alternative) for number, alternative in enumerate(plan.alternatives)]

    def _executor(self, number: int, plan: Alternative) -> Executor:
        query, columns, strings, accounts = self._query, self._layout, self.strings, self._accounts
        if isinstance(plan, AutomatonPlan):
            alone = len(self._plan.alternatives) == 1
            return AutomatonExecutor(query, plan, columns, strings, accounts, alone=alone)
        if isinstance(plan, TreePlan):
            adapter = None if self._planning is None else self._planning.adapter(number, plan, columns, strings)
            return TreeExecutor(query, plan, columns, strings, accounts, self._settings, adapter)
        return SequenceExecutor(query, plan, columns, strings, accounts)

    @property
    def plan(self) -> Plan:
        """As it runs now."""
        running = tuple(
            executor.plan if isinstance(executor, TreeExecutor) else alternative
            for executor, alternative in zip(self.executors, self._plan.alternatives, strict=True)
        )
        costs = tuple(
            (executor.costs if isinstance(executor, TreeExecutor) and executor.measured.changes else None) or cost
            for executor, cost in zip(self.executors, self._plan.costs, strict=False)
        )
        return replace(self._plan, alternatives=running, costs=costs)

    def arrived(self, table: pa.Table, step: int) -> tuple[Arrived, int]:
        """The events of a table that some component could use, and the step that comes after it."""
        return self._intake.arrived(table, step, self.store)

    def planned_for(self, table: pa.Table) -> Plan:
        """The plan for these events, which are the first."""
        arrived, _ = self.arrived(table, 0)
        better = None
        if self._planning is not None and len(arrived.end):
            better = self._planning.first_plan(arrived, self._layout, self.strings)
        return better or self.plan

    def take_in(self, arrived: Arrived) -> None:
        """Hold events, and let every executor see them."""
        in_partition = arrived.partition >= 0
        if self._planning is not None and not self.store.size and len(in_partition):
            better = self._planning.first_plan(arrived, self._layout, self.strings)
            if better is not None:
                self._begin(better)
        bits = [executor.bits(arrived.columns, in_partition) for executor in self.executors]
        useful = np.zeros(len(in_partition), np.bool_)
        for made in bits:
            useful |= made.any
        if 4 * np.count_nonzero(useful) < 3 * len(useful):
            places = np.flatnonzero(useful)
            arrived = arrived.take(places)
            bits = [made.take(places) for made in bits]
        begin = self.store.size
        self.store.append(arrived)
        for coder, codes in self._routing.values():
            codes.append(coder.codes(arrived.rows))
        for executor, made in zip(self.executors, bits, strict=True):
            executor.advance(self.store, begin, made, self._time(executor), self._keys(executor))

    def _keys(self, executor: Executor) -> int:
        coder = self._intake.partitions if executor.key == self._query.partition else self._routing[executor.key][0]
        return max(coder.number, 1)

    def _time(self, executor: Executor) -> Timeline:
        store, query = self.store, self._query
        keys = store.partition if executor.key == query.partition else self._routing[executor.key][1].array
        by_position = query.counts_events
        # Positions in different partitions have nothing to do with each other.
        mixed = by_position and executor.key != query.partition
        return Timeline(
            keys=keys,
            partitions=self._frontier_codes(store.partition),
            steps=store.step,
            lefts=store.left,
            rights=store.right,
            starts=store.position if by_position else store.start,
            ends=store.position if by_position else store.end,
            highs=np.full(len(keys), _HIGHEST) if mixed else store.place if by_position else store.end,
            barriers=store.barrier,
            closes=not mixed and self._closes,
        )

    @property
    def _closes(self) -> bool:
        """Whether windows close while events come: one of any length may begin at any position that has passed."""
        return self._intake.past is None

    def _frontier_codes(self, partition: Ints) -> Ints:
        """The partitions in which matches must not overlap: under strict contiguity the whole stream is one."""
        return np.zeros(len(partition), np.int64) if selects_in_stream(self._query) else partition

    # Results out

    def settle(self, watermark: int | None, *, quietly: bool = False) -> Results:
        """Everything that is certain by now; quietly when it was said before."""
        time, closing = self._time(self.executors[0]), self._closing(watermark)
        found = [
            (executor, executor.settle(self.store, self._time(executor), self._keys(executor), closing))
            for executor in self.executors
            if not (quietly and self._forgets(executor))
        ]
        return self._selection.outputs(self.store, found, time, closing, quietly=quietly)

    def _closing(self, watermark: int | None) -> Closing:
        starts = self._time(self.executors[0]).starts
        window = self._query.window if self._closes else None
        counts = self._intake.counts[:, BEFORE]
        return Closing(window, starts, watermark, self.store.partition, counts, self._intake.passed)

    def _forgets(self, executor: Executor) -> bool:
        """Whether what was said before has no part in what is said next."""
        return isinstance(executor, TreeExecutor) and self._query.output is OutputMode.ALL and executor.forget_matches()

    # What is still needed

    def needed(self, watermark: int | None) -> Ints:
        """The events that a match to come, or one that is not certain yet, could hold or be forbidden by."""
        store, window = self.store, self._query.window
        size = store.size
        if window is None or watermark is None or not self._closes:
            return np.arange(size)
        length = reach(window, self._plan)
        partition = np.maximum(store.partition[:size], 0)
        waiting = self._selection.waiting_since(self._frontier_codes(partition))
        if window.events:
            lowest = self._intake.counts[partition, BEFORE] - length
            if waiting is not None:
                lowest = np.minimum(lowest, self._first_positions(partition, waiting) - window.size)
            return np.flatnonzero(store.position[:size] >= lowest - 1)
        earliest = np.full(size, watermark - length)
        if waiting is not None:
            earliest = np.minimum(earliest, waiting - window.size)
        return np.flatnonzero(store.end[:size] >= earliest)

    def next_closing(self, watermark: int) -> int | None:
        """The watermark at which the next window closes that something waits for; None: that of no event held."""
        window, size = self._query.window, self.store.size
        if window is None or window.events or not (self._late or self._query.timeouts):
            return None
        starts = self.store.start[:size]
        still_open = starts[starts >= watermark - window.size]
        return int(still_open.min()) + window.size + 1 if len(still_open) else None

    def alive(self, watermark: int) -> Alive:
        """What is held for windows that are open at this watermark."""
        events = len(self.needed(watermark))
        if not events:
            return Alive()
        closing = self._closing(watermark)
        runs = sum(executor.open_runs(closing) for executor in self.executors)
        return Alive(events, runs, self.nbytes * events // self.store.size)

    def expiry(self, watermark: int) -> int | None:
        """The watermark at which nothing is needed any more; None: nothing is, or time does not tell."""
        window = self._query.window
        if window is None or window.events or not self._closes:
            return None
        needed = self.needed(watermark)
        return int(self.store.end[needed].max()) + reach(window, self._plan) + 1 if len(needed) else None

    def _first_positions(self, partition: Ints, times: Ints) -> Ints:
        """[event]: the first position in its partition at this time or later."""
        later = np.flatnonzero(self.store.end[: len(times)] >= times)
        first = np.full(int(partition.max(initial=0)) + 1, _HIGHEST)
        np.minimum.at(first, partition[later], self.store.position[later])
        return first[partition]

    def lighter(self, watermark: int | None) -> Held:
        """The same without what is not needed, when that is worth the work."""
        if not self._closes:
            return self
        # Keys and strings are kept for all events that came by, held or not.
        kept = max(self.store.size, self._intake.partitions.number, self.strings.size // 4)
        if kept < _WORTH_IT:
            return self
        needed = self.needed(watermark)
        if kept < 2 * len(needed) + _WORTH_IT:
            return self
        return self.rebuilt(needed, watermark)

    def rebuilt(self, numbers: Ints, watermark: int | None) -> Held:
        """Made anew from some of the events."""
        planning = None if self._planning is None else self._planning.again()
        fresh = Held(self._query, self.plan, self._settings, self._accounts, self._empty, planning)
        fresh.restore(self.saved(numbers), watermark)
        for executor, before in zip(fresh.executors, self.executors, strict=True):
            executor.count_from(before)  # type: ignore[arg-type]
        return fresh

    def saved(self, numbers: Ints) -> snapshots.Held:
        """Some of the events, with what cannot be told from them: their places in a stream that is gone."""
        store = self.store
        partition = store.partition[numbers]
        columns = store.numbers(numbers)
        if self._intake.counts_all:
            counts = self._intake.counts[np.maximum(self._intake.groups(partition), 0)]
            columns |= {f"count_{place}": counts[:, place] for place in range(COUNTED)}
        columns["frontier"] = self._selection.frontier_of(self._frontier_codes(partition))
        past = None
        if self._intake.past is not None:
            assert self._query.window is not None, "only windows ask for positions"
            past = self._intake.past.saved(partition, store.end[numbers], self._query.window.size)
        return snapshots.Held(store.rows.take(to_arrow(numbers)), pa.table(columns), past)

    def restore(self, saved: snapshots.Held, watermark: int | None) -> None:
        """Hold what was saved, and know again of it what was known before."""
        schema, rows = self._query.schema, saved.rows
        known = {name: to_numpy(saved.numbers.column(name)).copy() for name in saved.numbers.column_names}
        end = integers(rows.column(schema.time))
        start = end if schema.start is None else integers(rows.column(schema.start))
        columns = ColumnStore.from_table(rows, self._columns, schema, self.strings)
        partition = self._intake.partitions.codes(rows)
        if self._intake.counts_all:
            counts = [known[f"count_{place}"] for place in range(COUNTED)]
            self._intake.count_from(partition, np.stack(counts, axis=1))
        if self._intake.past is not None:
            assert saved.past is not None, "a snapshot of the same query has it"
            self._intake.past.restore(saved.past)
        frontier = self._selection.set_frontier(self._frontier_codes(partition), known["frontier"])
        for executor in self.executors:
            if isinstance(executor, AutomatonExecutor):
                executor.set_frontier(frontier)
        self.take_in(Arrived(rows, columns, partition, start, end, **self.store.restored(known)))
        self.settle(watermark, quietly=True)
        for executor in self.executors:
            executor.count_from(None)

    @property
    def nbytes(self) -> int:
        executors = sum(executor.nbytes for executor in self.executors)
        return self.store.nbytes + executors + self._intake.nbytes + self.strings.nbytes


def reach(window: Window, plan: Plan) -> int:
    """How long before the watermark an event may end, or how many positions, and still matter."""
    # What a negated event before a match forbade must stay forbidden when the match is found again.
    return window.size * (2 if any(map(has_negated_start, plan.alternatives)) else 1)


def selects_in_stream(query: BoundQuery) -> bool:
    """Whether NON_OVERLAP takes the partitions together."""
    strict = query.strategy is SelectionStrategy.STRICT_CONTIGUITY
    return strict and bool(query.partition) and query.output is OutputMode.NON_OVERLAP


def _columns_read(query: BoundQuery) -> list[str]:
    """The columns that programs read."""
    nodes: list[Node] = [column.value for column in query.returns or ()]
    clauses: list[Clause] = [*query.conditions.positive]
    for listed in (*query.conditions.negative.values(), *query.conditions.members.values()):
        clauses += listed
    clauses += [clause for c in query.components for kind in c.classes for clause in kind.predicate]
    named = (getattr(reference, "attribute", None) for node in (*nodes, *clauses) for reference in references(node))
    return list(dict.fromkeys(name for name in named if name is not None))

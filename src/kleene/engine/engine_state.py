"""What an engine holds: events, their partitions, and the executors whose state is made of these events alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kleene.engine.executors.contract import Completions, Executor, ExecutorContext, Resumed
from kleene.engine.executors.drops import Drops
from kleene.engine.executors.registry import executor_for
from kleene.engine.executors.windows import Closing
from kleene.engine.intake.bits import Bits, Flags
from kleene.engine.intake.columns import ColumnStore, column_layout, columns_read
from kleene.engine.intake.intake import Intake
from kleene.engine.intake.keys import KeyCoder
from kleene.engine.intake.strings import StringPool
from kleene.engine.intake.timeline import integers
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.output.returned import check_returns
from kleene.engine.output.selection import Selection
from kleene.engine.planning import Planning
from kleene.engine.state import snapshots
from kleene.engine.state.budget import Accounts
from kleene.engine.state.distinct import distinct_codes
from kleene.engine.state.event_rows import EventRows
from kleene.engine.state.growing import Growing
from kleene.engine.state.sizes import row_bytes
from kleene.engine.state.state_contract import check_partitions, count_columns
from kleene.engine.state.statistics import Alive, ComponentCounts
from kleene.engine.state.store import EventBatch, EventStore
from kleene.frames.arrow import empty_table
from kleene.frames.numbers import to_numpy
from kleene.kernels.expression import Ints
from kleene.kernels.keys import BEFORE
from kleene.kernels.opcodes import VALUE
from kleene.kernels.timeline import Timeline, in_time, shifted
from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.pattern.clock import Window
from kleene.pattern.query import BoundQuery
from kleene.pattern.types import ValueType
from kleene.plan.physical import Plan
from kleene.plan.settings import Settings
from kleene.plan.trees import Alternative

# The store is rebuilt when it holds more events that are no longer needed than needed ones, and at least so many; or
# when it takes twice as much memory as the needed ones, and so many bytes more.
_WORTH_IT = 1 << 16
_WORTH_IT_BYTES = 1 << 27
# The factor by which memory must grow before the needed events are looked for again.
_GROWTH = 1.25
_Routed = dict[tuple[str, ...], Ints]
# What a key takes at most: in the tables of keys, and in those of executors.
_KEY_BYTES = 128
# Beyond every position of an event.
_HIGHEST = 2**62
# Where executors may change, a batch is taken in by rounds: of at least so many events, and at most so many rounds.
_ROUND, _LONG_ROUND, _MOST_ROUNDS = 16_384, 131_072, 16


class EngineState:
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
        """A state without events; of the table only the columns are used.

        planning   finds better plans; None: the plan stays as it is
        """
        self._query, self._plan, self._settings, self._accounts = query, plan, settings, accounts
        self._planning = planning
        check_returns(query, table.schema)
        self.strings = StringPool()
        self._schema = table.schema
        self._columns = columns_read(query)
        self._layout = column_layout(table.schema, self._columns)
        self.store = EventStore(self._layout, table.schema, query.schema)
        self._intake = Intake(query, self._columns, self.strings)
        # By key that is not the partition's: its codes, and [event] the code of each.
        self._routing: dict[tuple[str, ...], tuple[KeyCoder, Growing]] = {}
        self._begin(plan)
        # The events taken in, how many of them before the executors last changed, and how often they did.
        self._events_taken = self._events_before = self._changes = 0
        # Completed by executors that others have replaced since the last outputs.
        self._completed_before: list[Completions] = []
        self._late = plan.has_negated_end
        self._selection = Selection(query, settings, accounts, self.strings, late=self._late)
        self._bytes_when_made = self._bytes_looked_at = self._bytes_at_first = 0

    def weigh(self) -> None:
        """Note what it takes without events, by which growth and budgets of a stream are judged."""
        changeable = sum(executor.nbytes - executor.fixed_bytes for executor in self.executors)
        self._bytes_when_made = self._bytes_looked_at = self.nbytes
        self._bytes_at_first = self._bytes_when_made - changeable

    def _begin(self, plan: Plan) -> None:
        """Make the executors of a plan, before any event is taken in."""
        self._plan = plan
        if self._planning is not None:
            self._planning.forget_adapters()
        keys = dict.fromkeys(alternative.key for alternative in plan.alternatives)
        self._routing = {
            key: self._routing.get(key) or (KeyCoder(key, self.strings), Growing(np.zeros(0, np.int64)))
            for key in keys
            if key != self._query.partition
        }
        self.executors = [self._executor(number, alternative) for number, alternative in enumerate(plan.alternatives)]

    def _executor(self, number: int, plan: Alternative) -> Executor:
        planning, columns, strings = self._planning, self._layout, self.strings
        context = ExecutorContext(
            self._query,
            columns,
            strings,
            self._accounts,
            self._settings,
            alone=len(self._plan.alternatives) == 1,
            adapter=None if planning is None else lambda tree: planning.adapter(number, tree, columns, strings),
        )
        return executor_for(plan, context)

    @property
    def plan(self) -> Plan:
        """The plan that runs now."""
        running = tuple(executor.plan for executor in self.executors)
        costs = tuple(executor.costs or cost for executor, cost in zip(self.executors, self._plan.costs, strict=False))
        return replace(self._plan, alternatives=running, costs=costs)

    def arrived(self, table: pa.Table, step: int, own: Flags | None = None) -> tuple[EventBatch, int]:
        """The events of a table that some component could use, and the step that comes after it.

        own   [row]: whether it counts, where no event is counted by its place; None: all do
        """
        return self._intake.arrived(table, step, self.store, own)

    @property
    def came_in_order(self) -> bool:
        """Whether the rows of the last table, or the useful ones where only these are looked at, came in order."""
        return self._intake.in_order

    def planned_for(self, table: pa.Table) -> Plan:
        """The plan that would be chosen if these were the first events."""
        arrived, _ = self.arrived(table, 0)
        better = None
        if self._planning is not None and len(arrived.end):
            better = self._planning.first_plan(_by_key(arrived, self._routed(arrived)), self._layout, self.strings)
        return better or self.plan

    def _routed(self, arrived: EventBatch, known: Mapping[tuple[str, ...], Ints] | None = None) -> _Routed:
        """By key that is not the partition's: the codes of events, some of which may be known."""
        known = known or {}
        return {
            key: known[key] if key in known else coder.codes(arrived.rows) for key, (coder, _) in self._routing.items()
        }

    def take_in(self, arrived: EventBatch, *, whole: bool = False, replaying: bool = False) -> None:
        """Hold events, and let every executor see them.

        Events that no executor can use are left out where they are many, or where a budget counts what is held.

        whole       leave none out
        replaying   the executors stay as they are
        """
        in_partition, routed = arrived.partition >= 0, self._routed(arrived)
        if self._planning is not None and not self.store.size and len(in_partition):
            better = self._planning.first_plan(_by_key(arrived, routed), self._layout, self.strings)
            if better is not None:
                self._begin(better)
                routed = self._routed(arrived, routed)
        # Of a key that equalities make, NULL is in no match.
        has_key = {key: in_partition & (codes >= 0) for key, codes in routed.items()}
        bits = [executor.bits(arrived.columns, has_key.get(executor.key, in_partition)) for executor in self.executors]
        useful = np.zeros(len(in_partition), np.bool_)
        for executor_bits in bits:
            useful |= executor_bits.any
        number, counted = np.count_nonzero(useful), self._settings.budget.state_bytes is not None
        if not whole and (number < len(useful) if counted else 4 * number < 3 * len(useful)):
            places = np.flatnonzero(useful)
            arrived = arrived.take(places)
            bits = [executor_bits.take(places) for executor_bits in bits]
            routed = {key: codes[places] for key, codes in routed.items()}
        first = self.store.size
        self.store.append(arrived)
        for key, (_, codes) in self._routing.items():
            codes.append(routed[key])
        for begin, end in self._rounds(first, replaying=replaying):
            for executor, executor_bits in zip(self.executors, bits, strict=True):
                some = executor_bits.between(begin - first, end - first)
                executor.advance(self.store, begin, some, self._time(executor), self._keys(executor))
            self._events_taken += end - begin
            better = self._better_plan(end) if end < self.store.size else None
            if better is not None:
                bits, first = self._change_plan(better, end, int(self.store.end[end])), end

    def _rounds(self, begin: int, *, replaying: bool) -> Iterator[tuple[int, int]]:
        """The events from `begin` on, in rounds after which executors may change; simultaneous ones are in one.

        Where events of two rounds make so few combinations that no other executor could pay, rounds get longer.
        """
        size, window = self.store.size, self._query.window
        usual = max(_ROUND, -(-(size - begin) // _MOST_ROUNDS))
        # Positions of the whole batch are counted already, so windows of events would close too early.
        by_time = window is None or not window.events
        if replaying or self._planning is None or not self._planning.may_change_executors or not by_time:
            usual = max(size - begin, 1)
        ends = self.store.end[:size]
        calm = 0
        while begin < size:
            last = int(np.searchsorted(ends, ends[min(begin + usual, size) - 1], side="right"))
            yield begin, last
            begin, calm = last, calm + 1
            if self._planning is None or not self._planning.is_calm(self.executors, self._events_taken):
                calm = 0
            if calm > 1:
                usual = max(usual, min(2 * usual, _LONG_ROUND))

    def _keys(self, executor: Executor) -> int:
        coder = self._intake.partitions if executor.key == self._query.partition else self._routing[executor.key][0]
        return max(coder.number, 1)

    def _time(self, executor: Executor) -> Timeline:
        store, query = self.store, self._query
        keys = store.partition if executor.key == query.partition else self._routing[executor.key][1].array
        by_position = query.counts_events
        # Positions of different partitions cannot be compared.
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
        """Whether windows close before the input ends; not where a late event may still begin at a past position."""
        return self._intake.past is None

    def _frontier_codes(self, partition: Ints) -> Ints:
        """The partitions in which matches must not overlap: under strict contiguity the whole stream is one."""
        return np.zeros(len(partition), np.int64) if selects_in_stream(self._query) else partition

    # Other executors

    def adapt(self, watermark: int | None) -> None:
        """After a batch whose outputs were given: go on with other executors, where these cost less."""
        better = self._better_plan(self.store.size, watermark)
        if better is not None:
            self._change_plan(better, self.store.size, watermark)

    def _better_plan(self, until: int, watermark: int | None = None) -> Plan | None:
        """A plan on other executors for the events from `until` on, if it pays; None: they stay."""
        planning, store = self._planning, self.store
        if planning is None or not planning.is_due(self.executors, self._events_taken):
            return None
        watermark = int(store.end[until]) if until < store.size else watermark
        # A change costs as much as the events that are offered again.
        if 2 * (self._events_taken - self._events_before) < len(self.needed(watermark)) - (store.size - until):
            return None

        def latest(number: int) -> EventBatch:
            first = max(0, until - number)
            some = store.events_between(first, until, self._query.schema)
            return _by_key(some, {key: codes.array[first:until] for key, (_, codes) in self._routing.items()})

        return planning.better_plan(self.plan, self.executors, self._events_taken, latest, self._layout, self.strings)

    def _change_plan(self, plan: Plan, until: int, watermark: int | None) -> list[Bits]:
        """Go on with another plan after the events up to `until`; the bits of the events after them.

        Its executors are made of the events that are still needed; what these complete was given before, or is kept
        for the next outputs.
        """
        store, closing = self.store, self._closing(watermark)
        self._completed_before += [
            executor.settle(store, self._time(executor), self._keys(executor), closing) for executor in self.executors
        ]
        # Executors differ in what becomes of an event, not in which events they see.
        seen = [count for executor in self.executors for count in executor.counts()]
        counts = _by_variable(ComponentCounts(count.variable, count.seen, count.passed) for count in seen)
        self._changes = self.plan_changes + 1
        numbers = self.needed(watermark)
        needed = np.zeros(until, np.bool_)
        needed[numbers[numbers < until]] = True
        self._begin(plan)
        for coder, codes in self._routing.values():
            if not codes.size:
                codes.append(coder.codes(store.rows))
        for executor, bits in zip(self.executors, self._bits(0, until), strict=True):
            executor.advance(store, 0, bits.among(needed), self._time(executor), self._keys(executor))
        with self._accounts.without_failing():
            for executor in self.executors:
                if not self._forgets(executor):
                    executor.settle(store, self._time(executor), self._keys(executor), closing)
        later = self._bits(until, store.size)
        for executor in self.executors:
            executor.count_from(counts, None)
        self._events_before = self._events_taken
        if self._planning is not None:
            self._planning.begin(self.executors, self._events_taken)
        return later

    def _bits(self, first: int, last: int) -> list[Bits]:
        """By executor: the components that held events could stand for."""
        events = self.store.events_between(first, last, self._query.schema)
        in_partition = events.partition >= 0
        has_key = {key: in_partition & (codes.array[first:last] >= 0) for key, (_, codes) in self._routing.items()}
        return [executor.bits(events.columns, has_key.get(executor.key, in_partition)) for executor in self.executors]

    @property
    def plan_changes(self) -> int:
        """How often a better plan took over, on the same executor or on another."""
        of_trees = sum(executor.measured.changes for executor in self.executors if executor.measured is not None)
        return self._changes + of_trees

    # Results out

    def settle(self, watermark: int | None, *, replaying: bool = False, since: int | None = None) -> EngineOutputs:
        """The outputs that are certain by now.

        replaying   give none, since they were given before
        since       give the matches that end then or later
        """
        time, closing = self._time(self.executors[0]), self._closing(watermark)
        # Outputs that were given at several watermarks are certain at once now, and together may exceed a budget.
        with self._accounts.without_failing() if replaying else nullcontext():
            settling = [executor for executor in self.executors if not (replaying and self._forgets(executor))]
            completions = [
                executor.settle(self.store, self._time(executor), self._keys(executor), closing)
                for executor in settling
            ]
        completions = [*self._completed_before, *completions]
        self._completed_before = []
        return self._selection.outputs(
            self.store, settling, completions, time, closing, replaying=replaying, since=since
        )

    def settle_again(self, watermark: int | None, *, gives: bool) -> EngineOutputs:
        """Settle events whose outputs another engine gave; no budget fails, and outputs are needed only if `gives`."""
        # NON_OVERLAP has to choose again: its next choice depends on those before.
        if self._query.output is not OutputMode.NON_OVERLAP and not gives:
            return self.settle(watermark, replaying=True)
        if self._accounts.drops:
            return self.settle(watermark)
        with self._accounts.without_failing():
            return self.settle(watermark)

    def _closing(self, watermark: int | None) -> Closing:
        starts = self._time(self.executors[0]).starts
        window = self._query.window if self._closes else None
        counts = self._intake.counts[:, BEFORE]
        return Closing(window, starts, watermark, self.store.partition, counts, self._intake.passed)

    def _forgets(self, executor: Executor) -> bool:
        """Whether later outputs of an executor do not depend on the matches that were already given."""
        return self._query.output is OutputMode.ALL and executor.forget_matches()

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
            lowest = shifted(self._intake.counts[partition, BEFORE], -length)
            if waiting is not None:
                lowest = np.minimum(lowest, shifted(self._first_positions(partition, waiting), -window.size))
            return np.flatnonzero(store.position[:size] >= shifted(lowest, -1))
        earliest = np.full(size, in_time(watermark - length))
        if waiting is not None:
            earliest = np.minimum(earliest, shifted(waiting, -window.size))
        return np.flatnonzero(store.end[:size] >= earliest)

    def next_closing(self, watermark: int) -> int | None:
        """The watermark at which the next window closes that a match or timeout waits for; None: there is none."""
        window, size = self._query.window, self.store.size
        if window is None or window.events or not (self._late or self._query.timeouts):
            return None
        starts = self.store.start[:size]
        still_open = starts[starts >= watermark - window.size]
        return int(still_open.min()) + window.size + 1 if len(still_open) else None

    def alive(self, watermark: int) -> Alive:
        """The events, runs and bytes held for windows that are open at this watermark."""
        events = len(self.needed(watermark))
        if not events:
            return Alive()
        closing = self._closing(watermark)
        runs = sum(executor.open_runs(closing) for executor in self.executors)
        return Alive(events, runs, self.living_bytes(watermark))

    def living_bytes(self, watermark: int | None) -> int:
        """The bytes of a store that holds only needed events; arrays with the room that they grow by.

        It follows from the events alone, so budgets can use it: neither when the store was last rebuilt nor how events
        were cut into batches matters.
        """
        store, needed = self.store, self.needed(watermark)
        time, closing = self._time(self.executors[0]), self._closing(watermark)
        keys = len(distinct_codes(store.partition[needed])) * _KEY_BYTES * (1 + len(self._routing))
        arrays = len(needed) * store.bytes_an_event + sum(each.open_bytes(closing, time) for each in self.executors)
        if self._intake.past is not None:
            arrays += self._intake.past.needed_bytes(store.partition[needed], store.end[needed], self._positions)
        rows = store.rows.take(needed)
        return (
            self._bytes_at_first
            + row_bytes(rows.base, rows.places)
            + self.strings.nbytes_of(self._string_codes(needed))
            + keys
            + 2 * arrays
        )

    def _string_codes(self, numbers: Ints) -> Ints:
        """The codes of all strings that programs read in some events, or that are in their keys."""
        columns = [column for column in self._layout.values() if column.type is ValueType.STRING]
        ints, _, states = self.store.events
        # Where there is no string the code is any.
        codes = [ints[each.place, numbers[states[each.index, numbers] == VALUE]] for each in columns]
        codes += [self._intake.partitions.string_codes(self.store.partition[numbers])]
        codes += [coder.string_codes(of_events.array[numbers]) for coder, of_events in self._routing.values()]
        return np.concatenate(codes)

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

    def lighter(self, watermark: int | None) -> EngineState:
        """This state, or one rebuilt without the events that are no longer needed, when that is worth the work."""
        if not self._closes:
            return self
        # Keys and strings are kept for all events that came by, held or not.
        most = max(self.store.size, self._intake.partitions.number, self.strings.size // 4)
        if most >= _WORTH_IT:
            needed = self.needed(watermark)
            if most >= 2 * len(needed) + _WORTH_IT:
                return self.rebuilt(needed, watermark)
        size = self.nbytes
        if size < _WORTH_IT_BYTES or size < _GROWTH * self._bytes_looked_at:
            return self
        self._bytes_looked_at = size
        if size < 2 * self.living_bytes(watermark) + _WORTH_IT_BYTES:
            return self
        return self.rebuilt(self.needed(watermark), watermark)

    @property
    def most_living_bytes(self) -> int:
        """An upper bound of `living_bytes`, whichever events are needed: room and keys add at most a factor of four."""
        return self._bytes_at_first + 4 * self.nbytes

    @property
    def has_grown(self) -> bool:
        """Whether it has grown so much since it was made that rebuilding it is worth a try."""
        return self.nbytes > _GROWTH * self._bytes_when_made

    def rebuilt(self, numbers: Ints, watermark: int | None) -> EngineState:
        """A new state that holds some of the events."""
        planning = None if self._planning is None else self._planning.again()
        columns = empty_table(self._schema)
        fresh = EngineState(self._query, self.plan, self._settings, self._accounts, columns, planning)
        fresh.weigh()
        rows = self.store.rows.take(numbers)
        # A budget counts all that is held.
        rows = rows.without_unused() if self._settings.budget.state_bytes is None else EventRows(rows.table)
        fresh._resume(rows, *self._beside(numbers), watermark, own=True)
        for executor, before in zip(fresh.executors, self.executors, strict=True):
            executor.count_from(_by_variable(before.counts()), before.measured)
        fresh._changes, fresh._events_before = self._changes, self._events_before
        fresh._events_taken = self._events_taken
        if planning is not None:
            planning.begin(fresh.executors, fresh._events_taken)
        return fresh

    def saved(self, numbers: Ints) -> snapshots.HeldEvents:
        """Some of the events, with what cannot be computed from them: their places in the stream so far."""
        return snapshots.HeldEvents(self.store.rows.take(numbers).table, *self._beside(numbers))

    def _beside(self, numbers: Ints) -> tuple[pa.Table, pa.Table | None]:
        """What some of the events do not tell: numbers of theirs, and past events where these are kept."""
        store = self.store
        partition = store.partition[numbers]
        columns = store.numbers(numbers)
        if self._intake.counts_all:
            counts = self._intake.counts[np.maximum(self._intake.groups(partition), 0)]
            columns |= {name: counts[:, place] for place, name in enumerate(count_columns())}
        columns["frontier"] = self._selection.frontier_of(self._frontier_codes(partition))
        for place, executor in enumerate(self.executors):
            drops = executor.drops.saved(numbers)
            columns |= {f"{name}_{place}": values for name, values in drops.items()}
        past = None
        if self._intake.past is not None:
            past = self._intake.past.saved(partition, store.end[numbers], self._positions)
        return pa.table(columns), past

    @property
    def _positions(self) -> int:
        """How many positions a window has; used only for windows of positions."""
        assert self._query.window is not None
        return self._query.window.size

    def restore(self, saved: snapshots.HeldEvents, watermark: int | None) -> None:
        """Take in saved events and rebuild what was derived from them."""
        self._resume(EventRows(saved.rows), saved.numbers, saved.past, watermark, own=False)

    def _resume(
        self, rows: EventRows, numbers: pa.Table, past: pa.Table | None, watermark: int | None, *, own: bool
    ) -> None:
        """Take in events with what was beside them; `own`: they never left this process."""
        schema = self._query.schema
        known = {name: to_numpy(numbers.column(name)).copy() for name in numbers.column_names}
        end = integers(rows.column(schema.time))
        start = end if schema.start is None else integers(rows.column(schema.start))
        columns = ColumnStore.from_table(rows, self._columns, schema, self.strings)
        partition = self._intake.partition_of(rows)
        if not own:
            groups = self._intake.groups(partition)
            placed = groups if self._intake.past is None else partition
            check_partitions(known, self._frontier_codes(partition), groups, placed)
        if self._intake.counts_all:
            counts = [known[name] for name in count_columns()]
            self._intake.count_from(partition, np.stack(counts, axis=1))
        if self._intake.past is not None:
            assert past is not None, "a snapshot of the same query has it"
            self._intake.past.restore(past)
        frontier = self._selection.set_frontier(self._frontier_codes(partition), known["frontier"])
        drops = [Drops.restored(known, place) for place in range(len(self.executors))]
        for executor, dropped in zip(self.executors, drops, strict=True):
            executor.resume(Resumed(frontier, dropped))
        arrived = EventBatch(rows, columns, partition, start, end, **self.store.restored(known))
        # Drops refer to events by their places in the store, so none may be left out.
        self.take_in(arrived, whole=any(map(len, drops)), replaying=True)
        self.settle(watermark, replaying=True)
        for executor in self.executors:
            executor.count_from(_by_variable(()), None)
        self._bytes_when_made = self._bytes_looked_at = self.nbytes

    @property
    def nbytes(self) -> int:
        """The bytes that it takes, including events that are no longer needed and not dropped yet."""
        executors = sum(executor.nbytes for executor in self.executors)
        routing = sum(coder.nbytes + codes.nbytes for coder, codes in self._routing.values())
        parts = (self.store, self._intake, self.strings, self._selection)
        return sum(part.nbytes for part in parts) + executors + routing


def _by_key(events: EventBatch, routed: _Routed) -> EventBatch:
    """Events with the key that executors divide them by, whether brackets or equalities make it, as their partition."""
    return replace(events, partition=next(iter(routed.values()))) if routed else events


def _by_variable(counts: Iterable[ComponentCounts]) -> Mapping[str, ComponentCounts]:
    """Counts by variable; of others, zeros."""
    return defaultdict(lambda: ComponentCounts(""), {count.variable: count for count in counts})


def reach(window: Window, plan: Plan) -> int:
    """How long before the watermark an event may end, or how many positions, and still matter."""
    # A negated event before a match must be held as long as the match can be found again.
    return window.size * (2 if plan.has_negated_start else 1)


def selects_in_stream(query: BoundQuery) -> bool:
    """Whether NON_OVERLAP chooses among the matches of all partitions together."""
    strict = query.strategy is SelectionStrategy.STRICT_CONTIGUITY
    return strict and bool(query.partition) and query.output is OutputMode.NON_OVERLAP

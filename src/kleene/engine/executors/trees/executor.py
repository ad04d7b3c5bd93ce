"""Runs a tree plan over the events of a store, round by round (ZStream §4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.contract import Completions, Executor, ExecutorContext
from kleene.engine.executors.trees.adapting import USUAL_ROUND, Adapter
from kleene.engine.executors.trees.operators import Setting
from kleene.engine.executors.trees.records import ListPool, NamedRecords, renumbered, taken, together
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.executors.trees.tree import OperatorTree
from kleene.engine.executors.windows import Closing, within
from kleene.engine.intake.bits import Bits, scan
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.output.matches import ColumnarMatches, Matches
from kleene.engine.state.growing import Growing
from kleene.engine.state.memory import shared_zeros
from kleene.engine.state.statistics import ComponentCounts
from kleene.engine.state.store import EventStore
from kleene.kernels.expression import Ints
from kleene.kernels.joins import FIRST, LAST, TIMES, JoinWindow, Numbers, Records
from kleene.kernels.timeline import EARLIEST, LATEST, Timeline, in_time
from kleene.plan.costs import Costed, Measured
from kleene.plan.physical import Scan
from kleene.plan.trees import GroupNode, LeafNode, TreePlan, walk

Flags = npt.NDArray[np.bool_]
# Events of the longest round: rounds grow where they try fewer combinations per event than this.
_LONGEST, _LITTLE = 16_384, 16
# Lists are dropped only where they take more bytes than this.
_MANY_LISTS = 1 << 20


class TreeExecutor(Executor):
    """A tree of joins: records are put together from the leaves up."""

    def __init__(self, plan: TreePlan, context: ExecutorContext) -> None:
        self.query, self.key, self.plan = context.query, plan.key, plan
        self._columns, self._strings, self._accounts = context.columns, context.strings, context.accounts
        self._settings = settings = context.settings
        # Looks for a better plan at run time; None: the plan stays.
        self._adapter = None if context.adapter is None else context.adapter(plan)
        scans = [node.scan for node in walk(plan.root) if isinstance(node, LeafNode | GroupNode)]
        self._positive = _by_position(scans)
        self._negated = _by_position([scan for absence in plan.absences for scan in absence.scans])
        self._seen = np.zeros((2, len(self._positive)), np.int64)
        # [event of the store]: the components that it could stand for.
        self._begins, self._absents = Growing(np.zeros(0, np.int64)), Growing(np.zeros(0, np.int64))
        self._pools: dict[str, ListPool] = {}
        self._tree = self._tree_of(plan)
        # The variables of whole records, in pattern order.
        order = {scan.component.variable: scan.component.position for scan in self._positive}
        self._names = sorted(self._tree.root.variables, key=order.__getitem__)
        # Matches; whole records where matches wait for their window to close.
        self._pending: list[Records] = []
        # The earliest start of an event that is still of use.
        self._earliest = EARLIEST
        self._rounds_assembled = self._changes = 0
        self._lists_kept = 0
        self._round_size = settings.adapting.round or USUAL_ROUND
        # Since the plan was changed: where its events begin and end in the store, each with the time there.
        self._span: tuple[tuple[int, int], tuple[int, int]] | None = None

    def _tree_of(self, plan: TreePlan) -> OperatorTree:
        return OperatorTree(plan, Setting(self._columns, self._strings, self._pools, keyed=bool(plan.key)))

    # Events

    def bits(self, columns: ColumnStore, in_partition: Flags) -> Bits:
        """The components that each event of a batch could stand for."""
        positives = scan([(s.component, s.mask) for s in self._positive], columns, self._strings, in_partition)
        absents = scan([(s.component, s.mask) for s in self._negated], columns, self._strings)
        self._seen += positives.seen, positives.passed
        return Bits(positives.bits, shared_zeros(len(in_partition)), absents.bits)

    def advance(self, store: EventStore, begin: int, bits: Bits, time: Timeline, keys: int) -> None:
        """Take in the store's events from `begin` on, as many as there are bits; `keys` is the number of partitions."""
        self._begins.append(bits.begins)
        self._absents.append(bits.absents)
        for first, last in self._rounds(store, begin, begin + len(bits.begins)):
            before = self._tree.tried
            self._round(store, time, keys, first, last)
            self._size_round(last - first, self._tree.tried - before)
            if self._adapter is not None:
                self._adapt(self._adapter, store, time, keys, first, last, self._tree.tried - before)
            self._forget_lists(time)

    def _rounds(self, store: EventStore, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The rounds of some events; simultaneous ones are of one round."""
        ends = store.end[:end]
        while begin < end:
            last = min(begin + self._round_size, end)
            last = int(np.searchsorted(ends, ends[last - 1], side="right"))
            yield begin, last
            begin = last

    def _size_round(self, events: int, tried: int) -> None:
        """Make the next round longer where little is tried, since each round has a fixed cost."""
        if self._settings.adapting.round is None:
            self._round_size = min(2 * self._round_size, _LONGEST) if tried < _LITTLE * events else USUAL_ROUND

    def _round(self, store: EventStore, time: Timeline, keys: int, first: int, last: int) -> None:
        idle, at = True, self._at(store, time, keys, self._earliest)
        earliest = LATEST
        begun = (first, int(store.end[first])) if self._span is None else self._span[0]
        self._span = begun, (last, int(store.end[last - 1]))
        for place, wanted in enumerate(self._positive):
            events = first + np.flatnonzero((self._begins.array[first:last] >> place) & 1)
            self._tree.offer(wanted.component.variable, events, at)
            if wanted.component.variable in self._tree.finals and len(events):
                idle = False
                earliest = min(earliest, int(time.ends[events[0]]))
        for place, wanted in enumerate(self._negated):
            events = first + np.flatnonzero((self._absents.array[first:last] >> place) & 1)
            self._tree.offer(wanted.component.variable, events, at)
        if idle:
            return
        window = self.query.window
        if window is not None and at.by_time:
            self._earliest = in_time(earliest - window.size + (0 if window.inclusive else 1))
        at = self._at(store, time, keys, self._earliest)
        self._rounds_assembled += 1
        records = self._tree.assemble(at)
        if not self._tree.waits:
            records = self._tree.decided(records, at)
        if len(records):
            self._pending.append(self._in_order(records))

    def _at(self, store: EventStore, time: Timeline, keys: int, earliest: int) -> Round:
        whole = within(self.query.window)
        by_time = not self.query.counts_events
        # Where positions are counted and events last, a part of a match can be longer than the whole.
        early = by_time or self.query.schema.start is None
        tested = JoinWindow(whole if early else within(None), time.closes, earliest)
        return Round(store, time, keys, tested, whole, by_time, store.events, self._strings.arrays(), self._accounts)

    def _forget_lists(self, time: Timeline) -> None:
        """Drop the lists of records that are gone, when there are many."""
        list_bytes = sum(pool.nbytes for pool in self._pools.values())
        if not self._pools or list_bytes < 2 * self._lists_kept + _MANY_LISTS:
            return
        self._tree.forget_before(self._earliest, time)
        buffers = [(operator.buffer, operator.columns) for operator in self._tree.root.everything()]
        for name, pool in self._pools.items():
            place = self._names.index(name) if name in self._names else -1
            numbers = [buffer.numbers(columns[name]) for buffer, columns in buffers if name in columns]
            numbers += [part.refs[:, place] for part in self._pending if place >= 0]
            live = np.unique(np.concatenate([np.zeros(0, np.int32), *numbers]))
            live = live[live >= 0]
            pool.keep(live)
            for buffer, columns in buffers:
                if name in columns:
                    buffer.renumber(columns[name], live)
            for part in self._pending:
                if place >= 0:
                    part.refs[:, place] = renumbered(part.refs[:, place], live)
        self._lists_kept = sum(pool.nbytes for pool in self._pools.values())

    # Other plans (§5.3)

    def _adapt(
        self, adapter: Adapter, store: EventStore, time: Timeline, keys: int, first: int, last: int, tried: int
    ) -> None:
        """Observe a finished round, and switch to another plan where that pays."""

        def members(begin: int, end: int) -> dict[str, Ints]:
            begins, absents = self._begins.array[begin:end], self._absents.array[begin:end]
            return {
                scan.component.variable: begin + np.flatnonzero((bits >> place) & 1)
                for scans, bits in ((self._positive, begins), (self._negated, absents))
                for place, scan in enumerate(scans)
            }

        better = adapter.after_round(store, time, members, first, last, self._strings.arrays(), tried)
        if better is not None:
            self.change_plan(better, store, time, keys, last)

    def change_plan(self, plan: TreePlan, store: EventStore, time: Timeline, keys: int, last: int) -> None:
        """Switch to another plan of the same pattern after the events up to `last`.

        The records of inner nodes are rebuilt from the events in the window; those of the root were returned before.
        """
        pools, self._pools = self._pools, {}
        self.plan, self._tree = plan, self._tree_of(plan)
        for place, name in enumerate(self._names):
            if name in pools:
                for part in self._pending:
                    rows, begins = pools[name].expanded(part.refs[:, place])
                    absent = part.refs[:, place] < 0
                    part.refs[:, place] = self._pools[name].add(np.diff(begins), rows)
                    part.refs[absent, place] = -1
        at = replace(self._at(store, time, keys, self._earliest), emits=False)
        low = int(np.searchsorted(store.end[:last], self._earliest))
        for scans, bits in ((self._positive, self._begins.array), (self._negated, self._absents.array)):
            for place, wanted in enumerate(scans):
                # What closes later may be forbidden by an event that the window has left behind.
                begin = low if self._tree.is_leaf(wanted.component.variable) else 0
                events = begin + np.flatnonzero((bits[begin:last] >> place) & 1)
                self._tree.offer(wanted.component.variable, events, at)
        self._tree.assemble(at)
        self._tree.forget_counts()
        self._changes += 1
        self._span = None

    def _in_order(self, bound: NamedRecords) -> Records:
        places = [bound.columns[name] for name in self._names]
        if places == list(range(len(places))):
            return bound.records
        return Records(np.ascontiguousarray(bound.records.refs[:, places]), bound.records.times)

    # Matches

    def settle(self, store: EventStore, time: Timeline, keys: int, closing: Closing) -> Completions:
        columns = {name: place for place, name in enumerate(self._names)}
        nothing = Records(np.zeros((0, len(columns)), np.int32), np.zeros((0, TIMES), np.int64))
        whole = NamedRecords(together([*self._pending, nothing]), columns, self._pools)
        self._pending = []
        if self._tree.waits:
            closed = closing.closed(whole.records.times[:, FIRST])
            if not closed.all():
                self._pending = [taken(whole.records, ~closed)]
                whole = NamedRecords(taken(whole.records, closed), columns, self._pools)
            whole = self._tree.decided(whole, self._at(store, time, keys, self._earliest))
        self._check_budget(whole.records.times[:, LAST], store)
        return Completions(self._matches(whole))

    def forget_matches(self) -> bool:
        """Drop the matches that are certain; False where some wait for their window to close."""
        if self._tree.waits:
            return False
        self._pending = []
        return True

    def _check_budget(self, last: Ints, store: EventStore) -> None:
        if self._accounts.fails and len(last) > self._accounts.matches_per_event:
            events, counts = np.unique(last, return_counts=True)
            worst = int(counts.argmax())
            if counts[worst] > self._accounts.matches_per_event:
                self._accounts.too_many_matches(store, int(events[worst]), int(counts[worst]))

    def _matches(self, whole: NamedRecords) -> Matches:
        order = {component.variable: number for number, component in enumerate(self.query.positives)}
        names = sorted(whole.columns, key=order.__getitem__)
        refs = whole.records.refs
        if not self._pools and not self.plan.aliases and (not len(refs) or refs.min() >= 0):
            places = [whole.columns[name] for name in names]
            columns = np.ascontiguousarray(refs[:, places].T, np.int32)
            return ColumnarMatches(columns, np.array([order[name] for name in names], np.uint8))
        events, offsets, whose = whole.references(names)
        variables = np.array([order[name] for name in names], np.int64)[whose]
        if self.plan.aliases:
            events, variables = self._renamed(whole, events, offsets, variables, order)
        return Matches(offsets, events.astype(np.int64), variables.astype(np.uint8))

    def _renamed(
        self, whole: NamedRecords, events: Numbers, offsets: Ints, variables: Ints, order: Mapping[str, int]
    ) -> tuple[Numbers, Ints]:
        """Give merged components their own names back, and their places in the order of the pattern."""
        record = np.repeat(np.arange(len(whole)), np.diff(offsets))
        for alias in self.plan.aliases:
            present = np.zeros(len(whole), np.bool_)
            for name in alias.when:
                present |= np.diff(whole.covered(name)[1]) > 0
            variables = np.where((variables == order[alias.of]) & present[record], order[alias.variable], variables)
        places = np.lexsort((np.arange(len(events)), variables, record))
        return events[places], variables[places]

    @property
    def undecided_events(self) -> Ints:
        """The last events of records that wait for their window to close; a closure may end later."""
        if not self._tree.waits:
            return np.zeros(0, np.int64)
        return np.concatenate([np.zeros(0, np.int64), *(part.times[:, LAST] for part in self._pending)])

    # Counts and sizes

    def counts(self) -> tuple[ComponentCounts, ...]:
        return tuple(
            ComponentCounts(wanted.component.variable, int(self._seen[0, place]), int(self._seen[1, place]))
            for place, wanted in enumerate(self._positive)
        )

    def count_from(self, counts: Mapping[str, ComponentCounts], measured: Measured | None) -> None:
        names = [scan.component.variable for scan in self._positive]
        self._seen[:] = np.array([(counts[name].seen, counts[name].passed) for name in names], np.int64).T
        self._changes = 0 if measured is None else measured.changes
        self._rounds_assembled = 0 if measured is None else measured.rounds

    @property
    def tried(self) -> int:
        return self._tree.tried

    @property
    def costs(self) -> Costed | None:
        return None if self._adapter is None or not self._changes else self._adapter.costs

    @property
    def measured(self) -> Measured:
        """Counts since the plan was last changed."""
        (first, begun), (last, ended) = self._span or ((0, 0), (0, 0))
        window = self.query.window
        length = last - first if self.query.counts_events else ended - begun + 1
        windows = 1.0 if window is None else length / max(window.size, 1)
        return Measured(self._tree.counted(), windows, self._rounds_assembled, self._changes)

    @property
    def runs(self) -> int:
        """The number of records in all buffers."""
        return sum(operator.buffer.size for operator in self._tree.root.everything())

    def open_runs(self, closing: Closing) -> int:
        """Records that began in a window that is still open."""
        firsts = [operator.buffer.all.times[: operator.buffer.size, FIRST] for operator in self._tree.root.everything()]
        return sum(int(np.count_nonzero(~closing.closed(first))) for first in firsts)

    @property
    def nbytes(self) -> int:
        pending = sum(int(part.refs.nbytes + part.times.nbytes) for part in self._pending)
        return self._tree.nbytes + self._begins.nbytes + self._absents.nbytes + pending

    @property
    def fixed_bytes(self) -> int:
        return 0

    def open_bytes(self, closing: Closing, time: Timeline) -> int:
        """Bytes of the records of single events that an open window may still hold.

        The number of records of several events depends on the plan, which changes: budgets do not count them.
        """
        size = self._begins.size
        events = np.flatnonzero((self._begins.used != 0) & ~closing.closed(np.arange(size)))
        record = np.dtype(np.int64).itemsize * (TIMES + 2) + np.dtype(np.int32).itemsize
        return len(events) * record


def _by_position(scans: list[Scan]) -> list[Scan]:
    return sorted(scans, key=lambda scan: scan.component.position)

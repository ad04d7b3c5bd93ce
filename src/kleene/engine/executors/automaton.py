"""Runs an automaton plan over the events of a store: edge programs, pools of nodes and links, certain matches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kleene.codegen.aggregates import compile_aggregates
from kleene.engine.executors.computation_state import computation_state
from kleene.engine.executors.contract import CompletedRuns, Completions, Executor, ExecutorContext, Resumed
from kleene.engine.executors.drops import Drop, Drops
from kleene.engine.executors.linking import groups
from kleene.engine.executors.machine import FIRST_ROOM, machine_of, no_runs
from kleene.engine.executors.negation import CandidateMatches, NegatedEvents
from kleene.engine.executors.windows import Closing
from kleene.engine.intake.bits import Bits, scan
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.engine.state.statistics import ComponentCounts
from kleene.engine.state.store import EventStore
from kleene.errors import BadSnapshot
from kleene.kernels import runs as kernel
from kleene.kernels.aggregates import accumulate_rows
from kleene.kernels.automaton import advance
from kleene.kernels.deaths import purge
from kleene.kernels.expression import EventColumns, Groups, Ints, ProgramScope
from kleene.kernels.negation import OPEN
from kleene.kernels.timeline import EventBits, Timeline
from kleene.pattern.nodes import ComponentKind
from kleene.plan.costs import Measured
from kleene.plan.physical import Absence, AutomatonPlan, StatePlan

Flags = npt.NDArray[np.bool_]
# By how much of its size room grows at once; memory that is never written to is never taken.
_MOST_AHEAD = 7.0
_NO_EVENTS = np.zeros((0, 0), np.int64), np.zeros((0, 0), np.float64), np.zeros((0, 0), np.uint8)


class AutomatonExecutor(Executor):
    """NFA^b: each event is offered to the open runs, which share what they have selected."""

    def __init__(self, plan: AutomatonPlan, context: ExecutorContext) -> None:
        query, columns, strings, accounts = context.query, context.columns, context.strings, context.accounts
        self.query, self.plan, self.key = query, plan, plan.key
        self._strings, self._accounts = strings, accounts
        self._state = computation_state(query, plan, columns)
        self._aggregates = compile_aggregates(self._state.layout)
        most = accounts.budget.runs_per_partition
        self._machine, self._stack = machine_of(
            query, plan, self._state, self._aggregates, strings, most=most, alone=context.alone
        )
        self._runs = no_runs(plan, self._state.width, self._machine.lookups)
        self._groups = groups(FIRST_ROOM, len(self._aggregates.functions))
        # The run that has taken nothing: no event of any variable.
        every = np.arange(len(self._aggregates.functions), dtype=np.int64)
        accumulate_rows(
            self._machine.aggregation,
            every,
            every[:0],
            EventColumns(*_NO_EVENTS),
            strings.arrays(),
            self._groups,
            kernel.ROOT,
        )
        self._bindings = np.full((1, kernel.RUN_SLOTS + self._state.width), -1, np.int64)
        # Where a budget has dropped runs.
        self._drops = Drops()
        # Runs that have completed, whose end is still to be decided.
        self._pending = np.zeros(0, np.int64)
        self._negated = {
            place: self._negated_events(absence)
            for place, absence in enumerate(plan.absences)
            if self._is_last(absence)
        }
        self._seen = np.zeros((2, len(plan.states)), np.int64)
        names = [component.variable for component in query.positives]
        self.variables = np.array([names.index(state.component.variable) for state in plan.states], np.uint8)

    # Events

    def bits(self, columns: ColumnStore, in_partition: Flags) -> Bits:
        """The components that each event of a batch could stand for."""
        states, strings = self.plan.states, self._strings
        begins = scan([(state.component, state.begin.mask) for state in states], columns, strings, in_partition)
        kleene = [(state.component, state.take.mask) if self._is_kleene(state) else None for state in states]
        takes = scan(kleene, columns, strings, in_partition)
        absents = scan([(a.scan.component, a.scan.mask) for a in self.plan.absences], columns, strings)
        self._seen += begins.seen, np.maximum(begins.passed, takes.passed)
        return Bits(begins.bits, takes.bits, absents.bits)

    @staticmethod
    def _is_kleene(state: StatePlan) -> bool:
        return state.component.kind is ComponentKind.KLEENE

    def advance(self, store: EventStore, begin: int, bits: Bits, time: Timeline, keys: int) -> None:
        """Offer the store's events from `begin` on, as many as there are bits; `keys` is the number of partitions."""
        end = begin + len(bits.begins)
        for place, negated in self._negated.items():
            negated.append(begin + np.flatnonzero((bits.absents >> place) & 1))
        self._make_room(bits, keys, int(time.partitions[begin:end].max(initial=0)) + 1)
        event_bits = EventBits(begin, bits.begins, bits.takes, bits.absents)
        texts = self._strings.arrays()
        drops = self._drops.after(begin)
        at = begin
        while True:
            if drops and drops[0].event == at:
                self._drop_again(drops.pop(0), time)
            until = drops[0].event if drops else end
            scope = ProgramScope(store.events, texts, self._bindings, self._groups, self._stack)
            at = advance(at, until, event_bits, time, self._machine, scope, self._runs)
            status = int(self._runs.sizes[kernel.STATUS])
            if status == kernel.DONE:
                if at == end:
                    break
                continue
            if status == kernel.TOO_MANY_RUNS:
                self._fewer_runs(store, at, time)
            else:
                self._grow(2 * int(self._runs.live[time.keys[at]]) + 2, share=(end - at) / max(1, at - begin))
        completed = self._runs.completed[: self._runs.sizes[kernel.COMPLETED]].astype(np.int64)
        self._runs.sizes[kernel.COMPLETED] = 0
        self._pending = np.concatenate([self._pending, completed])

    # Room

    def _make_room(self, bits: Bits, keys: int, partitions: int) -> None:
        """Reserve room for the partitions of a batch, and for its events of negated classes."""
        runs = self._runs
        instances = int(runs.sizes[kernel.INSTANCES])
        for place in range(len(self.plan.absences)):
            instances += int(np.count_nonzero((bits.absents >> place) & 1))
        self._runs = runs._replace(
            top=with_room(runs.top, keys, -1),
            live=with_room(runs.live, keys, 0),
            limit=with_room(runs.limit, keys, self._machine.lookups.few),
            newest_instance=with_room(runs.newest_instance, keys, -1),
            frontier=with_room(runs.frontier, partitions, -1),
            instances=with_room(runs.instances, instances),
            below=with_room(runs.below, instances),
        )

    def _grow(self, more: int, share: float) -> None:
        """Reserve room for `more` further nodes and links, and for those that the rest of a batch will make.

        share   the events still to come by those that were taken in, of this batch
        """
        runs = self._runs

        def room(pool: int) -> int:
            used = int(runs.sizes[pool])
            return used + max(more + 1, int(used * min(share, _MOST_AHEAD)))

        nodes, links, completed = room(kernel.NODES), room(kernel.LINKS), room(kernel.COMPLETED)
        grown = {name: with_room(getattr(runs, name), nodes) for name in ("nodes", "slots", "total", "codes")}
        grown["links"] = with_room(runs.links, links)
        tallies = int(runs.sizes[kernel.TALLIES]) + more * 2 * (int(runs.sizes[kernel.LONGEST]) + 1) + 1
        grown |= {name: with_room(getattr(runs, name), tallies) for name in ("tally", "tallied")}
        grown["completed"] = with_room(runs.completed, completed)
        if len(runs.buckets) < 4 * more:
            size = 1 << (4 * more).bit_length()
            grown |= {"buckets": np.zeros(size, np.int32), "stamps": np.full(size, -1, np.int32)}
        self._runs = runs._replace(**grown | self._more_chains(more))
        self._groups = Groups(*(with_room(array, nodes) for array in self._groups))

    def _more_chains(self, more: int) -> dict[str, Any]:
        """Room to find `more` runs by value, and to file them: empty chains, on which all live runs are put anew."""
        runs, grown = self._runs, dict[str, Any]()
        if not self._machine.lookups.any:
            return grown
        if more > runs.found.shape[1]:
            grown["found"] = empty((kernel.FOUND + 1, 2 * more), np.int32)
        if runs.sizes[kernel.FILED] + 3 * more > runs.heads.shape[1]:
            # So many that filing all of them again, and looking at every key, is rare.
            size = 2 * (kernel.LANES * int(runs.live.sum()) + 3 * more) + len(runs.limit)
            grown["heads"] = np.full((kernel.LANES, 1 << size.bit_length()), -1, np.int32)
            runs.sizes[kernel.FILED] = -1
        return grown

    def _fewer_runs(self, store: EventStore, event: int, time: Timeline) -> None:
        """Drop the oldest runs of a partition that has too many, not counting dead ones that are still listed."""
        runs, key = self._runs, int(time.keys[event])
        purge(key, event, time, self._machine, runs)
        most = self._machine.most
        if runs.live[key] <= most:
            return
        if not self._accounts.drops:
            self._accounts.too_many_runs(store, event)
        nodes = self._oldest_first(key, time)
        # A quarter at once, so that this is rare.
        dropped = nodes[: len(nodes) - most + most // 4]
        starts = time.starts[self.first(dropped)]
        self._drops.add(Drop(event, int(starts[-1]), int(np.count_nonzero(starts == starts[-1]))))
        self._accounts.dropped_runs += len(dropped)
        self._drop(dropped, key, event, time)

    def _drop_again(self, drop: Drop, time: Timeline) -> None:
        """Drop the same runs as when the event first arrived, before this executor was rebuilt."""
        key = int(time.keys[drop.event])
        if key < 0:
            raise BadSnapshot("this snapshot is not what an engine keeps: runs were dropped that are in no partition")
        purge(key, drop.event, time, self._machine, self._runs)
        nodes = self._oldest_first(key, time)
        starts = time.starts[self.first(nodes)]
        # Where the first event is no longer held, none of its runs is there.
        with_it = min(drop.number, int(np.count_nonzero(starts == drop.start)))
        self._drop(nodes[: int(np.count_nonzero(starts < drop.start)) + with_it], key, drop.event, time)

    def _drop(self, nodes: Ints, key: int, event: int, time: Timeline) -> None:
        self._runs.nodes[nodes, kernel.KILLED] = kernel.DROPPED
        purge(key, event, time, self._machine, self._runs)

    def _oldest_first(self, key: int, time: Timeline) -> Ints:
        """The live runs of a partition, sorted by their latest first events.

        Where runs share nodes, the numbers of nodes depend on runs that are gone: ties are broken by contents instead.
        """
        runs, live = self._runs, []
        for node in runs.top[key].tolist():
            while node >= 0:
                live.append(node)
                node = int(runs.nodes[node, kernel.SIBLING])
        nodes = np.array(sorted(live), np.int64)
        contents = [runs.slots[nodes], *(array[nodes] for array in self._groups)] if self._machine.merges else []
        columns = [column for part in contents for column in part.reshape(len(nodes), math.prod(part.shape[1:])).T]
        columns += [runs.nodes[nodes, place] for place in (kernel.NUMBER, kernel.STATE, kernel.EVENT)]
        order: Ints = np.lexsort((*columns, time.starts[self.first(nodes)]))
        return nodes[order]

    # Certain matches

    def settle(self, store: EventStore, time: Timeline, keys: int, closing: Closing) -> Completions:
        nodes = self._pending
        if not self.plan.has_negated_end:
            self._pending = nodes[:0]
            return Completions(runs=CompletedRuns(self, nodes))
        closed = closing.closed(self.first(nodes))
        nodes, self._pending = nodes[closed], nodes[~closed]
        texts = self._strings.arrays()
        for negated in self._negated.values():
            survivors = ~negated.forbid(self._suspects(nodes, time), self.query.window, time, keys, store.events, texts)
            self._runs.counts[-1, kernel.STOPPED] += len(survivors) - np.count_nonzero(survivors)
            nodes = nodes[survivors]
        return Completions(runs=CompletedRuns(self, nodes))

    def _is_last(self, absence: Absence) -> bool:
        return absence.after == len(self.plan.states) - 1

    def _negated_events(self, absence: Absence) -> NegatedEvents:
        return NegatedEvents(absence, self._state.layout, kernel.NEGATED, self._strings)

    def _suspects(self, nodes: Ints, time: Timeline) -> CandidateMatches:
        runs = self._runs
        bindings = np.full((len(nodes), kernel.RUN_SLOTS + self._state.width), -1, np.int64)
        bindings[:, kernel.RUN_SLOTS :] = runs.slots[nodes]
        last = self.event(nodes)
        for slot in (self._state.last[-1], self._state.first[-1] if not self._machine.kleene[-1] else -1):
            if slot >= 0:
                bindings[:, slot] = last
        ceilings = np.full(len(nodes), OPEN, np.int64)
        return CandidateMatches(bindings, self._groups, nodes, time.rights[last], ceilings, self.first(nodes), last)

    # Counts and sizes

    @property
    def pool(self) -> kernel.Runs:
        return self._runs

    @property
    def undecided(self) -> Ints:
        """The completed runs whose window was open when `settle` last ran."""
        return self._pending

    @property
    def undecided_events(self) -> Ints:
        """The last events of the undecided runs."""
        return self.event(self._pending)

    def event(self, nodes: Ints) -> Ints:
        """The last event of each run."""
        return self._field(nodes, kernel.EVENT)

    def first(self, nodes: Ints) -> Ints:
        """The latest first event of each run."""
        return self._field(nodes, kernel.NEWEST)

    def oldest(self, nodes: Ints) -> Ints:
        """The earliest first event of each run."""
        return self._field(nodes, kernel.OLDEST)

    @property
    def counts_by_first(self) -> bool:
        return bool(self._machine.tallies)

    def _field(self, nodes: Ints, field: int) -> Ints:
        values: Ints = self._runs.nodes[nodes, field].astype(np.int64)
        return values

    def total(self, nodes: Ints) -> npt.NDArray[np.uint64]:
        """How many runs each node stands for, whenever they began; the greatest number stands for more."""
        return self._runs.total[nodes]

    def counts(self) -> tuple[ComponentCounts, ...]:
        counted = self._runs.counts
        return tuple(
            ComponentCounts(
                state.component.variable,
                int(self._seen[0, number]),
                int(self._seen[1, number]),
                *(int(counted[number, column]) for column in range(kernel.COUNTERS)),
            )
            for number, state in enumerate(self.plan.states)
        )

    def count_from(self, counts: Mapping[str, ComponentCounts], measured: Measured | None) -> None:
        of_states = [counts[state.component.variable] for state in self.plan.states]
        self._seen[:] = np.array([(count.seen, count.passed) for count in of_states], np.int64).T
        self._runs.counts[:] = [
            (count.reached, count.failed, count.negated, count.expired, count.broken) for count in of_states
        ]

    @property
    def tried(self) -> int:
        """Runs, and events that failed a condition with one."""
        return int(self._runs.counts[:, (kernel.REACHED, kernel.FAILED)].sum())

    def resume(self, known: Resumed) -> None:
        room_for = with_room(self._runs.frontier, len(known.frontier), -1)
        room_for[: len(known.frontier), 0] = known.frontier
        self._runs = self._runs._replace(frontier=room_for)
        self._drops = known.drops

    @property
    def drops(self) -> Drops:
        return self._drops

    @property
    def runs(self) -> int:
        return int(self._runs.live.sum())

    def open_runs(self, closing: Closing) -> int:
        """Live nodes whose latest run began in an open window; the others are removed when an event arrives."""
        live = self._live_nodes()
        live = live[self._field(live, kernel.KILLED) == kernel.ALIVE]
        return int(np.count_nonzero(~closing.closed(self.first(live))))

    def _live_nodes(self) -> Ints:
        """The nodes of all lists; the number of steps is logarithmic in the longest list."""
        runs = self._runs
        nodes: Ints = runs.top[runs.top >= 0].astype(np.int64)
        # [node]: the node so many places further in its list; the −1 at the end is where −1 leads to.
        further: Ints = np.append(runs.nodes[: runs.sizes[kernel.NODES], kernel.SIBLING], -1).astype(np.int64)
        while len(more := further[nodes][further[nodes] >= 0]):
            nodes = np.concatenate([nodes, more])
            further = further[further]
        return nodes

    @property
    def nbytes(self) -> int:
        negated = sum(events.nbytes for events in self._negated.values())
        return sum(int(array.nbytes) for array in (*self._runs, *self._groups, self._pending)) + negated

    def open_bytes(self, closing: Closing, time: Timeline) -> int:
        """Bytes of the runs of open windows, including those that died in them.

        These runs and the links between them do not depend on how often the store was rebuilt.
        """
        runs = self._runs
        size = int(runs.sizes[kernel.NODES])
        # The first node has taken nothing.
        first = runs.nodes[:size, kernel.NEWEST].astype(np.int64)
        is_open = np.zeros(size, np.bool_)
        is_open[1:] = ~closing.closed(first[1:])
        if self._machine.prunes:
            frontier = runs.frontier[np.maximum(time.partitions[first[1:]], 0), 0]
            is_open[1:] &= time.steps[first[1:]] > frontier
        links = np.count_nonzero(is_open[runs.links[: runs.sizes[kernel.LINKS], kernel.ORIGIN]])
        arrays = (runs.nodes, runs.slots, runs.total, runs.codes, runs.completed, *self._groups)
        each = sum(array.dtype.itemsize * int(np.prod(array.shape[1:])) for array in arrays)
        a_link = runs.links.dtype.itemsize * int(runs.links.shape[1])
        return int(np.count_nonzero(is_open)) * each + int(links) * a_link

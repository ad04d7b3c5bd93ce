"""Runs a sequence plan over the events of a store: stacks, construction, negation (SASE §3–4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.contract import Completions, Executor, ExecutorContext
from kleene.engine.executors.linking import groups, link
from kleene.engine.executors.negation import CandidateMatches, NegatedEvents, equal_values
from kleene.engine.executors.programs import depth_of, joined
from kleene.engine.executors.windows import Closing, within
from kleene.engine.intake.bits import Bits, scan
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.output.matches import Matches
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.engine.state.statistics import ComponentCounts
from kleene.engine.state.store import EventStore
from kleene.kernels import sequence as kernel
from kleene.kernels.expression import EventTest, Ints, ProgramScope, room
from kleene.kernels.negation import OPEN
from kleene.kernels.timeline import EventBits, Timeline
from kleene.pattern.expressions import Which
from kleene.plan.costs import Measured
from kleene.plan.layout import Layout
from kleene.plan.physical import Absence, SequencePlan

Flags = npt.NDArray[np.bool_]


class SequenceExecutor(Executor):
    """Active instance stacks: every sequence is built from its last event back."""

    def __init__(self, plan: SequencePlan, context: ExecutorContext) -> None:
        query, strings = context.query, context.strings
        self.query, self.plan, self.key = query, plan, plan.key
        self._columns, self._strings, self._accounts = context.columns, strings, context.accounts
        length = len(plan.scans)
        tests = [list(clauses) for clauses in plan.during]
        tests[0] += plan.after
        programs = [compile_clauses(clauses, self._layout()) for clauses in tests]
        self._sequence = kernel.SequenceRule(
            joined(programs, strings),
            within(query.window),
            plan.window_in_scan and query.window is not None,
            plan.window_in_construction and query.window is not None,
            context.accounts.matches_per_event,
        )
        self._room = room(depth_of(programs))
        self._groups = groups(1, 1)
        nothing = np.zeros(0, np.int32)
        self._stacks = kernel.Stacks(
            nothing,
            nothing.copy(),
            nothing.copy(),
            np.full((1, length), -1, np.int32),
            np.zeros(1, np.int64),
            np.zeros((length, kernel.COUNTERS), np.int64),
        )
        self._negated = [self._negated_events(absence) for absence in plan.absences]
        self._seen = np.zeros((2, length), np.int64)
        self._stopped = 0
        self._constructed = 0
        # Sequences that are still to be given, or whose end is still to be decided.
        self._pending = [np.zeros((0, length), np.int32)]
        names = [component.variable for component in query.positives]
        self._variables = np.array([names.index(scan.component.variable) for scan in plan.scans], np.uint8)

    def _layout(self, negated: str | None = None) -> Layout:
        """Slots: the places of the sequence, then one for what is absent, then one for the negated event."""
        length = len(self.plan.scans)
        places = {scan.component.variable: place for place, scan in enumerate(self.plan.scans)}
        slots = {
            (component.variable, which): places.get(component.variable, length)
            for component in self.query.components
            # A list is in other alternatives only, but a condition may name its ends here as well.
            for which in (Which.SINGLE, Which.FIRST, Which.LAST)
        }
        if negated is not None:
            slots[negated, Which.SINGLE] = length + 1
        return Layout(slots, self._columns)

    def _negated_events(self, absence: Absence) -> NegatedEvents:
        variable = absence.scan.component.variable
        layout, length = self._layout(variable), len(self.plan.scans)
        program = compile_clauses(absence.conditions, layout)
        test, stack = EventTest(link(program, self._strings), length + 1), room(program.depth + 1)
        return NegatedEvents(test, stack, equal_values(absence.conditions, variable, layout), keyed=absence.keyed)

    # Events

    def bits(self, columns: ColumnStore, in_partition: Flags) -> Bits:
        """The components that each event of a batch could stand for."""
        places = scan([(s.component, s.mask) for s in self.plan.scans], columns, self._strings, in_partition)
        absents = scan([(a.scan.component, a.scan.mask) for a in self.plan.absences], columns, self._strings)
        self._seen += places.seen, places.passed
        return Bits(places.bits, np.zeros(len(in_partition), np.int64), absents.bits)

    def advance(self, store: EventStore, begin: int, bits: Bits, time: Timeline, keys: int) -> None:
        """Take in the store's events from `begin` on, as many as there are bits; `keys` is the number of partitions."""
        length, end = len(self.plan.scans), begin + len(bits.begins)
        for place, negated in enumerate(self._negated):
            negated.append(begin + np.flatnonzero((bits.absents >> place) & 1))
        self._make_room(bits.begins, keys)
        event_bits = EventBits(begin, bits.begins, bits.takes, bits.absents)
        bindings = np.full((1, length + 2), -1, np.int64)
        scope = ProgramScope(store.events, self._strings.arrays(), bindings, self._groups, self._room)
        out = kernel.Sequences(
            empty((max(1024, len(bits.begins) // 4), length), np.int32),
            np.zeros(1, np.int64),
            np.empty(length, np.int32),
        )
        at = begin
        while True:
            at = kernel.construct(at, end, event_bits, time, self._sequence, scope, self._stacks, out)
            if at == end:
                break
            if len(out.events) - out.number[0] > self._sequence.most:
                self._accounts.too_many_matches(store, at)
            out = out._replace(events=with_room(out.events, 2 * len(out.events)))
        self._pending.append(out.events[: out.number[0]])
        self._constructed += int(out.number[0])

    def _make_room(self, bits: Ints, keys: int) -> None:
        """Reserve room for every instance that the events can make."""
        length = len(self.plan.scans)
        needed = int(self._stacks.size[0])
        for place in range(length - 1):
            needed += int(np.count_nonzero((bits >> place) & 1))
        event, below, recent, top, size, counts = self._stacks
        self._stacks = kernel.Stacks(
            with_room(event, needed),
            with_room(below, needed),
            with_room(recent, needed),
            with_room(top, keys, -1),
            size,
            counts,
        )

    def settle(self, store: EventStore, time: Timeline, keys: int, closing: Closing) -> Completions:
        parts = [part for part in self._pending if len(part)] or self._pending[:1]
        sequences = np.concatenate(parts) if len(parts) > 1 else parts[0]
        if self.plan.has_negated_end:
            closed = closing.closed(sequences[:, 0].astype(np.int64))
            sequences, self._pending = sequences[closed], [sequences[~closed]]
        else:
            self._pending = [sequences[:0]]
        for absence, negated in zip(self.plan.absences, self._negated, strict=True):
            survivors = ~negated.forbid(
                self._suspects(sequences, absence, time),
                self.query.window,
                time,
                keys,
                store.events,
                self._strings.arrays(),
            )
            self._stopped += len(survivors) - int(np.count_nonzero(survivors))
            sequences = sequences[survivors]
        return Completions(Matches.of_rows(sequences, self._variables))

    def _suspects(self, sequences: npt.NDArray[np.int32], absence: Absence, time: Timeline) -> CandidateMatches:
        length = sequences.shape[1]
        bindings = np.full((len(sequences), length + 2), -1, np.int64)
        bindings[:, :length] = sequences
        at_end = absence.after == length - 1
        nothing = np.zeros(len(sequences), np.int64)
        floors = nothing - 1 if absence.after < 0 else time.rights[bindings[:, absence.after]]
        ceilings = nothing + OPEN if at_end else time.lefts[bindings[:, absence.after + 1]]
        first, last = np.ascontiguousarray(bindings[:, 0]), np.ascontiguousarray(bindings[:, length - 1])
        return CandidateMatches(bindings, self._groups, nothing, floors, ceilings, first, last)

    # Counts and sizes

    def counts(self) -> tuple[ComponentCounts, ...]:
        last = len(self.plan.scans) - 1
        return tuple(
            ComponentCounts(
                scan.component.variable,
                int(self._seen[0, place]),
                int(self._seen[1, place]),
                int(self._stacks.counts[place, kernel.REACHED]),
                int(self._stacks.counts[place, kernel.FAILED]),
                self._stopped if place == last else 0,
            )
            for place, scan in enumerate(self.plan.scans)
        )

    def count_from(self, counts: Mapping[str, ComponentCounts], measured: Measured | None) -> None:
        of_places = [counts[scan.component.variable] for scan in self.plan.scans]
        self._seen[:] = np.array([(count.seen, count.passed) for count in of_places], np.int64).T
        self._stacks.counts[:] = [(count.reached, count.failed) for count in of_places]
        self._stopped = of_places[-1].negated

    @property
    def tried(self) -> int:
        """Instances on stacks, sequences that failed a condition and those constructed."""
        return int(self._stacks.counts.sum()) + self._constructed

    @property
    def runs(self) -> int:
        return int(self._stacks.size[0])

    def open_runs(self, closing: Closing) -> int:
        """Instances whose latest sequence began in a window that is still open."""
        instances = np.arange(self.runs)
        for _ in self.plan.scans[2:]:
            recent = self._stacks.recent[instances]
            instances = np.where(recent < 0, instances, recent)
        first = self._stacks.event[instances].astype(np.int64)
        return int(np.count_nonzero(~closing.closed(first)))

    @property
    def nbytes(self) -> int:
        negated = sum(events.nbytes for events in self._negated)
        pending = sum(int(part.nbytes) for part in self._pending)
        return sum(int(array.nbytes) for array in self._stacks) + pending + negated

    def open_bytes(self, closing: Closing, time: Timeline) -> int:
        """Bytes of the instances of open windows, and of the sequences that are still undecided."""
        stacks = self._stacks
        each = sum(array.dtype.itemsize for array in (stacks.event, stacks.below, stacks.recent))
        return self.open_runs(closing) * each + sum(int(part.nbytes) for part in self._pending)

"""Runs a sequence plan over the events of a store: stacks, construction, negation (SASE §3–4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.contract import Completions, Executor, ExecutorContext
from kleene.engine.executors.linking import groups
from kleene.engine.executors.negation import CandidateMatches, NegatedEvents
from kleene.engine.executors.programs import depth_of, joined
from kleene.engine.executors.windows import Closing, within
from kleene.engine.intake.bits import Bits, scan
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.output.matches import ColumnarMatches
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty, shared_zeros
from kleene.engine.state.statistics import ComponentCounts
from kleene.engine.state.store import EventStore
from kleene.kernels import sequence as kernel
from kleene.kernels.expression import Ints, ProgramScope, room
from kleene.kernels.gates import Gates, Offers, gates, open_places
from kleene.kernels.negation import OPEN
from kleene.kernels.timeline import EventBits, Timeline
from kleene.pattern.expressions import Which
from kleene.pattern.recent import Recent
from kleene.plan.costs import Measured
from kleene.plan.layout import Layout
from kleene.plan.physical import Absence, SequencePlan
from kleene.plan.program import Program

Flags = npt.NDArray[np.bool_]
# Room for sequences, to begin with.
_FEWEST_SEQUENCES = 1024


def _nothing_written(number: int = 0) -> Ints:
    """`Sequences.number` before any sequence is written, where so many wait."""
    return np.array([number, 0, -1], np.int64)


def _room_for_candidates(places: int, number: int) -> kernel.Candidates:
    """Room for so many candidates at each place."""
    shape = places, number + kernel.CHUNK
    numbers, each = empty(shape, np.int32), np.zeros(places, np.int64)
    return kernel.Candidates(numbers, empty(shape, np.int32), empty(shape, np.int64), each, each.copy())


def _with_tops(top: Ints, keys: int) -> Ints:
    """The tops of stacks, for at least so many keys."""
    longer = kernel.empty_tops(max(keys, 2 * len(top)), top.shape[1])
    longer[: len(top)] = top
    return longer


_PROGRAMS: Recent[tuple[Program, ...]] = Recent()


def _with_gates(known: Gates, keys: int) -> Gates:
    """The gates for so many keys."""
    longer = gates(keys, known.width - 1)
    longer.ends[: len(known.ends)] = known.ends
    return longer


class SequenceExecutor(Executor):
    """Active instance stacks: every sequence is built from its last event back."""

    def __init__(self, plan: SequencePlan, context: ExecutorContext) -> None:
        query, strings = context.query, context.strings
        self.query, self.plan, self.key = query, plan, plan.key
        self._columns, self._strings, self._accounts = context.columns, strings, context.accounts
        length = len(plan.scans)
        programs = _PROGRAMS.get(plan, self._columns, self._programs)
        self._sequence = kernel.SequenceRule(
            joined(programs, strings),
            within(query.window),
            plan.window_in_scan and query.window is not None,
            plan.window_in_construction and query.window is not None,
            context.accounts.matches_per_event,
        )
        self._room = room(depth_of(programs))
        self._in_order = plan.writes_in_order(query)
        self._groups = groups(1, 1)
        self._stacks = kernel.Stacks(
            np.zeros((0, kernel.INSTANCE), np.int32),
            kernel.empty_tops(1, max(length - 1, 1)),
            np.zeros(1, np.int64),
            np.zeros((length, kernel.COUNTERS), np.int64),
        )
        self._gates = gates(1, length)
        self._candidates = _room_for_candidates(length - 1, 0)
        # Sequences that are still to be given, or whose end is still to be decided.
        self._pending = kernel.Sequences(
            np.zeros((length, 0), np.int32), _nothing_written(), np.empty(length, np.int32)
        )
        # The first event since sequences were last given.
        self._first_event = 0
        self._negated = [self._negated_events(absence) for absence in plan.absences]
        self._seen = np.zeros((2, length), np.int64)
        self._stopped = 0
        self._constructed = 0
        names = [component.variable for component in query.positives]
        self._variables = np.array([names.index(scan.component.variable) for scan in plan.scans], np.uint8)

    def _programs(self) -> tuple[Program, ...]:
        """[place]: what is tested once its event is bound."""
        tests = [list(clauses) for clauses in self.plan.during]
        tests[0] += self.plan.after
        layout = self._layout()
        return tuple(compile_clauses(clauses, layout) for clauses in tests)

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
        return NegatedEvents(absence, self._layout(variable), len(self.plan.scans) + 1, self._strings)

    # Events

    def bits(self, columns: ColumnStore, in_partition: Flags) -> Bits:
        """The components that each event of a batch could stand for."""
        places = scan([(s.component, s.mask) for s in self.plan.scans], columns, self._strings, in_partition)
        absents = scan([(a.scan.component, a.scan.mask) for a in self.plan.absences], columns, self._strings)
        self._seen += places.seen, places.passed
        return Bits(places.bits, shared_zeros(len(in_partition)), absents.bits)

    def advance(self, store: EventStore, begin: int, bits: Bits, time: Timeline, keys: int) -> None:
        """Take in the store's events from `begin` on, as many as there are bits; `keys` is the number of partitions."""
        end, before = begin + len(bits.begins), int(self._pending.number[kernel.COUNT])
        if not before:
            self._first_event = begin
            self._reserve_sequences(_FEWEST_SEQUENCES)
        for place, negated in enumerate(self._negated):
            negated.append(begin + np.flatnonzero((bits.absents >> place) & 1))
        if len(self._stacks.top) < keys:
            self._stacks = self._stacks._replace(top=_with_tops(self._stacks.top, keys))
            self._gates = _with_gates(self._gates, len(self._stacks.top))
        offers = self._offers(begin, end, EventBits(begin, bits.begins, bits.takes, bits.absents), time)
        number, at = len(offers.numbers), 0
        if not self.runs:
            self._reserve_instances(store.size - begin)
        while (at := self._construct(store, at, offers, time)) < number:
            self._make_room(store, int(offers.numbers[at]), number - at)
        self._constructed += int(self._pending.number[kernel.COUNT]) - before

    def _offers(self, begin: int, end: int, bits: EventBits, time: Timeline) -> Offers:
        """The events that some place is open for."""
        room = Offers(empty(end - begin + 1, np.int32), empty(end - begin + 1, np.int64))
        rule = self._sequence
        number = open_places(begin, end, bits, time, rule.within, rule.in_scan, self._gates, room)
        return Offers(room.numbers[:number], room.places[:number])

    def _construct(self, store: EventStore, at: int, offers: Offers, time: Timeline) -> int:
        """Take in events from this offer on; the first offer for which there is no room, or how many there are."""
        if self._in_order:
            return kernel.construct_in_order(
                at, offers, time, self._sequence, self._candidates, self._stacks, self._pending
            )
        bindings = np.full((1, len(self.plan.scans) + 2), -1, np.int64)
        scope = ProgramScope(store.events, self._strings.arrays(), bindings, self._groups, self._room)
        return kernel.construct(at, offers, time, self._sequence, scope, self._stacks, self._pending)

    def _make_room(self, store: EventStore, at: int, offers: int) -> None:
        """Reserve room for the instances of an event and the other offers, or for the sequences that they complete."""
        instances, length = self.runs, len(self.plan.scans)
        if instances + length - 1 > len(self._stacks.instances):
            self._reserve_instances(instances + offers)
            return
        number, capacity = int(self._pending.number[kernel.COUNT]), self._pending.events.shape[1]
        if capacity - number - kernel.CHUNK >= self._sequence.most:
            self._accounts.too_many_matches(store, at)
        # Later events complete about as many as those before them.
        expected = 1.2 * number * (store.size - self._first_event) / max(at - self._first_event, 1)
        self._reserve_sequences(max(2 * capacity, min(int(expected), 16 * capacity)))

    def _reserve_instances(self, needed: int) -> None:
        """Make room for so many instances, and as many more as an event may add."""
        # Most events are of one place; memory that is never written to is never taken.
        needed += len(self.plan.scans) - 1
        instances = with_room(self._stacks.instances, needed)
        self._stacks = self._stacks._replace(instances=instances)
        if self._in_order and self._candidates.events.shape[1] < len(instances) + kernel.CHUNK:
            self._candidates = _room_for_candidates(len(self.plan.scans) - 1, len(instances))

    def _reserve_sequences(self, capacity: int) -> None:
        """Make room for so many sequences in all."""
        sequences, number = self._pending.events, int(self._pending.number[kernel.COUNT])
        if sequences.shape[1] >= capacity:
            return
        wider = empty((len(self.plan.scans), capacity), np.int32)
        wider[:, :number] = sequences[:, :number]
        self._pending = self._pending._replace(events=wider)

    def settle(self, store: EventStore, time: Timeline, keys: int, closing: Closing) -> Completions:
        buffer, size = self._pending.events, int(self._pending.number[kernel.COUNT])
        sequences = buffer[:, :size]
        undecided = np.zeros((len(buffer), 0), np.int32)
        if self.plan.has_negated_end:
            closed = closing.closed(sequences[0].astype(np.int64))
            sequences, undecided = sequences[:, closed], sequences[:, ~closed]
        in_order = self._in_order and not self._pending.number[kernel.TIES]
        self._pending = self._pending._replace(events=undecided, number=_nothing_written(undecided.shape[1]))
        if not self.plan.absences:
            return Completions(ColumnarMatches(buffer, self._variables, size, follows=True, in_order=bool(in_order)))
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
            sequences = sequences[:, survivors]
        return Completions(ColumnarMatches(sequences, self._variables, follows=True))

    def _suspects(self, sequences: npt.NDArray[np.int32], absence: Absence, time: Timeline) -> CandidateMatches:
        length, number = sequences.shape
        bindings = np.full((number, length + 2), -1, np.int64)
        bindings[:, :length] = sequences.T
        at_end = absence.after == length - 1
        nothing = np.zeros(number, np.int64)
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
            recent = self._stacks.instances[instances, kernel.RECENT]
            instances = np.where(recent < 0, instances, recent)
        first = self._stacks.instances[instances, kernel.EVENT].astype(np.int64)
        return int(np.count_nonzero(~closing.closed(first)))

    @property
    def nbytes(self) -> int:
        negated = sum(events.nbytes for events in self._negated)
        stacks = sum(int(array.nbytes) for array in (*self._stacks, self._gates.ends))
        return stacks + self._pending_bytes + negated

    @property
    def _pending_bytes(self) -> int:
        sequences = self._pending.events
        return int(self._pending.number[kernel.COUNT] * sequences.shape[0] * sequences.itemsize)

    def open_bytes(self, closing: Closing, time: Timeline) -> int:
        """Bytes of the instances of open windows, and of the sequences that are still undecided."""
        each = kernel.INSTANCE * self._stacks.instances.itemsize
        return self.open_runs(closing) * each + self._pending_bytes

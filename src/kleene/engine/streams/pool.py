"""The instances of an automaton in memory: arrays that grow, and the values behind their codes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kleene.engine.intake.strings import StringPool
from kleene.engine.streams.cells import CellValues
from kleene.engine.streams.compiling import CompiledStream
from kleene.engine.streams.intake import Arrived
from kleene.engine.streams.values import ValuePool
from kleene.kernels import stream_instances as kernel
from kleene.kernels.expression import Bytes, EventColumns, Groups, Ints, ProgramScope, room
from kleene.kernels.opcodes import VALUE
from kleene.kernels.stream_instances import StreamResults
from kleene.kernels.streams import advance
from kleene.pattern.types import ValueType

_FIRST_ROOM = 256
_RESULTS_AT_ONCE = 1 << 14


class InstancePool:
    def __init__(self, stream: CompiledStream, strings: StringPool | None = None) -> None:
        self.stream = stream
        self.values = CellValues(strings or StringPool(), ValuePool())
        self.automaton = stream.linked(self.values.strings)
        self._stack = room(stream.depth)
        # The row of the newest event.
        self._newest = np.zeros((1, 1), np.int64)
        self._instances = self._empty(_FIRST_ROOM)
        self._results = _results(_RESULTS_AT_ONCE, stream.width)

    @property
    def size(self) -> int:
        """How many instances wait."""
        return len(self._instances.at) - int(self._instances.sizes[kernel.FREE])

    @property
    def counts(self) -> Ints:
        """[state, COUNTERS], and a row for results."""
        return self._instances.counts

    @property
    def bytes_an_instance(self) -> int:
        return 9 * self.stream.width + 48

    @property
    def nbytes(self) -> int:
        arrays = (*self._instances, *self._results)
        return sum(int(array.nbytes) for array in arrays) + self.values.strings.nbytes + self.values.others.nbytes

    # Events in, results out

    def advance(self, arrived: Arrived) -> Iterator[StreamResults]:
        """Take in events, and give results as they come."""
        events, begin = arrived.events, 0
        while begin < len(events.ends):
            begin = advance(self.automaton, events, self._instances, self._results, self._scope(arrived.columns), begin)
            number = int(self._instances.sizes[kernel.RESULTS])
            if number:
                self._instances.sizes[kernel.RESULTS] = 0
                yield StreamResults(self._results.cells[:number], self._results.states[:number])
            if begin < len(events.ends):
                self._make_room(int(events.ends[begin]), has_results=number > 0)

    def _scope(self, columns: EventColumns) -> ProgramScope:
        cells, states = self._instances.cells, self._instances.states
        groups = Groups(cells, cells.view(np.float64), states)
        return ProgramScope(columns, self.values.strings.arrays(), self._newest, groups, self._stack)

    def _make_room(self, now: int, *, has_results: bool) -> None:
        """Grow what was too small; room for instances only where few are too old to be of use."""
        lacking = int(self._instances.sizes[kernel.LACKS])
        if lacking == kernel.NO_RESULTS:
            if not has_results:
                self._results = _results(2 * len(self._results.cells), self.stream.width)
            return
        before = self.size
        self.expire(now)
        # A step may make more than waits: what was freed must be worth another try.
        if 4 * (before - self.size) < len(self._instances.at):
            self._grow(2 * len(self._instances.at))

    def _grow(self, capacity: int) -> None:
        old, size = self._instances, len(self._instances.at)
        new = self._empty(capacity)
        for name in ("cells", "states", "at", "stamps"):
            getattr(new, name)[:size] = getattr(old, name)
        free = int(old.sizes[kernel.FREE])
        new.free[:free] = old.free[:free]
        new.free[free : free + capacity - size] = np.arange(size, capacity)
        new.sizes[:], new.counts[:] = old.sizes, old.counts
        new.sizes[kernel.FREE] = free + capacity - size
        kernel.settle_in(self.automaton, new)
        self._instances = new

    def _empty(self, capacity: int) -> kernel.Instances:
        return empty_instances(capacity, self.stream.width, len(self.stream.cells))

    def expire(self, now: int) -> None:
        """Free the instances that no event which ends now or later can serve."""
        if np.any(self.stream.states[:, kernel.MOST] >= 0):
            kernel.expire(self.automaton, self._instances, now)

    # Instances as they are kept

    def starts(self) -> Ints:
        """[instance]: the first moments of all that wait."""
        starts: Ints = self._instances.cells[self._waiting(), kernel.START]
        return starts

    def latest_use(self) -> int | None:
        """The last moment at which an instance that waits can be of use; None: there is none, or time does not tell."""
        waiting = self._waiting()
        most = self.stream.states[self._instances.at[waiting], kernel.MOST]
        if not len(waiting) or bool(np.any(most < 0)):
            return None
        return max(map(sum, zip(self._instances.cells[waiting, kernel.START].tolist(), most.tolist(), strict=True)))

    def rows(self, state: int) -> tuple[Ints, Bytes]:
        """The cells and the states of cells of the instances at a state."""
        chosen = np.flatnonzero(self._instances.at == state)
        return self._instances.cells[chosen], self._instances.states[chosen]

    def put(self, state: int, cells: Ints, states: Bytes) -> None:
        """Let instances wait at a state."""
        number, width = cells.shape
        while self._instances.sizes[kernel.FREE] < number:
            self._grow(2 * len(self._instances.at))
        pool = self._instances
        free = int(pool.sizes[kernel.FREE])
        chosen = pool.free[free - number : free].copy()
        pool.sizes[kernel.FREE] -= number
        pool.cells[chosen, :width], pool.states[chosen, :width] = cells, states
        pool.at[chosen] = state
        kernel.settle_in(self.automaton, pool)

    def drop_oldest(self, number: int) -> None:
        """Drop the instances whose last events are the oldest."""
        waiting = self._waiting()
        ends, ties = (self._instances.cells[waiting, cell] for cell in (kernel.END, kernel.END_TIE))
        dropped = waiting[np.lexsort((ties, ends))[:number]]
        pool = self._instances
        pool.at[dropped] = -1
        free = int(pool.sizes[kernel.FREE])
        pool.free[free : free + len(dropped)] = dropped
        pool.sizes[kernel.FREE] += len(dropped)
        kernel.settle_in(self.automaton, pool)

    def most_in_a_room(self) -> int:
        """How many instances wait for the same events."""
        rooms = self._instances.rooms[self._waiting()]
        return int(np.unique(rooms, return_counts=True)[1].max(initial=0))

    def _waiting(self) -> Ints:
        return np.flatnonzero(self._instances.at >= 0)

    @property
    def text_codes(self) -> Ints:
        """The codes of all strings in instances."""
        codes = [np.zeros(0, np.int64)]
        for state, layout in enumerate(self.stream.cells[:-1]):
            cells, states = self.rows(state)
            for place, kind in enumerate(layout.kinds.values(), kernel.FIRST_VALUE):
                if kind.type is ValueType.STRING:
                    codes.append(cells[states[:, place] == VALUE, place])
        return np.unique(np.concatenate(codes))


def _results(number: int, width: int) -> StreamResults:
    return StreamResults(np.zeros((number, width), np.int64), np.zeros((number, width), np.uint8))


def empty_instances(capacity: int, width: int, states: int) -> kernel.Instances:
    """Room for so many instances, a power of two of them, all of it free.

    width    how many cells they have
    states   how many rows of counters there are
    """
    sizes = np.zeros(kernel.SIZES, np.int64)
    sizes[kernel.FREE] = capacity
    return kernel.Instances(
        cells=np.zeros((capacity, width), np.int64),
        states=np.zeros((capacity, width), np.uint8),
        at=np.full(capacity, -1, np.int32),
        rooms=np.zeros(capacity, np.uint64),
        below=np.full(capacity, -1, np.int32),
        above=np.full(capacity, -1, np.int32),
        heads=np.full(capacity, -1, np.int32),
        free=np.arange(capacity, dtype=np.int32),
        new=np.zeros(capacity, np.int32),
        served=np.zeros(capacity, np.int32),
        stamps=np.full(capacity, -1, np.int64),
        known=np.zeros(2 * capacity, np.int32),
        known_at=np.full(2 * capacity, -1, np.int64),
        counts=np.zeros((states, kernel.COUNTERS), np.int64),
        sizes=sizes,
    )

"""The instances of all queries of a set, and the results that they become."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kleene.engine.query_sets.graph import QueryNodes
from kleene.engine.query_sets.intake import ComingEvents
from kleene.engine.state.growing import with_room
from kleene.engine.streams.cells import CellValues
from kleene.engine.streams.pool import empty_instances
from kleene.kernels import stream_instances as pool_kernel
from kleene.kernels.expression import EventColumns, Groups, Ints, ProgramScope, Stack, room
from kleene.kernels.ordered_rooms import OrderedRooms
from kleene.kernels.shared_machine import COUNTERS, SharedInstances, SharedResults
from kleene.kernels.shared_nodes import Numbers
from kleene.kernels.shared_streams import advance_shared, expire_shared, settle_in_shared

_FIRST_ROOM = 1024
_RESULTS_AT_ONCE = 1 << 14
# The nodes of one step's new instances are noted in a table of this size, a power of two.
_NOTED = 1 << 12


class SharedRun:
    def __init__(self, nodes: QueryNodes, values: CellValues) -> None:
        self._nodes, self._values = nodes, values
        self._newest = np.zeros((1, 1), np.int64)
        self._width = nodes.shapes.width
        self._instances = _empty(_FIRST_ROOM, self._width)
        self._results = _results(_RESULTS_AT_ONCE, self._width)

    @property
    def size(self) -> int:
        """How many instances wait."""
        pool = self._instances.pool
        return len(pool.at) - int(pool.sizes[pool_kernel.FREE])

    @property
    def counters(self) -> Ints:
        """[COUNTERS]: what the run did so far."""
        return self._instances.counters

    @property
    def state_bytes(self) -> int:
        """The bytes of what waits, without the room for more."""
        return self.size * (9 * self._width + 64)

    @property
    def nbytes(self) -> int:
        instances = self._instances
        arrays = (*instances.pool, *instances[1:-1], *instances.ordered, *self._results)
        return sum(int(array.nbytes) for array in arrays)

    def oldest_event(self) -> int | None:
        """The least number of an event that an instance of a line refers to; None: there is none."""
        pool = self._instances.pool
        waiting = np.flatnonzero(pool.at >= 0)
        lines = waiting[self._nodes.shapes.of_lines[self._instances.shapes[waiting]]]
        # The first cell of such an instance has its first event.
        return int(pool.cells[lines, pool_kernel.FIRST_VALUE].min()) if len(lines) else None

    def advance(self, events: ComingEvents) -> Iterator[SharedResults]:
        """Take in events, and give results as they come."""
        self._fit()
        begin, ends = 0, events.coming.events.ends
        machine, stack = self._nodes.machine, room(self._nodes.shapes.depth)
        sizes = self._instances.pool.sizes
        while begin < len(ends):
            scope = self._scope(events.columns, stack)
            begin = advance_shared(machine, events.coming, self._instances, self._results, scope, begin)
            sizes = self._instances.pool.sizes
            number = int(sizes[pool_kernel.RESULTS])
            if number:
                sizes[pool_kernel.RESULTS] = 0
                yield first_results(self._results, number)
            if begin < len(ends):
                self._make_room(int(ends[begin]), has_results=number > 0)

    def move(self, nodes: QueryNodes, place: Numbers) -> None:
        """Go on with nodes that are numbered anew; `place` [old node] has the new ones, −1 for those that are gone."""
        self._nodes = nodes
        pool = self._instances.pool
        waiting = pool.at >= 0
        pool.at[waiting] = place[pool.at[waiting]]
        free = np.flatnonzero(pool.at < 0)
        pool.free[: len(free)] = free
        pool.sizes[pool_kernel.FREE] = len(free)
        self._fit()
        settle_in_shared(nodes.machine, self._instances)

    def expire(self, now: int) -> None:
        """Free the instances that no event which ends now or later can serve."""
        self._fit()
        expire_shared(self._nodes.machine, self._instances, now)

    def _scope(self, columns: EventColumns, stack: Stack) -> ProgramScope:
        cells, states = self._instances.pool.cells, self._instances.pool.states
        groups = Groups(cells, cells.view(np.float64), states)
        return ProgramScope(columns, self._values.strings.arrays(), self._newest, groups, stack)

    def _fit(self) -> None:
        """Make room for the nodes, the sets of columns and the cells of queries that came."""
        instances = self._instances
        shapes = self._nodes.shapes
        self._instances = instances._replace(occupied=with_room(instances.occupied, shapes.room_count, 0))
        if shapes.width > self._width:
            self._width = shapes.width
            self._grow(len(instances.pool.at))
            self._results = _results(len(self._results.nodes), self._width)

    def _make_room(self, now: int, *, has_results: bool) -> None:
        """Grow what was too small; room for instances only where few are too old to be of use."""
        pool = self._instances.pool
        if int(pool.sizes[pool_kernel.LACKS]) == pool_kernel.NO_RESULTS:
            if not has_results:
                self._results = _results(2 * len(self._results.nodes), self._width)
            return
        before = self.size
        self.expire(now)
        if 4 * (before - self.size) < len(pool.at):
            self._grow(2 * len(pool.at))

    def _grow(self, capacity: int) -> None:
        old, size = self._instances, len(self._instances.pool.at)
        new = _empty(capacity, self._width)
        width = old.pool.cells.shape[1]
        new.pool.cells[:size, :width], new.pool.states[:size, :width] = old.pool.cells, old.pool.states
        new.pool.at[:size], new.pool.stamps[:size] = old.pool.at, old.pool.stamps
        new.begun[:size], new.shapes[:size], new.own[:size] = old.begun, old.shapes, old.own
        free = int(old.pool.sizes[pool_kernel.FREE])
        new.pool.free[:free] = old.pool.free[:free]
        new.pool.free[free : free + capacity - size] = np.arange(size, capacity)
        new.pool.sizes[:] = old.pool.sizes
        new.pool.sizes[pool_kernel.FREE] = free + capacity - size
        self._instances = new._replace(noted=old.noted, occupied=old.occupied, counters=old.counters)
        settle_in_shared(self._nodes.machine, self._instances)


def first_results(results: SharedResults, number: int) -> SharedResults:
    cells, states, nodes, begun = results
    return SharedResults(cells[:number], states[:number], nodes[:number], begun[:number])


def _results(number: int, width: int) -> SharedResults:
    return SharedResults(
        np.zeros((number, width), np.int64),
        np.zeros((number, width), np.uint8),
        np.zeros(number, np.int64),
        np.zeros(number, np.int64),
    )


def _empty(capacity: int, width: int) -> SharedInstances:
    return SharedInstances(
        empty_instances(capacity, width, 0),
        np.zeros(capacity, np.int32),
        np.zeros(capacity, np.int32),
        np.zeros(capacity, np.int64),
        np.full((_NOTED, 2), -1, np.int64),
        np.zeros(capacity + 1, np.int32),
        np.zeros((capacity + 1, 3), np.int64),
        np.zeros(1, np.int64),
        np.zeros(COUNTERS, np.int64),
        OrderedRooms(
            np.full((capacity, 2), -1, np.int32),
            np.full(capacity, -1, np.int32),
            np.zeros(capacity, np.int64),
            np.full(1, -1, np.int32),
        ),
    )

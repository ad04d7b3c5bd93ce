"""Event automata of many queries at once (CESAR §4.3): what an event costs follows from what it affects.

An event visits the root, whose edges it finds by its own values, and opens the rooms of its own values, where instances
wait: under the values that their filter tests for equality, be they constants or of events before (the AN- and the
AI-index in one). An instance whose filter holds leaves; its event then visits the node where it waited.
"""

from __future__ import annotations

import numpy as np

from kleene.kernels.expression import ProgramScope
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.shared_edges import count_root_accesses, look_ahead, traverse
from kleene.kernels.shared_machine import (
    AHEAD,
    ENTERS,
    EXPIRED,
    EXPIRES,
    IS_FINAL,
    MADE,
    SERVED_COUNT,
    WIDTH,
    Coming,
    LookAhead,
    SharedInstances,
    SharedMachine,
    SharedResults,
)
from kleene.kernels.shared_nodes import ENTERING, RANGED, TARGET, USERS, upper
from kleene.kernels.shared_rooms import enter_room, is_late, leave_room, look_into_rooms, open_rooms
from kleene.kernels.stream_instances import (
    LACKS,
    NEW,
    NO_INSTANCES,
    NO_RESULTS,
    RESULTS,
    SERVED,
    START,
    STEPS,
    StreamEvents,
    equal_one,
    free,
    undo,
)


@compiled
def advance_shared(
    machine: SharedMachine,
    coming: Coming,
    instances: SharedInstances,
    results: SharedResults,
    scope: ProgramScope,
    begin: int,
) -> int:
    """Take in events from `begin` on; the first of a step for which there is no room, or how many events there are.

    scope   the columns of the events, one binding for the newest of them, and the cells of instances as groups
    """
    machine, coming, instances = borrowed(machine), borrowed(coming), borrowed(instances)
    results, scope = borrowed(results), borrowed(scope)
    events, sizes = coming.events, instances.pool.sizes
    number, kinds = count_root_accesses(machine.graph), machine.shapes.rooms.shape[0]
    ahead = LookAhead(
        np.empty((AHEAD, number), np.int64),
        np.empty((AHEAD, number), np.uint64),
        np.empty((AHEAD, kinds), np.uint8),
        np.empty((AHEAD, kinds), np.uint64),
        np.empty((AHEAD, kinds), np.int64),
    )
    first_ahead, last_ahead = 0, 0
    at = begin
    while at < events.ends.size:
        stop = at + 1
        while stop < events.ends.size and _simultaneous(events, at, stop):
            stop += 1
        sizes[STEPS] += 1
        has_room = True
        for event in range(at, stop):
            scope.bindings[0, 0] = event
            if event < first_ahead or event >= last_ahead:
                first_ahead, last_ahead = event, min(event + AHEAD, events.ends.size)
                look_ahead(machine, coming.atoms, ahead, first_ahead, last_ahead, instances.counters)
                look_into_rooms(machine, coming.atoms, instances, ahead, first_ahead, last_ahead)
            row = event - first_ahead
            visits = open_rooms(machine, coming, instances, scope, (event, row), ahead)
            has_room = has_room and traverse(machine, coming, instances, scope, (event, visits, row), ahead)
        if not has_room or not _results_fit(machine, instances, results):
            sizes[LACKS] = NO_RESULTS if has_room else NO_INSTANCES
            undo(instances.pool)
            return at
        _commit(machine, instances, results)
        at = stop
    return at


@step
def _simultaneous(events: StreamEvents, left: int, right: int) -> bool:
    return bool(events.ends[left] == events.ends[right] and events.end_ties[left] == events.end_ties[right])


# After a step ---------------------------------------------------------------------------------------------------------


@step
def _results_fit(machine: SharedMachine, instances: SharedInstances, results: SharedResults) -> bool:
    pool = instances.pool
    number = pool.sizes[RESULTS]
    for place in range(pool.sizes[NEW]):
        number += machine.shapes.nodes[instances.shapes[pool.new[place]], IS_FINAL]
    return bool(number <= results.nodes.size)


@step
def _commit(machine: SharedMachine, instances: SharedInstances, results: SharedResults) -> None:
    """Let served instances leave, and new ones wait or become results; of equal ones at a node one is kept."""
    pool = instances.pool
    for place in range(pool.sizes[SERVED]):
        instances.counters[SERVED_COUNT] += 1
        leave_room(machine, instances, pool.served[place])
    several = _share_a_node(instances)
    for place in range(pool.sizes[NEW]):
        instance = pool.new[place]
        width = machine.shapes.nodes[instances.shapes[instance], WIDTH]
        same = equal_one(pool, instance, width) if several else -1
        if same >= 0:
            instances.begun[same] = max(instances.begun[same], instances.begun[instance])
            pool.new[place] = -1
            free(pool, instance)
    for place in range(pool.sizes[NEW]):
        if pool.new[place] >= 0:
            _settle(machine, instances, results, pool.new[place])
    pool.sizes[NEW] = 0
    pool.sizes[SERVED] = 0


@step
def _share_a_node(instances: SharedInstances) -> bool:
    """Whether two new instances are at one node, or there are very many of them."""
    pool, noted = instances.pool, instances.noted
    # As much of the table as is needed: few places are near each other.
    now, mask = pool.sizes[STEPS], 15
    while mask < 2 * pool.sizes[NEW]:
        mask = 2 * mask + 1
    several = bool(mask >= noted.shape[0])
    place = 0
    while not several and place < pool.sizes[NEW]:
        node = pool.at[pool.new[place]]
        slot = (np.int64(node) * 0x9E3779B1) >> 7 & mask
        while noted[slot, 0] == now and noted[slot, 1] != node:
            slot = slot + 1 & mask
        several = bool(noted[slot, 0] == now)
        noted[slot, 0], noted[slot, 1] = now, node
        place += 1
    return several


@inlined
def _settle(machine: SharedMachine, instances: SharedInstances, results: SharedResults, instance: int) -> None:
    """Let a new instance wait, or become a result."""
    pool = instances.pool
    shape = machine.shapes.nodes[instances.shapes[instance]]
    instances.counters[MADE] += 1
    if shape[IS_FINAL] == 1:
        at = pool.sizes[RESULTS]
        for cell in range(shape[WIDTH]):
            results.cells[at, cell] = pool.cells[instance, cell]
            results.states[at, cell] = pool.states[instance, cell]
        results.nodes[at] = pool.at[instance]
        results.begun[at] = instances.begun[instance]
        pool.sizes[RESULTS] += 1
        free(pool, instance)
        return
    if not enter_room(machine, instances, instance):
        # No event is equal to NULL, or beyond it: it would wait in vain.
        free(pool, instance)


# Between calls --------------------------------------------------------------------------------------------------------


@compiled
def expire_shared(machine: SharedMachine, instances: SharedInstances, now: int) -> None:
    """Free the instances that no event which ends now or later can serve, and those at nodes that nobody needs."""
    machine, instances = borrowed(machine), borrowed(instances)
    pool = instances.pool
    for instance in range(pool.at.size):
        node = pool.at[instance]
        if node < 0:
            continue
        shape, own = machine.shapes.nodes[instances.shapes[instance]], instances.own[instance]
        late = shape[EXPIRES] == 1 and is_late(machine, shape, own, pool.cells[instance, START], now)
        if late or machine.graph.nodes[node, USERS] == 0:
            instances.counters[EXPIRED] += 1
            leave_room(machine, instances, instance)


@compiled
def settle_in_shared(machine: SharedMachine, instances: SharedInstances) -> None:
    """Put all instances into the buckets, which are new, or none is in one yet; nodes may have been numbered anew."""
    machine, instances = borrowed(machine), borrowed(instances)
    pool = instances.pool
    pool.heads[:] = -1
    instances.ordered.top[0] = -1
    instances.occupied[:] = 0
    for instance in range(pool.at.size):
        node = pool.at[instance]
        if node >= 0:
            entry = machine.graph.entries[machine.graph.nodes[node, ENTERING]]
            instances.shapes[instance] = machine.shapes.edges[upper(entry[TARGET]), ENTERS]
            instances.own[instance] = upper(entry[RANGED])
            enter_room(machine, instances, instance)

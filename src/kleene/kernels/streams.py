"""Event automata over flat arrays (CESAR §3.2, Algorithm 1): instances at states, step by step of simultaneous events.

An event opens the rooms of its own values only. New instances are put in place after the step, and of equal ones
at a state one is kept.
"""

from __future__ import annotations

import numpy as np

from kleene.kernels import opcodes as op
from kleene.kernels.expression import Programs, ProgramScope, holds, is_empty, part
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.stream_instances import (
    ASSIGNMENTS,
    ASSIGNMENTS_END,
    COMPUTED_REAL,
    EDGES,
    EDGES_END,
    END,
    END_TIE,
    EXPIRED,
    FILTER,
    FREE,
    FROM_CELL,
    FROM_INTS,
    FROM_REALS,
    LACKS,
    MOST,
    NEW,
    NO_INSTANCES,
    NO_RESULTS,
    NOTHING,
    SERVED,
    START,
    START_TIE,
    STEPS,
    TARGET,
    TEST,
    WIDTH,
    Instances,
    StreamEvents,
    StreamMachine,
    StreamResults,
    commit,
    is_over,
    leave,
    put_int,
    put_real,
    results_fit,
    room_of_event,
    same_keys,
    undo,
)


@compiled
def advance(
    automaton: StreamMachine,
    events: StreamEvents,
    instances: Instances,
    results: StreamResults,
    scope: ProgramScope,
    begin: int,
) -> int:
    """Take in events from `begin` on; the first of a step for which there is no room, or how many events there are.

    scope   the columns of the events, one binding for the newest of them, and the cells of instances as groups
    """
    automaton, events, instances = borrowed(automaton), borrowed(events), borrowed(instances)
    results, scope = borrowed(results), borrowed(scope)
    at = begin
    while at < events.ends.size:
        stop = at + 1
        while stop < events.ends.size and _simultaneous(events, at, stop):
            stop += 1
        instances.sizes[STEPS] += 1
        has_room = True
        for event in range(at, stop):
            scope.bindings[0, 0] = event
            has_room = has_room and _offer(automaton, events, instances, scope, event)
        if not has_room or not results_fit(automaton, instances, results):
            instances.sizes[LACKS] = NO_RESULTS if has_room else NO_INSTANCES
            undo(instances)
            return at
        commit(automaton, instances, results)
        at = stop
    return at


@step
def _simultaneous(events: StreamEvents, left: int, right: int) -> bool:
    return bool(events.ends[left] == events.ends[right] and events.end_ties[left] == events.end_ties[right])


# One event -----------------------------------------------------------------------------------------------------------


@step
def _offer(
    automaton: StreamMachine, events: StreamEvents, instances: Instances, scope: ProgramScope, event: int
) -> bool:
    """Offer an event to the states that take it; False when there is no room for new instances."""
    bits = events.formulas[event]
    formula = 0
    has_room = True
    while bits != np.uint64(0):
        if bits & np.uint64(1) != np.uint64(0):
            for place in range(automaton.offsets[formula], automaton.offsets[formula + 1]):
                has_room &= _serve(automaton, events, instances, scope, automaton.waiting[place], event)
        bits >>= np.uint64(1)
        formula += 1
    return has_room


@step
def _serve(
    automaton: StreamMachine, events: StreamEvents, instances: Instances, scope: ProgramScope, state: int, event: int
) -> bool:
    """Let an event serve the instances that wait for it at a state; False when there is no room for new ones."""
    row = automaton.states[state]
    starts = row[WIDTH] == 0
    has_key, room = room_of_event(automaton, row, state, scope.events, event)
    instance = int(instances.heads[np.int64(room & np.uint64(instances.heads.size - 1))])
    if starts or not has_key:
        instance = -1
    has_room = True
    while (starts or instance >= 0) and has_room:
        following = -1 if starts else int(instances.below[instance])
        if starts or _is_served(automaton, events, instances, scope, state, instance, room, event):
            for edge in range(row[EDGES], row[EDGES_END]):
                has_room &= _fire(automaton, events, instances, scope, edge, instance, event)
        starts = False
        instance = following
    return has_room


@inlined
def _is_served(
    automaton: StreamMachine,
    events: StreamEvents,
    instances: Instances,
    scope: ProgramScope,
    state: int,
    instance: int,
    room: np.uint64,
    event: int,
) -> bool:
    """Whether an event serves an instance, which leaves after this step; one that is too old leaves now."""
    if instances.rooms[instance] != room or instances.at[instance] != state:
        return False
    row = automaton.states[state]
    if is_over(instances.cells[instance, START], events.ends[event], row[MOST]):
        instances.counts[state, EXPIRED] += 1
        leave(instances, instance)
        return False
    end, start = instances.cells[instance, END], events.starts[event]
    if end > start or (end == start and instances.cells[instance, END_TIE] >= events.start_ties[event]):
        return False
    if not same_keys(automaton, row, instances, instance, scope.events, event):
        return False
    if not is_empty(automaton.programs, row[FILTER]) and not _passes(automaton.programs, row[FILTER], scope, instance):
        return False
    if instances.stamps[instance] != instances.sizes[STEPS]:
        instances.stamps[instance] = instances.sizes[STEPS]
        instances.served[instances.sizes[SERVED]] = instance
        instances.sizes[SERVED] += 1
    return True


@step
def _fire(
    automaton: StreamMachine,
    events: StreamEvents,
    instances: Instances,
    scope: ProgramScope,
    edge: int,
    instance: int,
    event: int,
) -> bool:
    """Make a new instance of one (−1: of none) and an event that pass the test of an edge; False: there is no room."""
    row = automaton.edges[edge]
    before = max(instance, 0)
    if not is_empty(automaton.programs, row[TEST]) and not _passes(automaton.programs, row[TEST], scope, before):
        return True
    if instances.sizes[FREE] == 0:
        return False
    instances.sizes[FREE] -= 1
    new = instances.free[instances.sizes[FREE]]
    instances.new[instances.sizes[NEW]] = new
    instances.sizes[NEW] += 1
    instances.at[new] = row[TARGET]
    instances.cells[new, START] = events.starts[event] if instance < 0 else instances.cells[before, START]
    instances.cells[new, START_TIE] = events.start_ties[event] if instance < 0 else instances.cells[before, START_TIE]
    instances.cells[new, END] = events.ends[event]
    instances.cells[new, END_TIE] = events.end_ties[event]
    for place in range(row[ASSIGNMENTS], row[ASSIGNMENTS_END]):
        cell, kind = automaton.assignments[place, 0], automaton.assignments[place, 1]
        source, column = automaton.assignments[place, 2], automaton.assignments[place, 3]
        if kind == FROM_CELL:
            instances.cells[new, cell] = instances.cells[before, source]
            instances.states[new, cell] = instances.states[before, source]
        elif kind == FROM_INTS:
            put_int(scope.groups, new, cell, scope.events.states[column, event], scope.events.ints[source, event])
        elif kind == FROM_REALS:
            put_real(scope.groups, new, cell, scope.events.states[column, event], scope.events.reals[source, event])
        elif kind == NOTHING:
            put_int(scope.groups, new, cell, op.NULL, 0)
        else:
            _passes(automaton.programs, source, scope, before)
            if kind == COMPUTED_REAL:
                put_real(scope.groups, new, cell, scope.stack.states[0], scope.stack.reals[0])
            else:
                put_int(scope.groups, new, cell, scope.stack.states[0], scope.stack.ints[0])
    return True


@compiled
def _passes(programs: Programs, number: int, scope: ProgramScope, instance: int) -> bool:
    """Whether a test holds of an instance with the newest event; a program without tests leaves its value."""
    programs, scope = borrowed(programs), borrowed(scope)
    return holds(part(programs, number), scope, 0, instance)

"""The rooms where instances wait (CESAR §4.3): under the values that their filter tests, or in the order of a bound."""

from __future__ import annotations

import numpy as np

from kleene.kernels import opcodes as op
from kleene.kernels.expression import Code, Ints, ProgramScope, Reals, holds
from kleene.kernels.identity import mix
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.ordered_rooms import enter_in_order, first_in_order, leave_order, next_in_order
from kleene.kernels.shared_machine import (
    BEYOND,
    BOUND,
    BOUND_PLACE,
    BY,
    EXPIRED,
    EXPIRES,
    FILTER,
    KEYS,
    KEYS_END,
    LESS,
    MOST,
    NOT_ASKED,
    OF_NODE,
    OF_REAL_CELL,
    OPENED,
    ORDERED_BY,
    ROOM,
    STAYS,
    TOUCHED,
    TOUCHED_AHEAD,
    AtomColumns,
    Coming,
    LookAhead,
    SharedInstances,
    SharedMachine,
)
from kleene.kernels.stream_instances import (
    END,
    END_TIE,
    NAN_BITS,
    SERVED,
    START,
    STEPS,
    Instances,
    enter,
    free,
    leave,
)
from kleene.kernels.timeline import LATEST


@compiled
def look_into_rooms(
    machine: SharedMachine, atoms: AtomColumns, instances: SharedInstances, ahead: LookAhead, first: int, last: int
) -> None:
    """Find the rooms of some events, and who waits there: most of those will still be there when the event comes."""
    machine, atoms = borrowed(machine), borrowed(atoms)
    instances, ahead = borrowed(instances), borrowed(ahead)
    pool, kinds = instances.pool, machine.shapes.rooms.shape[0]
    for row in range(last - first):
        for kind in range(kinds):
            ahead.opens[row, kind], ahead.first[row, kind] = NOT_ASKED, -1
            if instances.occupied[kind] > 0:
                opens, room = _room_of_event(machine, atoms, kind, first + row)
                ahead.opens[row, kind], ahead.rooms[row, kind] = opens, room
                if opens and machine.shapes.rooms[kind, ORDERED_BY] < 0:
                    ahead.first[row, kind] = pool.heads[np.int64(room & np.uint64(pool.heads.size - 1))]
    # What is read here will be there when it is needed.
    touched = np.int64(0)
    for row in range(last - first):
        for kind in range(kinds):
            instance = ahead.first[row, kind]
            if instance >= 0:
                touched ^= np.int64(pool.rooms[instance]) ^ pool.cells[instance, START] ^ pool.below[instance]
                touched ^= instances.shapes[instance] ^ instances.own[instance]
    instances.counters[TOUCHED_AHEAD] = touched


@inlined
def _room_of_event(machine: SharedMachine, atoms: AtomColumns, kind: int, event: int) -> tuple[bool, np.uint64]:
    """Whether an event has the values of a room of this kind, and the room."""
    shapes = machine.shapes
    columns, compared = shapes.rooms[kind, BY], shapes.rooms[kind, ORDERED_BY]
    room, has_values = mix(np.uint64(kind + 1)), True
    for place in range(shapes.sets[columns], shapes.sets[columns + 1]):
        column = shapes.columns[place]
        has_values &= atoms.known[event, column] == 1
        room = mix(room ^ np.uint64(atoms.values[event, column]))
    return has_values and (compared < 0 or atoms.known[event, compared] == 1), room


@step
def open_rooms(
    machine: SharedMachine,
    coming: Coming,
    instances: SharedInstances,
    scope: ProgramScope,
    visiting: tuple[int, int],
    ahead: LookAhead,
) -> int:
    """Find the instances that an event serves, in the rooms of its values; how many visits it makes, the root first.

    visiting   the event, and its row in what was looked up beforehand
    """
    shapes, pool = machine.shapes, instances.pool
    values, (event, row) = coming.atoms.values, visiting
    instances.visits[0] = -1
    visits = 1
    for kind in range(shapes.rooms.shape[0]):
        if instances.occupied[kind] == 0:
            continue
        opens, room = ahead.opens[row, kind] == 1, ahead.rooms[row, kind]
        if ahead.opens[row, kind] == NOT_ASKED:
            opens, room = _room_of_event(machine, coming.atoms, kind, event)
        if not opens:
            continue
        compared = shapes.rooms[kind, ORDERED_BY]
        instances.counters[OPENED] += 1
        if compared < 0:
            instance = pool.heads[np.int64(room & np.uint64(pool.heads.size - 1))]
            while instance >= 0:
                following = pool.below[instance]
                if pool.rooms[instance] == room and _is_served(machine, coming, instances, scope, kind, instance):
                    instances.visits[visits] = instance
                    visits += 1
                instance = following
            continue
        value = values[event, compared] if shapes.rooms[kind, LESS] == 0 else ~values[event, compared]
        instance = first_in_order(instances.ordered, pool.rooms, room)
        while instance >= 0 and pool.rooms[instance] == room and instances.ordered.bounds[instance] <= value:
            following = next_in_order(instances.ordered, instance)
            if _is_served(machine, coming, instances, scope, kind, instance):
                instances.visits[visits] = instance
                visits += 1
            instance = following
    return visits


@step
def _is_served(
    machine: SharedMachine,
    coming: Coming,
    instances: SharedInstances,
    scope: ProgramScope,
    kind: int,
    instance: int,
) -> bool:
    """Whether the newest event serves an instance, which leaves after this step unless its node says that it stays.

    One of no use leaves now.
    """
    pool, events, event = instances.pool, coming.events, scope.bindings[0, 0]
    shape, own = machine.shapes.nodes[instances.shapes[instance]], instances.own[instance]
    served = shape[ROOM] == kind
    instances.counters[TOUCHED] += served
    if served and is_late(machine, shape, own, pool.cells[instance, START], events.ends[event]):
        if shape[EXPIRES] == 1:
            instances.counters[EXPIRED] += 1
            leave_room(machine, instances, instance)
        served = False
    end, start = pool.cells[instance, END], events.starts[event]
    served = served and (end < start or (end == start and pool.cells[instance, END_TIE] < events.start_ties[event]))
    place = machine.shapes.sets[machine.shapes.rooms[kind, BY]]
    if served:
        for key in range(shape[KEYS], shape[KEYS_END]):
            value, _ = _value_of(machine, pool, key, own, instance)
            served &= value == coming.atoms.values[event, machine.shapes.columns[place]]
            place += 1
    tested = machine.shapes.parts[shape[FILTER]]
    if served and tested[0] < tested[1]:
        served = holds_of(machine.shapes.words, tested, machine.graph.constants, machine.reals, own, scope, instance)
    if served and shape[STAYS] == 0 and pool.stamps[instance] != pool.sizes[STEPS]:
        pool.stamps[instance] = pool.sizes[STEPS]
        pool.served[pool.sizes[SERVED]] = instance
        pool.sizes[SERVED] += 1
    return bool(served)


@inlined
def is_late(machine: SharedMachine, shape: Ints, own: int, start: int, now: int) -> bool:
    """Whether an instance that began at a moment can no longer be served now.

    Times may be anywhere in 64 bits, where the distance of two need not fit.
    """
    if shape[MOST] < 0:
        return False
    most = machine.graph.constants[own + shape[MOST]]
    return bool(most < 0 or (start <= LATEST - most and now > start + most))


@compiled
def holds_of(
    words: Ints, part: Ints, constants: Ints, reals: Reals, first: int, scope: ProgramScope, instance: int
) -> bool:
    """Whether a program holds of an instance with the newest event; one without tests leaves its value.

    part    a row of `SharedShapes.parts`
    first   where the constants of its node or edge are: every query has its own
    """
    scope = borrowed(scope)
    code = Code(
        words[part[0] : part[1]],
        constants[first + part[2] : first + part[3]],
        reals[first + part[4] : first + part[5]],
    )
    return holds(code, scope, 0, instance)


@step
def enter_room(machine: SharedMachine, instances: SharedInstances, instance: int) -> bool:
    """Let an instance wait; False: no event could serve it."""
    shape = machine.shapes.nodes[instances.shapes[instance]]
    waits, room = _room_of(machine, instances, instance)
    if shape[BOUND] < 0:
        if waits:
            enter(instances.pool, instance, room)
    else:
        bound, known = _bound_of(machine, instances, instance)
        waits = waits and known
        if waits:
            enter_in_order(instances.ordered, instances.pool.rooms, instance, room, bound)
    if waits:
        instances.occupied[shape[ROOM]] += 1
    return bool(waits)


@step
def leave_room(machine: SharedMachine, instances: SharedInstances, instance: int) -> None:
    """Let an instance leave its room, for good."""
    shape = machine.shapes.nodes[instances.shapes[instance]]
    instances.occupied[shape[ROOM]] -= 1
    if shape[BOUND] < 0:
        leave(instances.pool, instance)
    else:
        leave_order(instances.ordered, instance)
        free(instances.pool, instance)


@inlined
def _room_of(machine: SharedMachine, instances: SharedInstances, instance: int) -> tuple[bool, np.uint64]:
    shape = machine.shapes.nodes[instances.shapes[instance]]
    room, has_values = mix(np.uint64(shape[ROOM] + 1)), True
    for key in range(shape[KEYS], shape[KEYS_END]):
        value, known = _value_of(machine, instances.pool, key, instances.own[instance], instance)
        has_values &= known
        room = mix(room ^ np.uint64(value))
    return has_values, room


@inlined
def _bound_of(machine: SharedMachine, instances: SharedInstances, instance: int) -> tuple[int, bool]:
    """The least value that serves an instance, turned round where it must be less; and whether there is one."""
    shape = machine.shapes.nodes[instances.shapes[instance]]
    value, known = _value(machine, instances.pool, shape[BOUND], shape[BOUND_PLACE], instances.own[instance], instance)
    if machine.shapes.rooms[shape[ROOM], LESS] == 1:
        value = ~value
    if shape[BEYOND] == 1:
        known = known and value != LATEST
        value = value + 1 if known else value
    return value, known


@inlined
def _value_of(machine: SharedMachine, pool: Instances, key: int, own: int, instance: int) -> tuple[int, bool]:
    """A value that an instance waits for, as events have it among their atoms, and whether it can be equal to any."""
    return _value(machine, pool, machine.shapes.keys[key, 0], machine.shapes.keys[key, 1], own, instance)


@inlined
def _value(machine: SharedMachine, pool: Instances, kind: int, place: int, own: int, instance: int) -> tuple[int, bool]:
    if kind == OF_NODE:
        return machine.graph.constants[own + place], True
    value = pool.cells[instance, place]
    known = pool.states[instance, place] == op.VALUE
    if kind == OF_REAL_CELL:
        known = known and value != NAN_BITS
        value = in_order(value)
    return value, known


@inlined
def in_order(bits: int) -> int:
    """The bits of a real as an integer: greater reals are greater integers."""
    return bits if bits >= 0 else int(np.int64(-(2**63)) - bits - 1)

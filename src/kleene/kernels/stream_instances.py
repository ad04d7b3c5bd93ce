"""The instances of event automata: where they wait, and what becomes of them after a step.

An instance waits under the hash of its state and of the values that its filter edge compares for equality (CESAR §4.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleene.kernels import opcodes as op
from kleene.kernels.expression import Bytes, EventColumns, Groups, Ints, Programs
from kleene.kernels.identity import mix
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.timeline import LATEST

Numbers = NDArray[np.int32]
Hashes = NDArray[np.uint64]

# Cells of every instance: its first and its last moment, and the tie-breakers there; values follow.
START, END, START_TIE, END_TIE, FIRST_VALUE = range(5)

# The bits of the one NaN that cells hold.
NAN_BITS = int(np.array([np.nan]).view(np.int64)[0])

# Sources of a cell: another cell, a column of integers or of reals, the value of a program, or NULL.
FROM_CELL, FROM_INTS, FROM_REALS, COMPUTED_INT, COMPUTED_REAL, NOTHING = range(6)

# Columns of an edge: the state that it leads to (the number of states: a result), its test, and where its assignments
# begin and end.
TARGET, TEST, ASSIGNMENTS, ASSIGNMENTS_END, EDGE = range(5)

# Columns of a state: how many cells its instances have (0: it is the start, where nothing waits), its test, where its
# edges and its keys begin and end, and how many steps of time a composite event may last (−1: any number).
WIDTH, FILTER, EDGES, EDGES_END, KEYS, KEYS_END, MOST, STATE = range(8)

# Counters of a state: instances that came, that an event served, and that grew too old to be of use.
CAME, SERVED_COUNT, EXPIRED, COUNTERS = range(4)

# Sizes that change: free instances, results, the new and the served instances of this step, the number of steps, and
# what the last call had no room for: instances, or results.
FREE, RESULTS, NEW, SERVED, STEPS, LACKS, SIZES = range(7)
NO_INSTANCES, NO_RESULTS = 1, 2


class StreamMachine(NamedTuple):
    """States and edges. After the states stands a row for results, then rows that stand for the start."""

    states: Ints  #      [state, STATE]
    edges: Ints  #       [edge, EDGE], those of a state one after the other
    keys: Ints  #        [key, 4]: cell, place among the integers, number of the column, whether it holds reals
    assignments: Ints  # [assignment, 4]: cell, FROM_CELL …; cell, place or program; number of the column
    waiting: Ints  #     [place]: the states that take events, by formula
    offsets: Ints  #     [formula + 1]: where those of each formula begin
    programs: Programs
    final: int  #        the row of results


class StreamEvents(NamedTuple):
    """Events that some formula takes, by their last points."""

    starts: Ints  #     [event]
    ends: Ints  #       [event]
    start_ties: Ints  # [event]: 0 where there is no tie-breaker
    end_ties: Ints  #   [event]
    formulas: Hashes  # [event]: a bit for each formula that takes it


class Instances(NamedTuple):
    """Room for instances, some of it free."""

    cells: Ints  #     [instance, cell]; reals as their bits
    states: Bytes  #   [instance, cell]: VALUE or NULL
    at: Numbers  #     [instance]: its state; −1: it is free
    rooms: Hashes  #   [instance]: the hash of its state and its keys
    below: Numbers  #  [instance]: the next one in its bucket; −1: none
    above: Numbers  #  [instance]: the one before it; −1: it is the first
    heads: Numbers  #  [bucket]: the first instance whose room has this hash; a power of two of them
    free: Numbers  #   [place]: a stack of free instances
    new: Numbers  #    [place]: the instances that this step made
    served: Numbers  # [place]: the instances that an event of this step served
    stamps: Ints  #    [instance]: the last step in which it was served
    known: Numbers  #  [bucket]: the new instances, by hash; a power of two of them, twice as many as instances
    known_at: Ints  #  [bucket]: the step of that entry
    counts: Ints  #    [state, COUNTERS], and a row for results
    sizes: Ints  #     [SIZES]


class StreamResults(NamedTuple):
    """Room for results, which are laid out as instances."""

    cells: Ints  #   [result, cell]
    states: Bytes  # [result, cell]


# Rooms ---------------------------------------------------------------------------------------------------------------


@step
def room_of_event(
    automaton: StreamMachine, row: Ints, state: int, columns: EventColumns, event: int
) -> tuple[bool, np.uint64]:
    """Whether an event has the keys of a state, and the room of instances with these."""
    room = mix(np.uint64(state + 1))
    has_key = True
    for place in range(row[KEYS], row[KEYS_END]):
        key = automaton.keys[place]
        has_key &= columns.states[key[2], event] == op.VALUE
        room = mix(room ^ np.uint64(columns.ints[key[1], event]))
    return has_key, room


@step
def _room_of_instance(automaton: StreamMachine, instances: Instances, instance: int) -> tuple[bool, np.uint64]:
    """Whether an instance has the keys of its state, and its room."""
    state = instances.at[instance]
    room = mix(np.uint64(state + 1))
    row = automaton.states[state]
    has_key = True
    for place in range(row[KEYS], row[KEYS_END]):
        key = automaton.keys[place]
        value = instances.cells[instance, key[0]]
        has_key &= instances.states[instance, key[0]] == op.VALUE and not (key[3] == 1 and value == NAN_BITS)
        room = mix(room ^ np.uint64(value))
    return has_key, room


@inlined
def same_keys(
    automaton: StreamMachine, row: Ints, instances: Instances, instance: int, columns: EventColumns, event: int
) -> bool:
    """Whether an instance and an event are equal in the keys of a state; both have them."""
    same = True
    for place in range(row[KEYS], row[KEYS_END]):
        key = automaton.keys[place]
        same &= instances.cells[instance, key[0]] == columns.ints[key[1], event]
    return same


@inlined
def enter(instances: Instances, instance: int, room: np.uint64) -> None:
    """Let an instance wait in a room."""
    bucket = np.int64(room & np.uint64(instances.heads.size - 1))
    first = instances.heads[bucket]
    instances.rooms[instance] = room
    instances.above[instance] = -1
    instances.below[instance] = first
    if first >= 0:
        instances.above[first] = instance
    instances.heads[bucket] = instance


@inlined
def leave(instances: Instances, instance: int) -> None:
    """Let an instance leave its room, for good."""
    above, below = instances.above[instance], instances.below[instance]
    if above >= 0:
        instances.below[above] = below
    else:
        instances.heads[np.int64(instances.rooms[instance] & np.uint64(instances.heads.size - 1))] = below
    if below >= 0:
        instances.above[below] = above
    free(instances, instance)


@inlined
def free(instances: Instances, instance: int) -> None:
    instances.at[instance] = -1
    instances.free[instances.sizes[FREE]] = instance
    instances.sizes[FREE] += 1


@inlined
def is_over(start: int, now: int, most: int) -> bool:
    """Whether a composite event that ends now lasts longer than `most`; a negative `most` is no limit.

    Times may be anywhere in 64 bits, where the distance of two need not fit.
    """
    return bool(most >= 0 and start <= LATEST - most and now > start + most)


@inlined
def put_int(groups: Groups, instance: int, cell: int, state: int, value: int) -> None:
    has_value = state == op.VALUE
    groups.states[instance, cell] = op.VALUE if has_value else op.NULL
    groups.ints[instance, cell] = value if has_value else 0


@inlined
def put_real(groups: Groups, instance: int, cell: int, state: int, value: float) -> None:
    """Equal reals have equal bits: there is one zero, and one NaN."""
    if state == op.VALUE:
        groups.states[instance, cell] = op.VALUE
        groups.reals[instance, cell] = value + 0.0 if value == value else np.nan
    else:
        groups.states[instance, cell] = op.NULL
        groups.ints[instance, cell] = 0


# After a step --------------------------------------------------------------------------------------------------------


@step
def results_fit(automaton: StreamMachine, instances: Instances, results: StreamResults) -> bool:
    """Whether there is room for the results of a step."""
    final = automaton.final
    number = instances.sizes[RESULTS]
    for place in range(instances.sizes[NEW]):
        number += instances.at[instances.new[place]] == final
    return bool(number <= results.cells.shape[0])


@step
def undo(instances: Instances) -> None:
    """Free the new instances of a step; those that it served are served again when the step is repeated."""
    for place in range(instances.sizes[NEW]):
        free(instances, instances.new[place])
    instances.sizes[NEW] = 0
    instances.sizes[SERVED] = 0


@compiled
def commit(automaton: StreamMachine, instances: Instances, results: StreamResults) -> None:
    """Let served instances leave, and new ones wait or become results; of equal ones one is kept."""
    automaton, instances, results = borrowed(automaton), borrowed(instances), borrowed(results)
    final = automaton.final
    for place in range(instances.sizes[SERVED]):
        instance = instances.served[place]
        instances.counts[instances.at[instance], SERVED_COUNT] += 1
        leave(instances, instance)
    several = instances.sizes[NEW] > 1
    for place in range(instances.sizes[NEW]):
        instance = instances.new[place]
        state = instances.at[instance]
        width = automaton.states[state, WIDTH]
        if several and equal_one(instances, instance, width) >= 0:
            free(instances, instance)
            continue
        instances.counts[state, CAME] += 1
        if state == final:
            at = instances.sizes[RESULTS]
            for cell in range(width):
                results.cells[at, cell] = instances.cells[instance, cell]
                results.states[at, cell] = instances.states[instance, cell]
            instances.sizes[RESULTS] += 1
            continue
        has_key, room = _room_of_instance(automaton, instances, instance)
        if has_key:
            enter(instances, instance, room)
        else:
            # No event is equal to NULL: it would wait in vain.
            free(instances, instance)
    # Results are kept up to here, so that later ones are compared with them.
    for place in range(instances.sizes[NEW]):
        if instances.at[instances.new[place]] == final:
            free(instances, instances.new[place])
    instances.sizes[NEW] = 0
    instances.sizes[SERVED] = 0


@step
def equal_one(instances: Instances, instance: int, width: int) -> int:
    """The equal instance that this step made before at the same state; −1: there is none, and this one is noted."""
    value = np.uint64(instances.at[instance])
    for cell in range(width):
        value = mix(value ^ np.uint64(instances.cells[instance, cell]))
    mask = np.uint64(instances.known.size - 1)
    bucket = value & mask
    now = instances.sizes[STEPS]
    same = -1
    while same < 0 and instances.known_at[np.int64(bucket)] == now:
        other = instances.known[np.int64(bucket)]
        if _equal(instances, instance, other, width):
            same = other
        bucket = (bucket + np.uint64(1)) & mask
    if same < 0:
        instances.known[np.int64(bucket)] = instance
        instances.known_at[np.int64(bucket)] = now
    return same


@step
def _equal(instances: Instances, left: int, right: int, width: int) -> bool:
    same = instances.at[left] == instances.at[right]
    for cell in range(width):
        same &= instances.cells[left, cell] == instances.cells[right, cell]
        same &= instances.states[left, cell] == instances.states[right, cell]
    return bool(same)


# Between calls -------------------------------------------------------------------------------------------------------


@compiled
def expire(automaton: StreamMachine, instances: Instances, now: int) -> None:
    """Free the instances that no event which ends now or later can serve."""
    for instance in range(instances.at.size):
        state = instances.at[instance]
        if state >= 0 and is_over(instances.cells[instance, START], now, automaton.states[state, MOST]):
            instances.counts[state, EXPIRED] += 1
            leave(instances, instance)


@compiled
def settle_in(automaton: StreamMachine, instances: Instances) -> None:
    """Put all instances into the buckets: these are new, or no instance is in one yet."""
    instances.heads[:] = -1
    for instance in range(instances.at.size):
        if instances.at[instance] >= 0:
            _, room = _room_of_instance(automaton, instances, instance)
            enter(instances, instance, room)

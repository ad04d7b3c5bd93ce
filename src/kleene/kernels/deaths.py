"""When a run is dead: no edge, not even the one that ignores an event, keeps it alive (SASE+ §3.2, §5.2).

Each event that comes takes the dead runs that it meets off their lists; where it is not offered to all, they are swept.
"""

from __future__ import annotations

import numpy as np

from kleene.kernels.jit import borrowed, compiled, step
from kleene.kernels.runs import (
    ALIVE,
    BROKEN,
    DROPPED,
    EVENT,
    EXPIRED,
    KILLED,
    NEWEST,
    NODES,
    SIBLING,
    TALLIES,
    Arrival,
    Int,
    Machine,
    Runs,
)
from kleene.kernels.timeline import Timeline, outside

# What `death` answers besides EXPIRED and BROKEN; these are not counted.
LIVES, ENDED = -1, -2


@step
def arrival(number: int, key: Int, time: Timeline, machine: Machine, runs: Runs) -> Arrival:
    """An event, with the last step before it at which a match ended the runs of its partition."""
    frontier: Int = np.int64(-1)
    partition = time.partitions[number]
    if machine.prunes and partition >= 0:
        newest = runs.frontier[partition, 0]
        frontier = newest if newest < time.steps[number] else runs.frontier[partition, 1]
    return Arrival(number, key, time.steps[number], frontier, runs.sizes[NODES], np.int32(runs.sizes[TALLIES]))


@step
def death(node: Int, event: Arrival, measured: bool, time: Timeline, machine: Machine, runs: Runs) -> int:
    """Why a run is dead as an event comes; LIVES when it is not. Its window counts where it is `measured`."""
    killer = runs.nodes[node, KILLED]
    if killer != ALIVE and (killer == DROPPED or time.steps[killer] < event.step):
        return ENDED
    first = runs.nodes[node, NEWEST]
    if measured and time.closes and outside(time.ends[event.number], time.starts[first], machine.within):
        return EXPIRED
    if machine.contiguous and time.barriers[event.number] > time.rights[runs.nodes[node, EVENT]]:
        return BROKEN
    if machine.prunes and time.steps[first] <= event.frontier:
        return ENDED
    return LIVES


@step
def unlink(previous: Int, following: Int, key: Int, state: Int, runs: Runs) -> None:
    """Take the node between two others off its list."""
    if previous < 0:
        runs.top[key, state] = following
    else:
        runs.nodes[previous, SIBLING] = following
    runs.live[key] -= 1


@step
def sweep(state: Int, event: Arrival, time: Timeline, machine: Machine, runs: Runs) -> None:
    """Take the dead runs at a state off its list and count them, as if an event had met them all."""
    measured = machine.early and machine.within.size >= 0
    previous: Int = np.int32(-1)
    node = runs.top[event.key, state]
    while node >= 0:
        following = runs.nodes[node, SIBLING]
        reason = death(node, event, measured, time, machine, runs)
        if reason == LIVES:
            previous = node
        else:
            if reason != ENDED:
                runs.counts[state, reason] += 1
            unlink(previous, following, event.key, state, runs)
        node = following


@compiled
def purge(key: int, number: int, time: Timeline, machine: Machine, runs: Runs) -> None:
    """Take the dead runs of a partition off its lists, as of an event that comes."""
    time, machine, runs = borrowed(time), borrowed(machine), borrowed(runs)
    event = arrival(number, key, time, machine, runs)
    # A run whose window has closed is of no use, wherever windows are tested, and how many of them are left depends
    # on when the store was rebuilt.
    measured = machine.within.size >= 0
    for state in range(machine.kleene.size):
        previous: Int = np.int32(-1)
        node = runs.top[key, state]
        while node >= 0:
            following = runs.nodes[node, SIBLING]
            if death(node, event, measured, time, machine, runs) == LIVES:
                previous = node
            else:
                unlink(previous, following, key, state, runs)
            node = following

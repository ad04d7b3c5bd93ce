"""Runs with the same future are one (SASE+ §5.2.2): among the nodes made of an event, one with the same state and V."""

from __future__ import annotations

import numpy as np

from kleene.kernels.expression import Groups
from kleene.kernels.identity import mix
from kleene.kernels.jit import inlined
from kleene.kernels.runs import NUMBER, STATE, Arrival, Flags, Int, Runs


@inlined
def forget(state: int, keep_groups: Flags, groups: Groups, node: Int) -> None:
    """Clear aggregates that nothing will read, so that they are all alike."""
    for slot in range(groups.states.shape[1]):
        if not keep_groups[state, slot]:
            groups.ints[node, slot] = 0
            groups.reals[node, slot] = 0.0
            groups.states[node, slot] = 0


@inlined
def same_future(new: Int, event: Arrival, plain: Flags, groups: Groups, runs: Runs) -> Int:
    """A node of the same event with the same future as a new one; −1 when there is none, and the new one is noted."""
    nodes, slots, newest_node, buckets, stamps = runs.nodes, runs.slots, runs.newest_node, runs.buckets, runs.stamps
    fresh, number = event.first_node, event.number
    state = np.int64(nodes[new, STATE])
    if plain[state]:
        if newest_node[state] >= fresh:
            return newest_node[state]
        newest_node[state] = new
        return np.int32(-1)
    code = np.uint64(state * 1_000_003 + nodes[new, NUMBER])
    for slot in range(slots.shape[1]):
        code = mix(code ^ np.uint64(slots[new, slot] + 1))
    for slot in range(groups.states.shape[1]):
        code = mix(code ^ np.uint64(groups.ints[new, slot])) + np.uint64(groups.states[new, slot])
        if abs(groups.reals[new, slot]) < 1e15:
            code ^= np.uint64(np.int64(groups.reals[new, slot] * 1024.0))
    mask = buckets.size - 1
    place = np.int64(mix(code)) & mask
    while stamps[place] == number:
        other = buckets[place]
        if other >= fresh and nodes[other, STATE] == state and nodes[other, NUMBER] == nodes[new, NUMBER]:
            same = True
            for slot in range(slots.shape[1]):
                same &= slots[other, slot] == slots[new, slot]
            for slot in range(groups.states.shape[1]):
                same &= groups.states[other, slot] == groups.states[new, slot]
                same &= groups.ints[other, slot] == groups.ints[new, slot]
                same &= groups.reals[other, slot] == groups.reals[new, slot]
            if same:
                return other
        place = (place + 1) & mask
    stamps[place] = number
    buckets[place] = new
    return np.int32(-1)

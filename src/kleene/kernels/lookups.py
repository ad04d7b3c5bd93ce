"""Runs found by value: an event meets those that its equalities with a run leave over, not all that live.

Where an edge says that a value of the run equals one of the event, each run at its state is filed under its value.
Under the strategies that skip events, a run that does not equal an event stays as it is, so it may be passed over. What
is found is tested as ever: values are hashed, and there may be other conditions.

A run is a node, and a node never changes its value: one that takes an event is a new node, filed anew. Chains have the
order of lists, newest first, so that runs meet an event in the same order, however they are found.

Runs that nobody meets are not found dead either. Each time that the runs of a partition have doubled, the dead ones are
taken off its lists (`tend`). Chains lose those that are met, and all others when there is no room for more (`refile`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kleene.kernels import opcodes as op
from kleene.kernels.deaths import LIVES, death, sweep
from kleene.kernels.expression import ProgramScope, holds, part
from kleene.kernels.identity import mix
from kleene.kernels.jit import borrowed, compiled, inlined
from kleene.kernels.runs import (
    AS_REAL,
    BEGINNING,
    CHAIN,
    CURRENT,
    EVENT,
    FILED,
    FOUND,
    LANES,
    OF_EVENT,
    OF_RUN,
    PREVIOUS,
    REAL,
    RUN_SLOTS,
    SIBLING,
    STATE,
    TAKING,
    Arrival,
    Int,
    Lookups,
    Machine,
    Offer,
    Runs,
)
from kleene.kernels.timeline import Timeline

# The code of what equals nothing.
NOTHING = np.uint64(0)
# More than an automaton has (an event has a bit for each state).
_MOST_EDGES = 128
_GREATEST = 2**63 - 1


@compiled
def finds(offer: Offer, machine: Machine, runs: Runs) -> bool:
    """Whether the runs at a state that an event can change are found by value."""
    machine, runs = borrowed(machine), borrowed(runs)
    lookups, found = machine.lookups, False
    if offer.state >= 0 and runs.live[offer.event.key] > lookups.few and runs.limit[offer.event.key] > lookups.few:
        edge = LANES * offer.state
        takes = not offer.can_take or lookups.first[edge] < lookups.first[edge + 1]
        found = takes and (not offer.can_begin or lookups.first[edge + 1] < lookups.first[edge + 2])
    return found


@compiled
def find(offer: Offer, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs) -> None:
    """Find the runs at a state that equal an event on an edge: their nodes, newest first, and −1 after the last."""
    time, machine = borrowed(time), borrowed(machine)
    scope, runs = borrowed(scope), borrowed(runs)
    event, found = offer.event, runs.found
    scope.bindings[0, CURRENT] = event.number
    if offer.can_begin and machine.first[offer.state + 1] >= 0:
        scope.bindings[0, machine.first[offer.state + 1]] = event.number
    for lane in range(LANES):
        count = 0
        if offer.can_take if lane == TAKING else offer.can_begin:
            code = _code(event.key, LANES * offer.state + lane, OF_EVENT, 0, machine.lookups, scope)
            count = _collect(lane, code, event, time, machine, runs)
        found[lane, count] = -1
    # Both are sorted, and a run that equals the event on both edges meets it once.
    taking, beginning, both = 0, 0, 0
    while found[TAKING, taking] >= 0 or found[BEGINNING, beginning] >= 0:
        newest = max(found[TAKING, taking], found[BEGINNING, beginning])
        taking += 1 if found[TAKING, taking] == newest else 0
        beginning += 1 if found[BEGINNING, beginning] == newest else 0
        found[FOUND, both] = newest
        both += 1
    found[FOUND, both] = -1


@inlined
def _collect(lane: int, code: Any, event: Arrival, time: Timeline, machine: Machine, runs: Runs) -> int:
    """Collect the runs of a chain that have a code, and take dead ones off it; how many there are."""
    count = 0
    if code == NOTHING:
        return count
    nodes = runs.nodes
    measured = machine.early and machine.within.size >= 0
    place = np.int64(code & np.uint64(runs.heads.shape[1] - 1))
    previous: Int = np.int32(-1)
    node = runs.heads[lane, place]
    while node >= 0:
        following = nodes[node, CHAIN + lane]
        if runs.codes[node, lane] != code:
            previous = node
        elif death(node, event, measured, time, machine, runs) == LIVES:
            runs.found[lane, count] = node
            count += 1
            previous = node
        elif previous < 0:
            runs.heads[lane, place] = following
        else:
            nodes[previous, CHAIN + lane] = following
        node = following
    return count


@inlined
def _code(key: Int, edge: Int, side: int, group: Int, lookups: Lookups, scope: ProgramScope) -> Any:
    """What stands for the values of one side of an edge's equalities; NOTHING where one of them equals nothing."""
    stack = scope.stack
    code = mix(np.uint64(np.int64(key) * _MOST_EDGES + edge + 1))
    for equality in range(lookups.first[edge], lookups.first[edge + 1]):
        number = 2 * equality + side
        holds(part(lookups.values, number), scope, 0, group)
        if stack.states[0] != op.VALUE:
            return NOTHING
        kind, ratio = lookups.kinds[number, 0], lookups.kinds[number, 1]
        if kind in (REAL, AS_REAL):
            real = stack.reals[0]
            if kind == AS_REAL:
                # An integer equals a real number only where that is exact.
                real = float(stack.ints[0])
                if real >= 2.0**63 or np.int64(real) != stack.ints[0]:
                    return NOTHING
            if math.isnan(real):
                return NOTHING
            # 0.0 and -0.0 are equal.
            stack.reals[0] = real + 0.0
            whole = stack.reals.view(np.int64)[0]
        else:
            whole = stack.ints[0]
            if ratio > 1:
                # What is beyond 64 bits in the shorter step equals no time that is given in it.
                if whole > _GREATEST // ratio or whole < -(_GREATEST // ratio):
                    return NOTHING
                whole *= ratio
        code = mix(code ^ np.uint64(whole))
    return code if code != NOTHING else np.uint64(1)


@compiled
def lacks_room(needed: Int, runs: Runs) -> bool:
    """Whether so many more runs could not be found, or not be filed with those that are there."""
    return bool(needed > runs.found.shape[1] or runs.sizes[FILED] + 3 * needed > runs.heads.shape[1])


@compiled
def file_run(node: Int, key: Int, machine: Machine, scope: ProgramScope, runs: Runs) -> None:
    """File a run under the values that its edges compare with an event's."""
    machine, scope, runs = borrowed(machine), borrowed(scope), borrowed(runs)
    if looks_up(np.int64(runs.nodes[node, STATE]), machine.lookups):
        _encode(node, key, machine, scope, runs)
        _chain(node, runs)


@compiled
def _encode(node: Int, key: Int, machine: Machine, scope: ProgramScope, runs: Runs) -> None:
    """Note what stands for the values of a run that its edges compare."""
    machine, scope, runs = borrowed(machine), borrowed(scope), borrowed(runs)
    state, bindings = np.int64(runs.nodes[node, STATE]), scope.bindings
    for slot in range(runs.slots.shape[1]):
        bindings[0, RUN_SLOTS + slot] = runs.slots[node, slot]
    bindings[0, PREVIOUS] = runs.nodes[node, EVENT]
    if machine.last[state] >= 0:
        bindings[0, machine.last[state]] = runs.nodes[node, EVENT]
    for lane in range(LANES):
        edge = LANES * state + lane
        runs.codes[node, lane] = NOTHING
        if machine.lookups.first[edge] < machine.lookups.first[edge + 1]:
            runs.codes[node, lane] = _code(key, edge, OF_RUN, node, machine.lookups, scope)


@inlined
def _chain(node: Int, runs: Runs) -> None:
    """Put a run on the chains of its codes."""
    for lane in range(LANES):
        code = runs.codes[node, lane]
        if code != NOTHING:
            place = np.int64(code & np.uint64(runs.heads.shape[1] - 1))
            runs.nodes[node, CHAIN + lane] = runs.heads[lane, place]
            runs.heads[lane, place] = node
            runs.sizes[FILED] += 1


@inlined
def looks_up(state: Int, lookups: Lookups) -> bool:
    """Whether runs at a state are found by value on one of their edges."""
    return bool(lookups.first[LANES * state] < lookups.first[LANES * state + LANES])


@compiled
def tend(event: Arrival, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs) -> None:
    """Take dead runs off the lists of a partition whose runs have become many, and file those that are left."""
    time, machine = borrowed(time), borrowed(machine)
    scope, runs = borrowed(scope), borrowed(runs)
    few, key = machine.lookups.few, event.key
    for state in range(machine.kleene.size):
        sweep(state, event, time, machine, runs)
    if runs.limit[key] == few:
        if runs.live[key] <= few:
            return
        for state in range(machine.kleene.size):
            node = runs.top[key, state]
            while node >= 0:
                _encode(node, key, machine, scope, runs)
                node = runs.nodes[node, SIBLING]
        _chain_all(key, machine, runs)
    runs.limit[key] = max(2 * int(runs.live[key]), few + 1)


@compiled
def refile(machine: Machine, runs: Runs) -> None:
    """Put all runs on chains that are empty, those of partitions with few of them on none."""
    machine, runs = borrowed(machine), borrowed(runs)
    few = machine.lookups.few
    runs.sizes[FILED] = 0
    for key in range(runs.limit.size):
        if runs.live[key] <= few:
            runs.limit[key] = few
        if runs.limit[key] > few:
            _chain_all(key, machine, runs)


@inlined
def _chain_all(key: Int, machine: Machine, runs: Runs) -> None:
    """Put the runs of a partition on chains, the oldest first."""
    nodes = runs.nodes
    for state in range(machine.kleene.size):
        if looks_up(state, machine.lookups):
            node = _turned(runs.top[key, state], runs)
            older: Int = np.int32(-1)
            while node >= 0:
                _chain(node, runs)
                newer = nodes[node, SIBLING]
                nodes[node, SIBLING] = older
                older = node
                node = newer


@inlined
def _turned(node: Int, runs: Runs) -> Int:
    """Turn a list round, and give its oldest node: who follows it from there turns it back."""
    newer: Int = np.int32(-1)
    while node >= 0:
        older = runs.nodes[node, SIBLING]
        runs.nodes[node, SIBLING] = newer
        newer = node
        node = older
    return newer

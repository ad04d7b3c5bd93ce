"""When a run is a match, and when a negated event invalidates it (SASE §3.3, SASE+ §3.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kleene.kernels.expression import Ints, ProgramScope, holds, is_empty, part
from kleene.kernels.jit import borrowed, compiled, step
from kleene.kernels.runs import (
    EDGES,
    EVENT,
    FAILED,
    INSTANCES,
    NEGATED,
    NEWEST,
    NUMBER,
    PROCEED,
    RUN_SLOTS,
    STOPPED,
    Arrival,
    Int,
    Machine,
    Runs,
)
from kleene.kernels.timeline import Timeline, outside


class NegatedGap(NamedTuple):
    """Where no event of a negated class may lie."""

    absence: int  # the number of the negated component
    floor: Int  #   the right of the left neighbour; −1: the window decides
    ceiling: Int  # the left of the right neighbour


@step
def add_instances(number: int, absent: int, key: int, machine: Machine, runs: Runs) -> None:
    """Put an event of negated classes on their stacks."""
    for absence in range(machine.after.size):
        if (absent >> absence) & 1 == 1:
            at = key if machine.keyed[absence] else 0
            if at >= 0:
                instance = np.int32(runs.sizes[INSTANCES])
                runs.sizes[INSTANCES] += 1
                runs.instances[instance] = number
                runs.below[instance] = runs.newest_instance[at, absence]
                runs.newest_instance[at, absence] = instance


@step
def completes(node: Int, event: Arrival, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs) -> bool:
    """Whether a node at the last state is a match, as far as that can be known now."""
    last = machine.kleene.size - 1
    if runs.nodes[node, NUMBER] < machine.minimum[last]:
        return False
    first = runs.nodes[node, NEWEST]
    if machine.within.size >= 0 and outside(time.ends[event.number], time.starts[first], machine.within):
        return False
    if machine.prunes and time.steps[first] <= event.frontier:
        return False
    if is_empty(machine.programs, EDGES * last + PROCEED) and not machine.after.size:
        return True
    return _passes(node, event, time, machine, scope, runs)


@compiled
def _passes(node: Int, event: Arrival, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs) -> bool:
    """Whether the conditions on the last component as a whole hold, and no negated event invalidates the run."""
    time, machine, scope, runs = borrowed(time), borrowed(machine), borrowed(scope), borrowed(runs)
    last = machine.kleene.size - 1
    _bind_run(node, machine, runs, scope.bindings)
    if not holds(part(machine.programs, EDGES * last + PROCEED), scope, 0, node):
        runs.counts[last, FAILED] += 1
        return False
    if is_invalidated(-1, event, event.number, node, time, machine, scope, runs):
        runs.counts[last, STOPPED] += 1
        return False
    return True


@step
def _bind_run(node: int, machine: Machine, runs: Runs, bindings: Ints) -> None:
    """Bind what programs on a complete match read."""
    for slot in range(runs.slots.shape[1]):
        bindings[0, RUN_SLOTS + slot] = runs.slots[node, slot]
    last = machine.kleene.size - 1
    if machine.last[last] >= 0:
        bindings[0, machine.last[last]] = runs.nodes[node, EVENT]
    if machine.first[last] >= 0 and not machine.kleene[last]:
        bindings[0, machine.first[last]] = runs.nodes[node, EVENT]


@compiled
def is_invalidated(
    state: int,  #       whose begin edge is tested; −1: a complete match
    event: Arrival,
    last_event: Int,  #  the event that the run has taken before it
    group: Int,  #       the run's aggregates
    time: Timeline,
    machine: Machine,
    scope: ProgramScope,
    runs: Runs,
) -> bool:
    """Whether a negated event lies where none may, as far as that is decided on this edge (SASE §3.3)."""
    time, machine, scope, runs = borrowed(time), borrowed(machine), borrowed(scope), borrowed(runs)
    final = machine.kleene.size - 1
    for absence in range(machine.after.size):
        if machine.at[absence] != state or machine.after[absence] == final:
            continue
        floor: Int = np.int64(-1)
        if machine.after[absence] >= 0:
            left = last_event if machine.left[absence] < 0 else scope.bindings[0, machine.left[absence]]
            floor = time.rights[left]
        right = event.number if machine.right[absence] < 0 else scope.bindings[0, machine.right[absence]]
        gap = NegatedGap(absence, floor, time.lefts[right])
        if _occurs(gap, event, group, time, machine, scope, runs):
            return True
    return False


@step
def _occurs(
    gap: NegatedGap, event: Arrival, group: Int, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs
) -> bool:
    """Whether an event of a negated class lies in a gap and satisfies its conditions, newest first."""
    absence = gap.absence
    program = part(machine.programs, EDGES * machine.kleene.size + absence)
    instance = runs.newest_instance[event.key if machine.keyed[absence] else 0, absence]
    while instance >= 0:
        other = runs.instances[instance]
        instance = runs.below[instance]
        if time.steps[other] <= gap.floor:
            return False
        if time.rights[other] >= gap.ceiling or time.lefts[other] <= gap.floor:
            continue
        if machine.after[absence] < 0:
            if outside(time.ends[event.number], time.highs[other], machine.within):
                return False
            if outside(time.ends[event.number], time.starts[other], machine.within):
                continue
        scope.bindings[0, NEGATED] = other
        if holds(program, scope, 0, group):
            return True
    return False

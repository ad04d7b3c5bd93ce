"""When a run is a match, and when a negated event has spoilt it (SASE §3.3, SASE+ §3.2)."""

from __future__ import annotations

import numpy as np

from kleene.kernels.expression import Code, EventColumns, Groups, Ints, Stack, Texts, holds
from kleene.kernels.jit import compiled, inlined
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
    Int,
    Machine,
    Runs,
)
from kleene.kernels.timeline import Timeline, outside


@inlined
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


@compiled
def completes(
    node: Int,
    number: Int,
    key: Int,
    frontier: Int,
    time: Timeline,
    machine: Machine,
    events: EventColumns,
    texts: Texts,
    groups: Groups,
    runs: Runs,
    bindings: Ints,
    stack: Stack,
) -> bool:
    """Whether a node at the last state is a match, as far as that can be known now."""
    last = machine.kleene.size - 1
    if runs.nodes[node, NUMBER] < machine.minimum[last]:
        return False
    if machine.size >= 0:
        first = time.starts[runs.nodes[node, NEWEST]]
        if outside(time.ends[number], first, machine.size, machine.inclusive):
            return False
    if machine.prunes and time.steps[runs.nodes[node, NEWEST]] <= frontier:
        return False
    part = machine.parts[EDGES * last + PROCEED]
    if part[1] == part[0] and not machine.after.size:
        return True
    _bind_run(node, machine, runs, bindings)
    program = Code(
        machine.code.words[part[0] : part[1]],
        machine.code.ints[part[2] : part[3]],
        machine.code.reals[part[4] : part[5]],
    )
    if not holds(program, events, texts, bindings, 0, groups, node, stack):
        runs.counts[last, FAILED] += 1
        return False
    if is_spoilt(-1, number, number, key, node, time, machine, events, texts, groups, runs, bindings, stack):
        runs.counts[last, STOPPED] += 1
        return False
    return True


@inlined
def _bind_run(node: int, machine: Machine, runs: Runs, bindings: Ints) -> None:
    """What programs on a complete match read."""
    for slot in range(runs.slots.shape[1]):
        bindings[0, RUN_SLOTS + slot] = runs.slots[node, slot]
    last = machine.kleene.size - 1
    if machine.last[last] >= 0:
        bindings[0, machine.last[last]] = runs.nodes[node, EVENT]
    if machine.first[last] >= 0 and not machine.kleene[last]:
        bindings[0, machine.first[last]] = runs.nodes[node, EVENT]


@compiled
def is_spoilt(
    state: int,  #  whose begin edge is tested; −1: a complete match
    number: Int,  # the event taken
    held: Int,  #   the event taken before it
    key: Int,
    group: Int,  #  the run's aggregates
    time: Timeline,
    machine: Machine,
    events: EventColumns,
    texts: Texts,
    groups: Groups,
    runs: Runs,
    bindings: Ints,
    stack: Stack,
) -> bool:
    """Whether a negated event lies where none may, as far as that is decided on this edge (SASE §3.3)."""
    final = machine.kleene.size - 1
    for absence in range(machine.after.size):
        if machine.at[absence] != state or machine.after[absence] == final:
            continue
        floor: Int = np.int64(-1)
        if machine.after[absence] >= 0:
            left = held if machine.left[absence] < 0 else bindings[0, machine.left[absence]]
            floor = time.rights[left]
        right = number if machine.right[absence] < 0 else bindings[0, machine.right[absence]]
        if _occurs(
            absence, floor, time.lefts[right], number, key, group, time, machine, events, texts, groups, runs, bindings,
            stack,
        ):  # fmt: skip
            return True
    return False


@compiled
def _occurs(
    absence: int,
    floor: Int,  #   the right of the left neighbour; −1: the window decides
    ceiling: Int,  # before which step it must end
    final: Int,  #   the last event of the match
    key: Int,
    group: Int,
    time: Timeline,
    machine: Machine,
    events: EventColumns,
    texts: Texts,
    groups: Groups,
    runs: Runs,
    bindings: Ints,
    stack: Stack,
) -> bool:
    """Whether an event of a negated class lies in an interval and satisfies its conditions, newest first."""
    part = machine.parts[EDGES * machine.kleene.size + absence]
    program = Code(
        machine.code.words[part[0] : part[1]],
        machine.code.ints[part[2] : part[3]],
        machine.code.reals[part[4] : part[5]],
    )
    instance = runs.newest_instance[key if machine.keyed[absence] else 0, absence]
    while instance >= 0:
        other = runs.instances[instance]
        instance = runs.below[instance]
        if time.steps[other] <= floor:
            return False
        if time.rights[other] >= ceiling or time.lefts[other] <= floor:
            continue
        if machine.after[absence] < 0:
            if outside(time.ends[final], time.highs[other], machine.size, machine.inclusive):
                return False
            if outside(time.ends[final], time.starts[other], machine.size, machine.inclusive):
                continue
        bindings[0, NEGATED] = other
        if holds(program, events, texts, bindings, 0, groups, group, stack):
            return True
    return False

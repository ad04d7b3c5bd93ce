"""NFA^b over shared runs (SASE+ §3–5): events in order are offered to the runs of their partition.

A node is a run that has just taken an event: its state, what it needs to know for later edges (slots and aggregates,
the paper's computation state V), and links to the nodes that it came from. Runs with the same future share a node, so
links are the shared match buffer (§5.1), and no version numbers are needed: every walk back along the links is a run.
Live nodes of a partition and state form a list. `events` are numbers in canonical order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.aggregates import Aggregation, accumulate, clear, copy
from kleene.kernels.expression import Code, Events, Groups, Ints, Stack, Texts, holds
from kleene.kernels.identity import mix
from kleene.kernels.jit import compiled, inlined
from kleene.kernels.timeline import Timeline, outside

Numbers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.uint64]
# An integer of the width that the arrays have which it comes from or goes to.
Int = Any

# Slots of a binding that every program knows; the slots of runs come after them.
CURRENT, PREVIOUS, NEGATED, ABSENT, RUN_SLOTS = range(5)
# Programs of a state, in this order; those of absences follow.
BEGIN, TAKE, PROCEED, EDGES = range(4)
# Columns of `Runs.nodes`: one node is one line of a processor's cache.
EVENT = 0  #     the event taken last
STATE = 1
NUMBER = 2  #    events of its Kleene component, up to the cap
NEWEST = 3  #    the latest first event of a run that came here
OLDEST = 4  #    the earliest one
STARTS = 5  #    1 when a run begins here
LINK = 6  #      the first link back, or −1
SIBLING = 7  #   the next live node of its list, or −1
KILLED = 8  #    the event that it could not stay for; ALIVE, or DROPPED by a budget
FIELDS = 16
ALIVE, DROPPED = -1, -2
# Columns of `Runs.links`: the node that it leads back to, and the next link of the same node.
ORIGIN, FOLLOWING = 0, 1
# Places of `Runs.sizes`.
NODES, LINKS, COMPLETED, INSTANCES, STATUS, SIZES = range(6)
# Why `advance` returned early.
DONE, NO_ROOM, TOO_MANY_RUNS = range(3)
# Columns of `Runs.counts`.
REACHED, FAILED, STOPPED, EXPIRED, BROKEN, COUNTERS = range(6)


class Machine(NamedTuple):
    """The automaton: what does not change."""

    kleene: Flags  #     [state]
    minimum: Ints  #     [state]: how many events a Kleene component needs
    maximum: Ints  #     [state]: how many it may have; −1: any number
    cap: Ints  #         [state]: beyond this number of events their number makes no difference
    first: Ints  #       [state]: the slot of its first event, or −1
    last: Ints  #        [state]: the slot of its last event once it is left, or −1
    keep: Flags  #       [state, slot]: what a run at the state still needs
    keep_groups: Flags  # [state, aggregate]
    plain: Flags  #      [state]: a run there needs nothing, so all of one event merge
    aggregates: Ints  #  [state + 1]: where each state's aggregates begin in `aggregate_slots`
    aggregate_slots: Ints
    parts: Ints  #       [program, 6]: where its words, integers and reals begin and end
    code: Code
    size: int  #         of the window; negative: none
    inclusive: bool
    early: bool  #       whether a run dies when its window closes
    contiguous: bool  #  no event may be ignored
    next_match: bool  #  no event may be ignored that could be taken
    merges: bool
    prunes: bool  #      a match ends the other runs of its partition (NON_OVERLAP)
    most: int  #         runs of a partition
    # Negated components, [absence]
    after: Ints  #       the state before it; −1: the window's start
    at: Ints  #          the state on whose begin edge it is tested; −1: complete matches
    keyed: Flags
    left: Ints  #        the slot of its left neighbour, −1: the event that the run has taken last
    right: Ints  #       the slot of its right neighbour, −1: the event that is being taken


class Runs(NamedTuple):
    """The runs: what grows. Arrays have room for more; `sizes` says how much of them is used."""

    nodes: Numbers  #  [node, FIELDS]
    slots: Numbers  #  [node, slot]: events that later edges read
    total: Counts  #   [node]: how many runs came here; the greatest number stands for more
    links: Numbers  #  [link, 2]
    top: Numbers  #    [key, state]: the first live node
    live: Ints  #      [key]: how many are live
    completed: Numbers  # nodes that are matches
    made: Numbers  #   [state]: the node made last in a plain state
    buckets: Numbers  # [hash]: nodes made of the same event
    stamps: Numbers  # [hash]: of which event
    frontier: Ints  #  [partition, 2]: the step of the last match, and of the one before that step
    instances: Numbers  # [instance]: events of negated classes
    below: Numbers  #  [instance]: the one before it of the same class and key
    newest_instance: Numbers  # [key, absence]
    counts: Ints  #    [state, counter]
    sizes: Ints


@compiled
def advance(
    begin: int,
    end: int,
    base: int,  #       the event that the first of the following bits are of
    begins: Ints,  #    [event]: which states it can begin, one bit each
    takes: Ints,  #     [event]: which Kleene states can take it
    absents: Ints,  #   [event]: which negated classes it is of
    time: Timeline,
    machine: Machine,
    events: Events,
    texts: Texts,
    aggregation: Aggregation,
    groups: Groups,  #  [node]
    runs: Runs,
    bindings: Ints,  #  [1, slot]: room
    stack: Stack,
) -> int:
    """Offer events to runs; the number of the first event that was not offered."""
    last = machine.kleene.size - 1
    sizes, nodes = runs.sizes, runs.nodes
    width = runs.slots.shape[1]
    for number in range(begin, end):
        begun, taken, absent = begins[number - base], takes[number - base], absents[number - base]
        if begun | taken | absent == 0:
            continue
        key = time.keys[number]
        if begun | taken:
            needed = 2 * runs.live[key] + 2
            if (
                sizes[NODES] + needed >= nodes.shape[0]
                or sizes[LINKS] + needed >= runs.links.shape[0]
                or sizes[COMPLETED] + needed >= runs.completed.size
                or 4 * needed > runs.buckets.size
            ):
                sizes[STATUS] = NO_ROOM
                return number
            if runs.live[key] > machine.most:
                sizes[STATUS] = TOO_MANY_RUNS
                return number
        if absent:
            _add_instances(number, absent, key, machine, runs)
        step = time.steps[number]
        frontier: Int = np.int64(-1)
        if machine.prunes and time.partitions[number] >= 0:
            newest_frontier = runs.frontier[time.partitions[number], 0]
            frontier = newest_frontier if newest_frontier < step else runs.frontier[time.partitions[number], 1]
        fresh = sizes[NODES]
        for state in range(last, -2, -1):
            can_take = state >= 0 and machine.kleene[state] and (taken >> state) & 1 == 1
            can_begin = state < last and (begun >> (state + 1)) & 1 == 1
            if not can_take and not can_begin:
                continue
            # Before the first state there is one run, which has taken nothing and always stays.
            virtual = state < 0
            node: Int = np.int32(-1)
            previous: Int = np.int32(-1)
            if not virtual:
                node = runs.top[key, state]
            while virtual or node >= 0:
                following: Int = np.int32(-1)
                held: Int = np.int32(-1)
                if not virtual:
                    following = nodes[node, SIBLING]
                    held = nodes[node, EVENT]
                    killer = nodes[node, KILLED]
                    dead = killer != ALIVE and (killer == DROPPED or time.steps[killer] < step)
                    if not dead and machine.early and machine.size >= 0:
                        distance = time.ends[number] - time.starts[nodes[node, NEWEST]]
                        if outside(distance, machine.size, machine.inclusive):
                            dead = True
                            runs.counts[state, EXPIRED] += 1
                    if not dead and machine.contiguous and time.ordinals[number] > time.ordinals[held] + 1:
                        dead = True
                        runs.counts[state, BROKEN] += 1
                    if not dead and machine.prunes and time.steps[nodes[node, NEWEST]] <= frontier:
                        dead = True
                    if dead:
                        if previous < 0:
                            runs.top[key, state] = following
                        else:
                            nodes[previous, SIBLING] = following
                        runs.live[key] -= 1
                        node = following
                        continue
                    if time.steps[held] >= time.lefts[number]:
                        previous, node = node, following
                        continue
                    for slot in range(width):
                        bindings[0, RUN_SLOTS + slot] = runs.slots[node, slot]
                    bindings[0, PREVIOUS] = held
                    if machine.last[state] >= 0:
                        bindings[0, machine.last[state]] = held
                else:
                    for slot in range(width):
                        bindings[0, RUN_SLOTS + slot] = -1
                bindings[0, CURRENT] = number
                stays = not machine.contiguous
                for phase in range(3):
                    # Take the event, then leave the state, then begin the next one with the event.
                    edge: Int = np.int64(-1)
                    if phase == 0:
                        full = (
                            can_take and machine.maximum[state] >= 0 and nodes[node, NUMBER] >= machine.maximum[state]
                        )
                        if not can_take or full:
                            continue
                        edge = EDGES * state + TAKE
                    elif phase == 1:
                        if not can_begin:
                            break
                        if virtual or not machine.kleene[state]:
                            continue
                        if nodes[node, NUMBER] < machine.minimum[state]:
                            break
                        edge = EDGES * state + PROCEED
                    else:
                        edge = EDGES * (state + 1) + BEGIN
                        if machine.first[state + 1] >= 0:
                            bindings[0, machine.first[state + 1]] = number
                    good = True
                    part = machine.parts[edge]
                    if part[1] > part[0]:
                        program = Code(
                            machine.code.words[part[0] : part[1]],
                            machine.code.ints[part[2] : part[3]],
                            machine.code.reals[part[4] : part[5]],
                        )
                        good = holds(program, events, texts, bindings, 0, groups, max(node, 0), stack)
                    if phase == 1:
                        if not good:
                            break
                        continue
                    target = state if phase == 0 else state + 1
                    if phase == 2 and good and target == last and not machine.kleene[last] and machine.size >= 0:
                        earliest = time.starts[number] if virtual else time.starts[nodes[node, NEWEST]]
                        good = not outside(time.ends[number] - earliest, machine.size, machine.inclusive)
                    if not good:
                        runs.counts[target, FAILED] += 1
                        continue
                    if machine.next_match and not virtual and (phase == 0 or not machine.kleene[state]):
                        stays = False
                    spoilt = False
                    if phase == 2 and machine.after.size and not virtual:
                        spoilt = _is_spoilt(
                            target, number, held, key, max(node, 0), time, machine, events, texts, groups, runs,
                            bindings, stack,
                        )  # fmt: skip
                    if spoilt:
                        runs.counts[target, STOPPED] += 1
                        continue
                    # The run with one more event: a new node, or one that has the same future.
                    new: Int = np.int32(sizes[NODES])
                    for slot in range(width):
                        kept = machine.keep[target, slot]
                        runs.slots[new, slot] = bindings[0, RUN_SLOTS + slot] if kept else -1
                    if groups.states.shape[1]:
                        if virtual:
                            clear(aggregation, machine.aggregate_slots, groups, new)
                        else:
                            copy(groups, node, new)
                        own = machine.aggregate_slots[machine.aggregates[target] : machine.aggregates[target + 1]]
                        accumulate(aggregation, own, number, events, texts, groups, new)
                        _forget(target, machine, groups, new)
                    nodes[new, NUMBER] = 1 if phase == 2 else min(nodes[node, NUMBER] + 1, machine.cap[target])
                    nodes[new, STATE] = target
                    nodes[new, EVENT] = number
                    found: Int = np.int32(-1)
                    if machine.merges:
                        found = _same_future(new, fresh, number, machine, groups, runs)
                    if found < 0:
                        found = new
                        sizes[NODES] += 1
                        nodes[new, LINK] = -1
                        nodes[new, KILLED] = ALIVE
                        nodes[new, STARTS] = 1 if virtual else 0
                        runs.total[new] = 1 if virtual else runs.total[node]
                        nodes[new, NEWEST] = number if virtual else nodes[node, NEWEST]
                        nodes[new, OLDEST] = number if virtual else nodes[node, OLDEST]
                    elif virtual:
                        nodes[found, STARTS] = 1
                        runs.total[found] = _sum(runs.total[found], np.uint64(1))
                        nodes[found, NEWEST] = number
                    else:
                        runs.total[found] = _sum(runs.total[found], runs.total[node])
                        if time.starts[nodes[node, NEWEST]] > time.starts[nodes[found, NEWEST]]:
                            nodes[found, NEWEST] = nodes[node, NEWEST]
                        if time.starts[nodes[node, OLDEST]] < time.starts[nodes[found, OLDEST]]:
                            nodes[found, OLDEST] = nodes[node, OLDEST]
                    if not virtual:
                        link = np.int32(sizes[LINKS])
                        sizes[LINKS] += 1
                        runs.links[link, ORIGIN] = node
                        runs.links[link, FOLLOWING] = nodes[found, LINK]
                        nodes[found, LINK] = link
                if virtual:
                    break
                if not stays:
                    nodes[node, KILLED] = number
                previous, node = node, following
        for made in range(fresh, sizes[NODES]):
            state = int(nodes[made, STATE])
            runs.counts[state, REACHED] += 1
            if state == last and _completes(
                np.int32(made), number, key, frontier, time, machine, events, texts, groups, runs, bindings, stack
            ):
                runs.completed[sizes[COMPLETED]] = made
                sizes[COMPLETED] += 1
                if machine.prunes:
                    partition = time.partitions[number]
                    if runs.frontier[partition, 0] < step:
                        runs.frontier[partition, 1] = runs.frontier[partition, 0]
                        runs.frontier[partition, 0] = step
            if state < last or machine.kleene[last]:
                nodes[made, SIBLING] = runs.top[key, state]
                runs.top[key, state] = made
                runs.live[key] += 1
    sizes[STATUS] = DONE
    return end


@inlined
def _sum(left: Int, right: Int) -> Int:
    """Of more than 64 bits only that it is more is known."""
    total = left + right
    return np.uint64(0xFFFFFFFFFFFFFFFF) if total < left else total


@inlined
def _add_instances(number: int, absent: int, key: int, machine: Machine, runs: Runs) -> None:
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


@inlined
def _forget(state: int, machine: Machine, groups: Groups, node: int) -> None:
    """Aggregates that nothing will read are all alike."""
    for slot in range(groups.states.shape[1]):
        if not machine.keep_groups[state, slot]:
            groups.ints[node, slot] = 0
            groups.reals[node, slot] = 0.0
            groups.states[node, slot] = 0


@inlined
def _same_future(new: Int, fresh: int, number: int, machine: Machine, groups: Groups, runs: Runs) -> Int:
    """A node of the same event with the same future as a new one; −1 when there is none, and the new one is noted."""
    nodes = runs.nodes
    state = np.int64(nodes[new, STATE])
    if machine.plain[state]:
        if runs.made[state] >= fresh:
            return runs.made[state]
        runs.made[state] = new
        return np.int32(-1)
    code = np.uint64(state * 1_000_003 + nodes[new, NUMBER])
    for slot in range(runs.slots.shape[1]):
        code = mix(code ^ np.uint64(runs.slots[new, slot] + 1))
    for slot in range(groups.states.shape[1]):
        code = mix(code ^ np.uint64(groups.ints[new, slot])) + np.uint64(groups.states[new, slot])
        if abs(groups.reals[new, slot]) < 1e15:
            code ^= np.uint64(np.int64(groups.reals[new, slot] * 1024.0))
    mask = runs.buckets.size - 1
    place = np.int64(mix(code)) & mask
    while runs.stamps[place] == number:
        other = runs.buckets[place]
        if other >= fresh and nodes[other, STATE] == state and nodes[other, NUMBER] == nodes[new, NUMBER]:
            same = True
            for slot in range(runs.slots.shape[1]):
                same &= runs.slots[other, slot] == runs.slots[new, slot]
            for slot in range(groups.states.shape[1]):
                same &= groups.states[other, slot] == groups.states[new, slot]
                same &= groups.ints[other, slot] == groups.ints[new, slot]
                same &= groups.reals[other, slot] == groups.reals[new, slot]
            if same:
                return other
        place = (place + 1) & mask
    runs.stamps[place] = number
    runs.buckets[place] = new
    return np.int32(-1)


@compiled
def _completes(
    node: Int,
    number: Int,
    key: Int,
    frontier: Int,
    time: Timeline,
    machine: Machine,
    events: Events,
    texts: Texts,
    groups: Groups,
    runs: Runs,
    bindings: Ints,
    stack: Stack,
) -> bool:
    """Whether a node at the last state is a match, as far as that can be known now."""
    nodes = runs.nodes
    last = machine.kleene.size - 1
    if nodes[node, NUMBER] < machine.minimum[last]:
        return False
    if machine.size >= 0:
        distance: Int = time.ends[number] - time.starts[nodes[node, NEWEST]]
        if outside(distance, machine.size, machine.inclusive):
            return False
    if machine.prunes and time.steps[nodes[node, NEWEST]] <= frontier:
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
    if _is_spoilt(-1, number, number, key, node, time, machine, events, texts, groups, runs, bindings, stack):
        runs.counts[last, STOPPED] += 1
        return False
    return True


@inlined
def _bind_run(node: int, machine: Machine, runs: Runs, bindings: Ints) -> None:
    """What programs on a complete match read."""
    nodes = runs.nodes
    for slot in range(runs.slots.shape[1]):
        bindings[0, RUN_SLOTS + slot] = runs.slots[node, slot]
    last = machine.kleene.size - 1
    if machine.last[last] >= 0:
        bindings[0, machine.last[last]] = nodes[node, EVENT]
    if machine.first[last] >= 0 and not machine.kleene[last]:
        bindings[0, machine.first[last]] = nodes[node, EVENT]


@compiled
def _is_spoilt(
    state: int,  #  whose begin edge is tested; −1: a complete match
    number: Int,  # the event taken
    held: Int,  #   the event taken before it
    key: Int,
    group: Int,  #  the run's aggregates
    time: Timeline,
    machine: Machine,
    events: Events,
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
            floor = time.steps[left]
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
    floor: Int,  #   the step of the left neighbour; −1: the window decides
    ceiling: Int,  # before which step it must end
    final: Int,  #   the last event of the match
    key: Int,
    group: Int,
    time: Timeline,
    machine: Machine,
    events: Events,
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
        if time.steps[other] >= ceiling or time.lefts[other] <= floor:
            continue
        if machine.after[absence] < 0:
            if outside(time.ends[final] - time.ends[other], machine.size, machine.inclusive):
                return False
            if outside(time.ends[final] - time.starts[other], machine.size, machine.inclusive):
                continue
        bindings[0, NEGATED] = other
        if holds(program, events, texts, bindings, 0, groups, group, stack):
            return True
    return False


@compiled
def purge(key: int, number: int, time: Timeline, machine: Machine, runs: Runs) -> None:
    """Take the dead runs of a partition off its lists, as of an event that comes."""
    nodes = runs.nodes
    for state in range(machine.kleene.size):
        previous: Int = np.int32(-1)
        node = runs.top[key, state]
        while node >= 0:
            following = nodes[node, SIBLING]
            killer = nodes[node, KILLED]
            dead = killer != ALIVE and (killer == DROPPED or time.steps[killer] < time.steps[number])
            if machine.early and machine.size >= 0:
                distance = time.ends[number] - time.starts[nodes[node, NEWEST]]
                dead |= outside(distance, machine.size, machine.inclusive)
            if machine.contiguous:
                dead |= time.ordinals[number] > time.ordinals[nodes[node, EVENT]] + 1
            if dead:
                runs.live[key] -= 1
                if previous < 0:
                    runs.top[key, state] = following
                else:
                    nodes[previous, SIBLING] = following
            else:
                previous = node
            node = following

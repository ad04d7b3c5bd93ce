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
from kleene.kernels.jit import borrowed, compiled, inlined
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
TALLY = 9  #     the tally of its latest first event, or −1
FIELDS = 12
ALIVE, DROPPED = -1, -2
# Columns of `Runs.links`: the node that it leads back to, and the next link of the same node.
ORIGIN, FOLLOWING = 0, 1
# Columns of `Runs.tally`: a first event, the tally of the next older one, and how many follow it.
FIRST, OLDER, LENGTH = 0, 1, 2
# Places of `Runs.sizes`.
NODES, LINKS, COMPLETED, INSTANCES, TALLIES, LONGEST, STATUS, SIZES = range(8)
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
    tallies: bool  #     runs are counted by their first events, so that a window can leave some behind
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
    tally: Numbers  #  [tally, 3]
    tallied: Counts  # [tally]: how many runs from this first event came to the node
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
    time, machine, events, texts = borrowed(time), borrowed(machine), borrowed(events), borrowed(texts)
    aggregation, groups, runs, stack = borrowed(aggregation), borrowed(groups), borrowed(runs), borrowed(stack)
    begins, takes, absents, bindings = borrowed(begins), borrowed(takes), borrowed(absents), borrowed(bindings)
    keys, partitions, steps, lefts, starts, ends, ordinals = time
    kleene, minimum, maximum, cap, first, last_slot = (
        machine.kleene, machine.minimum, machine.maximum, machine.cap, machine.first, machine.last,
    )  # fmt: skip
    keep, parts, code, size, inclusive = machine.keep, machine.parts, machine.code, machine.size, machine.inclusive
    early, contiguous, next_match = machine.early, machine.contiguous, machine.next_match
    merges, prunes, tallies, most = machine.merges, machine.prunes, machine.tallies, machine.most
    aggregates, aggregate_slots, keep_groups = machine.aggregates, machine.aggregate_slots, machine.keep_groups
    nodes, slots, total, links, tally = runs.nodes, runs.slots, runs.total, runs.links, runs.tally
    top, live, completed, frontiers = runs.top, runs.live, runs.completed, runs.frontier
    made, buckets, stamps, counts, sizes = runs.made, runs.buckets, runs.stamps, runs.counts, runs.sizes
    last = kleene.size - 1
    width = slots.shape[1]
    absences = machine.after.size
    aggregated = groups.states.shape[1]
    for number in range(begin, end):
        begun, taken, absent = begins[number - base], takes[number - base], absents[number - base]
        if begun | taken | absent == 0:
            continue
        key = keys[number]
        if begun | taken:
            needed = 2 * live[key] + 2
            if (
                sizes[NODES] + needed >= nodes.shape[0]
                or sizes[LINKS] + needed >= links.shape[0]
                or sizes[COMPLETED] + needed >= completed.size
                or 4 * needed > buckets.size
                or (tallies and sizes[TALLIES] + needed * (sizes[LONGEST] + 2) >= tally.shape[0])
            ):
                sizes[STATUS] = NO_ROOM
                return number
            if live[key] > most:
                sizes[STATUS] = TOO_MANY_RUNS
                return number
        if absent:
            _add_instances(number, absent, key, machine, runs)
        step = steps[number]
        frontier: Int = np.int64(-1)
        if prunes and partitions[number] >= 0:
            newest_frontier = frontiers[partitions[number], 0]
            frontier = newest_frontier if newest_frontier < step else frontiers[partitions[number], 1]
        fresh = sizes[NODES]
        for state in range(last, -2, -1):
            can_take = state >= 0 and kleene[state] and (taken >> state) & 1 == 1
            can_begin = state < last and (begun >> (state + 1)) & 1 == 1
            if not can_take and not can_begin:
                continue
            # Before the first state there is one run, which has taken nothing and always stays.
            virtual = state < 0
            node: Int = np.int32(-1)
            previous: Int = np.int32(-1)
            if not virtual:
                node = top[key, state]
            while virtual or node >= 0:
                following: Int = np.int32(-1)
                held: Int = np.int32(-1)
                if not virtual:
                    following = nodes[node, SIBLING]
                    held = nodes[node, EVENT]
                    killer = nodes[node, KILLED]
                    dead = killer != ALIVE and (killer == DROPPED or steps[killer] < step)
                    if not dead and early and size >= 0:
                        distance = ends[number] - starts[nodes[node, NEWEST]]
                        if outside(distance, size, inclusive):
                            dead = True
                            counts[state, EXPIRED] += 1
                    if not dead and contiguous and ordinals[number] > ordinals[held] + 1:
                        dead = True
                        counts[state, BROKEN] += 1
                    if not dead and prunes and steps[nodes[node, NEWEST]] <= frontier:
                        dead = True
                    if dead:
                        if previous < 0:
                            top[key, state] = following
                        else:
                            nodes[previous, SIBLING] = following
                        live[key] -= 1
                        node = following
                        continue
                    if steps[held] >= lefts[number]:
                        previous, node = node, following
                        continue
                    for slot in range(width):
                        bindings[0, RUN_SLOTS + slot] = slots[node, slot]
                    bindings[0, PREVIOUS] = held
                    if last_slot[state] >= 0:
                        bindings[0, last_slot[state]] = held
                else:
                    for slot in range(width):
                        bindings[0, RUN_SLOTS + slot] = -1
                bindings[0, CURRENT] = number
                stays = not contiguous
                for phase in range(3):
                    # Take the event, then leave the state, then begin the next one with the event.
                    edge: Int = np.int64(-1)
                    if phase == 0:
                        full = can_take and maximum[state] >= 0 and nodes[node, NUMBER] >= maximum[state]
                        if not can_take or full:
                            continue
                        edge = EDGES * state + TAKE
                    elif phase == 1:
                        if not can_begin:
                            break
                        if virtual or not kleene[state]:
                            continue
                        if nodes[node, NUMBER] < minimum[state]:
                            break
                        edge = EDGES * state + PROCEED
                    else:
                        edge = EDGES * (state + 1) + BEGIN
                        if first[state + 1] >= 0:
                            bindings[0, first[state + 1]] = number
                    good = True
                    if parts[edge, 1] > parts[edge, 0]:
                        part = parts[edge]
                        program = Code(
                            code.words[part[0] : part[1]],
                            code.ints[part[2] : part[3]],
                            code.reals[part[4] : part[5]],
                        )
                        good = holds(program, events, texts, bindings, 0, groups, max(node, 0), stack)
                    if phase == 1:
                        if not good:
                            break
                        continue
                    target = state if phase == 0 else state + 1
                    if phase == 2 and good and target == last and not kleene[last] and size >= 0:
                        earliest = starts[number] if virtual else starts[nodes[node, NEWEST]]
                        good = not outside(ends[number] - earliest, size, inclusive)
                    if not good:
                        counts[target, FAILED] += 1
                        continue
                    if next_match and not virtual and (phase == 0 or not kleene[state]):
                        stays = False
                    spoilt = False
                    if phase == 2 and absences and not virtual:
                        spoilt = _is_spoilt(
                            target, number, held, key, max(node, 0), time, machine, events, texts, groups, runs,
                            bindings, stack,
                        )  # fmt: skip
                    if spoilt:
                        counts[target, STOPPED] += 1
                        continue
                    # The run with one more event: a new node, or one that has the same future.
                    new: Int = np.int32(sizes[NODES])
                    for slot in range(width):
                        kept = keep[target, slot]
                        slots[new, slot] = bindings[0, RUN_SLOTS + slot] if kept else -1
                    if aggregated:
                        if virtual:
                            clear(aggregation, aggregate_slots, groups, new)
                        else:
                            copy(groups, node, new)
                        own = aggregate_slots[aggregates[target] : aggregates[target + 1]]
                        accumulate(aggregation, own, number, events, texts, groups, new)
                        _forget(target, keep_groups, groups, new)
                    nodes[new, NUMBER] = 1 if phase == 2 else min(nodes[node, NUMBER] + 1, cap[target])
                    nodes[new, STATE] = target
                    nodes[new, EVENT] = number
                    found: Int = np.int32(-1)
                    if merges:
                        found = _same_future(
                            new, fresh, number, machine.plain, groups, nodes, slots, made, buckets, stamps
                        )
                    if found < 0:
                        found = new
                        sizes[NODES] += 1
                        nodes[new, LINK] = -1
                        nodes[new, KILLED] = ALIVE
                        nodes[new, STARTS] = 1 if virtual else 0
                        total[new] = 1 if virtual else total[node]
                        nodes[new, NEWEST] = number if virtual else nodes[node, NEWEST]
                        nodes[new, OLDEST] = number if virtual else nodes[node, OLDEST]
                        nodes[new, TALLY] = -1
                        if tallies:
                            nodes[new, TALLY] = (
                                _tally(number, np.int32(-1), runs.tallied, tally, sizes)
                                if virtual
                                else nodes[node, TALLY]
                            )
                    elif virtual:
                        nodes[found, STARTS] = 1
                        total[found] = _sum(total[found], np.uint64(1))
                        nodes[found, NEWEST] = number
                        if tallies:
                            nodes[found, TALLY] = _tally(number, nodes[found, TALLY], runs.tallied, tally, sizes)
                    else:
                        total[found] = _sum(total[found], total[node])
                        if starts[nodes[node, NEWEST]] > starts[nodes[found, NEWEST]]:
                            nodes[found, NEWEST] = nodes[node, NEWEST]
                        if starts[nodes[node, OLDEST]] < starts[nodes[found, OLDEST]]:
                            nodes[found, OLDEST] = nodes[node, OLDEST]
                        if tallies:
                            nodes[found, TALLY] = _added(
                                nodes[found, TALLY], nodes[node, TALLY], ends[number], starts, size, inclusive,
                                runs.tallied, tally, sizes,
                            )  # fmt: skip
                    if not virtual:
                        link = np.int32(sizes[LINKS])
                        sizes[LINKS] += 1
                        links[link, ORIGIN] = node
                        links[link, FOLLOWING] = nodes[found, LINK]
                        nodes[found, LINK] = link
                if virtual:
                    break
                if not stays:
                    nodes[node, KILLED] = number
                previous, node = node, following
        for node_made in range(fresh, sizes[NODES]):
            state = int(nodes[node_made, STATE])
            counts[state, REACHED] += 1
            if state == last and _completes(
                np.int32(node_made), number, key, frontier, time, machine, events, texts, groups, runs, bindings, stack
            ):
                completed[sizes[COMPLETED]] = node_made
                sizes[COMPLETED] += 1
                if prunes:
                    partition = partitions[number]
                    if frontiers[partition, 0] < step:
                        frontiers[partition, 1] = frontiers[partition, 0]
                        frontiers[partition, 0] = step
            if state < last or kleene[last]:
                nodes[node_made, SIBLING] = top[key, state]
                top[key, state] = node_made
                live[key] += 1
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
def _forget(state: int, keep_groups: Flags, groups: Groups, node: Int) -> None:
    """Aggregates that nothing will read are all alike."""
    for slot in range(groups.states.shape[1]):
        if not keep_groups[state, slot]:
            groups.ints[node, slot] = 0
            groups.reals[node, slot] = 0.0
            groups.states[node, slot] = 0


@inlined
def _same_future(
    new: Int,
    fresh: Int,
    number: Int,
    plain: Flags,
    groups: Groups,
    nodes: Numbers,
    slots: Numbers,
    made: Numbers,
    buckets: Numbers,
    stamps: Numbers,
) -> Int:
    """A node of the same event with the same future as a new one; −1 when there is none, and the new one is noted."""
    state = np.int64(nodes[new, STATE])
    if plain[state]:
        if made[state] >= fresh:
            return made[state]
        made[state] = new
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


@inlined
def _tally(first: Int, older: Int, tallied: Counts, tally: Numbers, sizes: Ints) -> Int:
    """One run that begins with this event, before others."""
    made = np.int32(sizes[TALLIES])
    sizes[TALLIES] += 1
    tally[made, FIRST] = first
    tally[made, OLDER] = older
    tally[made, LENGTH] = 0 if older < 0 else tally[older, LENGTH] + 1
    tallied[made] = np.uint64(1)
    sizes[LONGEST] = max(sizes[LONGEST], tally[made, LENGTH] + 1)
    return made


@compiled
def _added(
    left: Int,
    right: Int,
    end: Int,
    starts: Ints,
    size: int,
    inclusive: bool,
    tallied: Counts,
    tally: Numbers,
    sizes: Ints,
) -> Int:
    """The tallies of two nodes together, latest first event first, without those that the window has left behind."""
    head: Int = np.int32(-1)
    tail: Int = np.int32(-1)
    length = 0
    while left >= 0 or right >= 0:
        one = tally[left, FIRST] if left >= 0 else np.int32(-1)
        other = tally[right, FIRST] if right >= 0 else np.int32(-1)
        first = max(one, other)
        count: Int = np.uint64(0)
        if one == first:
            count = tallied[left]
            left = tally[left, OLDER]
        if other == first:
            count = _sum(count, tallied[right])
            right = tally[right, OLDER]
        if outside(end - starts[first], size, inclusive):
            continue
        made = np.int32(sizes[TALLIES])
        sizes[TALLIES] += 1
        tally[made, FIRST] = first
        tally[made, OLDER] = -1
        tallied[made] = count
        length += 1
        if tail < 0:
            head = made
        else:
            tally[tail, OLDER] = made
        tail = made
    at = head
    while at >= 0:
        length -= 1
        tally[at, LENGTH] = length
        at = tally[at, OLDER]
    if head >= 0:
        sizes[LONGEST] = max(sizes[LONGEST], tally[head, LENGTH] + 1)
    return head


@compiled
def count_since(completed: Ints, lowest: Ints, starts: Ints, runs: Runs, out: Counts) -> None:
    """How many of the runs at each node begin late enough; the greatest number stands for more."""
    for place in range(completed.size):
        at: Int = runs.nodes[completed[place], TALLY]
        count = np.uint64(0)
        while at >= 0:
            if starts[runs.tally[at, FIRST]] >= lowest[place]:
                count = _sum(count, runs.tallied[at])
            at = runs.tally[at, OLDER]
        out[place] = count


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
    last = machine.kleene.size - 1
    if runs.nodes[node, NUMBER] < machine.minimum[last]:
        return False
    if machine.size >= 0:
        distance: Int = time.ends[number] - time.starts[runs.nodes[node, NEWEST]]
        if outside(distance, machine.size, machine.inclusive):
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
    if _is_spoilt(-1, number, number, key, node, time, machine, events, texts, groups, runs, bindings, stack):
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

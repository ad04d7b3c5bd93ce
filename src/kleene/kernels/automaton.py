"""NFA^b over shared runs (SASE+ §3–5): events in order are offered to the runs of their partition (`runs`)."""

from __future__ import annotations

import numpy as np

from kleene.kernels.aggregates import Aggregation, accumulate, clear, copy
from kleene.kernels.completion import add_instances, completes, is_spoilt
from kleene.kernels.expression import Code, EventColumns, Groups, Ints, Stack, Texts, holds
from kleene.kernels.jit import borrowed, compiled
from kleene.kernels.merging import forget, same_future
from kleene.kernels.runs import (
    ALIVE,
    BEGIN,
    BROKEN,
    COMPLETED,
    CURRENT,
    DONE,
    DROPPED,
    EDGES,
    EVENT,
    EXPIRED,
    FAILED,
    FOLLOWING,
    KILLED,
    LINK,
    LINKS,
    LONGEST,
    NEWEST,
    NO_ROOM,
    NODES,
    NUMBER,
    OLDEST,
    ORIGIN,
    PREVIOUS,
    PROCEED,
    REACHED,
    RUN_SLOTS,
    SIBLING,
    STARTS,
    STATE,
    STATUS,
    STOPPED,
    TAKE,
    TALLIES,
    TALLY,
    TOO_MANY_RUNS,
    Int,
    Machine,
    Runs,
)
from kleene.kernels.tallies import add, tally_one, together
from kleene.kernels.timeline import Timeline, outside


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
    events: EventColumns,
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
    keys, partitions, steps, lefts, rights = time.keys, time.partitions, time.steps, time.lefts, time.rights
    starts, ends, barriers, closes = time.starts, time.ends, time.barriers, time.closes
    kleene, minimum, maximum, cap, first, last_slot = (
        machine.kleene, machine.minimum, machine.maximum, machine.cap, machine.first, machine.last,
    )  # fmt: skip
    keep, parts, code, size, inclusive = machine.keep, machine.parts, machine.code, machine.size, machine.inclusive
    contiguous, next_match = machine.contiguous, machine.next_match
    early = machine.early and size >= 0
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
                or (tallies and sizes[TALLIES] + needed * 2 * (sizes[LONGEST] + 1) >= tally.shape[0])
            ):
                sizes[STATUS] = NO_ROOM
                return number
            if live[key] > most:
                sizes[STATUS] = TOO_MANY_RUNS
                return number
        if absent:
            add_instances(number, absent, key, machine, runs)
        step = steps[number]
        frontier: Int = np.int64(-1)
        if prunes and partitions[number] >= 0:
            newest_frontier = frontiers[partitions[number], 0]
            frontier = newest_frontier if newest_frontier < step else frontiers[partitions[number], 1]
        fresh = sizes[NODES]
        fresh_tallies = np.int32(sizes[TALLIES])
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
                    measured = not dead and early and closes
                    if measured and outside(ends[number], starts[nodes[node, NEWEST]], size, inclusive):
                        dead = True
                        counts[state, EXPIRED] += 1
                    if not dead and contiguous and barriers[number] > rights[held]:
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
                    if rights[held] >= lefts[number]:
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
                        good = not outside(ends[number], earliest, size, inclusive)
                    if not good:
                        counts[target, FAILED] += 1
                        continue
                    if next_match and not virtual and (phase == 0 or not kleene[state]):
                        stays = False
                    # What follows this event is no nearer to the run's start; another event may be.
                    if (
                        early
                        and not closes
                        and not virtual
                        and outside(ends[number], starts[nodes[node, NEWEST]], size, inclusive)
                    ):
                        continue
                    spoilt = False
                    if phase == 2 and absences and not virtual:
                        spoilt = is_spoilt(
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
                        forget(target, keep_groups, groups, new)
                    nodes[new, NUMBER] = 1 if phase == 2 else min(nodes[node, NUMBER] + 1, cap[target])
                    nodes[new, STATE] = target
                    nodes[new, EVENT] = number
                    found: Int = np.int32(-1)
                    if merges:
                        found = same_future(
                            new, fresh, number, machine.plain, groups, nodes, slots, made, buckets, stamps
                        )
                    if found < 0:
                        found = new
                        sizes[NODES] += 1
                        nodes[new, LINK] = -1
                        nodes[new, SIBLING] = -1  # one that only completes is on no list, and lists are followed
                        nodes[new, KILLED] = ALIVE
                        nodes[new, STARTS] = 1 if virtual else 0
                        total[new] = 1 if virtual else total[node]
                        nodes[new, NEWEST] = number if virtual else nodes[node, NEWEST]
                        nodes[new, OLDEST] = number if virtual else nodes[node, OLDEST]
                        nodes[new, TALLY] = -1
                        if tallies:
                            nodes[new, TALLY] = (
                                tally_one(number, np.int32(-1), runs.tallied, tally, sizes)
                                if virtual
                                else nodes[node, TALLY]
                            )
                    elif virtual:
                        nodes[found, STARTS] = 1
                        total[found] = add(total[found], np.uint64(1))
                        nodes[found, NEWEST] = number
                        if tallies:
                            nodes[found, TALLY] = tally_one(number, nodes[found, TALLY], runs.tallied, tally, sizes)
                    else:
                        total[found] = add(total[found], total[node])
                        if starts[nodes[node, NEWEST]] > starts[nodes[found, NEWEST]]:
                            nodes[found, NEWEST] = nodes[node, NEWEST]
                        if starts[nodes[node, OLDEST]] < starts[nodes[found, OLDEST]]:
                            nodes[found, OLDEST] = nodes[node, OLDEST]
                        if tallies:
                            nodes[found, TALLY] = together(
                                nodes[found, TALLY], nodes[node, TALLY], ends[number], starts, size, inclusive,
                                fresh_tallies, runs.tallied, tally, sizes,
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
            if state == last and completes(
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


@compiled
def purge(key: int, number: int, time: Timeline, machine: Machine, runs: Runs) -> None:
    """Take the dead runs of a partition off its lists, as of an event that comes."""
    nodes = runs.nodes
    frontier: Int = np.int64(-1)
    if machine.prunes and time.partitions[number] >= 0:
        newest_frontier = runs.frontier[time.partitions[number], 0]
        is_before = newest_frontier < time.steps[number]
        frontier = newest_frontier if is_before else runs.frontier[time.partitions[number], 1]
    for state in range(machine.kleene.size):
        previous: Int = np.int32(-1)
        node = runs.top[key, state]
        while node >= 0:
            following = nodes[node, SIBLING]
            killer = nodes[node, KILLED]
            dead = killer != ALIVE and (killer == DROPPED or time.steps[killer] < time.steps[number])
            # Such a run is of no use, and how many of them are left depends on when the store was made anew.
            if machine.size >= 0 and time.closes:
                first = time.starts[nodes[node, NEWEST]]
                dead |= outside(time.ends[number], first, machine.size, machine.inclusive)
            if machine.contiguous:
                dead |= time.barriers[number] > time.rights[nodes[node, EVENT]]
            if machine.prunes:
                dead |= time.steps[nodes[node, NEWEST]] <= frontier
            if dead:
                runs.live[key] -= 1
                if previous < 0:
                    runs.top[key, state] = following
                else:
                    nodes[previous, SIBLING] = following
            else:
                previous = node
            node = following

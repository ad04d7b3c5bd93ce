"""NFA^b over shared runs (SASE+ §3–5): events in order are offered to the runs of their partition (`runs`).

At each state, from the last to the first, an event is offered to the runs that live; those that select it are put on
the lists of their states afterwards, so that no run meets it twice. A run tries its edges with it (§3.1):

    take      the event is one more of the state's Kleene component, and the run has it;
    proceed   the component may be left, and the conditions on it as a whole hold;
    begin     the event is the first of the next component, and the run has it there;
    ignore    the run stays as it is, and later events meet it again. Contiguity forbids that, and so does
              skip_till_next_match where the run could take the event, or begin with it.

Where an edge has an equality with the event, only the runs that have its value are offered it (`lookups`).
A run that takes or begins is a new node (`extension`); the one that it comes from stays only where it may
ignore the event. Before the first state there is one run, which has taken nothing, and ignores everything.
"""

from __future__ import annotations

import numpy as np

from kleene.kernels.completion import add_instances, completes, is_invalidated
from kleene.kernels.deaths import ENDED, LIVES, arrival, death, unlink
from kleene.kernels.expression import ProgramScope, holds, is_empty, part
from kleene.kernels.extension import extend
from kleene.kernels.jit import borrowed, compiled, step
from kleene.kernels.lookups import file_run, find, finds, lacks_room, refile, tend
from kleene.kernels.runs import (
    BEGIN,
    COMPLETED,
    CURRENT,
    DONE,
    EDGES,
    EVENT,
    FAILED,
    FILED,
    FOUND,
    KILLED,
    LINKS,
    LONGEST,
    NEWEST,
    NO_ROOM,
    NODES,
    NUMBER,
    PREVIOUS,
    PROCEED,
    REACHED,
    ROOT,
    RUN_SLOTS,
    SIBLING,
    STATE,
    STATUS,
    STOPPED,
    TAKE,
    TALLIES,
    TOO_MANY_RUNS,
    Arrival,
    Int,
    Machine,
    Offer,
    Runs,
)
from kleene.kernels.timeline import EventBits, Timeline, outside


@compiled
def advance(
    begin: int, end: int, bits: EventBits, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs
) -> int:
    """Offer events to runs; the number of the first event that was not offered.

    There is one binding for all programs, and a group for each node.
    """
    bits, time, machine = borrowed(bits), borrowed(time), borrowed(machine)
    scope, runs = borrowed(scope), borrowed(runs)
    last = machine.kleene.size - 1
    if runs.sizes[FILED] < 0:
        refile(machine, runs)
    for number in range(begin, end):
        begins, takes = bits.begins[number - bits.base], bits.takes[number - bits.base]
        absents = bits.absents[number - bits.base]
        if begins | takes | absents == 0:
            continue
        key = time.keys[number]
        if begins | takes:
            status = _shortage(key, machine, runs)
            if status != DONE:
                runs.sizes[STATUS] = status
                return number
        if absents:
            add_instances(number, absents, key, machine, runs)
        event = arrival(number, key, time, machine, runs)
        if machine.lookups.any and begins | takes and runs.live[key] > runs.limit[key]:
            tend(event, time, machine, scope, runs)
        for state in range(last, -2, -1):
            can_take = state >= 0 and machine.kleene[state] and (takes >> state) & 1 == 1
            can_begin = state < last and (begins >> (state + 1)) & 1 == 1
            if can_take or can_begin:
                _offer(Offer(event, state, can_take, can_begin), time, machine, scope, runs)
        _settle(event, time, machine, scope, runs)
    runs.sizes[STATUS] = DONE
    return end


@step
def _shortage(key: Int, machine: Machine, runs: Runs) -> int:
    """Why no event can be offered to the runs of a partition; DONE when it can."""
    sizes, live = runs.sizes, runs.live[key]
    needed = 2 * live + 2
    if (
        sizes[NODES] + needed >= runs.nodes.shape[0]
        or sizes[LINKS] + needed >= runs.links.shape[0]
        or sizes[COMPLETED] + needed >= runs.completed.size
        or 4 * needed > runs.buckets.size
        or (machine.tallies and sizes[TALLIES] + needed * 2 * (sizes[LONGEST] + 1) >= runs.tally.shape[0])
        or (machine.lookups.any and lacks_room(needed, runs))
    ):
        return NO_ROOM
    return TOO_MANY_RUNS if live > machine.most else DONE


@step
def _offer(offer: Offer, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs) -> None:
    """Offer an event to the runs at a state, or to those of its value, and take those off the list that are dead."""
    event, state, nodes = offer.event, offer.state, runs.nodes
    measured = machine.early and machine.within.size >= 0
    by_value, place = machine.lookups.any and finds(offer, machine, runs), 0
    previous: Int = np.int32(-1)
    node: Int = np.int32(ROOT)
    if by_value:
        find(offer, time, machine, scope, runs)
        node = runs.found[FOUND, 0]
    elif state >= 0:
        node = runs.top[event.key, state]
    while node >= 0:
        following = nodes[node, SIBLING]
        reason = LIVES
        if by_value:
            place += 1
            following = runs.found[FOUND, place]
        elif node != ROOT:
            reason = death(node, event, measured, time, machine, runs)
        if reason == LIVES:
            if node == ROOT or time.rights[nodes[node, EVENT]] < time.lefts[event.number]:
                _bind(node, offer, machine, scope, runs)
                stays = _follow_edges(node, offer, time, machine, scope, runs)
                if node != ROOT and not stays:
                    nodes[node, KILLED] = event.number
            previous = node
        else:
            if reason != ENDED:
                runs.counts[state, reason] += 1
            unlink(previous, following, event.key, state, runs)
        node = following


@step
def _bind(node: Int, offer: Offer, machine: Machine, scope: ProgramScope, runs: Runs) -> None:
    """Bind what the programs of a run's edges read."""
    bindings = scope.bindings
    for slot in range(runs.slots.shape[1]):
        bindings[0, RUN_SLOTS + slot] = runs.slots[node, slot]
    if node != ROOT:
        bindings[0, PREVIOUS] = runs.nodes[node, EVENT]
        if machine.last[offer.state] >= 0:
            bindings[0, machine.last[offer.state]] = runs.nodes[node, EVENT]
    bindings[0, CURRENT] = offer.event.number


@step
def _follow_edges(node: Int, offer: Offer, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs) -> bool:
    """Follow the edges of a run on which an event can go; whether the run may ignore the event as well."""
    event, state = offer.event, offer.state
    stays = not machine.contiguous
    proceeds = offer.can_begin
    for edge in range(EDGES):
        if edge == TAKE:
            tried = offer.can_take
            if tried and machine.maximum[state] >= 0:
                tried = runs.nodes[node, NUMBER] < machine.maximum[state]
        elif edge == PROCEED:
            # A single component is left without a test.
            tried = proceeds and node != ROOT and bool(machine.kleene[state])
            if tried and runs.nodes[node, NUMBER] < machine.minimum[state]:
                tried = proceeds = False
        else:
            tried = proceeds
        if not tried:
            continue
        target = state + 1 if edge == BEGIN else state
        if edge == BEGIN and machine.first[target] >= 0:
            scope.bindings[0, machine.first[target]] = event.number
        program = EDGES * target + edge
        good = True
        if not is_empty(machine.programs, program):
            good = holds(part(machine.programs, program), scope, 0, node)
        if edge == PROCEED:
            proceeds = good
            continue
        if good and edge == BEGIN:
            good = _ends_in_time(node, target, event, time, machine, runs)
        if not good:
            runs.counts[target, FAILED] += 1
            continue
        # A run that leaves a Kleene component for the next one may continue the component instead.
        if machine.next_match and (edge == TAKE or (node != ROOT and not machine.kleene[state])):
            stays = False
        if _has_expired(node, event, time, machine, runs):
            continue
        if edge == BEGIN and node != ROOT and machine.after.size:
            last_event = runs.nodes[node, EVENT]
            if is_invalidated(target, event, last_event, node, time, machine, scope, runs):
                runs.counts[target, STOPPED] += 1
                continue
        extend(node, target, edge, event, time, machine, scope, runs)
    return stays


@step
def _ends_in_time(node: Int, target: Int, event: Arrival, time: Timeline, machine: Machine, runs: Runs) -> bool:
    """Whether a run that begins the last state does so within its window. A Kleene state is measured on completion."""
    last = machine.kleene.size - 1
    if target < last or machine.kleene[last] or machine.within.size < 0:
        return True
    first = event.number if node == ROOT else runs.nodes[node, NEWEST]
    return not outside(time.ends[event.number], time.starts[first], machine.within)


@step
def _has_expired(node: Int, event: Arrival, time: Timeline, machine: Machine, runs: Runs) -> bool:
    """Whether an event is too far from a run's start. Later events of the run are no nearer; another event may be."""
    if node == ROOT or not machine.early or machine.within.size < 0 or time.closes:
        return False
    return outside(time.ends[event.number], time.starts[runs.nodes[node, NEWEST]], machine.within)


@step
def _settle(event: Arrival, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs) -> None:
    """Put the runs that selected an event on the lists of their states, and note which of them are matches."""
    nodes, last = runs.nodes, machine.kleene.size - 1
    for node in range(event.first_node, runs.sizes[NODES]):
        state = int(nodes[node, STATE])
        runs.counts[state, REACHED] += 1
        if state == last and completes(np.int32(node), event, time, machine, scope, runs):
            runs.completed[runs.sizes[COMPLETED]] = node
            runs.sizes[COMPLETED] += 1
            if machine.prunes:
                frontier = runs.frontier[time.partitions[event.number]]
                if frontier[0] < event.step:
                    frontier[1] = frontier[0]
                    frontier[0] = event.step
        if state < last or machine.kleene[last]:
            nodes[node, SIBLING] = runs.top[event.key, state]
            runs.top[event.key, state] = node
            runs.live[event.key] += 1
            if machine.lookups.any and runs.limit[event.key] > machine.lookups.few:
                file_run(np.int32(node), event.key, machine, scope, runs)

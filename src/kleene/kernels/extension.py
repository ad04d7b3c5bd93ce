"""A run that selects one more event: a node with its computation state (SASE+ §5.2), or a share in one (§5.2.2)."""

from __future__ import annotations

import numpy as np

from kleene.kernels.aggregates import accumulate, clear, copy
from kleene.kernels.expression import ProgramScope
from kleene.kernels.jit import step
from kleene.kernels.merging import forget, same_future
from kleene.kernels.runs import (
    ALIVE,
    BEGIN,
    EVENT,
    FOLLOWING,
    KILLED,
    LINK,
    LINKS,
    NEWEST,
    NODES,
    NUMBER,
    OLDEST,
    ORIGIN,
    ROOT,
    RUN_SLOTS,
    SIBLING,
    STARTS,
    STATE,
    TALLY,
    Arrival,
    Int,
    Machine,
    Runs,
)
from kleene.kernels.tallies import Tallies, add, tally_one, together
from kleene.kernels.timeline import Timeline


@step
def extend(
    node: Int, target: Int, edge: int, event: Arrival, time: Timeline, machine: Machine, scope: ProgramScope, runs: Runs
) -> None:
    """Select an event into a run that takes it, or begins a state with it."""
    new: Int = np.int32(runs.sizes[NODES])
    _compute_state(new, node, target, event.number, machine, scope, runs)
    number = runs.nodes[node, NUMBER] + 1
    runs.nodes[new, NUMBER] = 1 if edge == BEGIN else min(number, machine.cap[target])
    runs.nodes[new, STATE] = target
    runs.nodes[new, EVENT] = event.number
    shared: Int = np.int32(-1)
    if machine.merges:
        shared = same_future(new, event, machine.plain, scope.groups, runs)
    if shared < 0:
        shared = new
        runs.sizes[NODES] += 1
        _fill_node(new, node, event, machine, runs)
    else:
        _share_node(shared, node, event, time, machine, runs)
    if node != ROOT:
        link = np.int32(runs.sizes[LINKS])
        runs.sizes[LINKS] += 1
        runs.links[link, ORIGIN] = node
        runs.links[link, FOLLOWING] = runs.nodes[shared, LINK]
        runs.nodes[shared, LINK] = link


@step
def _compute_state(
    new: Int, node: Int, target: Int, number: Int, machine: Machine, scope: ProgramScope, runs: Runs
) -> None:
    """Compute the paper's V: the bindings and aggregates of the run that later edges read."""
    for slot in range(runs.slots.shape[1]):
        runs.slots[new, slot] = scope.bindings[0, RUN_SLOTS + slot] if machine.keep[target, slot] else -1
    groups = scope.groups
    if groups.states.shape[1]:
        if node == ROOT:
            clear(machine.aggregation, machine.aggregate_slots, groups, new)
        else:
            copy(groups, node, new)
        own = machine.aggregate_slots[machine.aggregates[target] : machine.aggregates[target + 1]]
        accumulate(machine.aggregation, own, number, scope.events, scope.texts, groups, new)
        forget(target, machine.keep_groups, groups, new)


@step
def _fill_node(new: Int, node: Int, event: Arrival, machine: Machine, runs: Runs) -> None:
    """Fill a new node for the runs that come to it from another."""
    nodes = runs.nodes
    begins = node == ROOT
    nodes[new, LINK] = -1
    nodes[new, SIBLING] = -1  # one that only completes is on no list, and lists are followed
    nodes[new, KILLED] = ALIVE
    nodes[new, STARTS] = 1 if begins else 0
    runs.total[new] = 1 if begins else runs.total[node]
    nodes[new, NEWEST] = event.number if begins else nodes[node, NEWEST]
    nodes[new, OLDEST] = event.number if begins else nodes[node, OLDEST]
    nodes[new, TALLY] = -1
    if machine.tallies:
        tallies = Tallies(runs.tally, runs.tallied, runs.sizes)
        nodes[new, TALLY] = tally_one(event.number, np.int32(-1), tallies) if begins else nodes[node, TALLY]


@step
def _share_node(shared: Int, node: Int, event: Arrival, time: Timeline, machine: Machine, runs: Runs) -> None:
    """Add the runs of a node to one with the same future."""
    nodes, total, starts = runs.nodes, runs.total, time.starts
    tallies = Tallies(runs.tally, runs.tallied, runs.sizes)
    if node == ROOT:
        nodes[shared, STARTS] = 1
        total[shared] = add(total[shared], np.uint64(1))
        nodes[shared, NEWEST] = event.number
        if machine.tallies:
            nodes[shared, TALLY] = tally_one(event.number, nodes[shared, TALLY], tallies)
    else:
        total[shared] = add(total[shared], total[node])
        if starts[nodes[node, NEWEST]] > starts[nodes[shared, NEWEST]]:
            nodes[shared, NEWEST] = nodes[node, NEWEST]
        if starts[nodes[node, OLDEST]] < starts[nodes[shared, OLDEST]]:
            nodes[shared, OLDEST] = nodes[node, OLDEST]
        if machine.tallies:
            own, end = event.first_tally, time.ends[event.number]
            nodes[shared, TALLY] = together(
                nodes[shared, TALLY], nodes[node, TALLY], own, end, starts, machine.within, tallies
            )

"""Graphs that rows of OUTPUT COMPRESSED share (SASE+ §4.2, §5.1): every node is written once for all of them.

Rows whose matches have nodes in common form a block, and its first row, the host, holds the nodes of all. A node lies
in a block with everything that can come before it in a match of one of the rows, so a walk back never leaves its block.
A later row's window may have left some beginnings behind that an earlier one still had: these are told by number.

A run's nodes are numbered as their events come, and each comes after those that it goes back to. So what rows reach is
found in one pass over the nodes from the last one back, and the blocks are written in one pass from the first one on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kleene.kernels.arithmetic import LEAST
from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.identity import Hashes, mix
from kleene.kernels.jit import borrowed, compiled, inlined
from kleene.kernels.paths import NodePool
from kleene.kernels.runs import EVENT, FOLLOWING, LINK, NEWEST, ORIGIN, STARTS, STATE, Int, Numbers

# The canonically first match to a node begins with it, or there are several candidates for it.
BEGINS, TIED = -1, -2
# Places of `Reached.counts`: the first node that is reached and the one after the last, nodes, links and beginnings in
# all blocks, and nodes and links in the largest one.
LOW, HIGH, NODES, LINKS, BEGINNINGS, LARGEST, COUNTS = range(7)


class CompletedRows(NamedTuple):
    """Rows in canonical order, so that no window begins before that of an earlier row."""

    offsets: Ints  # [row + 1]: where the completed nodes of each row begin in `nodes`
    nodes: Ints
    lowest: Ints  #  [row]: where, as windows are measured, the first event of a match must start, or later


class EventTimes(NamedTuple):
    """When events start, [event]."""

    measured: Ints  # as windows are measured
    moments: Ints  #  as results are ordered


class Reached(NamedTuple):
    """What some rows reach."""

    rows: Numbers  #   [node]: the first row that reaches it, or −1
    links: Numbers  #  [node]: how many links it has, for that row
    hosts: Ints  #     [row]
    sizes: Ints  #     [row, 3]: nodes, links and beginnings that it holds for its block
    counts: Ints


class Blocks(NamedTuple):
    """The graphs of blocks. Their nodes are members: by host, then in the order of their events, numbered through."""

    offsets: Ints  #       [row + 1]: where the members of each row begin; only hosts have any
    events: Ints  #        [member]
    variables: Bytes  #    [member]
    before: Ints  #        [member]: the one before it in the canonically first match to it, BEGINS or TIED
    link_offsets: Ints  #  [member + 1]
    links: Ints  #         members, −1: a match can also begin here
    begin_offsets: Ints  # [row + 1]
    begins: Ints  #        members at which matches begin
    ends: Ints  #          [end]: members, as `CompletedRows.nodes`
    first_ends: Ints  #    [row]: the end of its canonically first match, or TIED


@compiled
def reach(rows: CompletedRows, first: int, last: int, times: EventTimes, pool: NodePool, out: Reached) -> None:
    """What the rows from `first` to `last` reach: the nodes, the first row of each, and the host of each row."""
    rows, times, pool, out = borrowed(rows), borrowed(times), borrowed(pool), borrowed(out)
    row_of, hosts = out.rows, out.hosts
    low, high = np.int64(pool.nodes.shape[0]), np.int64(0)
    for row in range(first, last):
        hosts[row] = row
        for end in range(rows.offsets[row], rows.offsets[row + 1]):
            node = rows.nodes[end]
            low, high = np.int64(min(low, node)), np.int64(max(high, node + 1))
            if row_of[node] < 0:
                row_of[node] = row
            else:
                _join(hosts, row_of[node], row)
    nodes = links = beginnings = 0
    node = high
    while node > low:
        node -= 1
        row = int(row_of[node])
        if row < 0:
            continue
        lowest, number = rows.lowest[row], 0
        link = pool.nodes[node, LINK]
        while link >= 0:
            origin = pool.links[link, ORIGIN]
            link = pool.links[link, FOLLOWING]
            # Its window is the widest of those that reach the node.
            if times.measured[pool.nodes[origin, NEWEST]] < lowest:
                continue
            number += 1
            other = np.int64(row_of[origin])
            if other != row:
                if other >= 0:
                    _join(hosts, other, row)
                if other < 0 or row < other:
                    row_of[origin] = row
                low = np.int64(min(low, origin))
        begins = pool.nodes[node, STARTS] == 1
        out.links[node] = number + (1 if begins and number else 0)
        nodes += 1
        links += out.links[node]
        beginnings += begins
    for row in range(first, last):
        hosts[row] = _host(hosts, row)
        out.sizes[row] = 0
    largest = 0
    for node in range(low, high):
        if row_of[node] >= 0:
            held = out.sizes[hosts[row_of[node]]]
            held[0] += 1
            held[1] += out.links[node]
            held[2] += pool.nodes[node, STARTS] == 1
            largest = max(largest, held[0] + held[1])
    counts = out.counts
    counts[LOW], counts[HIGH], counts[LARGEST] = low, high, largest
    counts[NODES], counts[LINKS], counts[BEGINNINGS] = nodes, links, beginnings


@inlined
def _join(hosts: Ints, one: Int, other: Int) -> None:
    """Put two rows into one block; its first row is the host."""
    one, other = _host(hosts, one), _host(hosts, other)
    hosts[max(one, other)] = min(one, other)


@inlined
def _host(hosts: Ints, row: Int) -> Int:
    """The first row of a row's block; the way there becomes shorter."""
    while hosts[row] != row:
        hosts[row] = hosts[hosts[row]]
        row = hosts[row]
    return row


@compiled
def forget(reached: Reached) -> None:
    """Before other rows are looked at."""
    for node in range(reached.counts[LOW], reached.counts[HIGH]):
        reached.rows[node] = -1


@compiled
def write_blocks(
    rows: CompletedRows,
    first: int,
    last: int,
    times: EventTimes,
    pool: NodePool,
    reached: Reached,
    place: Numbers,  # [node]: room
    out: Blocks,  #    of these rows, with members, links and ends numbered from 0
) -> None:
    """The graphs of the blocks of these rows."""
    rows, times, pool, reached = borrowed(rows), borrowed(times), borrowed(pool), borrowed(reached)
    place, out = borrowed(place), borrowed(out)
    # [row]: where its next member, link and beginning are written.
    following = np.empty((last - first, 3), np.int64)
    out.offsets[0] = out.link_offsets[0] = out.begin_offsets[0] = linked = 0
    for row in range(last - first):
        held = reached.sizes[first + row]
        following[row] = out.offsets[row], linked, out.begin_offsets[row]
        out.offsets[row + 1] = out.offsets[row] + held[0]
        linked += held[1]
        out.begin_offsets[row + 1] = out.begin_offsets[row] + held[2]
    for node in range(reached.counts[LOW], reached.counts[HIGH]):
        row = reached.rows[node]
        if row < 0:
            continue
        at, lowest = following[reached.hosts[row] - first], rows.lowest[row]
        member, linked = at[0], at[1]
        place[node] = member
        out.events[member] = pool.nodes[node, EVENT]
        out.variables[member] = pool.variables[pool.nodes[node, STATE]]
        begins = pool.nodes[node, STARTS] == 1
        before, latest = BEGINS if begins else TIED, LEAST
        link = pool.nodes[node, LINK]
        while link >= 0:
            origin = pool.links[link, ORIGIN]
            link = pool.links[link, FOLLOWING]
            start = pool.nodes[origin, NEWEST]
            if times.measured[start] < lowest:
                continue
            out.links[linked] = place[origin]
            linked += 1
            # A match that begins here would start after all others.
            moment = times.moments[start]
            if not begins and moment >= latest:
                before = TIED if moment == latest or out.before[place[origin]] == TIED else place[origin]
                latest = moment
        if begins:
            out.begins[at[2]] = member
            at[2] += 1
            if linked > at[1]:
                out.links[linked] = -1
                linked += 1
        out.before[member] = before
        out.link_offsets[member + 1] = linked
        at[0], at[1] = member + 1, linked
    begin = rows.offsets[first]
    for row in range(first, last):
        first_end, latest = np.int64(TIED), LEAST
        for end in range(rows.offsets[row], rows.offsets[row + 1]):
            member = np.int64(place[rows.nodes[end]])
            out.ends[end - begin] = member
            moment = times.moments[pool.nodes[rows.nodes[end], NEWEST]]
            if moment >= latest:
                first_end = np.int64(TIED) if moment == latest or out.before[member] == TIED else member
                latest = moment
        out.first_ends[row - first] = first_end


@compiled
def count_early(begin_offsets: Ints, measured: Ints, hosts: Ints, lowest: Ints) -> Ints:
    """[row]: how many of the beginnings in its block are before its window.

    begin_offsets   [row + 1]: where the beginnings of each host stand in `measured`, where they are from the earliest
    """
    early = np.zeros(hosts.size, np.int64)
    for row in range(hosts.size):
        low, high = begin_offsets[hosts[row]], begin_offsets[hosts[row] + 1]
        first = low
        while low < high:
            middle = (low + high) // 2
            if measured[middle] < lowest[row]:
                low = middle + 1
            else:
                high = middle
        early[row] = low - first
    return early


@compiled
def fold_first_matches(
    variables: Bytes,  # [member]
    events: Ints,  #     [member]
    before: Ints,  #     [member], as `Blocks.before`
    hashes: Hashes,  #   [event]
    seeds: Hashes,  #    [lane]
) -> Hashes:
    """[lane, member]: the fold of the canonically first match to it, as `kernels.identity` folds matches."""
    folds = np.empty((2, before.size), np.uint64)
    for member in range(before.size):
        origin = before[member]
        if origin == TIED:
            continue
        one, other = seeds[0], seeds[1]
        place = 0
        if origin >= 0:
            one, other = folds[0, origin], folds[1, origin]
            place = variables[origin] + 1
        # The places of variables are folded from 1, also of those that are absent.
        for name in range(place + 1, variables[member] + 2):
            one, other = mix(one + np.uint64(name)), mix(other + np.uint64(name))
        folds[0, member] = mix(one ^ hashes[events[member]])
        folds[1, member] = mix(other ^ hashes[events[member]])
    return folds


@compiled
def complete_folds(members: Ints, variables: Bytes, number: int, folds: Hashes) -> Hashes:
    """[lane, row]: the folds of matches that end with these members; `number` of variables."""
    complete = np.empty((2, members.size), np.uint64)
    for row in range(members.size):
        for lane in range(2):
            fold = folds[lane, members[row]]
            for name in range(variables[members[row]] + 2, number + 1):
                fold = mix(fold + np.uint64(name))
            complete[lane, row] = fold
    return complete

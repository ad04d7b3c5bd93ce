"""Graphs that rows of OUTPUT COMPRESSED share (SASE+ §4.2, §5.1): every node is written once for all of them.

Rows whose matches have nodes in common form a block, and its first row, the host, holds the nodes of all. A node lies
in a block with everything that can come before it in a match of one of the rows, so a walk back never leaves its block.
A later row's window may have left some beginnings behind that an earlier one still had: these are told by number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.arithmetic import LEAST
from kleene.kernels.copying import put
from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.identity import Hashes, mix
from kleene.kernels.jit import borrowed, compiled, inlined
from kleene.kernels.paths import NodePool
from kleene.kernels.runs import EVENT, FOLLOWING, LINK, NEWEST, ORIGIN, STARTS, Numbers

# The canonically first match to a node begins with it, or there are several candidates for it.
BEGINS, TIED = -1, -2


class CompletedRows(NamedTuple):
    """Rows in canonical order, so that no window begins before that of an earlier row."""

    offsets: Ints  # [row + 1]: where the completed nodes of each row begin in `nodes`
    nodes: Ints
    lowest: Ints  #  [row]: where, as windows are measured, the first event of a match must start, or later


class EventTimes(NamedTuple):
    """When events start, [event]."""

    measured: Ints  # as windows are measured
    moments: Ints  #  as results are ordered


class Members(NamedTuple):
    """Nodes in blocks: by host, then in the order of their events."""

    offsets: Ints  # [row + 1]: where those of each row begin; only hosts have any
    nodes: Numbers  # [member]: a node may be in several blocks


class Blocks(NamedTuple):
    """The graphs of blocks, with members numbered through."""

    link_offsets: Ints  # [member + 1]
    links: Ints  #        members, −1: a match can also begin here
    ends: Ints  #         [end]: members, as `CompletedRows.nodes`
    before: Ints  #       [member]: the one before it in the canonically first match to it, BEGINS or TIED
    first_ends: Ints  #   [row]: the end of its canonically first match, or TIED


@compiled
def reach(
    rows: CompletedRows,
    times: EventTimes,
    pool: NodePool,
    most: int,  #       a block with more nodes and links is closed: later rows write again what they share with it
    owner: Numbers,  #  [node]: room, all −1
) -> tuple[Numbers, Numbers, Numbers]:
    """The nodes that rows reach, the row of each, and the host of each row."""
    rows, times, pool, owner = borrowed(rows), borrowed(times), borrowed(pool), borrowed(owner)
    number = rows.offsets.size - 1
    hosts = np.arange(number).astype(np.int32)
    sizes = np.zeros(number, np.int64)
    nodes, owners = np.empty(1024, np.int32), np.empty(1024, np.int32)
    pending = np.empty(1024, np.int32)
    total = 0
    for row in range(number):
        waiting = 0
        for end in range(rows.offsets[row], rows.offsets[row + 1]):
            if waiting == pending.size:
                pending = _longer(pending)
            pending[waiting] = rows.nodes[end]
            waiting += 1
        while waiting > 0:
            waiting -= 1
            node = pending[waiting]
            mine = _host(hosts, row)
            if owner[node] >= 0:
                other = _host(hosts, owner[node])
                if other == mine:
                    continue
                if sizes[other] <= most:
                    # All that leads to the node is in that block, since its row's window began no later.
                    hosts[max(mine, other)] = min(mine, other)
                    sizes[min(mine, other)] += sizes[max(mine, other)]
                    continue
            owner[node] = row
            if total == nodes.size:
                nodes, owners = _longer(nodes), _longer(owners)
            nodes[total], owners[total] = node, row
            total += 1
            sizes[mine] += 1
            link = pool.nodes[node, LINK]
            while link >= 0:
                origin = pool.links[link, ORIGIN]
                link = pool.links[link, FOLLOWING]
                if times.measured[pool.nodes[origin, NEWEST]] >= rows.lowest[row]:
                    sizes[mine] += 1
                    if owner[origin] != row:
                        if waiting == pending.size:
                            pending = _longer(pending)
                        pending[waiting] = origin
                        waiting += 1
    for row in range(number):
        hosts[row] = _host(hosts, row)
    return nodes[:total], owners[:total], hosts


@inlined
def _host(hosts: Numbers, row: int) -> int:
    """The first row of a row's block; the way there becomes shorter."""
    while hosts[row] != row:
        hosts[row] = hosts[hosts[row]]
        row = hosts[row]
    return row


@compiled
def arrange(nodes: Numbers, owners: Numbers, hosts: Numbers, pool: NodePool, events: int) -> Members:
    """Nodes by host and event: two passes that count, the second of which keeps the order of the first."""
    pool = borrowed(pool)
    of_event = np.zeros(events + 1, np.int64)
    for place in range(nodes.size):
        of_event[pool.nodes[nodes[place], EVENT] + 1] += 1
    for event in range(events):
        of_event[event + 1] += of_event[event]
    by_event = np.empty(nodes.size, np.int32)
    offsets = np.zeros(hosts.size + 1, np.int64)
    for place in range(nodes.size):
        event = pool.nodes[nodes[place], EVENT]
        by_event[of_event[event]] = place
        of_event[event] += 1
        offsets[hosts[owners[place]] + 1] += 1
    for row in range(hosts.size):
        offsets[row + 1] += offsets[row]
    following = offsets.copy()
    arranged = np.empty(nodes.size, np.int32)
    for at in range(nodes.size):
        place = by_event[at]
        host = hosts[owners[place]]
        arranged[following[host]] = nodes[place]
        following[host] += 1
    return Members(offsets, arranged)


@compiled
def write_blocks(
    rows: CompletedRows,
    hosts: Numbers,
    members: Members,
    times: EventTimes,
    pool: NodePool,
    place: Ints,  # [node]: room, all −1
) -> Blocks:
    """The graphs of blocks."""
    rows, hosts, members, times = borrowed(rows), borrowed(hosts), borrowed(members), borrowed(times)
    pool, place = borrowed(pool), borrowed(place)
    link_offsets, links = np.zeros(members.nodes.size + 1, np.int64), np.empty(1024, np.int64)
    before = np.empty(members.nodes.size, np.int64)
    ends, first_ends = np.empty(rows.nodes.size, np.int64), np.full(hosts.size, TIED, np.int64)
    by_host = np.argsort(hosts, kind="mergesort")
    linked, at = 0, 0
    for host in range(hosts.size):
        low = members.offsets[host]
        for member in range(low, members.offsets[host + 1]):
            place[members.nodes[member]] = member
        for member in range(low, members.offsets[host + 1]):
            node = members.nodes[member]
            begins = pool.nodes[node, STARTS] == 1
            earlier = linked
            latest = LEAST
            before[member] = BEGINS if begins else TIED
            link = pool.nodes[node, LINK]
            while link >= 0:
                # What stands before the block's own members is of another one, or of none.
                origin = place[pool.links[link, ORIGIN]]
                link = pool.links[link, FOLLOWING]
                if origin < low:
                    continue
                if linked + 1 >= links.size:
                    links = _longer(links)
                links[linked] = origin
                linked += 1
                if not begins:
                    # A match that begins here would start after all others.
                    moment = times.moments[pool.nodes[members.nodes[origin], NEWEST]]
                    if moment >= latest:
                        before[member] = TIED if moment == latest or before[origin] == TIED else origin
                        latest = moment
            if begins and linked > earlier:
                links[linked] = -1
                linked += 1
            link_offsets[member + 1] = linked
        while at < hosts.size and hosts[by_host[at]] == host:
            row = by_host[at]
            at += 1
            latest = LEAST
            for end in range(rows.offsets[row], rows.offsets[row + 1]):
                member = place[rows.nodes[end]]
                ends[end] = member
                moment = times.moments[pool.nodes[rows.nodes[end], NEWEST]]
                if moment >= latest:
                    first_ends[row] = TIED if moment == latest or before[member] == TIED else member
                    latest = moment
    return Blocks(link_offsets, links[:linked], ends, before, first_ends)


@compiled
def count_early(begin_offsets: Ints, measured: Ints, hosts: Numbers, lowest: Ints) -> Ints:
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


@inlined
def _longer(array: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    grown = np.empty(2 * array.size, array.dtype)
    put(array, grown, 0)
    return grown

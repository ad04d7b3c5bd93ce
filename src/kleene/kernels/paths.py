"""The runs behind a match: walks back along the links of `automaton.Runs`, as lists or as a graph.

A walk goes only to nodes from which a first event that is late enough can be reached, so none of them is in vain and
the work is linear in what is written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.copying import put
from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.jit import borrowed, compiled, inlined
from kleene.kernels.runs import EVENT, FOLLOWING, LINK, NEWEST, ORIGIN, STARTS, STATE, Int, Numbers, Runs
from kleene.kernels.timeline import WindowLength, outside

# Places of what `write_paths` remembers when it is left for more room: the node it is at, how deep it is in it, paths
# written, those of this node among them, references written, paths written when it came to the node's own origin; and
# what there was too little room for.
PLACE, DEPTH, WRITTEN, OF_NODE, USED, BEFORE_ORIGIN, WANTED, PLACES = range(8)
NOTHING, PATHS, REFERENCES, DEEPER = range(4)
# Of a `Walk.cursor`: nothing was tried yet; and how many paths are copied, counted down from here.
NEW, COPYING = -2, -3
# Rows of `Paths.singles` before those of variables.
FIRST_EVENT, LAST_EVENT, OF_VARIABLES = range(3)
# Columns of `Walk.known`: the first path on which a node stands before the completed one, how many there are from
# there on, and how early they could begin.
FIRST_PATH, NUMBER_OF_PATHS, LOWEST, KNOWN = range(4)


class NodePool(NamedTuple):
    """The nodes of runs and the links between them, as `kernels.runs.Runs` has them."""

    nodes: Numbers  #    [node, FIELDS]
    links: Numbers  #    [link, 2]
    variables: Bytes  #  [state]: the variable of the query


class CompletedNodes(NamedTuple):
    nodes: Ints
    lowest: Ints  # [node]: where their first event must start, or later
    most: Ints  #   [node]: how many paths are written, at least one; the rest is left out


class Walk(NamedTuple):
    """How far `write_paths` has come."""

    path: Ints  #   [depth]: the node, from the completed one back
    cursor: Ints  # [depth]: the next link to follow, NEW, or COPYING and less
    at: Ints  #     PLACE …
    known: Ints  #  [node, KNOWN], or nothing where not every path is written


class Paths(NamedTuple):
    """Runs by variable, with room for more: what columns of results are gathered from, without a copy in between."""

    offsets: Ints  #    [path + 1]: where the members of its lists begin
    members: Numbers  # [member]: events of Kleene variables, in pattern order
    sizes: Numbers  #   [list, path]: how many members each list has; no lists where there is one, or none
    singles: Numbers  # [row, path]: the first event, the last one, then those of single variables, −1 where absent


@compiled
def write_paths(
    completed: CompletedNodes,
    starts: Ints,  # [event]
    places: Ints,  # [state]: the row of a single variable in `Paths.singles`; −1 − that of a list in `Paths.sizes`
    runs: Runs,
    walk: Walk,
    out: Paths,
) -> None:
    """Write all runs, those of one node together.

    A run goes on where an earlier one was completed, most of the time: from there on it is copied.
    """
    completed, walk, out = borrowed(completed), borrowed(walk), borrowed(out)
    starts, places, runs = borrowed(starts), borrowed(places), borrowed(runs)
    path, cursor, at, known = walk.path, walk.cursor, walk.at, walk.known
    pool, links = runs.nodes, runs.links
    place, depth, wanted = at[PLACE], at[DEPTH], NOTHING
    while place < completed.nodes.size and wanted == NOTHING:
        low = completed.lowest[place]
        if depth < 0:
            depth, at[OF_NODE] = 0, 0
            path[0], cursor[0] = completed.nodes[place], NEW
        while depth >= 0:
            node, link = path[depth], cursor[depth]
            if link == NEW and depth > 0 and len(known) and known[node, NUMBER_OF_PATHS] and known[node, LOWEST] <= low:
                link = COPYING
            if link <= COPYING:
                cursor[depth], wanted = _copy_known(depth, link, low, starts, pool, places, walk, out)
                if wanted != NOTHING:
                    break
                link = -1
            elif link == NEW:
                link = pool[node, LINK]
                if pool[node, STARTS] == 1 and starts[pool[node, EVENT]] >= low:
                    wanted = _shortage(depth + 1, at, out)
                    if wanted != NOTHING:
                        break
                    _begin(pool[node, EVENT], at[WRITTEN], out)
                    _write(depth, pool, places, walk, out)
                    if at[OF_NODE] == completed.most[place]:
                        depth = -1
                        break
            while link >= 0 and starts[pool[links[link, ORIGIN], NEWEST]] < low:
                link = links[link, FOLLOWING]
            if link < 0:
                if depth == 1 and len(known):
                    first = at[BEFORE_ORIGIN]
                    known[node, FIRST_PATH], known[node, NUMBER_OF_PATHS] = first, at[WRITTEN] - first
                    known[node, LOWEST] = low
                depth -= 1
                continue
            if depth + 1 == path.size:
                cursor[depth], wanted = link, DEEPER
                break
            cursor[depth] = links[link, FOLLOWING]
            depth += 1
            path[depth], cursor[depth] = links[link, ORIGIN], NEW
            if depth == 1:
                at[BEFORE_ORIGIN] = at[WRITTEN]
        if wanted == NOTHING:
            place += 1
    at[PLACE], at[DEPTH], at[WANTED] = place, depth, wanted


@inlined
def _shortage(length: Int, at: Ints, out: Paths) -> int:
    """What there is too little room for, if a path of some length is to be written."""
    if at[WRITTEN] + 2 > out.offsets.size:
        return PATHS
    return REFERENCES if at[USED] + length > out.members.size else NOTHING


@inlined
def _begin(first: Int, path: Int, out: Paths) -> None:
    """Begin a path with its first event, and nothing that a variable stands for."""
    out.singles[FIRST_EVENT, path] = first
    for row in range(OF_VARIABLES, out.singles.shape[0]):
        out.singles[row, path] = -1
    for row in range(out.sizes.shape[0]):
        out.sizes[row, path] = 0


@inlined
def _write(depth: Int, pool: Numbers, places: Ints, walk: Walk, out: Paths) -> None:
    """Write the nodes of a walk, from the one it has come to, as the end of a path."""
    at, used, number = walk.at, walk.at[USED], walk.at[WRITTEN]
    for back in range(depth, -1, -1):
        node = walk.path[back]
        event, place = pool[node, EVENT], places[pool[node, STATE]]
        if place >= 0:
            out.singles[place, number] = event
        else:
            out.members[used] = event
            used += 1
            if out.sizes.shape[0]:
                out.sizes[-1 - place, number] += 1
    out.singles[LAST_EVENT, number] = pool[walk.path[0], EVENT]
    at[USED] = used
    at[WRITTEN] += 1
    at[OF_NODE] += 1
    out.offsets[at[WRITTEN]] = used


@compiled
def _copy_known(
    depth: Int, progress: Int, low: Int, starts: Ints, pool: Numbers, places: Ints, walk: Walk, out: Paths
) -> tuple[int, int]:
    """Write what leads to the node of a walk again, and the walk from there on; the cursor, and what has no room."""
    starts, pool, places = borrowed(starts), borrowed(pool), borrowed(places)
    walk, out = borrowed(walk), borrowed(out)
    first, number_of_paths = walk.known[walk.path[depth], FIRST_PATH], walk.known[walk.path[depth], NUMBER_OF_PATHS]
    for number in range(COPYING - progress, number_of_paths):
        known = first + number
        if starts[out.singles[FIRST_EVENT, known]] < low:
            continue
        begin, end = out.offsets[known], out.offsets[known + 1]
        wanted = _shortage(end - begin + depth, walk.at, out)
        if wanted != NOTHING:
            return COPYING - number, wanted
        end -= _copy_without_last(known, walk.at[WRITTEN], places[places.size - 1], out)
        used = walk.at[USED]
        put(out.members[begin:end], out.members[used : used + end - begin], 0)
        walk.at[USED] = used + end - begin
        _write(depth - 1, pool, places, walk, out)
    return -1, NOTHING


@inlined
def _copy_without_last(known: Int, path: Int, last: Int, out: Paths) -> int:
    """Give a path the events of another but its last one, which stands at the last place; how many members less."""
    for row in range(out.singles.shape[0]):
        out.singles[row, path] = out.singles[row, known]
    for row in range(out.sizes.shape[0]):
        out.sizes[row, path] = out.sizes[row, known]
    if last >= 0:
        out.singles[last, path] = -1
        return 0
    if out.sizes.shape[0]:
        out.sizes[-1 - last, path] -= 1
    return 1


class Flat(NamedTuple):
    """Matches as flat arrays (`engine.output.matches.Matches`)."""

    offsets: Ints  # [match + 1]
    events: Ints  #  [reference]
    kinds: Bytes  #  [reference]


@compiled
def flatten(paths: Paths, places: Ints, variables: Bytes, out: Flat) -> None:
    """Write paths as flat matches, whose offsets are known; `variables`: [state]."""
    paths, out = borrowed(paths), borrowed(out)
    for path in range(out.offsets.size - 1):
        at, member = out.offsets[path], paths.offsets[path]
        for state in range(places.size):
            place = places[state]
            if place >= 0:
                if paths.singles[place, path] >= 0:
                    out.events[at], out.kinds[at] = paths.singles[place, path], variables[state]
                    at += 1
                continue
            size = paths.offsets[path + 1] - paths.offsets[path]
            if paths.sizes.shape[0]:
                size = np.int64(paths.sizes[-1 - place, path])
            for along in range(size):
                out.events[at + along], out.kinds[at + along] = paths.members[member + along], variables[state]
            at += size
            member += size


@compiled
def write_graphs(
    offsets: Ints,  #   [row + 1]: where the completed nodes of each row begin in `nodes`
    nodes: Ints,  #     completed runs, those of one completing event together
    lowest: Ints,  #    [row]
    starts: Ints,  #    [event]
    runs: NodePool,
    place: npt.NDArray[np.int32],  # [node]: room, all −1
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """The runs of each row as a graph, nodes numbered through all rows: where the nodes of each row begin, their
    events and variables, where the links of each begin, the nodes that they lead back to (−1: a run begins here), and
    the nodes in which the completed ones were written."""
    runs = borrowed(runs)
    node_offsets = np.zeros(offsets.size, np.int64)
    events, kinds = np.empty(1024, np.int64), np.empty(1024, np.int64)
    link_offsets, links = np.zeros(1024, np.int64), np.empty(1024, np.int64)
    ends = np.empty(nodes.size, np.int64)
    reached = np.empty(64, np.int32)
    total = 0
    linked = 0
    for row in range(offsets.size - 1):
        size = 0
        for end in range(offsets[row], offsets[row + 1]):
            while size + 1 >= reached.size:
                reached = _longer(reached)
            if place[nodes[end]] < 0:
                place[nodes[end]] = 0
                reached[size] = nodes[end]
                size += 1
        at = 0
        most_links = 0
        while at < size:
            link = runs.nodes[reached[at], LINK]
            at += 1
            most_links += 1
            while link >= 0:
                origin = runs.links[link, ORIGIN]
                link = runs.links[link, FOLLOWING]
                if starts[runs.nodes[origin, NEWEST]] < lowest[row]:
                    continue
                most_links += 1
                if place[origin] < 0:
                    if size == reached.size:
                        reached = _longer(reached)
                    place[origin] = 0
                    reached[size] = origin
                    size += 1
        while total + size + 1 > events.size:
            events, kinds, link_offsets = _longer(events), _longer(kinds), _longer(link_offsets)
        while linked + most_links > links.size:
            links = _longer(links)
        # From the earliest to the latest, so that every link leads back.
        ordered = np.sort(reached[:size])
        for number in range(size):
            place[ordered[number]] = number
        for number in range(size):
            node = ordered[number]
            events[total + number] = runs.nodes[node, EVENT]
            kinds[total + number] = runs.variables[runs.nodes[node, STATE]]
            before = linked
            link = runs.nodes[node, LINK]
            while link >= 0:
                origin = runs.links[link, ORIGIN]
                link = runs.links[link, FOLLOWING]
                if starts[runs.nodes[origin, NEWEST]] >= lowest[row]:
                    links[linked] = total + place[origin]
                    linked += 1
            if linked > before and runs.nodes[node, STARTS] == 1 and starts[runs.nodes[node, EVENT]] >= lowest[row]:
                links[linked] = -1
                linked += 1
            link_offsets[total + number + 1] = linked
        for end in range(offsets[row], offsets[row + 1]):
            ends[end] = total + place[nodes[end]]
        for number in range(size):
            place[ordered[number]] = -1
        total += size
        node_offsets[row + 1] = total
    return node_offsets, events[:total], kinds[:total], link_offsets[: total + 1], links[:linked], ends


@compiled
def _longer(array: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    grown = np.empty(2 * array.size, array.dtype)
    put(array, grown, 0)
    return grown


@compiled
def longest_prefixes(
    begin: int,  #  nodes from here on are new
    end: int,
    starts: Ints,
    ends: Ints,
    within: WindowLength,
    runs: Runs,
    best: npt.NDArray[np.int32],  # [event]: the run from this first event that came furthest, or −1
) -> None:
    """The best run: most components, then canonical order (the semantics page §3, TIMEOUTS). No runs are merged."""
    one, other = np.empty(64, np.int32), np.empty(64, np.int32)
    for node in range(begin, end):
        first = runs.nodes[node, NEWEST]
        if outside(ends[runs.nodes[node, EVENT]], starts[first], within):
            continue
        known = best[first]
        if known < 0 or runs.nodes[node, STATE] > runs.nodes[known, STATE]:
            best[first] = node
            continue
        if runs.nodes[node, STATE] < runs.nodes[known, STATE]:
            continue
        lengths = np.zeros(2, np.int64)
        for side in range(2):
            at = np.int32(node) if side == 0 else known
            while True:
                if lengths[side] == one.size:
                    one, other = _longer(one), _longer(other)
                if side == 0:
                    one[lengths[side]] = at
                else:
                    other[lengths[side]] = at
                lengths[side] += 1
                if runs.nodes[at, LINK] < 0:
                    break
                at = runs.links[runs.nodes[at, LINK], ORIGIN]
        place = 1
        earlier = lengths[0] < lengths[1]
        while place <= min(lengths[0], lengths[1]):
            left, right = one[lengths[0] - place], other[lengths[1] - place]
            if runs.nodes[left, STATE] != runs.nodes[right, STATE]:
                earlier = runs.nodes[left, STATE] > runs.nodes[right, STATE]
                break
            if runs.nodes[left, EVENT] != runs.nodes[right, EVENT]:
                earlier = runs.nodes[left, EVENT] < runs.nodes[right, EVENT]
                break
            place += 1
        if earlier:
            best[first] = node

"""The canonically first match of a graph, which names a row of OUTPUT COMPRESSED.

Starts come from the latest, then events in pattern order canonically, the shorter of two lists first. A match can begin
like another and go on otherwise, so the walk keeps all nodes that stand for the same event after the same beginning.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.copying import put
from kleene.kernels.jit import compiled, inlined

Ints = npt.NDArray[np.int64]


@compiled
def first_paths(
    node_offsets: Ints,  # [graph + 1]: the nodes of each graph
    variables: Ints,  #    [node]: −1 when silent
    events: Ints,  #       [node]: numbers in canonical order; −1 when silent
    link_offsets: Ints,  # [node + 1]
    links: Ints,  #        [link]: nodes with smaller numbers; −1: a match can begin here
    end_offsets: Ints,  #  [graph + 1]
    ends: Ints,  #         [end]: the nodes at which a match is complete
    starts: Ints,  #       [event]: when it starts
) -> tuple[Ints, Ints]:
    """Where each graph's first match begins, [graph + 1], and the nodes of these matches."""
    offsets = np.zeros(node_offsets.size, np.int64)
    out = np.empty(1024, np.int64)
    total = 0
    for graph in range(node_offsets.size - 1):
        first = node_offsets[graph]
        size = node_offsets[graph + 1] - first
        # Whether a match can be completed from the node, and whether it is complete there.
        useful = np.zeros(size, np.bool_)
        complete = np.zeros(size, np.bool_)
        for end in range(end_offsets[graph], end_offsets[graph + 1]):
            useful[ends[end] - first] = True
            complete[ends[end] - first] = True
        base, after = _followers(first, size, link_offsets, links, useful)
        # [node]: the step of the walk that last reached it.
        reached = np.full(size, -1, np.int64)
        pending = np.empty(size + 1, np.int64)
        standing = np.empty(size + 1, np.int64)
        candidates = np.empty(size + 1, np.int64)
        # The beginning stands behind the nodes.
        standing[0] = size
        number = 1
        step = 0
        done = False
        while not done:
            put(standing[:number], pending, 0)
            waiting, offered, best = number, 0, np.int64(-1)
            while waiting > 0:
                waiting -= 1
                source = pending[waiting]
                for at in range(base[source], base[source + 1]):
                    node = after[at]
                    if reached[node] == step:
                        continue
                    reached[node] = step
                    if variables[first + node] < 0:
                        pending[waiting] = node
                        waiting += 1
                        continue
                    candidates[offered] = node
                    offered += 1
                    if best < 0 or _precedes(first + node, first + best, variables, events, starts, step == 0):
                        best = node
            if best < 0:
                break
            number = 0
            for at in range(offered):
                node = candidates[at]
                if variables[first + node] == variables[first + best] and events[first + node] == events[first + best]:
                    standing[number] = node
                    number += 1
                    done = done or complete[node]
            if total == out.size:
                grown = np.empty(2 * total, np.int64)
                put(out, grown, 0)
                out = grown
            out[total] = first + best
            total += 1
            step += 1
        offsets[graph + 1] = total
    return offsets, out[:total]


@inlined
def _precedes(node: int, other: int, variables: Ints, events: Ints, starts: Ints, begins: bool) -> bool:
    """Whether a match that goes on with one node is before one that goes on with the other."""
    if begins and starts[events[node]] != starts[events[other]]:
        return bool(starts[events[node]] > starts[events[other]])
    if variables[node] != variables[other]:
        return bool(variables[node] > variables[other])
    return bool(events[node] < events[other])


@inlined
def _followers(
    first: int, size: int, link_offsets: Ints, links: Ints, useful: npt.NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """The useful nodes after each node, and after the beginning, which is number `size`: [node + 2] and the nodes."""
    base = np.zeros(size + 2, np.int64)
    for node in range(size - 1, -1, -1):
        if not useful[node]:
            continue
        low, high = link_offsets[first + node], link_offsets[first + node + 1]
        if low == high:
            base[size + 1] += 1
        for link in range(low, high):
            if links[link] < 0:
                base[size + 1] += 1
            else:
                useful[links[link] - first] = True
                base[links[link] - first + 1] += 1
    for node in range(size + 1):
        base[node + 1] += base[node]
    after = np.empty(base[size + 1], np.int64)
    following = base.copy()
    for node in range(size):
        if not useful[node]:
            continue
        low, high = link_offsets[first + node], link_offsets[first + node + 1]
        if low == high:
            after[following[size]] = node
            following[size] += 1
        for link in range(low, high):
            source = size if links[link] < 0 else links[link] - first
            after[following[source]] = node
            following[source] += 1
    return base, after

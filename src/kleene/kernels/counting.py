"""How many matches a graph holds (SASE+ §4.2): the paths to its ends, counted exactly in one pass over the links.

A count is a row of limbs, 63 bits each, the lowest first: the sum of two limbs and a carry fits 64 bits. Few graphs
need more than one; those that do are counted again with twice as many.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.jit import compiled, inlined

Ints = npt.NDArray[np.int64]
Limbs = npt.NDArray[np.uint64]

BITS = 63
_MASK = np.uint64(2**63 - 1)
_SHIFT = np.uint64(63)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


def count_paths(node_offsets: Ints, link_offsets: Ints, links: Ints, end_offsets: Ints, ends: Ints) -> list[int]:
    """The number of paths in each graph, from a start to one of its ends.

    node_offsets   [graph + 1]: graph g has the nodes node_offsets[g] … node_offsets[g + 1] − 1
    link_offsets   [node + 1]: node n follows the nodes links[link_offsets[n] : link_offsets[n + 1]]; with none, a start
    links          [link]: smaller numbers of nodes, in the same graph; −1: a path can also begin here
    end_offsets    [graph + 1]
    ends           [end]: numbers of nodes
    """
    nodes, offsets, followed = (np.asarray(each, np.int64) for each in (node_offsets, link_offsets, links))
    last, completing = np.asarray(end_offsets, np.int64), np.asarray(ends, np.int64)
    counts = [0] * (len(node_offsets) - 1)
    pending = np.arange(len(counts))
    limbs = 1
    while len(pending):
        totals = np.zeros((len(pending), limbs), np.uint64)
        overflowed = np.zeros(len(pending), np.bool_)
        count(pending, nodes, offsets, followed, last, completing, totals, overflowed)
        for graph, total in zip(pending[~overflowed].tolist(), totals[~overflowed].tolist(), strict=True):
            counts[graph] = sum(limb << BITS * place for place, limb in enumerate(total))
        pending = pending[overflowed]
        limbs *= 2
    return counts


@inlined
def _add(totals: Limbs, place: int, others: Limbs, other: int) -> bool:
    """Add a row of one array to a row of another; whether the sum fits."""
    carry = _ZERO
    for limb in range(totals.shape[1]):
        sum_ = totals[place, limb] + others[other, limb] + carry
        totals[place, limb] = sum_ & _MASK
        carry = sum_ >> _SHIFT
    return bool(carry == _ZERO)


@compiled
def count(
    graphs: Ints,  #       which graphs to count
    node_offsets: Ints,  # the rest as in `count_paths`
    link_offsets: Ints,
    links: Ints,
    end_offsets: Ints,
    ends: Ints,
    totals: Limbs,  #      [place in graphs, limb]: the counts
    overflowed: npt.NDArray[np.bool_],  # [place in graphs]: the count has more limbs
) -> None:
    """Count with as many limbs as `totals` has."""
    limbs = totals.shape[1]
    for place in range(graphs.size):
        graph = graphs[place]
        first = node_offsets[graph]
        size = node_offsets[graph + 1] - first
        # [node, limb]: the ways to it; behind the nodes stands the beginning, with one.
        ways = np.zeros((size + 1, limbs), np.uint64)
        ways[size, 0] = _ONE
        fits = True
        for node in range(size):
            low, high = link_offsets[first + node], link_offsets[first + node + 1]
            if low == high:
                ways[node, 0] = _ONE
            for link in range(low, high):
                before = size if links[link] < 0 else links[link] - first
                fits = _add(ways, node, ways, before) and fits
            if not fits:
                break
        if fits:
            for end in range(end_offsets[graph], end_offsets[graph + 1]):
                fits = _add(totals, place, ways, ends[end] - first) and fits
        overflowed[place] = not fits

"""Columns of OUTPUT COMPRESSED, whose numbers count from 0 in each row, from graphs that are numbered through."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.kernels.jit import compiled

Numbers = npt.NDArray[np.int32]


@compiled
def list_events(node_offsets: Ints, events: Ints, offsets: Ints, listed: Ints, places: Numbers) -> bool:
    """The events of each row, each once, where those of its nodes are in order; whether they are.

    offsets   [row + 1]: where the events of each row begin in `listed`
    places    [node]: the place of its event among its row's; −1 where it has none
    """
    number = 0
    for row in range(node_offsets.size - 1):
        offsets[row] = number
        before = np.int64(-1)
        for node in range(node_offsets[row], node_offsets[row + 1]):
            event = events[node]
            if event < 0:
                places[node] = -1
                continue
            if event < before:
                return False
            if event > before:
                listed[number] = event
                number += 1
                before = event
            places[node] = number - 1 - offsets[row]
    offsets[-1] = number
    return True


@compiled
def number_links(node_offsets: Ints, link_offsets: Ints, links: Ints, own_offsets: Numbers, own_links: Numbers) -> None:
    """Links between nodes of one row, which are numbered within it.

    own_offsets   where the links of each node begin; each row that holds nodes has one more of them
    own_links     [link]: −1 as it is
    """
    at = 0
    for row in range(node_offsets.size - 1):
        first, last = node_offsets[row], node_offsets[row + 1]
        if first == last:
            continue
        begin = link_offsets[first]
        for node in range(first, last + 1):
            own_offsets[at] = link_offsets[node] - begin
            at += 1
        for link in range(begin, link_offsets[last]):
            own_links[link] = links[link] - first if links[link] >= 0 else -1

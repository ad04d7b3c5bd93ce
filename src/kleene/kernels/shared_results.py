"""Results of many queries: from the nodes where instances ended to the queries that end there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kleene.kernels.expression import Ints
from kleene.kernels.jit import compiled
from kleene.kernels.shared_nodes import LEADS_TO

Numbers = NDArray[np.int32]


@compiled
def count_queries(nodes: Numbers, following: Numbers, since: Ints, ended: Ints, begun: Ints, counts: Ints) -> None:
    """[result]: how many queries each result is of.

    nodes       [node, NODE]
    following   [query]: the next one at its node
    since       [query]: when it came: what began before is none of its results
    ended       [result]: the node
    begun       [result]: when its first event ended
    """
    for result in range(ended.size):
        query = nodes[ended[result], LEADS_TO]
        while query >= 0:
            if since[query] <= begun[result]:
                counts[result] += 1
            query = following[query]


@compiled
def list_queries(nodes: Numbers, following: Numbers, since: Ints, ended: Ints, begun: Ints, queries: Numbers) -> None:
    """[pair]: the queries of each result, one result after the other, as many as were counted."""
    at = 0
    for result in range(ended.size):
        query = nodes[ended[result], LEADS_TO]
        while query >= 0:
            if since[query] <= begun[result]:
                queries[at] = query
                at += 1
            query = following[query]

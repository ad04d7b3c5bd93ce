"""The ids of the canonically first matches: `match_id` of OUTPUT COMPRESSED, without finding any other match."""

from __future__ import annotations

import numpy as np

from kleene.frames.compressed import Graphs, Store
from kleene.frames.identity import match_id
from kleene.kernels.first_paths import first_paths
from kleene.pattern.query import BoundQuery


def first_ids(query: BoundQuery, graphs: Graphs, store: Store) -> list[str]:
    """[row]: the id of its canonically first match."""
    parts = (graphs.node_offsets, graphs.variables, graphs.events, graphs.link_offsets, graphs.links)
    # One type, so that the kernel is compiled once.
    nodes_of, variables_of, events_of, link_offsets, links = (np.asarray(part, np.int64) for part in parts)
    end_offsets, ends = np.asarray(graphs.end_offsets, np.int64), np.asarray(graphs.ends, np.int64)
    offsets, nodes = first_paths(
        nodes_of, variables_of, events_of, link_offsets, links, end_offsets, ends, np.asarray(store.starts, np.int64)
    )
    variables, hashes = graphs.variables[nodes].tolist(), store.hashes[graphs.events[nodes]].tolist()
    ids = []
    for row in range(len(graphs)):
        groups: list[list[int]] = [[] for _ in query.positives]
        for at in range(offsets[row], offsets[row + 1]):
            groups[variables[at]].append(hashes[at])
        ids.append(match_id(query.digest, groups))
    return ids

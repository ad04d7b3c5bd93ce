"""Completed runs as matches: every walk back along the links of an automaton's nodes."""

from __future__ import annotations

import numpy as np

from kleene.engine.output.graphs import Completed
from kleene.engine.output.matches import Matches
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.kernels import paths as kernel
from kleene.kernels.expression import Ints


def matches_of(completed: Completed, starts: Ints) -> Matches:
    """The matches that completed runs stand for. `starts` says where windows begin, [event]."""
    executor, nodes, lowest, most = completed.executor, completed.nodes, completed.lowest, completed.most
    at = np.zeros(kernel.PLACES, np.int64)
    at[kernel.DEPTH] = -1
    path, cursor = np.zeros(1024, np.int64), np.zeros(1024, np.int64)
    offsets, events = empty(2 * len(nodes) + 1024, np.int64), empty(64 * len(nodes) + 1024, np.int64)
    kinds = empty(len(events), np.uint8)
    offsets[0] = 0
    variables, pool = executor.variables, executor.pool
    while True:
        kernel.write_paths(nodes, lowest, starts, variables, pool, most, path, cursor, offsets, events, kinds, at)
        if at[kernel.WANTED] == kernel.NOTHING:
            break
        if at[kernel.WANTED] == kernel.PATHS:
            offsets = with_room(offsets, 2 * len(offsets))
        elif at[kernel.WANTED] == kernel.REFERENCES:
            room = max(2 * len(events), len(events) + len(path))
            events, kinds = with_room(events, room), with_room(kinds, room)
        else:
            path, cursor = with_room(path, 2 * len(path)), with_room(cursor, 2 * len(cursor))
    written, used = at[kernel.WRITTEN], at[kernel.USED]
    return Matches(offsets[: written + 1], events[:used], kinds[:used])

"""Completed runs as matches: every walk back along the links of an automaton's nodes."""

from __future__ import annotations

import numpy as np

from kleene.engine.output.graphs import ALL, Completed
from kleene.engine.output.matches import Matches
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.kernels import paths as kernel
from kleene.kernels.expression import Ints
from kleene.kernels.runs import NODES


def matches_of(completed: Completed, starts: Ints) -> Matches:
    """The matches that completed runs stand for. `starts` says where windows begin, [event]."""
    nodes = kernel.CompletedNodes(completed.nodes, completed.lowest, completed.most)
    variables, pool = completed.executor.variables, completed.executor.pool
    at = np.zeros(kernel.PLACES, np.int64)
    at[kernel.DEPTH] = -1
    copies = len(completed.nodes) > 1 and bool(completed.most.min() == ALL)
    known = np.zeros((int(pool.sizes[NODES]) if copies else 0, kernel.KNOWN), np.int64)
    walk = kernel.Walk(np.zeros(1024, np.int64), np.zeros(1024, np.int64), at, known)
    number, references = 2 * len(completed.nodes) + 1024, 64 * len(completed.nodes) + 1024
    out = kernel.Paths(empty(number, np.int64), empty(references, np.int64), empty(references, np.uint8))
    out.offsets[0] = 0
    while True:
        kernel.write_paths(nodes, starts, variables, pool, walk, out)
        if at[kernel.WANTED] == kernel.NOTHING:
            break
        if at[kernel.WANTED] == kernel.PATHS:
            out = out._replace(offsets=with_room(out.offsets, _expected(at, completed, len(out.offsets))))
        elif at[kernel.WANTED] == kernel.REFERENCES:
            room = max(_expected(at, completed, len(out.events)), len(out.events) + len(walk.path))
            out = out._replace(events=with_room(out.events, room), kinds=with_room(out.kinds, room))
        else:
            room = 2 * len(walk.path)
            walk = walk._replace(path=with_room(walk.path, room), cursor=with_room(walk.cursor, room))
    written, used = at[kernel.WRITTEN], at[kernel.USED]
    return Matches(out.offsets[: written + 1], out.events[:used], out.kinds[:used], follows=True)


def _expected(at: Ints, completed: Completed, room: int) -> int:
    """How much room all matches take, if the rest is like those of the nodes so far: from half more to eight times."""
    likely = int(room * 1.1 * len(completed.nodes) / max(int(at[kernel.PLACE]), 1))
    return min(max(likely, room + room // 2), 8 * room)

"""Completed runs as matches: every walk back along the links of an automaton's nodes, written by variable."""

from __future__ import annotations

import numpy as np

from kleene.engine.output.graphs import ALL, Completed
from kleene.engine.output.path_matches import PathMatches, StatePlaces
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.kernels import paths as kernel
from kleene.kernels.expression import Ints
from kleene.kernels.runs import NODES, Numbers


def matches_of(completed: Completed, starts: Ints) -> PathMatches:
    """The matches that completed runs stand for. `starts` says where windows begin, [event]."""
    nodes = kernel.CompletedNodes(completed.nodes, completed.lowest, completed.most)
    pool = completed.executor.pool
    states = StatePlaces.of(completed.executor)
    at = np.zeros(kernel.PLACES, np.int64)
    at[kernel.DEPTH] = -1
    copies = len(completed.nodes) > 1 and bool(completed.most.min() == ALL)
    known = np.zeros((int(pool.sizes[NODES]) if copies else 0, kernel.KNOWN), np.int64)
    walk = kernel.Walk(np.zeros(1024, np.int64), np.zeros(1024, np.int64), at, known)
    number, members = 2 * len(completed.nodes) + 1024, 64 * len(completed.nodes) + 1024
    out = kernel.Paths(
        empty(number, np.int64),
        empty(members, np.int32),
        empty((states.lists, number), np.int32),
        empty((states.rows, number), np.int32),
    )
    out.offsets[0] = 0
    while True:
        kernel.write_paths(nodes, starts, states.places, pool, walk, out)
        if at[kernel.WANTED] == kernel.NOTHING:
            break
        if at[kernel.WANTED] == kernel.PATHS:
            offsets = with_room(out.offsets, _expected(at, completed, len(out.offsets)))
            # As many columns as there are offsets, which the kernel looks at alone.
            sizes, singles = (_with_columns(array, len(offsets)) for array in (out.sizes, out.singles))
            out = out._replace(offsets=offsets, sizes=sizes, singles=singles)
        elif at[kernel.WANTED] == kernel.REFERENCES:
            room = max(_expected(at, completed, len(out.members)), len(out.members) + len(walk.path))
            out = out._replace(members=with_room(out.members, room))
        else:
            room = 2 * len(walk.path)
            walk = walk._replace(path=with_room(walk.path, room), cursor=with_room(walk.cursor, room))
    return PathMatches(out, int(at[kernel.WRITTEN]), states)


def _with_columns(array: Numbers, room: int) -> Numbers:
    """A longer copy along the second axis."""
    longer = empty((len(array), room), np.int32)
    longer[:, : array.shape[1]] = array
    return longer


def _expected(at: Ints, completed: Completed, room: int) -> int:
    """How much room all matches take, if the rest is like those of the nodes so far: from half more to eight times."""
    likely = int(room * 1.1 * len(completed.nodes) / max(int(at[kernel.PLACE]), 1))
    return min(max(likely, room + room // 2), 8 * room)

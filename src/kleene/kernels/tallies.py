"""How many runs a node stands for, by first event: a window leaves the oldest behind, and a count needs no walk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kleene.kernels.expression import Ints
from kleene.kernels.jit import borrowed, compiled, inlined
from kleene.kernels.runs import FIRST, LENGTH, LONGEST, OLDER, TALLIES, TALLY, Counts, Int, Numbers, Runs
from kleene.kernels.timeline import WindowLength, outside


class Tallies(NamedTuple):
    """The tallies of `Runs`, apart from the rest: fewer arrays are passed faster."""

    tally: Numbers  #  [tally, 3]
    tallied: Counts  # [tally]
    sizes: Ints


@inlined
def add(left: Int, right: Int) -> Int:
    """The sum, or the greatest number where it has more than 64 bits."""
    total = left + right
    return np.uint64(0xFFFFFFFFFFFFFFFF) if total < left else total


@inlined
def tally_one(first: Int, older: Int, tallies: Tallies) -> Int:
    """Tally one run that begins with this event, in front of older ones."""
    tally, tallied, sizes = tallies.tally, tallies.tallied, tallies.sizes
    new = np.int32(sizes[TALLIES])
    sizes[TALLIES] += 1
    tally[new, FIRST] = first
    tally[new, OLDER] = older
    tally[new, LENGTH] = 0 if older < 0 else tally[older, LENGTH] + 1
    tallied[new] = np.uint64(1)
    sizes[LONGEST] = max(sizes[LONGEST], tally[new, LENGTH] + 1)
    return new


@compiled
def together(left: Int, right: Int, own: Int, end: Int, starts: Ints, within: WindowLength, tallies: Tallies) -> Int:
    """The tallies of two nodes together, latest first event first, without those that the window has left behind.

    The tallies of the left one from `own` on are its alone and are used again, so that a node that many others are
    added to takes no more room than these have. `_grow` and the check before each event rely on that.
    """
    tallies, starts = borrowed(tallies), borrowed(starts)
    tally, tallied, sizes = tallies.tally, tallies.tallied, tallies.sizes
    head: Int = np.int32(-1)
    tail: Int = np.int32(-1)
    length = 0
    while left >= 0 or right >= 0:
        one = tally[left, FIRST] if left >= 0 else np.int32(-1)
        other = tally[right, FIRST] if right >= 0 else np.int32(-1)
        first = max(one, other)
        count: Int = np.uint64(0)
        entry: Int = np.int32(-1)
        if one == first:
            count = tallied[left]
            if left >= own:
                entry = left
            left = tally[left, OLDER]
        if other == first:
            count = add(count, tallied[right])
            right = tally[right, OLDER]
        if outside(end, starts[first], within):
            continue
        if entry < 0:
            entry = np.int32(sizes[TALLIES])
            sizes[TALLIES] += 1
            tally[entry, FIRST] = first
        tally[entry, OLDER] = -1
        tallied[entry] = count
        length += 1
        if tail < 0:
            head = entry
        else:
            tally[tail, OLDER] = entry
        tail = entry
    at = head
    while at >= 0:
        length -= 1
        tally[at, LENGTH] = length
        at = tally[at, OLDER]
    if head >= 0:
        sizes[LONGEST] = max(sizes[LONGEST], tally[head, LENGTH] + 1)
    return head


@compiled
def count_since(completed: Ints, lowest: Ints, starts: Ints, runs: Runs, out: Counts) -> None:
    """How many of the runs at each node begin late enough; the greatest number stands for more."""
    for place in range(completed.size):
        at: Int = runs.nodes[completed[place], TALLY]
        count = np.uint64(0)
        while at >= 0:
            if starts[runs.tally[at, FIRST]] >= lowest[place]:
                count = add(count, runs.tallied[at])
            at = runs.tally[at, OLDER]
        out[place] = count


@compiled
def earliest_since(completed: Ints, lowest: Ints, starts: Ints, runs: Runs, out: Ints) -> None:
    """The first event of the run at each node that begins earliest, but late enough; there must be one."""
    for place in range(completed.size):
        at: Int = runs.nodes[completed[place], TALLY]
        earliest = np.int64(-1)
        while at >= 0:
            first = np.int64(runs.tally[at, FIRST])
            if starts[first] >= lowest[place] and (earliest < 0 or starts[first] < starts[earliest]):
                earliest = first
            at = runs.tally[at, OLDER]
        out[place] = earliest

"""ZStream's closure (§4.4.5, Algorithm 4): the members between two parts of each record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kleene.kernels.expression import EventTest, Ints, ProgramScope, holds
from kleene.kernels.jit import borrowed, compiled, step
from kleene.kernels.joins import LinkedEvents, Numbers
from kleene.kernels.negation import OPEN, Gaps
from kleene.kernels.timeline import Timeline, outside


class BoundEvents(NamedTuple):
    """The events that each record binds already."""

    events: Numbers  # [reference]
    offsets: Ints  #   [record + 1]: where those of each begin


class Members(NamedTuple):
    """Closures as they are written; there is room for more."""

    events: Numbers  # the latest of each record first
    sizes: Ints  #     [record]
    number: Ints  #    [1]: how many events are written


@compiled
def members(
    begin: int,
    gaps: Gaps,
    bound: BoundEvents,
    candidates: LinkedEvents,  # of the closure's class
    time: Timeline,
    test: EventTest,
    scope: ProgramScope,  #             a binding and a group for each record
    out: Members,
) -> int:
    """The events between two parts that satisfy the conditions; the record for which there was no room."""
    gaps, bound, candidates, time = borrowed(gaps), borrowed(bound), borrowed(candidates), borrowed(time)
    test, scope, out = borrowed(test), borrowed(scope), borrowed(out)
    heads, size = candidates.heads, gaps.within.size
    number = out.number[0]
    for row in range(begin, gaps.keys.size):
        before = number
        key, floor, ceiling = gaps.keys[row], gaps.floors[row], gaps.ceilings[row]
        start, end = time.starts[gaps.firsts[row]], time.ends[gaps.lasts[row]]
        at = heads[key] if 0 <= key < heads.size else np.int32(-1)
        while at >= 0:
            other = candidates.events[at]
            at = candidates.previous[at]
            if time.rights[other] >= ceiling:
                continue
            if time.steps[other] <= floor:
                break
            if time.lefts[other] <= floor:
                continue
            if floor < 0 and size >= 0 and outside(end, time.starts[other], gaps.within):
                if time.closes and outside(end, time.ends[other], gaps.within):
                    break
                continue
            if ceiling == OPEN and size >= 0 and outside(time.ends[other], start, gaps.within):
                continue
            if _has(bound, row, other):
                continue
            scope.bindings[row, test.slot] = other
            if not holds(test.program, scope, row, row):
                continue
            if number == out.events.size:
                out.number[0] = before
                return row
            out.events[number] = other
            number += 1
        out.sizes[row] = number - before
    out.number[0] = number
    return int(gaps.keys.size)


@step
def _has(bound: BoundEvents, row: int, event: int) -> bool:
    has = False
    for place in range(bound.offsets[row], bound.offsets[row + 1]):
        has |= bound.events[place] == event
    return has

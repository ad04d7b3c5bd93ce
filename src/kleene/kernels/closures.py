"""ZStream's closure (§4.4.5, Algorithm 4): the members between two parts of each record."""

from __future__ import annotations

import numpy as np

from kleene.kernels.expression import (
    Code,
    EventColumns,
    Groups,
    Ints,
    Stack,
    Texts,
    holds,
)
from kleene.kernels.jit import borrowed, compiled
from kleene.kernels.joins import FAR, FIRST, LAST, Numbers
from kleene.kernels.timeline import Timeline, outside


@compiled
def members(
    begin: int,
    bindings: Ints,  # [record, slot]: what the conditions read
    groups: Groups,
    floors: Ints,  #   [record]: the right of the part before; −1: the window is the bound
    ceilings: Ints,  # [record]: the left of the part after
    codes: Ints,
    times: Ints,  #    [record, TIMES]
    used: Numbers,  #  [reference]: events that the record has already, and where those of each record begin
    offsets: Ints,
    others: Ints,  #   [candidate]: events of the closure's class, in order
    heads: Numbers,
    previous: Numbers,
    time: Timeline,
    size: int,
    inclusive: bool,
    program: Code,
    events: EventColumns,
    texts: Texts,
    stack: Stack,
    slot: int,
    out: Numbers,  #   members, the latest of each record first
    sizes: Ints,  #    [record]: out
    written: Ints,  #  [1]
) -> int:
    """The events between two parts that satisfy the conditions; the record for which there was no room."""
    bindings, groups, time, program = borrowed(bindings), borrowed(groups), borrowed(time), borrowed(program)
    events, texts, stack = borrowed(events), borrowed(texts), borrowed(stack)
    found = written[0]
    for row in range(begin, floors.size):
        before = found
        at = heads[codes[row]] if 0 <= codes[row] < heads.size else np.int32(-1)
        while at >= 0:
            other = others[at]
            at = previous[at]
            if time.rights[other] >= ceilings[row]:
                continue
            if time.steps[other] <= floors[row]:
                break
            if time.lefts[other] <= floors[row]:
                continue
            end = time.ends[times[row, LAST]]
            if floors[row] < 0 and size >= 0 and outside(end, time.starts[other], size, inclusive):
                if time.closes and outside(end, time.ends[other], size, inclusive):
                    break
                continue
            start = time.starts[times[row, FIRST]]
            if ceilings[row] == FAR and size >= 0 and outside(time.ends[other], start, size, inclusive):
                continue
            taken = False
            for place in range(offsets[row], offsets[row + 1]):
                taken |= used[place] == other
            if taken:
                continue
            bindings[row, slot] = other
            if not holds(program, events, texts, bindings, row, groups, row, stack):
                continue
            if found == out.size:
                written[0] = before
                return row
            out[found] = other
            found += 1
        sizes[row] = found - before
    written[0] = found
    return int(floors.size)

"""Negation on complete matches (SASE §3.3): events of a negated class by partition and step, looked up by interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Code, EventColumns, Groups, Ints, Stack, Texts, holds
from kleene.kernels.jit import borrowed, compiled
from kleene.kernels.timeline import Timeline, outside

# The ceiling of what stands at the end: the window is the bound, as it is where the floor is negative.
OPEN = 2**62


@compiled
def forbidden(
    bindings: Ints,  # [match, slot]: what the conditions read
    groups: Groups,
    group: Ints,  #     [match]: its aggregates
    keys: Ints,  #      [match]: the code of its partition, or 0
    floors: Ints,  #    [match]: the right of the left neighbour; −1 at the start
    ceilings: Ints,  #  [match]: before which step the event must end; OPEN at the end
    firsts: Ints,  #    [match]: its first event
    lasts: Ints,  #     [match]: its last event
    begin: Ints,  #     [key]: where the negated events of each key begin in `others`
    others: Ints,  #    negated events, by key, then by step
    time: Timeline,
    size: int,  #       of the window
    inclusive: bool,
    program: Code,
    events: EventColumns,
    texts: Texts,
    stack: Stack,
    negated: int,  #    the slot of the negated event
    out: npt.NDArray[np.bool_],
) -> None:
    """Mark the matches in whose interval an event of the negated class satisfies the conditions."""
    bindings, groups, program, time = borrowed(bindings), borrowed(groups), borrowed(program), borrowed(time)
    events, texts, stack = borrowed(events), borrowed(texts), borrowed(stack)
    steps, lefts, rights, starts, ends = time.steps, time.lefts, time.rights, time.starts, time.ends
    for row in range(bindings.shape[0]):
        if keys[row] < 0 or keys[row] + 1 >= begin.size:
            continue
        low, high = begin[keys[row]], begin[keys[row] + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if steps[others[middle]] <= floors[row]:
                low = middle + 1
            else:
                high = middle
        for at in range(low, end):
            other = others[at]
            if rights[other] >= ceilings[row]:
                if steps[other] >= ceilings[row]:
                    break
                continue
            if lefts[other] <= floors[row]:
                continue
            if floors[row] < 0 and outside(ends[lasts[row]], starts[other], size, inclusive):
                continue
            if ceilings[row] == OPEN and outside(ends[other], starts[firsts[row]], size, inclusive):
                if time.closes:
                    break
                continue
            bindings[row, negated] = other
            if holds(program, events, texts, bindings, row, groups, group[row], stack):
                out[row] = True
                break

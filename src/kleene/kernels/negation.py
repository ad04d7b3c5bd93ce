"""Negation on complete matches (SASE §3.3): events of a negated class by partition and step, looked up by interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import EventTest, Ints, ProgramScope, holds
from kleene.kernels.jit import borrowed, compiled
from kleene.kernels.timeline import Timeline, WindowLength, outside

# The ceiling of what stands at the end: the window is the bound, as it is where the floor is negative.
OPEN = 2**62


class Gaps(NamedTuple):
    """Where in each match, or record, an event of some class is looked for: [match]."""

    keys: Ints  #     the code of its partition, or 0; −1: nothing is found
    floors: Ints  #   the right of the left neighbour; −1 at the start
    ceilings: Ints  # the left of the right neighbour; OPEN at the end
    firsts: Ints  #   its first event
    lasts: Ints  #    its last event
    within: WindowLength  # the bound at the start and at the end


class EventsByKey(NamedTuple):
    begins: Ints  # [key + 1]: where the events of each key begin
    events: Ints  # by key, then by step


@compiled
def forbidden(
    gaps: Gaps,
    negated: EventsByKey,
    time: Timeline,
    test: EventTest,
    scope: ProgramScope,  #  a binding for each match
    groups: Ints,  #  [match]: its aggregates
    out: npt.NDArray[np.bool_],
) -> None:
    """Mark the matches in whose interval an event of the negated class satisfies the conditions."""
    gaps, negated, time = borrowed(gaps), borrowed(negated), borrowed(time)
    test, scope = borrowed(test), borrowed(scope)
    keys, floors, ceilings, firsts, lasts = gaps.keys, gaps.floors, gaps.ceilings, gaps.firsts, gaps.lasts
    begins, others = negated.begins, negated.events
    steps, lefts, rights, starts, ends = time.steps, time.lefts, time.rights, time.starts, time.ends
    for row in range(keys.size):
        if keys[row] < 0 or keys[row] + 1 >= begins.size:
            continue
        low, high = begins[keys[row]], begins[keys[row] + 1]
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
            if floors[row] < 0 and outside(ends[lasts[row]], starts[other], gaps.within):
                continue
            if ceilings[row] == OPEN and outside(ends[other], starts[firsts[row]], gaps.within):
                if time.closes:
                    break
                continue
            scope.bindings[row, test.slot] = other
            if holds(test.program, scope, row, groups[row]):
                out[row] = True
                break

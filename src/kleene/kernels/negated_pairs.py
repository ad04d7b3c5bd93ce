"""Negated pairs, `!(B b ; C c)` (ZStream §4.4.2): two events one after the other, both in the gap of a record."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Code, Ints, ProgramScope, holds
from kleene.kernels.jit import borrowed, compiled, inlined
from kleene.kernels.negation import OPEN, EventsByKey, Gaps
from kleene.kernels.timeline import Timeline, outside


class PairTest(NamedTuple):
    """What a pair must satisfy to forbid a record."""

    opening: Code  #     what is asked of its first event alone, or with the record
    whole: Code  #       all that is asked of it
    first_slot: int  #   the slots of its events
    second_slot: int
    apart: bool  #       whether nothing is asked of both together


@inlined
def _in_gap(other: Any, row: Any, gaps: Gaps, time: Timeline) -> bool:
    """Whether an event lies wholly between the neighbours, or in the window where there is none."""
    floor, ceiling = gaps.floors[row], gaps.ceilings[row]
    if time.lefts[other] <= floor or time.rights[other] >= ceiling:
        return False
    if floor < 0 and outside(time.ends[gaps.lasts[row]], time.starts[other], gaps.within):
        return False
    return not (ceiling == OPEN and outside(time.ends[other], time.starts[gaps.firsts[row]], gaps.within))


@inlined
def _first_after(step: Any, key: Any, negated: EventsByKey, time: Timeline) -> Any:
    """The place of the first event of a key that ends in a later step."""
    low, high = negated.begins[key], negated.begins[key + 1]
    while low < high:
        middle = (low + high) // 2
        if time.steps[negated.events[middle]] <= step:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _is_followed(
    first: Any,
    row: int,
    gaps: Gaps,
    seconds: EventsByKey,
    time: Timeline,
    test: PairTest,
    scope: ProgramScope,
    group: int,
) -> bool:
    """Whether a second event comes after the first one, in the gap, with which it satisfies everything."""
    gaps, seconds, time = borrowed(gaps), borrowed(seconds), borrowed(time)
    test, scope = borrowed(test), borrowed(scope)
    key = gaps.keys[row]
    scope.bindings[row, test.first_slot] = first
    for at in range(_first_after(time.rights[first], key, seconds, time), seconds.begins[key + 1]):
        second = seconds.events[at]
        if time.steps[second] >= gaps.ceilings[row]:
            return False
        if time.lefts[second] <= time.rights[first] or not _in_gap(second, row, gaps, time):
            continue
        scope.bindings[row, test.second_slot] = second
        if holds(test.whole, scope, row, group):
            return True
    return False


@compiled
def forbidden_by_pairs(
    gaps: Gaps,
    firsts: EventsByKey,
    seconds: EventsByKey,  # of the same keys
    time: Timeline,
    test: PairTest,
    scope: ProgramScope,  #  a binding for each record
    groups: Ints,  #         [record]: its aggregates
    out: npt.NDArray[np.bool_],
) -> None:
    """Mark the records in whose gap a pair satisfies the conditions.

    Where nothing is asked of both events together, the first event that ends soonest has all the followers that any
    other has, so that only its followers are looked at.
    """
    gaps, firsts, seconds, time = borrowed(gaps), borrowed(firsts), borrowed(seconds), borrowed(time)
    test, scope = borrowed(test), borrowed(scope)
    for row in range(gaps.keys.size):
        key = gaps.keys[row]
        if key < 0:
            continue
        soonest = np.int64(-1)
        for at in range(_first_after(gaps.floors[row], key, firsts, time), firsts.begins[key + 1]):
            first = firsts.events[at]
            if time.steps[first] >= gaps.ceilings[row]:
                break
            if not _in_gap(first, row, gaps, time):
                continue
            if soonest >= 0 and time.rights[first] >= time.rights[soonest]:
                continue
            scope.bindings[row, test.first_slot] = first
            if not holds(test.opening, scope, row, groups[row]):
                continue
            if test.apart:
                soonest = first
            elif _is_followed(first, row, gaps, seconds, time, test, scope, groups[row]):
                out[row] = True
                break
        if soonest >= 0:
            out[row] = _is_followed(soonest, row, gaps, seconds, time, test, scope, groups[row])

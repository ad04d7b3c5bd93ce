"""Lists of a Kleene component (`A+ a[]`) in a tree: all that its events make, and conditions along them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.aggregates import Aggregation, accumulate, clear, copy
from kleene.kernels.expression import Code, Ints, ProgramScope, holds
from kleene.kernels.jit import borrowed, compiled
from kleene.kernels.joins import JoinWindow, Numbers
from kleene.kernels.timeline import Timeline, outside


class Lists(NamedTuple):
    """Lists of events that grow by one event; a longer one extends another."""

    parent: Numbers  # [list]: −1: this is its first event
    event: Numbers
    first: Numbers
    length: Numbers
    number: Ints  #    [1]


class FollowingTest(NamedTuple):
    """The test of an event that follows on a list."""

    program: Code
    slots: Ints  # of the event before it, of the event itself, and of the list's first event where a condition reads it
    aggregation: Aggregation
    aggregates: Ints  # the slots of the list's aggregates so far


@compiled
def grow(
    begin: int,
    candidates: Ints,  # events of the class, in order
    lists: Lists,
    maximum: int,  #     events of a list; −1: any number
    window: JoinWindow,
    time: Timeline,
    test: FollowingTest,
    scope: ProgramScope,  #     one binding; a group for each list
) -> int:
    """Add every list that an event ends; the candidate for which there was no room."""
    lists, time, test, scope = borrowed(lists), borrowed(time), borrowed(test), borrowed(scope)
    aggregation, own_slots, slots = test.aggregation, test.aggregates, test.slots
    chosen, groups = scope.bindings, scope.groups
    room = lists.event.size
    for place in range(begin, candidates.size):
        event = candidates[place]
        before = lists.number[0]
        for old in range(before - 1, -2, -1):
            if old >= 0:
                last = lists.event[old]
                if time.rights[last] >= time.lefts[event]:
                    continue
                if time.keys[last] != time.keys[event] or (maximum >= 0 and lists.length[old] >= maximum):
                    continue
                start = time.starts[lists.first[old]]
                if window.within.size >= 0 and outside(time.ends[event], start, window.within):
                    continue
                chosen[0, slots[0]], chosen[0, slots[1]], chosen[0, slots[2]] = last, event, lists.first[old]
                if not holds(test.program, scope, 0, old):
                    continue
            number = lists.number[0]
            if number == room:
                lists.number[0] = before
                return place
            lists.parent[number], lists.event[number] = old, event
            if old >= 0:
                lists.first[number], lists.length[number] = lists.first[old], lists.length[old] + 1
                copy(groups, old, number)
            else:
                lists.first[number], lists.length[number] = event, 1
                clear(aggregation, own_slots, groups, number)
            accumulate(aggregation, own_slots, event, scope.events, scope.texts, groups, number)
            lists.number[0] += 1
    return int(candidates.size)


@compiled
def spelled_out(lists: Lists, wanted: Ints, offsets: Ints, out: Numbers) -> None:
    """The events of some lists, from the first to the last; `offsets` say where those of each begin."""
    for place in range(wanted.size):
        at = wanted[place]
        for reference in range(offsets[place + 1] - 1, offsets[place] - 1, -1):
            out[reference] = lists.event[at]
            at = lists.parent[at]


@compiled
def holds_along(
    rows: Numbers,  # [reference]: the events of the list of each record
    offsets: Ints,  # [record + 1]
    test: FollowingTest,
    scope: ProgramScope,  #  a binding and a group for each record
    out: npt.NDArray[np.bool_],
) -> None:
    """Whether a condition on `a[i]` holds for every i > 1."""
    test, scope = borrowed(test), borrowed(scope)
    aggregation, own_slots, slots = test.aggregation, test.aggregates, test.slots
    bindings, groups = scope.bindings, scope.groups
    for row in range(offsets.size - 1):
        out[row] = True
        clear(aggregation, own_slots, groups, row)
        for at in range(offsets[row], offsets[row + 1]):
            if at > offsets[row]:
                bindings[row, slots[0]], bindings[row, slots[1]] = rows[at - 1], rows[at]
                if not holds(test.program, scope, row, row):
                    out[row] = False
                    break
            accumulate(aggregation, own_slots, rows[at], scope.events, scope.texts, groups, row)

"""Lists of a Kleene component (`A+ a[]`) in a tree: all that its events make, and conditions along them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.aggregates import Aggregation, accumulate, clear, copy
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
from kleene.kernels.joins import JoinWindow, Numbers
from kleene.kernels.timeline import Timeline, outside


class Lists(NamedTuple):
    """Lists of events that grow by one event; a longer one goes on from another."""

    parent: Numbers  # [list]: −1: this is its first event
    event: Numbers
    first: Numbers
    length: Numbers
    number: Ints  #    [1]


@compiled
def grow(
    begin: int,
    candidates: Ints,  # events of the class, in order
    lists: Lists,
    maximum: int,
    window: JoinWindow,
    time: Timeline,
    program: Code,  #  what an event must satisfy to follow on a list
    chosen: Ints,  #   [1, slot]
    slots: Ints,  #    of the first event, the one before, the one that follows
    aggregation: Aggregation,
    kept: Ints,  #     the slots of the aggregates
    groups: Groups,  # [list, slot]
    events: EventColumns,
    texts: Texts,
    stack: Stack,
) -> int:
    """Every list that an event ends; the candidate for which there was no room."""
    lists, time, program, groups = borrowed(lists), borrowed(time), borrowed(program), borrowed(groups)
    events, texts, stack = borrowed(events), borrowed(texts), borrowed(stack)
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
                if window.size >= 0 and outside(time.ends[event], start, window.size, window.inclusive):
                    continue
                chosen[0, slots[0]], chosen[0, slots[1]], chosen[0, slots[2]] = lists.first[old], last, event
                if not holds(program, events, texts, chosen, 0, groups, old, stack):
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
                clear(aggregation, kept, groups, number)
            accumulate(aggregation, kept, event, events, texts, groups, number)
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
    bindings: Ints,  # [record, slot]
    groups: Groups,
    rows: Numbers,  #  [reference]: the events of the list of each record
    offsets: Ints,  #  [record + 1]
    slots: Ints,  #    of the event before, and of each one
    aggregation: Aggregation,
    kept: Ints,  #     the slots of the list's aggregates so far
    program: Code,
    events: EventColumns,
    texts: Texts,
    stack: Stack,
    out: npt.NDArray[np.bool_],
) -> None:
    """Whether a condition on `a[i]` holds for every i > 1."""
    for row in range(offsets.size - 1):
        out[row] = True
        clear(aggregation, kept, groups, row)
        for at in range(offsets[row], offsets[row + 1]):
            if at > offsets[row]:
                bindings[row, slots[0]], bindings[row, slots[1]] = rows[at - 1], rows[at]
                if not holds(program, events, texts, bindings, row, groups, row, stack):
                    out[row] = False
                    break
            accumulate(aggregation, kept, rows[at], events, texts, groups, row)

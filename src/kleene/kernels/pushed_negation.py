"""Negation pushed down (ZStream §4.4.2, Algorithm 2): for each record the event beside it that negates most."""

from __future__ import annotations

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


@compiled
def last_negating(
    bindings: Ints,  # [record, slot]: what the conditions read
    groups: Groups,
    ceilings: Ints,  # [record]: the left of the right neighbour
    codes: Ints,  #    [record]
    ends: Ints,  #     [record]: where its window ends
    others: Ints,  #   [negated]: events of the negated class, in order
    heads: Numbers,
    previous: Numbers,
    time: Timeline,
    window: JoinWindow,
    lasting: bool,  #  whether events last, so that the latest one need not be the one that forbids most
    program: Code,
    events: EventColumns,
    texts: Texts,
    stack: Stack,
    slot: int,  #      of the negated event
    out: Ints,  #      [record]: what ends before this is forbidden; −1: nothing
) -> None:
    """For each record, the left of the last negated event before it that satisfies the conditions."""
    bindings, groups, time, program = borrowed(bindings), borrowed(groups), borrowed(time), borrowed(program)
    events, texts, stack = borrowed(events), borrowed(texts), borrowed(stack)
    for row in range(ceilings.size):
        out[row] = -1
        if codes[row] < 0 or codes[row] >= heads.size:
            continue
        at = heads[codes[row]]
        while at >= 0:
            other = others[at]
            at = previous[at]
            if time.rights[other] >= ceilings[row]:
                continue
            # What would be forbidden ended before, so that the window left it behind as well.
            if (
                window.stops
                and window.size >= 0
                and outside(ends[row], time.ends[other], window.size, window.inclusive)
            ):
                break
            if time.lefts[other] <= out[row]:
                continue
            bindings[row, slot] = other
            if holds(program, events, texts, bindings, row, groups, row, stack):
                out[row] = time.lefts[other]
                if not lasting:
                    break


@compiled
def first_negating(
    bindings: Ints,
    groups: Groups,
    floors: Ints,  #   [record]: the right of the left neighbour
    codes: Ints,
    begin: int,  #     the first negated event that was not looked at before
    others: Ints,
    heads: Numbers,
    previous: Numbers,
    time: Timeline,
    program: Code,
    events: EventColumns,
    texts: Texts,
    stack: Stack,
    slot: int,
    out: Ints,  #      [record]: what starts after this is forbidden
) -> None:
    """For each record, the right of the first negated event after it that satisfies the conditions."""
    bindings, groups, time, program = borrowed(bindings), borrowed(groups), borrowed(time), borrowed(program)
    events, texts, stack = borrowed(events), borrowed(texts), borrowed(stack)
    for row in range(floors.size):
        if codes[row] < 0 or codes[row] >= heads.size:
            continue
        at = heads[codes[row]]
        while at >= begin:
            other = others[at]
            at = previous[at]
            if time.steps[other] <= floors[row]:
                break
            if time.lefts[other] <= floors[row] or time.rights[other] >= out[row]:
                continue
            bindings[row, slot] = other
            if holds(program, events, texts, bindings, row, groups, row, stack):
                out[row] = time.rights[other]

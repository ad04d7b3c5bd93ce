"""Negation pushed down (ZStream §4.4.2, Algorithm 2): for each record the event beside it that negates most."""

from __future__ import annotations

from kleene.kernels.expression import EventTest, Ints, ProgramScope, holds
from kleene.kernels.jit import borrowed, compiled
from kleene.kernels.joins import END, LEFT, RIGHT, CodedRecords, JoinWindow, LinkedEvents
from kleene.kernels.timeline import Timeline, outside


@compiled
def last_negating(
    records: CodedRecords,
    negated: LinkedEvents,
    time: Timeline,
    window: JoinWindow,
    lasting: bool,  # whether events last, so that the latest one need not be the one that forbids most
    test: EventTest,
    scope: ProgramScope,  #  a binding and a group for each record
    out: Ints,  #     [record]: what ends before this is forbidden; −1: nothing
) -> None:
    """For each record, the left of the last negated event before it that satisfies the conditions."""
    records, negated, time = borrowed(records), borrowed(negated), borrowed(time)
    test, scope = borrowed(test), borrowed(scope)
    codes, times, heads = records.codes, records.times, negated.heads
    for row in range(codes.size):
        out[row] = -1
        if codes[row] < 0 or codes[row] >= heads.size:
            continue
        at = heads[codes[row]]
        while at >= 0:
            other = negated.events[at]
            at = negated.previous[at]
            if time.rights[other] >= times[row, LEFT]:
                continue
            # What would be forbidden ended before, so that the window left it behind as well.
            measured = window.stops and window.within.size >= 0
            if measured and outside(times[row, END], time.ends[other], window.within):
                break
            if time.lefts[other] <= out[row]:
                continue
            scope.bindings[row, test.slot] = other
            if holds(test.program, scope, row, row):
                out[row] = time.lefts[other]
                if not lasting:
                    break


@compiled
def first_negating(
    records: CodedRecords,
    negated: LinkedEvents,
    begin: int,  #   the first negated event that was not looked at before
    time: Timeline,
    test: EventTest,
    scope: ProgramScope,  # a binding and a group for each record
    out: Ints,  #    [record]: what starts after this is forbidden
) -> None:
    """For each record, the right of the first negated event after it that satisfies the conditions."""
    records, negated, time = borrowed(records), borrowed(negated), borrowed(time)
    test, scope = borrowed(test), borrowed(scope)
    codes, times, heads = records.codes, records.times, negated.heads
    for row in range(codes.size):
        if codes[row] < 0 or codes[row] >= heads.size:
            continue
        floor = times[row, RIGHT]
        at = heads[codes[row]]
        while at >= begin:
            other = negated.events[at]
            at = negated.previous[at]
            if time.steps[other] <= floor:
                break
            if time.lefts[other] <= floor or time.rights[other] >= out[row]:
                continue
            scope.bindings[row, test.slot] = other
            if holds(test.program, scope, row, row):
                out[row] = time.rights[other]

"""Records, and joins of them (ZStream §4.4.1, §4.4.3).

A record binds events to variables. Records of a buffer stand in the order of their right, so that a walk from the
newest to the oldest can stop at the window's bound. Those of one code (equal keys) are linked, newest first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels import opcodes as op
from kleene.kernels.expression import Code, EventColumns, Ints, ProgramScope, holds
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.operations import accepts, compare_reals
from kleene.kernels.timeline import Timeline, WindowLength, outside

Numbers = npt.NDArray[np.int32]

# Columns of `Records.times`: left and right order records (`Timeline`), start and end measure windows, first and last
# are the events of the smallest start and of the greatest end.
LEFT, RIGHT, START, END, FIRST, LAST, TIMES = range(7)
# How a join orders its sides: the inner one wholly before the outer one, or ending no later, or ending earlier.
BEFORE, UP_TO, EARLIER = range(3)
# Columns of a quick test: the outcomes it accepts, whether it is of reals, then of each side the column of the record,
# the place among the integers or reals, the column of its state.
OUTCOMES, OF_REALS, OUTER, OUTER_PLACE, OUTER_STATE, INNER, INNER_PLACE, INNER_STATE, QUICK = range(9)


class Records(NamedTuple):
    refs: Numbers  # [record, column]: the event of a variable, or the number of its list; −1: absent
    times: Ints  #   [record, TIMES]


class CodedRecords(NamedTuple):
    """Records, each with the code by which others meet it; −1: it meets none."""

    refs: Numbers  # [record, column]
    times: Ints  #   [record, TIMES]
    codes: Ints  #   [record]


class Links(NamedTuple):
    """Records by code, newest first. Without keys all records are of one code, and nothing needs to be linked."""

    keyed: bool
    heads: Numbers  #    [code]: the newest record
    previous: Numbers  # [record]: the one before it of the same code
    codes: Ints  #       [record − base]
    base: int
    linked: Ints  #      [1]: up to which record they are linked


class LinkedRecords(NamedTuple):
    refs: Numbers  # [record, column]
    times: Ints  #   [record, TIMES]
    size: int  #     how many records there are
    links: Links


class LinkedEvents(NamedTuple):
    """Events of one class by code, newest first."""

    events: Ints  #      [place]: in order
    heads: Numbers  #    [code]: the place of the newest
    previous: Numbers  # [place]: that of the one before it of the same code


class JoinWindow(NamedTuple):
    within: WindowLength  # none where a part of a match can be longer than the whole
    stops: bool  #    whether a record that ended too early ends a walk
    earliest: int  #  nothing that starts before can be in a match any more (EAT, §4.3)


class PairTest(NamedTuple):
    """The tests of a pair: no event twice, comparisons of two attributes, then a program."""

    clashes: Ints  #   [pair, 2]: columns of both sides that must not hold the same event
    quick: Ints  #     [test, QUICK]
    program: Code
    outer: Ints  #     [binding, 2]: a slot of the program, and the column of the outer record that it stands for
    inner: Ints


class Pairing(NamedTuple):
    """How records of two sides meet."""

    order: int  #     BEFORE, UP_TO or EARLIER
    swapped: bool  #  whether the outer side's columns come first
    test: PairTest
    floors: Ints  #   [outer record]: the inner one must not end before; empty: no such bound (NSEQ beside the outer)
    ceilings: Ints  # [inner record]: the outer one must not start after; empty: no such bound (NSEQ beside the inner)
    starts: Ints  #   [event]: when it starts, whatever windows are measured by
    most: int  #      records that one outer record may make


class Pairs(NamedTuple):
    """Records that a join makes; there is room for more."""

    refs: Numbers  # [record, column]
    times: Ints  #   [record, TIMES]
    number: Ints  #  [1]: how many are written
    tried: Ints  #   [1]: how many pairs were looked at


@compiled
def link(begin: int, end: int, codes: Ints, heads: Numbers, previous: Numbers) -> None:
    """Put records in front of the others of their code; records of code −1 are never found."""
    for record in range(begin, end):
        code = codes[record - begin]
        if code >= 0:
            previous[record] = heads[code]
            heads[code] = record


@inlined
def _link(links: Links) -> None:
    """Put the next record in front of the others of its code; a record of code −1 is never found."""
    record = links.linked[0]
    code = links.codes[record - links.base]
    if code >= 0:
        links.previous[record] = links.heads[code]
        links.heads[code] = record
    links.linked[0] += 1


@compiled
def link_up_to(end: int, links: Links) -> None:
    while links.linked[0] < end:
        _link(links)


@compiled
def join(
    begin: int,
    outer: CodedRecords,
    inner: LinkedRecords,
    pairing: Pairing,
    window: JoinWindow,
    time: Timeline,
    scope: ProgramScope,  # one binding
    out: Pairs,
) -> int:
    """Write pairs in the order of the outer records; the first one that makes too many, or that has no room."""
    outer, inner, pairing, time = borrowed(outer), borrowed(inner), borrowed(pairing), borrowed(time)
    scope, out = borrowed(scope), borrowed(out)
    order, within, floors, ceilings = pairing.order, window.within, pairing.floors, pairing.ceilings
    stops = window.stops and within.size >= 0
    swapped = pairing.swapped
    first_columns = outer.refs.shape[1] if swapped else inner.refs.shape[1]
    number = out.number[0]
    tried = 0
    for row in range(begin, outer.codes.size):
        if outer.codes[row] < 0 or outer.times[row, START] < window.earliest:
            continue
        before = number
        first, last = np.int64(-1), np.int64(-1)
        left, right, own_end = outer.times[row, LEFT], outer.times[row, RIGHT], outer.times[row, END]
        lowest = floors[row] if floors.size else np.int64(-1)
        limit = left if order == BEFORE else right if order == EARLIER else right + 1
        other = _newest_met(outer.codes[row], limit, max(limit, right), inner)
        while other >= 0:
            here = other
            other = np.int64(inner.links.previous[here]) if inner.links.keyed else here - 1
            met = inner.times[here, RIGHT]
            if met >= limit:
                continue
            if stops and outside(own_end, inner.times[here, END], within):
                break
            if met < lowest:
                break
            tried += 1
            if ceilings.size and left > ceilings[here]:
                continue
            start, end = inner.times[here, START], own_end
            if order != BEFORE:
                first = _earlier(inner.times[here, FIRST], outer.times[row, FIRST], pairing.starts)
                last = max(outer.times[row, LAST], inner.times[here, LAST])
                start, end = time.starts[first], time.ends[last]
            if start < window.earliest:
                continue
            if within.size >= 0 and outside(end, start, within):
                continue
            if not _passes(row, here, outer, inner, pairing.test, scope):
                continue
            if number - before == pairing.most or number == out.times.shape[0]:
                out.number[0] = before
                out.tried[0] += tried
                return row
            _write_columns(number, row, here, outer, inner, first_columns, swapped, out)
            if order == BEFORE:
                out.times[number, LEFT], out.times[number, RIGHT] = inner.times[here, LEFT], right
                out.times[number, FIRST], out.times[number, LAST] = inner.times[here, FIRST], outer.times[row, LAST]
            else:
                out.times[number, LEFT] = min(left, inner.times[here, LEFT])
                out.times[number, RIGHT] = max(right, met)
                out.times[number, FIRST], out.times[number, LAST] = first, last
            out.times[number, START], out.times[number, END] = start, end
            number += 1
    out.tried[0] += tried
    out.number[0] = number
    return int(outer.codes.size)


@step
def _newest_met(code: int, limit: int, end: int, inner: LinkedRecords) -> Any:
    """The newest inner record of a code, of those whose right is before `end`; without keys, before `limit`."""
    links = inner.links
    if links.keyed:
        while links.linked[0] < inner.size and inner.times[links.linked[0], RIGHT] < end:
            _link(links)
        return np.int64(links.heads[code]) if code < links.heads.size else np.int64(-1)
    low, high = np.int64(0), np.int64(inner.size)
    while low < high:
        middle = (low + high) // 2
        if inner.times[middle, RIGHT] < limit:
            low = middle + 1
        else:
            high = middle
    return low - 1


@step
def _earlier(event: int, other: int, starts: Ints) -> Any:
    """Of two events the one that starts earlier, or has the smaller number."""
    if starts[other] < starts[event] or (starts[other] == starts[event] and other < event):
        return other
    return event


@step
def _write_columns(
    number: int,
    row: int,
    other: int,
    outer: CodedRecords,
    inner: LinkedRecords,
    first_columns: int,  # of the side that comes first
    swapped: bool,
    out: Pairs,
) -> None:
    """Put the events of two records into one."""
    for column in range(first_columns):
        out.refs[number, column] = outer.refs[row, column] if swapped else inner.refs[other, column]
    for column in range(first_columns, out.refs.shape[1]):
        place = column - first_columns
        out.refs[number, column] = inner.refs[other, place] if swapped else outer.refs[row, place]


@step
def _passes(
    row: int, other: int, outer: CodedRecords, inner: LinkedRecords, test: PairTest, scope: ProgramScope
) -> bool:
    """Whether two records may be joined."""
    for place in range(test.clashes.shape[0]):
        event = outer.refs[row, test.clashes[place, 0]]
        if event >= 0 and event == inner.refs[other, test.clashes[place, 1]]:
            return False
    for place in range(test.quick.shape[0]):
        one = outer.refs[row, test.quick[place, OUTER]]
        two = inner.refs[other, test.quick[place, INNER]]
        if not _compares(place, one, two, test.quick, scope.events):
            return False
    if not test.program.words.size:
        return True
    for place in range(test.outer.shape[0]):
        scope.bindings[0, test.outer[place, 0]] = outer.refs[row, test.outer[place, 1]]
    for place in range(test.inner.shape[0]):
        scope.bindings[0, test.inner[place, 0]] = inner.refs[other, test.inner[place, 1]]
    return holds(test.program, scope, 0, 0)


@step
def _compares(place: int, one: int, two: int, quick: Ints, events: EventColumns) -> bool:
    """Whether a quick test is true of two events: missing makes it so, undefined and NULL do not."""
    if one < 0 or two < 0:
        return True
    state = max(events.states[quick[place, OUTER_STATE], one], events.states[quick[place, INNER_STATE], two])
    if state != op.VALUE:
        return bool(state == op.MISSING)
    if quick[place, OF_REALS]:
        real, against = events.reals[quick[place, OUTER_PLACE], one], events.reals[quick[place, INNER_PLACE], two]
        return compare_reals(quick[place, OUTCOMES], real, against)
    left, right = events.ints[quick[place, OUTER_PLACE], one], events.ints[quick[place, INNER_PLACE], two]
    return accepts(quick[place, OUTCOMES], 1 if left > right else -1 if left < right else 0)

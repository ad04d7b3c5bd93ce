"""Records, and joins of them (ZStream §4.4.1, §4.4.3).

A record binds events to variables. Records of a buffer stand in the order of their right, so that a walk from the
newest to the oldest can stop at the window's bound. Those of one code (equal keys) are linked, newest first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels import opcodes as op
from kleene.kernels.expression import (
    Code,
    EventColumns,
    Groups,
    Ints,
    Stack,
    Texts,
    accepts,
    compare_reals,
    holds,
)
from kleene.kernels.jit import borrowed, compiled, inlined
from kleene.kernels.negation import OPEN
from kleene.kernels.timeline import Timeline, outside

Numbers = npt.NDArray[np.int32]

# Columns of `Records.times`: left and right order records (`Timeline`), start and end measure windows, first and last
# are the events of the smallest start and of the greatest end.
LEFT, RIGHT, START, END, FIRST, LAST, TIMES = range(7)
# How a join orders its sides: the inner one wholly before the outer one, or ending no later, or ending earlier.
BEFORE, UP_TO, EARLIER = range(3)
# Columns of a quick test: the outcomes it accepts, whether it is of reals, then of each side the column of the record,
# the place among the integers or reals, the column of its state.
OUTCOMES, OF_REALS, OUTER, OUTER_PLACE, OUTER_STATE, INNER, INNER_PLACE, INNER_STATE, QUICK = range(9)

FAR = OPEN


class Records(NamedTuple):
    refs: Numbers  # [record, column]: the event of a variable, or the number of its list; −1: absent
    times: Ints  #   [record, TIMES]


class Links(NamedTuple):
    """Records by code, newest first. Without keys all records are of one code, and nothing needs to be linked."""

    keyed: bool
    heads: Numbers  #    [code]: the newest record
    previous: Numbers  # [record]: the one before it of the same code
    codes: Ints  #       [record − base]
    base: int
    linked: Ints  #      [1]: up to which record they are linked


class JoinWindow(NamedTuple):
    size: int  #       negative: none
    inclusive: bool
    stops: bool  #     whether a record that ended too early ends a walk
    earliest: int  #   nothing that starts before can be in a match any more (EAT, §4.3)


class Tests(NamedTuple):
    """What a pair must satisfy: comparisons of two attributes, then a program."""

    quick: Ints  #     [test, QUICK]
    program: Code
    outer: Ints  #     [binding, 2]: a slot of the program, and the column of the outer record that it stands for
    inner: Ints
    chosen: Ints  #    [1, slot]
    # Columns of both sides that must not hold the same event: [pair, 2].
    clashes: Ints


@compiled
def link(begin: int, end: int, codes: Ints, heads: Numbers, previous: Numbers) -> None:
    """Put records in front of the others of their code; a code of −1 is found by nobody."""
    for record in range(begin, end):
        code = codes[record - begin]
        if code >= 0:
            previous[record] = heads[code]
            heads[code] = record


@inlined
def _link(links: Links) -> None:
    """Put the next record in front of the others of its code; a code of −1 is found by nobody."""
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


@inlined
def _passes(
    tests: Tests,
    outer: Records,
    row: int,
    inner: Records,
    other: int,
    events: EventColumns,
    texts: Texts,
    groups: Groups,
    stack: Stack,
) -> bool:
    for place in range(tests.clashes.shape[0]):
        event = outer.refs[row, tests.clashes[place, 0]]
        if event >= 0 and event == inner.refs[other, tests.clashes[place, 1]]:
            return False
    quick = tests.quick
    for place in range(quick.shape[0]):
        one, two = outer.refs[row, quick[place, OUTER]], inner.refs[other, quick[place, INNER]]
        state = op.MISSING
        if one >= 0 and two >= 0:
            state = max(events.states[quick[place, OUTER_STATE], one], events.states[quick[place, INNER_STATE], two])
        if state == op.MISSING:
            continue
        if state != op.VALUE:
            return False
        if quick[place, OF_REALS]:
            real, against = events.reals[quick[place, OUTER_PLACE], one], events.reals[quick[place, INNER_PLACE], two]
            if not compare_reals(quick[place, OUTCOMES], real, against):
                return False
        else:
            left, right = events.ints[quick[place, OUTER_PLACE], one], events.ints[quick[place, INNER_PLACE], two]
            order = 1 if left > right else -1 if left < right else 0
            if not accepts(quick[place, OUTCOMES], order):
                return False
    if tests.program.words.size:
        for place in range(tests.outer.shape[0]):
            tests.chosen[0, tests.outer[place, 0]] = outer.refs[row, tests.outer[place, 1]]
        for place in range(tests.inner.shape[0]):
            tests.chosen[0, tests.inner[place, 0]] = inner.refs[other, tests.inner[place, 1]]
        return holds(tests.program, events, texts, tests.chosen, 0, groups, 0, stack)
    return True


@compiled
def join(
    begin: int,
    outer: Records,
    codes: Ints,  #    [outer record]: which inner ones it meets
    inner: Records,
    size: int,  #      how many inner records there are
    links: Links,
    order: int,  #     BEFORE, UP_TO or EARLIER
    swapped: bool,  #  whether the outer side's columns come first
    floors: Ints,  #   [outer record]: the inner one must not end before; empty: no such bound (NSEQ beside the outer)
    ceilings: Ints,  # [inner record]: the outer one must not start after; empty: no such bound (NSEQ beside the inner)
    window: JoinWindow,
    starts: Ints,  #   [event]: when it starts
    time: Timeline,
    tests: Tests,
    events: EventColumns,
    texts: Texts,
    groups: Groups,
    stack: Stack,
    most: int,  #      records that one outer record may make
    out: Records,
    written: Ints,  #  [1]
    tried: Ints,  #    [1]: pairs that were looked at
) -> int:
    """Write pairs in the order of the outer records; the one that makes too many, or for which there is no room."""
    outer, inner, out, time = borrowed(outer), borrowed(inner), borrowed(out), borrowed(time)
    tests, events, texts, groups, stack = (
        borrowed(tests), borrowed(events), borrowed(texts), borrowed(groups), borrowed(stack),
    )  # fmt: skip
    codes, links = borrowed(codes), borrowed(links)
    floors, ceilings, starts = borrowed(floors), borrowed(ceilings), borrowed(starts)
    first_columns = outer.refs.shape[1] if swapped else inner.refs.shape[1]
    found = written[0]
    looked = 0
    for row in range(begin, codes.size):
        code = codes[row]
        if code < 0 or outer.times[row, START] < window.earliest:
            continue
        before = found
        own_left, own_right, own_end = outer.times[row, LEFT], outer.times[row, RIGHT], outer.times[row, END]
        lowest = floors[row] if floors.size else np.int64(-1)
        first, last = np.int64(-1), np.int64(-1)
        # From the newest inner record that could be met.
        limit = own_left if order == BEFORE else own_right if order == EARLIER else own_right + 1
        if links.keyed:
            while links.linked[0] < size and inner.times[links.linked[0], RIGHT] < max(limit, own_right):
                _link(links)
            other = np.int64(links.heads[code]) if code < links.heads.size else np.int64(-1)
        else:
            low, high = np.int64(0), np.int64(size)
            while low < high:
                middle = (low + high) // 2
                if inner.times[middle, RIGHT] < limit:
                    low = middle + 1
                else:
                    high = middle
            other = low - 1
        while other >= 0:
            here = other
            other = np.int64(links.previous[here]) if links.keyed else here - 1
            right = inner.times[here, RIGHT]
            if right >= limit:
                continue
            measured = window.stops and window.size >= 0
            if measured and outside(own_end, inner.times[here, END], window.size, window.inclusive):
                break
            if right < lowest:
                break
            looked += 1
            if ceilings.size and own_left > ceilings[here]:
                continue
            start, end = inner.times[here, START], own_end
            if order != BEFORE:
                first, second = inner.times[here, FIRST], outer.times[row, FIRST]
                if starts[second] < starts[first] or (starts[second] == starts[first] and second < first):
                    first = second
                last = max(outer.times[row, LAST], inner.times[here, LAST])
                start, end = time.starts[first], time.ends[last]
            if start < window.earliest:
                continue
            if window.size >= 0 and outside(end, start, window.size, window.inclusive):
                continue
            if not _passes(tests, outer, row, inner, int(here), events, texts, groups, stack):
                continue
            if found - before == most or found == out.times.shape[0]:
                written[0] = before
                tried[0] += looked
                return row
            for column in range(first_columns):
                out.refs[found, column] = outer.refs[row, column] if swapped else inner.refs[here, column]
            for column in range(first_columns, out.refs.shape[1]):
                place = column - first_columns
                out.refs[found, column] = inner.refs[here, place] if swapped else outer.refs[row, place]
            if order == BEFORE:
                out.times[found, LEFT], out.times[found, RIGHT] = inner.times[here, LEFT], own_right
                out.times[found, FIRST], out.times[found, LAST] = inner.times[here, FIRST], outer.times[row, LAST]
            else:
                out.times[found, LEFT] = min(inner.times[here, LEFT], own_left)
                out.times[found, RIGHT] = max(own_right, right)
                out.times[found, FIRST], out.times[found, LAST] = first, last
            out.times[found, START], out.times[found, END] = start, end
            found += 1
    tried[0] += looked
    written[0] = found
    return int(codes.size)

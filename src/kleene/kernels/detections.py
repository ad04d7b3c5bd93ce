"""Detections as flat arrays: their order by complete history (NEXT §3.2), and tests of one beside another.

A detection refers to its events in the order of time. Everything else that is known of it, its history too, follows
from the numbers of their rows; histories are looked at only where detections end at the same point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints, Programs, ProgramScope, holds, part
from kleene.kernels.jit import borrowed, compiled, inlined

Flags = npt.NDArray[np.bool_]

# Programs read the columns of row n at n + 1; at 0 every column is NULL, which is what an absent alias has.
NULL_ROW = 0

# Which event of an alias a slot stands for.
FIRST, LAST, PREVIOUS, MEMBER = range(4)


class EventPoints(NamedTuple):
    """The first and last points of events: a moment and a tie-breaker each."""

    starts: Ints  #     [row]
    start_ties: Ints  # [row]
    ends: Ints  #       [row]
    end_ties: Ints  #   [row]


class DetectionArrays(NamedTuple):
    """Detections, in the order of their ends."""

    starts: Ints  #     [detection]
    start_ties: Ints  # [detection]
    ends: Ints  #       [detection]
    end_ties: Ints  #   [detection]
    offsets: Ints  #    [detection + 1]: where its references begin
    rows: Ints  #       [reference]: the row of the event
    aliases: Ints  #    [reference]: the number of the alias that it is bound to
    later: Ints  #      [reference]: how many steps after the event's end the detection that it ended was over (E@d)


class PairTests(NamedTuple):
    """Tests of a left detection with a right one, or of a right one alone.

    A test is some programs, all of which must hold: one of the clauses without ALL, and one for each clause with it,
    which must hold of each event that its alias bound before the newest.
    """

    programs: Programs
    ranges: Ints  #      [test, 2]: its first program, and the one after its last
    members: Ints  #     [program]: the alias of ALL, or −1
    member_slots: Ints  # [program]: the slot in which its event stands
    kinds: Ints  #       [slot]: FIRST, LAST, PREVIOUS or MEMBER
    lefts: Ints  #       [left, slot]: rows, −1 where there is none
    rights: Ints  #      [right, slot]: rows, −1 where there is none; of PREVIOUS without the newest event


@inlined
def is_before(moment: int, tie: int, other_moment: int, other_tie: int) -> bool:
    """Whether a point is before another one."""
    return bool(moment < other_moment or (moment == other_moment and tie < other_tie))


@compiled
def compare_histories(detections: DetectionArrays, points: EventPoints, one: int, other: int) -> int:
    """−1, 0 or 1: points from the end on; where one history is a suffix of the other, the longer one is first."""
    first, second = detections.offsets[one + 1] - 1, detections.offsets[other + 1] - 1
    while True:
        if first < detections.offsets[one]:
            return 0 if second < detections.offsets[other] else 1
        if second < detections.offsets[other]:
            return -1
        row, other_row = detections.rows[first], detections.rows[second]
        end = points.ends[row] + detections.later[first]
        other_end = points.ends[other_row] + detections.later[second]
        if is_before(end, points.end_ties[row], other_end, points.end_ties[other_row]):
            return -1
        if is_before(other_end, points.end_ties[other_row], end, points.end_ties[row]):
            return 1
        start, other_start = points.starts[row], points.starts[other_row]
        if is_before(start, points.start_ties[row], other_start, points.start_ties[other_row]):
            return -1
        if is_before(other_start, points.start_ties[other_row], start, points.start_ties[row]):
            return 1
        first -= 1
        second -= 1


@compiled
def order_ties(detections: DetectionArrays, points: EventPoints, order: Ints, ranks: Ints) -> None:
    """Put detections that end at the same point in the order of their histories.

    order   [place]: detections by their end points; within each point, by history after this
    ranks   [detection]: out; equal for identical histories
    """
    detections, points = borrowed(detections), borrowed(points)
    rank = -1
    begin = 0
    while begin < order.size:
        first = order[begin]
        end = begin + 1
        while (
            end < order.size
            and detections.ends[order[end]] == detections.ends[first]
            and detections.end_ties[order[end]] == detections.end_ties[first]
        ):
            # Insertion: few detections end at one point.
            place, inserted = end, order[end]
            while place > begin and compare_histories(detections, points, inserted, order[place - 1]) < 0:
                order[place] = order[place - 1]
                place -= 1
            order[place] = inserted
            end += 1
        for place in range(begin, end):
            if place == begin or compare_histories(detections, points, order[place - 1], order[place]) != 0:
                rank += 1
            ranks[order[place]] = rank
        begin = end


@compiled
def fill_slots(detections: DetectionArrays, slots: Ints, newest: bool, out: Ints) -> None:
    """The row of each slot for each detection, −1 where there is none.

    slots    [slot, 2]: an alias, and FIRST, LAST, PREVIOUS or MEMBER
    newest   whether the last event of each detection is the newest one, which PREVIOUS leaves out
    out      [detection, slot]
    """
    detections = borrowed(detections)
    for number in range(out.shape[0]):
        begin, end = detections.offsets[number], detections.offsets[number + 1]
        for slot in range(slots.shape[0]):
            alias, kind = slots[slot, 0], slots[slot, 1]
            out[number, slot] = -1
            if kind == MEMBER:
                continue
            last = end - 1 if newest and kind == PREVIOUS else end
            for at in range(begin, last):
                if detections.aliases[at] == alias:
                    out[number, slot] = detections.rows[at]
                    if kind == FIRST:
                        break


@compiled
def fits(
    tests: PairTests,
    test: int,
    scope: ProgramScope,
    lefts: DetectionArrays,
    left: int,
    rights: DetectionArrays,
    right: int,
) -> bool:
    """Whether a test holds of a left detection with a right one; a left of −1 is none."""
    for slot in range(tests.kinds.size):
        kind = tests.kinds[slot]
        before = tests.lefts[left, slot] if left >= 0 else -1
        row = tests.rights[right, slot]
        if row < 0 or (kind == FIRST and before >= 0):
            row = before
        if row >= 0:
            scope.bindings[0, slot] = row + 1
        else:
            # A comparison with PREV of none is true, any other with what is absent is false.
            scope.bindings[0, slot] = -1 if kind == PREVIOUS else NULL_ROW
    for program in range(tests.ranges[test, 0], tests.ranges[test, 1]):
        alias = tests.members[program]
        begin = lefts.offsets[left] if left >= 0 else 0
        middle = lefts.offsets[left + 1] if left >= 0 else 0
        # One time without ALL; otherwise as often as there are events, of which those of other aliases are left out.
        times = 1
        if alias >= 0:
            times = middle - begin + rights.offsets[right + 1] - 1 - rights.offsets[right]
        for number in range(times):
            if alias >= 0:
                at = begin + number
                is_left = at < middle
                at = at if is_left else rights.offsets[right] + at - middle
                if (lefts.aliases[at] if is_left else rights.aliases[at]) != alias:
                    continue
                scope.bindings[0, tests.member_slots[program]] = (lefts.rows[at] if is_left else rights.rows[at]) + 1
            if not holds(part(tests.programs, program), scope, 0, 0):
                return False
    return True


@compiled
def fits_each(tests: PairTests, test: int, scope: ProgramScope, rights: DetectionArrays, out: Flags) -> None:
    """Whether a test holds of each detection by itself."""
    tests, scope, rights = borrowed(tests), borrowed(scope), borrowed(rights)
    for right in range(out.size):
        out[right] = fits(tests, test, scope, rights, -1, rights, right)


@compiled
def fill_joined(
    lefts: DetectionArrays, rights: DetectionArrays, pairs: Ints, offsets: Ints, out: DetectionArrays
) -> None:
    """Each pair of a left and a right detection as one: the events of both.

    pairs     [pair, 2]
    offsets   [pair + 1]: where the references of each begin
    """
    lefts, rights, out = borrowed(lefts), borrowed(rights), borrowed(out)
    for number in range(pairs.shape[0]):
        left, right = pairs[number, 0], pairs[number, 1]
        out.starts[number], out.start_ties[number] = lefts.starts[left], lefts.start_ties[left]
        out.ends[number], out.end_ties[number] = rights.ends[right], rights.end_ties[right]
        at = offsets[number]
        for reference in range(lefts.offsets[left], lefts.offsets[left + 1]):
            out.rows[at], out.aliases[at] = lefts.rows[reference], lefts.aliases[reference]
            out.later[at] = lefts.later[reference]
            at += 1
        for reference in range(rights.offsets[right], rights.offsets[right + 1]):
            out.rows[at], out.aliases[at] = rights.rows[reference], rights.aliases[reference]
            out.later[at] = rights.later[reference]
            at += 1


@compiled
def by_alias(offsets: Ints, rows: Ints, aliases: Ints) -> None:
    """Order the references of each detection by alias; those of one alias stay as they are."""
    for number in range(offsets.size - 1):
        begin = offsets[number]
        for at in range(begin + 1, offsets[number + 1]):
            row, alias, place = rows[at], aliases[at], at
            while place > begin and aliases[place - 1] > alias:
                rows[place], aliases[place] = rows[place - 1], aliases[place - 1]
                place -= 1
            rows[place], aliases[place] = row, alias

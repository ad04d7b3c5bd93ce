"""The order of results: by end, then by start from the latest, then by events in pattern order.

Of two lists of events the shorter one comes first where it ends. In flat matches that is: at the first difference a
reference of a later variable comes first, because the other match's list has ended there; then the smaller number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleene.kernels.copying import put
from kleene.kernels.jit import compiled, inlined

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

# Runs of so many are sorted by insertion.
_SHORT = 64
# What `order_by_spans` tells.
IN_ORDER, SORTED, EQUAL = range(3)


class Ranked(NamedTuple):
    """Matches as flat arrays (`engine.output.matches.Matches`), and the start of each."""

    offsets: Ints  # [match + 1]
    events: Ints  # [reference]
    variables: NDArray[np.uint8]  # [reference]
    starts: Ints  # [match]


@compiled
def spans_of_matches(
    offsets: Ints, events: Ints, starts: Ints, ends: Ints, lasting: bool, start: Ints, end: Ints
) -> None:
    """The start and the end of each match.

    starts, ends   [event], events in the order of their ends; unless events are lasting, in that of their starts too
    """
    for match in range(len(start)):
        low = high = events[offsets[match]]
        for place in range(offsets[match] + 1, offsets[match + 1]):
            low = min(low, events[place])
            high = max(high, events[place])
        begin = starts[low]
        if lasting:
            for place in range(offsets[match], offsets[match + 1]):
                begin = min(begin, starts[events[place]])
        start[match] = begin
        end[match] = ends[high]


@compiled
def spans_of_columns(columns: Numbers, starts: Ints, ends: Ints, lasting: bool, start: Ints, end: Ints) -> None:
    """As `spans_of_matches`, of matches of single events; `columns`: [place, match], perhaps longer."""
    for match in range(len(start)):
        low = high = columns[0, match]
        begin = starts[low]
        for place in range(1, len(columns)):
            event = columns[place, match]
            low = min(low, event)
            high = max(high, event)
            begin = min(begin, starts[event])
        start[match] = begin if lasting else starts[low]
        end[match] = ends[high]


@compiled
def order_by_spans(starts: Ints, ends: Ints, order: Ints) -> int:
    """Order matches by end, then by start from the latest: whether they stood so, or are sorted now.

    EQUAL where that does not tell two of them apart, or where they do not stand by end; then `order` means nothing.
    """
    told = IN_ORDER
    for match in range(1, len(ends)):
        if ends[match] < ends[match - 1]:
            return EQUAL
        place = match
        while place > 0 and ends[order[place - 1]] == ends[match] and starts[order[place - 1]] <= starts[match]:
            if starts[order[place - 1]] == starts[match] or match - place == _SHORT:
                return EQUAL
            order[place] = order[place - 1]
            place -= 1
            told = SORTED
        order[place] = match
    return told


@compiled
def columns_in_order(columns: Numbers, starts: Ints, ends: Ints) -> bool:
    """Whether matches of single events stand in the order of results; `columns`: [place, match], perhaps longer."""
    for match in range(1, len(ends)):
        if ends[match] != ends[match - 1]:
            if ends[match] < ends[match - 1]:
                return False
        elif starts[match] != starts[match - 1]:
            if starts[match] > starts[match - 1]:
                return False
        else:
            place = 0
            while place < len(columns) and columns[place, match] == columns[place, match - 1]:
                place += 1
            if place < len(columns) and columns[place, match] < columns[place, match - 1]:
                return False
    return True


@inlined
def comes_first(ranked: Ranked, left: int, right: int) -> bool:
    """Whether, of two matches that end together, the left one stands before the right one."""
    if ranked.starts[left] != ranked.starts[right]:
        return bool(ranked.starts[left] > ranked.starts[right])
    events, variables = ranked.events, ranked.variables
    one, other = ranked.offsets[left], ranked.offsets[right]
    shared = min(ranked.offsets[left + 1] - one, ranked.offsets[right + 1] - other)
    at = 0
    while at < shared and events[one + at] == events[other + at] and variables[one + at] == variables[other + at]:
        at += 1
    if at == shared:
        return bool(ranked.offsets[left + 1] - one < ranked.offsets[right + 1] - other)
    if variables[one + at] != variables[other + at]:
        return bool(variables[one + at] > variables[other + at])
    return bool(events[one + at] < events[other + at])


@compiled
def is_in_order(ranked: Ranked, ends: Ints) -> bool:
    for match in range(1, len(ends)):
        if ends[match] < ends[match - 1] or (ends[match] == ends[match - 1] and comes_first(ranked, match, match - 1)):
            return False
    return True


@compiled
def leading_keys(ranked: Ranked, ends: Ints, shift: int, number: int, event_bits: int, bits: int, out: Ints) -> None:
    """A number for each match: of two that end together, the one with the smaller number stands first.

    shift    by how many bits lengths are shifted, so that they fit
    number   of references that go into the number, at most two; each takes `bits`, `event_bits` of them the event
    """
    offsets, events, variables, starts = ranked
    # A missing reference is 0, and comes before any other.
    none = 1 << (bits - event_bits)
    for match in range(len(out)):
        key = np.int64((np.uint64(ends[match]) - np.uint64(starts[match])) >> np.uint64(shift))
        first, stop = offsets[match], offsets[match + 1]
        if number > 0:
            key = (key << bits) | ((none - 1 - np.int64(variables[first])) << event_bits) | events[first]
        if number > 1:
            second = 0
            if first + 1 < stop:
                second = ((none - 1 - np.int64(variables[first + 1])) << event_bits) | events[first + 1]
            key = (key << bits) | second
        out[match] = key


@compiled
def sort_groups(ranked: Ranked, ends: Ints, keys: Ints, order: Ints, scratch: Ints) -> None:
    """Sort matches that are in the order of their ends.

    keys      [match]: as from `leading_keys`
    order     [place]: the number of a match, changed in place
    scratch   [place]: room to merge in
    """
    sorted_keys = np.empty(_SHORT, np.int64)  # keys of a group, as far as it is sorted
    begin = 0
    while begin < len(order):
        end = ends[order[begin]]
        stop = begin + 1
        while stop < len(order) and ends[order[stop]] == end:
            stop += 1
        alike = False
        if stop - begin > _SHORT:
            put(order[begin:stop][np.argsort(keys[order[begin:stop]], kind="mergesort")], order, begin)
            alike = True
        else:
            for place in range(stop - begin):
                moved = order[begin + place]
                key = keys[moved]
                at = place
                while at > 0 and sorted_keys[at - 1] > key:
                    sorted_keys[at] = sorted_keys[at - 1]
                    order[begin + at] = order[begin + at - 1]
                    at -= 1
                alike |= at > 0 and sorted_keys[at - 1] == key
                sorted_keys[at] = key
                order[begin + at] = moved
        if alike:
            _settle(ranked, keys, order, scratch, begin, stop)
        begin = stop


@compiled
def _settle(ranked: Ranked, keys: Ints, order: Ints, scratch: Ints, begin: int, stop: int) -> None:
    """Sort matches that are in the order of their keys."""
    low = begin
    for place in range(begin + 1, stop + 1):
        if place == stop or keys[order[place]] != keys[order[low]]:
            if place - low > 1:
                _sort(ranked, order, scratch, low, place)
            low = place


@compiled
def _sort(ranked: Ranked, order: Ints, scratch: Ints, begin: int, stop: int) -> None:
    """Sort matches of the same key."""
    for low in range(begin, stop, _SHORT):
        for place in range(low + 1, min(low + _SHORT, stop)):
            moved = order[place]
            at = place
            while at > low and comes_first(ranked, moved, order[at - 1]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = moved
    width = _SHORT
    while width < stop - begin:
        for low in range(begin, stop - width, 2 * width):
            _merge(ranked, order, scratch, low, low + width, min(low + 2 * width, stop))
        width *= 2


@inlined
def _merge(ranked: Ranked, order: Ints, scratch: Ints, begin: int, middle: int, stop: int) -> None:
    """Two sorted runs become one."""
    if not comes_first(ranked, order[middle], order[middle - 1]):
        return
    for place in range(begin, middle):
        scratch[place] = order[place]
    left, right = begin, middle
    for place in range(begin, stop):
        if left == middle:
            return
        if right < stop and comes_first(ranked, order[right], scratch[left]):
            order[place] = order[right]
            right += 1
        else:
            order[place] = scratch[left]
            left += 1

"""Partition keys as small numbers, and where in its partition an event stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.kernels.identity import mix
from kleene.kernels.jit import borrowed, compiled

Flags = npt.NDArray[np.bool_]


class KnownKeys(NamedTuple):
    """The keys met so far, with room for more."""

    groups: Ints  # [code]: the code of what stands before an attribute in the key
    values: Ints  # [code]: the attribute
    table: npt.NDArray[np.int32]  # [hash]: codes by open addressing, −1 where there is none
    number: Ints  # [1]: how many keys are known
    near: npt.NDArray[np.int32]  # [value - lowest]: the code of a value under group 0, −1 where it is not known yet
    lowest: int


@compiled
def intern(
    begin: int,
    groups: Ints,  #   [row]: the code of what stands before this attribute in the key; −1: there is no key. Or nothing
    values: Ints,  #   [row]
    missing: Flags,  # [row]: there is no value. Or nothing: each row has one
    known: KnownKeys,
    codes: Ints,  #    [row]: out; −1 where there is no key
) -> int:
    """The code of each pair of a group and a value; the first row for which there was no room."""
    known = borrowed(known)
    known_groups, known_values, table, number = known.groups, known.values, known.table, known.number
    near, width = known.near, np.uint64(known.near.size)
    mask = np.uint64(table.size - 1)
    for row in range(begin, codes.size):
        group, value = np.int64(0), values[row]
        if groups.size:
            group = groups[row]
        if group < 0 or (missing.size and missing[row]):
            codes[row] = -1
            continue
        place = np.uint64(value - known.lowest)
        is_near = group == 0 and place < width
        if is_near and near[place] >= 0:
            codes[row] = near[place]
            continue
        slot = mix(np.uint64(value) + np.uint64(group) * np.uint64(0x9E3779B97F4A7C15)) & mask
        code = table[slot]
        while code >= 0 and (known_values[code] != value or known_groups[code] != group):
            slot = (slot + np.uint64(1)) & mask
            code = table[slot]
        if code < 0:
            if number[0] >= known_values.size or 2 * number[0] >= table.size:
                return row
            code = np.int32(number[0])
            known_groups[code] = group
            known_values[code] = value
            table[slot] = code
            number[0] += 1
        if is_near:
            near[place] = code
        codes[row] = code
    return int(codes.size)


# Columns of what is counted by key: events so far, events before the last step, that step, and the greatest of the
# lefts before that step and so far.
COUNT, BEFORE, STEP, BARRIER, AHEAD, COUNTED = range(6)


@compiled
def count_positions(
    keys: Ints,  #    [event]: all events of the stream, in order
    steps: Ints,  #   [event]
    lefts: Ints,  #   [event]
    counts: Ints,  #  [key, COUNTED]
    positions: Ints,  # [event]: out: how many events of the partition are of an earlier step
    barriers: Ints,  #  [event]: out: the greatest of their lefts
) -> None:
    for event in range(keys.size):
        key = keys[event]
        if key < 0:
            positions[event] = -1
            barriers[event] = -1
            continue
        if counts[key, STEP] != steps[event]:
            counts[key, BEFORE] = counts[key, COUNT]
            counts[key, STEP] = steps[event]
            counts[key, BARRIER] = counts[key, AHEAD]
        counts[key, COUNT] += 1
        counts[key, AHEAD] = max(counts[key, AHEAD], lefts[event])
        positions[event] = counts[key, BEFORE]
        barriers[event] = counts[key, BARRIER]


# Columns of a past: when an event ended, the row before it of its key, one further back, how many it makes with those
# before it, how many of these did not last, and its key. A row that is below itself stands for unknown events, or for
# none, and ended NEVER, when an event may have ended, too.
END, BELOW, JUMP, TOTAL, POINTS, KEY, PAST = range(7)
NEVER = -(2**63)


class PastRows(NamedTuple):
    rows: Ints  #   [row, PAST]: with room for the events that are counted
    newest: Ints  # [key]: the row of its last event
    size: int  #    how many rows there are


@compiled
def count_before(
    keys: Ints,  #   [event]: all events of the stream, in order
    steps: Ints,  #  [event]
    starts: Ints,  # [event]
    ends: Ints,  #   [event]
    known: PastRows,
    positions: Ints,  # [event]: out: how many events of the partition are before it
    places: Ints,  #    [event]: out: how many are of an earlier step
) -> None:
    """Count the events before each one: it may have begun long ago, and events that passed since are not before it.

    Each row knows one further back, as far as makes every way back short (Myers, An applicative random-access stack).
    """
    known = borrowed(known)
    past, newest, size = known.rows, known.newest, known.size
    begin = 0
    while begin < keys.size:
        end = begin
        while end < keys.size and steps[end] == steps[begin]:
            key, start = keys[end], starts[end]
            latest = newest[key] if key >= 0 else 0
            at = latest
            while past[at, END] >= start and past[at, BELOW] != at:
                jump = past[at, JUMP]
                at = jump if past[jump, END] >= start else past[at, BELOW]
            positions[end], places[end] = past[at, TOTAL], past[latest, TOTAL]
            if start == ends[end]:
                # What does not last is ordered by the tie-breaker.
                positions[end] += past[latest, POINTS] - past[at, POINTS]
            end += 1
        for event in range(begin, end):
            key = keys[event]
            if key < 0:
                continue
            below = newest[key]
            jump = past[below, JUMP]
            even = past[below, TOTAL] - past[jump, TOTAL] == past[jump, TOTAL] - past[past[jump, JUMP], TOTAL]
            past[size, END] = ends[event]
            past[size, BELOW] = below
            past[size, JUMP] = past[jump, JUMP] if even else below
            past[size, TOTAL] = past[below, TOTAL] + 1
            past[size, POINTS] = past[below, POINTS] + (starts[event] == ends[event])
            past[size, KEY] = key
            newest[key] = size
            size += 1
        begin = end

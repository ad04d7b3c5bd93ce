"""Active instance stacks (SASE §4.1–4.3), partitioned by key: scan forwards, construct sequences backwards.

An instance is an event at a place of the sequence. The stacks of all keys of a place share its part of three arrays:
the event, the instance below it in the same stack, and the most recent instance of the previous place when it came
(RIP). Construction walks from a last event down these links; the window and the conditions stop it early.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Code, Events, Groups, Ints, Stack, Texts, holds
from kleene.kernels.jit import compiled, inlined

Numbers = npt.NDArray[np.int32]


@inlined
def _outside(distance: int, size: int, inclusive: bool) -> bool:
    return distance > size or (distance == size and not inclusive)


@compiled
def construct(
    bits: Ints,  #    [event]: which places the event can fill, one bit each
    keys: Ints,  #    [event]: the code of its partition
    steps: Ints,  #   [event]: simultaneous events have the same step
    starts: Ints,  #  [event]: where the window begins to be measured: start, or position
    ends: Ints,  #    [event]: where it ends: end, or position
    length: int,
    number_of_keys: int,
    size: int,  #     of the window; negative: none
    inclusive: bool,
    in_scan: bool,  # whether the window stops the scan, and the construction
    in_construction: bool,
    codes: Code,  #   the programs of all places, one after the other
    parts: Ints,  #   [place, 6]: where each program's words, integers and reals begin and end
    events: Events,
    texts: Texts,
    groups: Groups,
    stack: Stack,
    slots: int,  #    how many slots the programs know
    most: int,  #     how many sequences are allowed
) -> Numbers:
    """The sequences, [sequence, place] numbers of events; one more than `most` when there are too many."""
    last = length - 1
    base = np.zeros(length + 1, np.int64)
    for number in range(bits.size):
        for place in range(length):
            base[place + 1] += (bits[number] >> place) & 1
    for place in range(length):
        base[place + 1] += base[place]
    following = base[:length].copy()
    event = np.empty(base[last], np.int32)
    below = np.empty(base[last], np.int32)
    recent = np.empty(base[last], np.int32)
    top = np.full((number_of_keys, length), -1, np.int32)
    cursor = np.empty(length, np.int32)
    chosen = np.full((1, slots), -1, np.int64)
    out = np.empty((1024, length), np.int32)
    found = 0
    for number in range(bits.size):
        key = keys[number]
        for place in range(last, -1, -1):
            if (bits[number] >> place) & 1 == 0:
                continue
            previous = np.int32(-1)
            if place > 0:
                previous = top[key, place - 1]
                if previous < 0:
                    continue
                if in_scan and size >= 0 and _outside(ends[number] - starts[event[previous]], size, inclusive):
                    continue
            if place < last:
                instance = following[place]
                following[place] = instance + 1
                event[instance] = number
                below[instance] = top[key, place]
                recent[instance] = previous
                top[key, place] = instance
                continue
            chosen[0, last] = number
            level = last
            while True:
                # Test what is complete with the event just bound, then go down, or report the sequence.
                good = True
                if parts[level, 1] > parts[level, 0]:
                    part = parts[level]
                    program = Code(
                        codes.words[part[0] : part[1]], codes.ints[part[2] : part[3]], codes.reals[part[4] : part[5]]
                    )
                    good = holds(program, events, texts, chosen, 0, groups, 0, stack)
                if good and level == 0 and size >= 0:
                    good = not _outside(ends[number] - starts[chosen[0, 0]], size, inclusive)
                if good and level == 0:
                    if found == out.shape[0]:
                        grown = np.empty((2 * found, length), np.int32)
                        grown[:found] = out
                        out = grown
                    for place_ in range(length):
                        out[found, place_] = chosen[0, place_]
                    found += 1
                    if found > most:
                        return out[:found]
                if good and level > 0:
                    cursor[level - 1] = previous if level == last else recent[cursor[level]]
                    level -= 1
                elif level < last:
                    cursor[level] = below[cursor[level]]
                # The next instance at this level, or at one above it.
                bound = False
                while level < last and not bound:
                    instance_ = cursor[level]
                    if instance_ >= 0:
                        candidate = event[instance_]
                        if (
                            in_construction
                            and size >= 0
                            and _outside(ends[number] - starts[candidate], size, inclusive)
                        ):
                            instance_ = np.int32(-1)
                        elif steps[candidate] >= steps[chosen[0, level + 1]]:
                            cursor[level] = below[instance_]
                            continue
                        else:
                            chosen[0, level] = candidate
                            bound = True
                    if instance_ < 0:
                        level += 1
                        if level < last:
                            cursor[level] = below[cursor[level]]
                if not bound:
                    break
    return out[:found]


@compiled
def forbidden(
    matches: Numbers,  # [match, place]
    after: int,  #       the negated event lies after this place (−1: the window's start)
    keys: Ints,  #       [match]: the code of its partition, or 0
    steps: Ints,  #      [event]
    starts: Ints,
    ends: Ints,
    first: Ints,  #      [key]: where the negated events of each key begin in `others`
    others: Ints,  #     negated events, by key, then by step
    size: int,
    inclusive: bool,
    program: Code,
    events: Events,
    texts: Texts,
    groups: Groups,
    stack: Stack,
    slots: int,
    negated: int,  #     the slot of the negated event
    out: npt.NDArray[np.bool_],
) -> None:
    """Mark the matches in whose interval an event of the negated class satisfies the conditions (SASE §3.3)."""
    length = matches.shape[1]
    chosen = np.full((1, slots), -1, np.int64)
    for row in range(matches.shape[0]):
        if keys[row] < 0 or keys[row] + 1 >= first.size:
            continue
        low, high = first[keys[row]], first[keys[row] + 1]
        end = high
        floor = np.int64(-1)
        if after >= 0:
            floor = steps[matches[row, after]]
        # The first negated event whose step is greater than the left neighbour's.
        while low < high:
            middle = (low + high) // 2
            if steps[others[middle]] <= floor:
                low = middle + 1
            else:
                high = middle
        for place in range(length):
            chosen[0, place] = matches[row, place]
        for at in range(low, end):
            other = others[at]
            if after < length - 1:
                if steps[other] >= steps[matches[row, after + 1]]:
                    break
            elif _outside(ends[other] - starts[matches[row, 0]], size, inclusive):
                break
            if after < 0 and _outside(ends[matches[row, length - 1]] - starts[other], size, inclusive):
                continue
            chosen[0, negated] = other
            if holds(program, events, texts, chosen, 0, groups, 0, stack):
                out[row] = True
                break

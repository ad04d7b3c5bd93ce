"""Active instance stacks (SASE §4.1–4.3), partitioned by key: scan forwards, construct sequences backwards.

An instance is an event at a place of the sequence. The stacks of all keys and places share three arrays: the event, the
instance below it in the same stack, and the most recent instance of the previous place when it came (RIP).
Construction walks from a last event down these links; the window and the conditions stop it early.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Code, EventColumns, Groups, Ints, Stack, Texts, holds
from kleene.kernels.jit import borrowed, compiled
from kleene.kernels.timeline import Timeline, outside

Numbers = npt.NDArray[np.int32]
# Columns of `Stacks.counts`.
REACHED, FAILED, COUNTERS = range(3)


class Stacks(NamedTuple):
    """What grows with the stream; there is room for all instances of the events to come."""

    event: Numbers  #  [instance]
    below: Numbers  #  [instance]: the one below it in its stack
    recent: Numbers  # [instance]: the newest one of the previous place when it came
    top: Numbers  #    [key, place]
    size: Ints  #      [1]: how many instances there are
    counts: Ints  #    [place, counter]


@compiled
def construct(
    begin: int,
    end: int,
    base: int,  #     the event that the first of the bits is of
    bits: Ints,  #    [event]: which places the event can fill, one bit each
    time: Timeline,
    size: int,  #     of the window; negative: none
    inclusive: bool,
    in_scan: bool,  # whether the window stops the scan, and the construction
    in_construction: bool,
    codes: Code,  #   the programs of all places, one after the other
    parts: Ints,  #   [place, 6]: where each program's words, integers and reals begin and end
    events: EventColumns,
    texts: Texts,
    groups: Groups,
    stack: Stack,
    slots: int,  #    how many slots the programs know
    stacks: Stacks,
    most: int,  #     sequences that one event may complete
    out: Numbers,  #  [sequence, place]: numbers of events
    written: Ints,  # [1]: how many sequences are written
) -> int:
    """Write sequences; the event that completes more than `most`, or more than there is room for, or `end`."""
    time, codes, events, texts = borrowed(time), borrowed(codes), borrowed(events), borrowed(texts)
    groups, stack, stacks, out = borrowed(groups), borrowed(stack), borrowed(stacks), borrowed(out)
    bits, parts = borrowed(bits), borrowed(parts)
    length = parts.shape[0]
    last = length - 1
    event, below, recent, top = stacks.event, stacks.below, stacks.recent, stacks.top
    cursor = np.empty(length, np.int32)
    chosen = np.full((1, slots), -1, np.int64)
    found = written[0]
    for number in range(begin, end):
        bits_here = bits[number - base]
        if bits_here == 0:
            continue
        key = time.keys[number]
        before = found
        for place in range(last, -1, -1):
            if (bits_here >> place) & 1 == 0:
                continue
            previous = np.int32(-1)
            if place > 0:
                previous = top[key, place - 1]
                if previous < 0:
                    continue
                if in_scan and size >= 0 and outside(time.ends[number], time.highs[event[previous]], size, inclusive):
                    continue
            stacks.counts[place, REACHED] += 1
            if place < last:
                instance = np.int32(stacks.size[0])
                stacks.size[0] += 1
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
                    if not good:
                        stacks.counts[level, FAILED] += 1
                if good and level == 0 and size >= 0:
                    good = not outside(time.ends[number], time.starts[chosen[0, 0]], size, inclusive)
                if good and level == 0:
                    if found - before == most or found == out.shape[0]:
                        # Nothing of this event is on a stack yet, so it can be offered again.
                        written[0] = before
                        stacks.counts[last, REACHED] -= 1
                        return number
                    for place_ in range(length):
                        out[found, place_] = chosen[0, place_]
                    found += 1
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
                            and outside(time.ends[number], time.highs[candidate], size, inclusive)
                        ):
                            instance_ = np.int32(-1)
                        elif time.rights[candidate] >= time.lefts[chosen[0, level + 1]]:
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
    written[0] = found
    return end

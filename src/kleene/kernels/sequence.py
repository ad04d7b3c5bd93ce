"""Active instance stacks (SASE §4.1–4.3), partitioned by key: scan forwards, construct sequences backwards.

An instance is an event at a place of the sequence. The stacks of all keys and places share three arrays: the event, the
instance below it in the same stack, and the most recent instance of the previous place when it came (RIP).
Construction walks from a last event down these links; the window and the conditions stop it early.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints, Programs, ProgramScope, holds, is_empty, part
from kleene.kernels.jit import borrowed, compiled, step
from kleene.kernels.timeline import EventBits, Timeline, WindowLength, outside

Numbers = npt.NDArray[np.int32]
# Columns of `Stacks.counts`.
REACHED, FAILED, COUNTERS = range(3)


class Stacks(NamedTuple):
    """The stacks, which grow with the stream; there is room for all instances of the events to come."""

    event: Numbers  #  [instance]
    below: Numbers  #  [instance]: the one below it in its stack
    recent: Numbers  # [instance]: the newest one of the previous place when it came
    top: Numbers  #    [key, place]
    size: Ints  #      [1]: how many instances there are
    counts: Ints  #    [place, counter]


class SequenceRule(NamedTuple):
    """The sequence to find, which does not change."""

    programs: Programs  # [place]: what can be tested once its event is bound, and those of later places
    within: WindowLength
    in_scan: bool  #      whether there is a window that stops the scan, and the construction
    in_construction: bool
    most: int  #          sequences that one event may complete


class Sequences(NamedTuple):
    """Sequences as they are written; there is room for more."""

    events: Numbers  # [sequence, place]
    number: Ints  #    [1]: how many are written
    cursor: Numbers  # [place]: the instance that is bound there in the sequence under construction


@compiled
def construct(
    begin: int,
    end: int,
    bits: EventBits,
    time: Timeline,
    sequence: SequenceRule,
    scope: ProgramScope,  # one binding, with a slot for each place
    stacks: Stacks,
    out: Sequences,
) -> int:
    """Write sequences; the event that completes more than `most`, or more than there is room for, or `end`."""
    bits, time, sequence = borrowed(bits), borrowed(time), borrowed(sequence)
    scope, stacks, out = borrowed(scope), borrowed(stacks), borrowed(out)
    last = out.cursor.size - 1
    for number in range(begin, end):
        places = bits.begins[number - bits.base]
        if places == 0:
            continue
        key = time.keys[number]
        for place in range(last, -1, -1):
            if (places >> place) & 1 == 0:
                continue
            recent: Any = np.int32(-1)
            if place > 0:
                recent = stacks.top[key, place - 1]
                if recent < 0:
                    continue
                if sequence.in_scan:
                    high = time.highs[stacks.event[recent]]
                    if outside(time.ends[number], high, sequence.within):
                        continue
            stacks.counts[place, REACHED] += 1
            if place < last:
                _push(number, key, place, recent, stacks)
            elif not _construct_back(number, recent, time, sequence, scope, stacks, out):
                # Nothing of this event is on a stack yet, so it can be offered again.
                stacks.counts[last, REACHED] -= 1
                return number
    return end


@step
def _push(number: int, key: int, place: int, recent: int, stacks: Stacks) -> None:
    """Put an event on the stack of a key and place."""
    instance = np.int32(stacks.size[0])
    stacks.size[0] += 1
    stacks.event[instance] = number
    stacks.below[instance] = stacks.top[key, place]
    stacks.recent[instance] = recent
    stacks.top[key, place] = instance


@step
def _construct_back(
    number: int,
    recent: int,
    time: Timeline,
    sequence: SequenceRule,
    scope: ProgramScope,
    stacks: Stacks,
    out: Sequences,
) -> bool:
    """Write the sequences that an event completes; False, and none of them, when there are too many."""
    chosen, cursor = scope.bindings, out.cursor
    last = cursor.size - 1
    before = written = out.number[0]
    chosen[0, last] = number
    place = last
    while True:
        # Test what is complete with the event just bound, then go down, or write the sequence.
        good = _holds_at(place, number, time, sequence, scope, stacks)
        if good and place == 0:
            if written - before == sequence.most or written == out.events.shape[0]:
                return False
            for each in range(last + 1):
                out.events[written, each] = chosen[0, each]
            written += 1
        if good and place > 0:
            cursor[place - 1] = recent if place == last else stacks.recent[cursor[place]]
            place -= 1
        elif place < last:
            cursor[place] = stacks.below[cursor[place]]
        place = _bind_next(place, number, cursor, time, sequence, scope, stacks)
        if place == last:
            break
    out.number[0] = written
    return True


@step
def _holds_at(
    place: int, number: int, time: Timeline, sequence: SequenceRule, scope: ProgramScope, stacks: Stacks
) -> bool:
    """Whether the events bound at a place and after it, up to the last one, can be part of a sequence."""
    if not is_empty(sequence.programs, place) and not holds(part(sequence.programs, place), scope, 0, 0):
        stacks.counts[place, FAILED] += 1
        return False
    if place > 0 or sequence.within.size < 0:
        return True
    return not outside(time.ends[number], time.starts[scope.bindings[0, 0]], sequence.within)


@step
def _bind_next(
    place: int,
    number: int,
    cursor: Numbers,
    time: Timeline,
    sequence: SequenceRule,
    scope: ProgramScope,
    stacks: Stacks,
) -> int:
    """Bind the next instance at a place, or at one after it; which place that is, the last one when there is none."""
    last = cursor.size - 1
    while place < last:
        instance = cursor[place]
        if instance >= 0:
            event = stacks.event[instance]
            left_behind = sequence.in_construction and outside(time.ends[number], time.highs[event], sequence.within)
            if not left_behind:
                if time.rights[event] < time.lefts[scope.bindings[0, place + 1]]:
                    scope.bindings[0, place] = event
                    return place
                cursor[place] = stacks.below[instance]
                continue
        place += 1
        if place < last:
            cursor[place] = stacks.below[cursor[place]]
    return last

"""Active instance stacks (SASE §4.1–4.3), partitioned by key: scan forwards, construct sequences backwards.

An instance is an event at a place of the sequence. The stacks of all keys and places share three arrays: the event, the
instance below it in the same stack, and the most recent instance of the previous place when it came (RIP).
Construction walks from a last event down these links; the window and the conditions stop it early.

Sequences without conditions between their events are written in the order of results: of the events that a window
leaves at each place, those of the first are gone through from the latest start on, those of the others in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints, Programs, ProgramScope, holds, is_empty, part
from kleene.kernels.jit import borrowed, compiled, step
from kleene.kernels.timeline import LATEST, EventBits, Timeline, WindowLength, end_of_window, outside

Numbers = npt.NDArray[np.int32]
# Columns of `Stacks.counts`.
REACHED, FAILED, COUNTERS = range(3)
# Columns of `Stacks.top`: the newest instance, and the latest end of a window that it, or one below it, can be in. Of
# most events nothing else is read, so they stand side by side.
NEWEST, LATEST_END, TOP = range(3)
# No instance that an event could follow.
NOTHING = -2


class Stacks(NamedTuple):
    """The stacks, which grow with the stream."""

    event: Numbers  #  [instance]
    below: Numbers  #  [instance]: the one below it in its stack
    recent: Numbers  # [instance]: the newest one of the previous place when it came
    top: Ints  #       [key, place, TOP]: of all places but the last, which has no stack
    size: Ints  #      [1]: how many instances there are
    counts: Ints  #    [place, counter]


class SequenceRule(NamedTuple):
    """The sequence to find, which does not change."""

    programs: Programs  # [place]: what can be tested once its event is bound, and those of later places
    within: WindowLength
    in_scan: bool  #      whether there is a window that stops the scan, and the construction
    in_construction: bool
    most: int  #          sequences that one event may complete


# Columns of `Sequences.number`: how many are written, of how many events that complete some the end is that of another
# one, and which event completed the last of them.
COUNT, TIES, COMPLETER, NUMBERS = range(4)


class Sequences(NamedTuple):
    """Sequences as they are written, by column; there is room for more."""

    events: Numbers  # [place, sequence]
    number: Ints  #    [NUMBERS]
    cursor: Numbers  # [place]: the instance that is bound there in the sequence under construction


class Candidates(NamedTuple):
    """The events of each place but the last that a window leaves for a last event: room to put them together."""

    events: Numbers  # [place, candidate]: the newest first; at the first place in the order of results
    sizes: Ints  #     [place]: how many there are
    at: Ints  #        [place]: which of them is chosen


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
    """Write sequences that satisfy conditions.

    Returns the event that completes more than `most`, or for whose sequences or instances there is no room; or `end`.
    """
    bits, time, sequence = borrowed(bits), borrowed(time), borrowed(sequence)
    scope, stacks, out = borrowed(scope), borrowed(stacks), borrowed(out)
    last = out.cursor.size - 1
    for number in range(begin, end):
        places = bits.begins[number - bits.base]
        if places == 0:
            continue
        if stacks.size[0] + last > stacks.event.size:
            return number
        key = time.keys[number]
        for place in range(last, -1, -1):
            if (places >> place) & 1 == 0:
                continue
            recent = _newest_before(place, key, time.ends[number], sequence, stacks)
            if recent == NOTHING:
                continue
            stacks.counts[place, REACHED] += 1
            if place < last:
                _push(number, key, place, recent, _latest_end(time.highs[number], sequence), stacks)
            elif not _construct_back(number, recent, time, sequence, scope, stacks, out):
                # Nothing of this event is on a stack yet, so it can be offered again.
                stacks.counts[last, REACHED] -= 1
                return number
    return end


@compiled
def construct_in_order(
    begin: int,
    end: int,
    bits: EventBits,
    time: Timeline,  # of events that do not last, with positions of one partition only
    sequence: SequenceRule,
    candidates: Candidates,  # there is room for all instances
    stacks: Stacks,
    out: Sequences,
) -> int:
    """As `construct`, of sequences without conditions; those that one event completes are in the order of results."""
    bits, time, sequence = borrowed(bits), borrowed(time), borrowed(sequence)
    candidates, stacks, out = borrowed(candidates), borrowed(stacks), borrowed(out)
    last = out.cursor.size - 1
    begins, keys, ends = bits.begins[begin - bits.base :], time.keys[begin:], time.ends[begin:]
    for at in range(end - begin):
        places = begins[at]
        if places == 0:
            continue
        number = begin + at
        if stacks.size[0] + last > stacks.event.size:
            return number
        key = keys[at]
        for place in range(last, -1, -1):
            if (places >> place) & 1 == 0:
                continue
            recent = _newest_before(place, key, ends[at], sequence, stacks)
            if recent == NOTHING:
                continue
            stacks.counts[place, REACHED] += 1
            if place < last:
                _push(number, key, place, recent, _latest_end(ends[at], sequence), stacks)
                continue
            complete = place == 0 or _gather_candidates(number, recent, time, sequence, candidates, stacks)
            if complete and not _write_in_order(number, time, sequence, candidates, out):
                stacks.counts[last, REACHED] -= 1
                return number
            if complete:
                before = out.number[COMPLETER]
                if before >= 0 and time.ends[before] == time.ends[number]:
                    out.number[TIES] += 1
                out.number[COMPLETER] = number
    return end


@step
def _gather_candidates(
    number: int, recent: int, time: Timeline, sequence: SequenceRule, candidates: Candidates, stacks: Stacks
) -> bool:
    """Put the events together that the window leaves at each place before a last event; whether each place has some."""
    instance = recent
    for place in range(candidates.events.shape[0] - 1, -1, -1):
        size = 0
        newest = instance
        while instance >= 0:
            event = stacks.event[instance]
            if sequence.in_construction and outside(time.ends[number], time.starts[event], sequence.within):
                break
            # What is simultaneous with the last event is not before it.
            if time.steps[event] < time.steps[number]:
                candidates.events[place, size] = event
                size += 1
            instance = stacks.below[instance]
        candidates.sizes[place] = size
        if size == 0:
            return False
        instance = stacks.recent[newest]
    _by_latest_start(time, candidates)
    return True


@step
def _by_latest_start(time: Timeline, candidates: Candidates) -> None:
    """Of the first events, those that start together change to the order in which they are numbered."""
    firsts = candidates.events[0]
    begin = 0
    while begin < candidates.sizes[0]:
        stop = begin + 1
        while stop < candidates.sizes[0] and time.starts[firsts[stop]] == time.starts[firsts[begin]]:
            stop += 1
        for along in range((stop - begin) // 2):
            one, other = begin + along, stop - 1 - along
            firsts[one], firsts[other] = firsts[other], firsts[one]
        begin = stop


@step
def _write_in_order(
    number: int, time: Timeline, sequence: SequenceRule, candidates: Candidates, out: Sequences
) -> bool:
    """Write all sequences of candidates that an event completes; False, and none of them, when there are too many.

    The last place before it is written as a run: the events there that are after the one chosen before them.
    """
    inner = candidates.events.shape[0] - 1
    chosen, at = candidates.events, candidates.at
    before = written = out.number[COUNT]
    place = 0
    at[0] = -1
    while place >= 0:
        run = 1 if inner < 0 else candidates.sizes[0]
        if inner > 0:
            at[place] += 1 if place == 0 else -1
            if at[place] == (candidates.sizes[0] if place == 0 else -1):
                place -= 1
                continue
            moment = time.steps[chosen[place, at[place]]]
            run = 0
            while run < candidates.sizes[place + 1] and time.steps[chosen[place + 1, run]] > moment:
                run += 1
            if place + 1 < inner:
                place += 1
                at[place] = run
                continue
        if written + run - before > sequence.most or written + run > out.events.shape[1]:
            return False
        for each in range(inner):
            for along in range(run):
                out.events[each, written + along] = chosen[each, at[each]]
        if inner >= 0:
            for along in range(run):
                # Of two places the only one before the last is the first, too, whose order is its own.
                out.events[inner, written + along] = chosen[inner, along if inner == 0 else run - 1 - along]
        for along in range(run):
            out.events[inner + 1, written + along] = number
        written += run
        if inner <= 0:
            break
    out.number[COUNT] = written
    return True


@step
def _newest_before(place: int, key: int, end: int, sequence: SequenceRule, stacks: Stacks) -> int:
    """The newest instance of the place before, if it can be in a window that ends then; −1 at the first place."""
    recent = np.int64(-1)
    if place > 0:
        recent = stacks.top[key, place - 1, NEWEST]
        if recent < 0 or end > stacks.top[key, place - 1, LATEST_END]:
            recent = np.int64(NOTHING)
    return int(recent)


@step
def _latest_end(start: int, sequence: SequenceRule) -> int:
    """The last end that an event can have in one window with an event of that start."""
    return end_of_window(start, sequence.within) if sequence.in_scan else LATEST


@step
def _push(number: int, key: int, place: int, recent: int, latest: int, stacks: Stacks) -> None:
    """Put an event on the stack of a key and place."""
    instance = np.int32(stacks.size[0])
    stacks.size[0] += 1
    stacks.event[instance] = number
    stacks.below[instance] = stacks.top[key, place, NEWEST]
    stacks.recent[instance] = recent
    stacks.top[key, place, NEWEST], stacks.top[key, place, LATEST_END] = instance, latest


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
    before = written = out.number[COUNT]
    chosen[0, last] = number
    place = last
    while True:
        # Test what is complete with the event just bound, then go down, or write the sequence.
        good = _holds_at(place, number, time, sequence, scope, stacks)
        if good and place == 0:
            if written - before == sequence.most or written == out.events.shape[1]:
                return False
            for each in range(last + 1):
                out.events[each, written] = chosen[0, each]
            written += 1
        if good and place > 0:
            cursor[place - 1] = recent if place == last else stacks.recent[cursor[place]]
            place -= 1
        elif place < last:
            cursor[place] = stacks.below[cursor[place]]
        place = _bind_next(place, number, cursor, time, sequence, scope, stacks)
        if place == last:
            break
    out.number[COUNT] = written
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

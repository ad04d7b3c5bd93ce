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
from kleene.kernels.gates import Offers
from kleene.kernels.jit import borrowed, compiled, highest_bit, inlined, step
from kleene.kernels.timeline import Timeline, WindowLength, outside

Numbers = npt.NDArray[np.int32]
# Columns of `Stacks.counts`.
REACHED, FAILED, COUNTERS = range(3)
# Columns of `Stacks.top`: the newest instance, and how many there are.
NEWEST, HEIGHT, TOP = range(3)
# Columns of `Stacks.instances`: the event, the instance below it in its stack, the newest one of the previous place
# when it came (RIP), how many there are in its stack up to it, and how many of the next place do not follow it.
EVENT, BELOW, RECENT, RANK, AHEAD, INSTANCE = range(6)


class Stacks(NamedTuple):
    """The stacks, which grow with the stream."""

    instances: Numbers  # [instance, INSTANCE]
    top: Ints  #          [key, place, TOP]: of all places but the last, which has no stack
    size: Ints  #         [1]: how many instances there are
    counts: Ints  #       [place, counter]


def empty_tops(keys: int, places: int) -> Ints:
    """`Stacks.top` of stacks without instances."""
    tops = np.empty((keys, places, TOP), np.int64)
    tops[:] = -1, 0
    return tops


class SequenceRule(NamedTuple):
    """The sequence to find, which does not change."""

    programs: Programs  # [place]: what can be tested once its event is bound, and those of later places
    within: WindowLength
    in_scan: bool  #      whether there is a window that closes places to events, and one that stops construction
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


# More sequences of one event are not told apart: there is no room for them, and sums of their numbers have 64 bits.
MOST_COUNTED = np.int64(1 << 61)
# Numbers of events are written so many at a time, the last ones over what nobody reads, or what is written later.
CHUNK = 4


class Candidates(NamedTuple):
    """The events of each place but the last that a window leaves for a last event: room to put them together.

    Those of the first place stand from the front on, the newest first. Those of the others end `CHUNK` before the end,
    the newest last, so that those that follow an event are the last ones, in the order of results.
    """

    events: Numbers  # [place, candidate]
    later: Numbers  #  [place, candidate]: how many of the next place follow it
    ways: Ints  #      [place, candidate]: how many sequences begin with it, or with a newer one of its place
    sizes: Ints  #     [place]: how many there are
    at: Ints  #        [place]: which of them is chosen


@compiled
def construct(
    begin: int,
    offers: Offers,
    time: Timeline,
    sequence: SequenceRule,
    scope: ProgramScope,  # one binding, with a slot for each place
    stacks: Stacks,
    out: Sequences,
) -> int:
    """Write sequences that satisfy conditions, going on with the offer `begin`.

    Returns the offer of the event that completes more than `most`, or for whose sequences or instances there is no
    room; or how many offers there are.
    """
    offers, time, sequence = borrowed(offers), borrowed(time), borrowed(sequence)
    scope, stacks, out = borrowed(scope), borrowed(stacks), borrowed(out)
    last = out.cursor.size - 1
    for at in range(begin, offers.numbers.size):
        number, places = int(np.int64(offers.numbers[at])), offers.places[at]
        if stacks.size[0] + last > len(stacks.instances):
            return at
        key = time.keys[number]
        while places:
            place = highest_bit(places)
            places ^= 1 << place
            recent = _newest_before(place, key, stacks)
            stacks.counts[place, REACHED] += 1
            if place < last:
                _push(number, key, place, recent, stacks)
            elif not _construct_back(number, recent, time, sequence, scope, stacks, out):
                # Nothing of this event is on a stack yet, so it can be offered again.
                stacks.counts[last, REACHED] -= 1
                return at
    return offers.numbers.size


@compiled
def construct_in_order(
    begin: int,
    offers: Offers,
    time: Timeline,  # of events that do not last, with positions of one partition only
    sequence: SequenceRule,
    candidates: Candidates,  # there is room for all instances
    stacks: Stacks,
    out: Sequences,
) -> int:
    """As `construct`, of sequences without conditions; those that one event completes are in the order of results."""
    offers, time, sequence = borrowed(offers), borrowed(time), borrowed(sequence)
    candidates, stacks, out = borrowed(candidates), borrowed(stacks), borrowed(out)
    last = out.cursor.size - 1
    for at in range(begin, offers.numbers.size):
        number, places = int(np.int64(offers.numbers[at])), offers.places[at]
        if stacks.size[0] + last > len(stacks.instances):
            return at
        key = time.keys[number]
        while places:
            place = highest_bit(places)
            places ^= 1 << place
            recent = _newest_before(place, key, stacks)
            stacks.counts[place, REACHED] += 1
            if place < last:
                _push(number, key, place, recent, stacks)
                _pass_by(time.steps[number], recent, time, stacks)
                continue
            total = _gather_candidates(number, recent, time, sequence, candidates, stacks) if last else 1
            if total > sequence.most or out.number[COUNT] + total + CHUNK > out.events.shape[1]:
                stacks.counts[last, REACHED] -= 1
                return at
            if total:
                _write_in_order(number, total, time, candidates, out)
    return offers.numbers.size


@step
def _pass_by(moment: int, before: int, time: Timeline, stacks: Stacks) -> None:
    """What is simultaneous with an event that is put on a stack is not before it."""
    while before >= 0 and time.steps[stacks.instances[before, EVENT]] == moment:
        stacks.instances[before, AHEAD] += 1
        before = stacks.instances[before, BELOW]


@step
def _gather_candidates(
    number: int, recent: int, time: Timeline, sequence: SequenceRule, candidates: Candidates, stacks: Stacks
) -> int:
    """Put the events together that the window leaves at each place before a last event; the number of sequences."""
    end, moment = time.ends[number], time.steps[number]
    inner, newest = candidates.sizes.size - 1, candidates.events.shape[1] - CHUNK - 1
    instance, total = np.int64(recent), np.int64(0)
    # How many events of the next place are candidates, and the rank of the newest of these.
    size, rank = np.int64(0), np.int64(0)
    for place in range(inner, -1, -1):
        followers, highest = size, rank
        size, total, rank = np.int64(0), np.int64(0), np.int64(0)
        before = np.int64(-1)
        while instance >= 0:
            event = stacks.instances[instance, EVENT]
            if sequence.in_construction and outside(end, time.starts[event], sequence.within):
                break
            if size == 0:
                # What is simultaneous with the last event is not before it.
                if time.steps[event] >= moment:
                    instance = np.int64(stacks.instances[instance, BELOW])
                    continue
                rank, before = np.int64(stacks.instances[instance, RANK]), np.int64(stacks.instances[instance, RECENT])
            at = size if place == 0 else newest - size
            candidates.events[place, at] = event
            if place < inner:
                later = min(highest - stacks.instances[instance, AHEAD], followers)
                candidates.later[place, at] = later
                if place + 1 == inner:
                    total += later
                elif later:
                    total = min(total + candidates.ways[place + 1, newest + 1 - later], MOST_COUNTED)
                candidates.ways[place, at] = total
            size += 1
            instance = np.int64(stacks.instances[instance, BELOW])
        candidates.sizes[place] = size
        if size == 0:
            return 0
        instance = before
    return int(total if inner else size)


@step
def _write_in_order(number: int, total: int, time: Timeline, candidates: Candidates, out: Sequences) -> None:
    """Write all sequences of candidates that an event completes, for which there is room."""
    events, written = candidates.events, out.number[COUNT]
    inner = len(events) - 1
    for at in range(written, written + total, CHUNK):
        for along in range(CHUNK):
            out.events[inner + 1, at + along] = number
    if inner >= 0:
        _by_latest_start(time, candidates)
    if inner == 0:
        for at in range(total):
            out.events[0, written + at] = events[0, at]
    elif inner > 0:
        _write_runs(written, candidates, out)
    out.number[COUNT] = written + total
    before = out.number[COMPLETER]
    if before >= 0 and time.ends[before] == time.ends[number]:
        out.number[TIES] += 1
    out.number[COMPLETER] = number


@step
def _by_latest_start(time: Timeline, candidates: Candidates) -> None:
    """Of the first events, those that start together change to the order in which they are numbered."""
    firsts, later = candidates.events[0], candidates.later[0]
    begin = 0
    while begin < candidates.sizes[0]:
        stop = begin + 1
        while stop < candidates.sizes[0] and time.starts[firsts[stop]] == time.starts[firsts[begin]]:
            stop += 1
        for along in range((stop - begin) // 2):
            one, other = begin + along, stop - 1 - along
            firsts[one], firsts[other] = firsts[other], firsts[one]
            later[one], later[other] = later[other], later[one]
        begin = stop


@step
def _write_runs(written: int, candidates: Candidates, out: Sequences) -> None:
    """Write the events of all places but the last.

    Those of the last place before it are written as a run: those that follow the event that was chosen before them.
    """
    events, later, at = candidates.events, candidates.later, candidates.at
    inner, newest = len(events) - 1, events.shape[1] - CHUNK - 1
    place = 0
    at[0] = -1
    while place >= 0:
        # Places count from the newest one. Those of the first are gone through from there on, others back to it.
        at[place] += 1 if place == 0 else -1
        if at[place] == (candidates.sizes[0] if place == 0 else -1):
            place -= 1
            continue
        run = later[place, at[place] if place == 0 else newest - at[place]]
        if place + 1 < inner:
            place += 1
            at[place] = run
            continue
        first = newest + 1 - run
        for along in range(0, run, CHUNK):
            _copy_chunk(events, inner, first + along, out.events, written + along)
        for each in range(inner):
            event = events[each, at[each] if each == 0 else newest - at[each]]
            for along in range(written, written + run, CHUNK):
                for more in range(CHUNK):
                    out.events[each, along + more] = event
        written += run


@inlined
def _copy_chunk(events: Numbers, place: int, source: int, out: Numbers, target: int) -> None:
    one, two = events[place, source], events[place, source + 1]
    three, four = events[place, source + 2], events[place, source + 3]
    out[place, target], out[place, target + 1] = one, two
    out[place, target + 2], out[place, target + 3] = three, four


@step
def _newest_before(place: int, key: int, stacks: Stacks) -> int:
    """The newest instance of the place before, of which there is one where a place is open; −1 at the first place."""
    # Numbers that cannot be negative are not looked at for that before they are used as places.
    return int(stacks.top[np.uint64(key), np.uint64(place - 1), NEWEST]) if place > 0 else -1


@step
def _push(number: int, key: int, place: int, recent: int, stacks: Stacks) -> None:
    """Put an event on the stack of a key and place."""
    instance = stacks.size[0]
    stacks.size[0] = instance + 1
    tops = stacks.top[np.uint64(key)]
    ahead = tops[np.uint64(place + 1), HEIGHT] if place + 1 < len(tops) else 0
    top, row = tops[np.uint64(place)], stacks.instances[np.uint64(instance)]
    rank = top[HEIGHT] + 1
    row[EVENT], row[BELOW], row[RECENT], row[RANK], row[AHEAD] = number, top[NEWEST], recent, rank, ahead
    top[NEWEST], top[HEIGHT] = instance, rank


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
            cursor[place - 1] = recent if place == last else stacks.instances[cursor[place], RECENT]
            place -= 1
        elif place < last:
            cursor[place] = stacks.instances[cursor[place], BELOW]
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
            event = stacks.instances[instance, EVENT]
            left_behind = sequence.in_construction and outside(time.ends[number], time.highs[event], sequence.within)
            if not left_behind:
                if time.rights[event] < time.lefts[scope.bindings[0, place + 1]]:
                    scope.bindings[0, place] = event
                    return place
                cursor[place] = stacks.instances[instance, BELOW]
                continue
        place += 1
        if place < last:
            cursor[place] = stacks.instances[cursor[place], BELOW]
    return last

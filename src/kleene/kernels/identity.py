"""Match ids over flat arrays: splitmix64 folds of values into events, and of events into matches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.copying import put
from kleene.kernels.gathering import Rows
from kleene.kernels.jit import compiled, inlined, write_past, written_past

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int32]
# The lower half of 64 bits.
_LOW = np.uint64(0xFFFFFFFF)


@inlined
def mix(value: np.uint64) -> np.uint64:
    """The finaliser of splitmix64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def mixed(values: Hashes) -> Hashes:
    out = np.empty_like(values)
    for place in range(len(values)):
        out[place] = mix(values[place])
    return out


@compiled
def fold_column(content: Hashes, name: np.uint64, values: Hashes, has: npt.NDArray[np.bool_]) -> None:
    """Fold a column into the content of its events; an event whose type lacks the attribute is left as it is."""
    for place in range(len(content)):
        if has[place]:
            content[place] = mix((content[place] ^ name) + values[place])


@compiled
def fold_ints(
    content: Hashes, name: np.uint64, values: npt.NDArray[np.integer], step: np.uint64, kind: np.uint64
) -> None:
    """As `fold_column`, of integers in steps that all events have; `kind` goes into the hash of each."""
    for place in range(len(content)):
        value = mix(np.uint64(values[place]) * step ^ kind)
        content[place] = mix((content[place] ^ name) + value)


@compiled
def fold_codes(content: Hashes, name: np.uint64, codes: npt.NDArray[np.integer], hashes: Hashes) -> None:
    """As `fold_column`, of values that all events have, given as places among the hashes of distinct ones."""
    for place in range(len(content)):
        content[place] = mix((content[place] ^ name) + hashes[codes[place]])


@compiled
def number_equals(content: Hashes, steps: Ints) -> Hashes:
    """The hash of each event: its content and its number among those of equal content, in order.

    steps   [event]: simultaneous events have the same; those of equal content are simultaneous
    """
    out = np.empty_like(content)
    begin = 0
    while begin < len(content):
        stop = begin + 1
        while stop < len(content) and steps[stop] == steps[begin]:
            stop += 1
        if stop - begin > 16:
            put(_number_many(content[begin:stop]), out, begin)
        else:
            for place in range(begin, stop):
                before = 0
                for other in range(begin, place):
                    before += 1 if content[other] == content[place] else 0
                out[place] = mix(content[place] + np.uint64(before))
        begin = stop
    return out


@compiled
def _number_many(content: Hashes) -> Hashes:
    """As `number_equals`, of many simultaneous events."""
    size = 16
    while size < 2 * len(content):
        size *= 2
    seen = np.zeros(size, np.uint64)  # contents, by open addressing
    times = np.zeros(size, np.int64)  # how often each was met; 0 is an empty place
    out = np.empty_like(content)
    for place in range(len(content)):
        slot = np.int64(content[place] & np.uint64(size - 1))
        while times[slot] and seen[slot] != content[place]:
            slot = (slot + 1) & (size - 1)
        seen[slot] = content[place]
        out[place] = mix(content[place] + np.uint64(times[slot]))
        times[slot] += 1
    return out


@compiled
def fold_ranges(folds: Hashes, offsets: Ints, values: npt.NDArray[np.integer]) -> None:
    """Fold `values[offsets[n]:offsets[n + 1]]` into fold n, in order, and how many they are."""
    for place in range(len(folds)):
        fold = mix(folds[place] + np.uint64(offsets[place + 1] - offsets[place]))
        for at in range(offsets[place], offsets[place + 1]):
            fold = mix(fold ^ np.uint64(values[at]))
        folds[place] = fold


# A match folds its variables in pattern order, each by its place (from 1) and its events, in two lanes. -------------


@compiled
def fold_singles(folds: Hashes, place: int, rows: Rows, hashes: Hashes) -> None:
    """Fold a variable of single events.

    folds    [lane, match]: changed in place
    rows     [match]: the event, negative where it is absent
    hashes   [event]
    """
    name = np.uint64(place)
    for match in range(len(rows)):
        row = rows[match]
        event = hashes[max(row, 0)]
        first, second = mix(folds[0, match] + name), mix(folds[1, match] + name)
        folds[0, match] = mix(first ^ event) if row >= 0 else first
        folds[1, match] = mix(second ^ event) if row >= 0 else second


# Matches whose folds are held near the processor while their events are folded in.
_BLOCK = 512
# Ids of more matches would only push out what caches hold.
_MANY = 1 << 15


@compiled
def _heads(seeds: Hashes, hashes: Hashes, more: bool) -> Hashes:
    """[lane, event]: the fold of a match that begins with an event; the last one: with none.

    more   whether the name of a second variable is folded in, too
    """
    heads = np.empty((2, len(hashes) + 1), np.uint64)
    for lane in range(2):
        begun = mix(seeds[lane] + np.uint64(1))
        for event in range(len(hashes)):
            fold = mix(begun ^ hashes[event])
            heads[lane, event] = mix(fold + np.uint64(2)) if more else fold
        heads[lane, len(hashes)] = mix(begun + np.uint64(2)) if more else begun
    return heads


@compiled
def ids_of_singles(
    seeds: Hashes,  #  [lane]: what the ids of a query's matches are folded from
    events: Numbers,  # [variable, match], perhaps longer: its event, negative where it is absent
    first: int,  #     the match that comes first
    hashes: Hashes,  # [event]
    out: Hashes,  #    [match, word]: the digits of the ids, as from `hexadecimal`
) -> None:
    """The ids of matches of single events. In blocks, whose folds stay near the processor.

    Where there are more matches than events, the first event of many is the same: it is folded once for all of them.
    """
    folds, event = np.empty((2, _BLOCK), np.uint64), np.empty(_BLOCK, np.uint64)
    words = np.empty((4, _BLOCK), np.uint64)
    number, variables = len(out), len(events)
    digits, past = out.reshape(out.size), number >= _MANY
    once = number > len(hashes)
    heads = _heads(seeds, hashes, variables > 1) if once else np.empty((2, 0), np.uint64)
    for begin in range(0, number, _BLOCK):
        size = min(_BLOCK, number - begin)
        one, other = folds[0, :size], folds[1, :size]
        if once:
            rows = events[0, first + begin : first + begin + size]
            for at in range(size):
                head = np.uint64(rows[at] if rows[at] >= 0 else len(hashes))
                one[at], other[at] = heads[0, head], heads[1, head]
        else:
            one[:], other[:] = mix(seeds[0] + np.uint64(1)), mix(seeds[1] + np.uint64(1))
        for variable in range(1 if once else 0, variables):
            rows = events[variable, first + begin : first + begin + size]
            name = np.uint64(variable + 2 if variable + 1 < variables else 0)
            _fold_in(one, other, rows, hashes, event[:size], name)
        _write_digits(one, other, words, past, digits[4 * begin : 4 * (begin + size)])
    written_past()


@inlined
def _fold_in(one: Hashes, other: Hashes, rows: Numbers, hashes: Hashes, event: Hashes, name: np.uint64) -> None:
    """Fold the event of a variable into each match, and then the name of the next variable, unless that is 0.

    Hashes are gathered first, into `event`: what is left multiplies several matches at once.
    """
    absent = False
    for at in range(len(rows)):
        absent |= rows[at] < 0
    if absent:
        for at in range(len(rows)):
            value, there = hashes[max(rows[at], 0)], rows[at] >= 0
            a, b = mix(one[at] ^ value) if there else one[at], mix(other[at] ^ value) if there else other[at]
            one[at], other[at] = mix(a + name) if name else a, mix(b + name) if name else b
        return
    for at in range(len(rows)):
        # Unsigned: a number that may be negative is tested before each access.
        event[at] = hashes[np.uint64(rows[at])]
    for lane in (one, other):
        _fold_block(lane, event, name)


@inlined
def _fold_block(lane: Hashes, event: Hashes, name: np.uint64) -> None:
    if name:
        for at in range(len(lane)):
            lane[at] = mix(mix(lane[at] ^ event[at]) + name)
    else:
        for at in range(len(lane)):
            lane[at] = mix(lane[at] ^ event[at])


@inlined
def _write_digits(one: Hashes, other: Hashes, words: Hashes, past: bool, out: Hashes) -> None:
    """Write the digits of a block of matches: word by word, so that several are made at once.

    words   [word, match]: room
    past    whether ids are so many that they are written past the caches
    out     [word of all matches]
    """
    size = len(one)
    for lane, place in ((one, 0), (other, 2)):
        upper, lower = words[place, :size], words[place + 1, :size]
        for at in range(size):
            upper[at] = _digits(lane[at] >> np.uint64(32))
            lower[at] = _digits(lane[at] & _LOW)
    if past:
        for at in range(size):
            for word in range(4):
                write_past(out, 4 * at + word, words[word, at])
        return
    for at in range(size):
        for word in range(4):
            out[4 * at + word] = words[word, at]


@compiled
def fold_lists(folds: Hashes, place: int, rows: Rows, offsets: Offsets, hashes: Hashes) -> None:
    """As `fold_singles`, of a Kleene variable: match m has the events `rows[offsets[m]:offsets[m + 1]]`.

    Two matches at a time: a fold waits for each multiplication, and so four folds wait at once. Where a list begins
    like that of an earlier match it goes on from that one's fold, since runs are completed again and again.
    """
    before = folds.copy()
    # [event]: the last match whose list begins with it.
    newest = np.full(len(hashes), -1, np.int32)
    name = np.uint64(place)
    number = folds.shape[1]
    for match in range(0, number, 2):
        other = min(match + 1, number - 1)
        a, b = mix(before[0, match] + name), mix(before[1, match] + name)
        c, d = mix(before[0, other] + name), mix(before[1, other] + name)
        at, at_other = offsets[match], offsets[other]
        known = _continued(match, rows, offsets, before, newest)
        if known >= 0:
            a, b = folds[0, known], folds[1, known]
            at += offsets[known + 1] - offsets[known]
        known = _continued(other, rows, offsets, before, newest)
        if known >= 0:
            c, d = folds[0, known], folds[1, known]
            at_other += offsets[known + 1] - offsets[known]
        shared = min(offsets[match + 1] - at, offsets[other + 1] - at_other)
        for along in range(shared):
            event, event_other = hashes[rows[at + along]], hashes[rows[at_other + along]]
            a, b, c, d = mix(a ^ event), mix(b ^ event), mix(c ^ event_other), mix(d ^ event_other)
        for along in range(at + shared, offsets[match + 1]):
            event = hashes[rows[along]]
            a, b = mix(a ^ event), mix(b ^ event)
        for along in range(at_other + shared, offsets[other + 1]):
            event = hashes[rows[along]]
            c, d = mix(c ^ event), mix(d ^ event)
        folds[0, other], folds[1, other] = c, d
        folds[0, match], folds[1, match] = a, b
        for each in range(match, other + 1):
            if offsets[each + 1] > offsets[each]:
                newest[rows[offsets[each]]] = each


@inlined
def _continued(match: int, rows: Rows, offsets: Offsets, before: Hashes, newest: Rows) -> int:
    """The last match with the same first event, if a match's list begins with its whole list; −1 if not."""
    begin, size = offsets[match], offsets[match + 1] - offsets[match]
    if size == 0:
        return -1
    known = newest[rows[begin]]
    if known < 0:
        return -1
    first, length = offsets[known], offsets[known + 1] - offsets[known]
    if length > size or before[0, known] != before[0, match] or before[1, known] != before[1, match]:
        return -1
    # The last one first: there lists that differ differ most often. The rest without a way out, many at a time.
    if rows[first + length - 1] != rows[begin + length - 1]:
        return -1
    one, other = rows[first : first + length], rows[begin : begin + length]
    differing = 0
    for along in range(len(one)):
        differing |= one[along] ^ other[along]
    return known if differing == 0 else -1


@compiled
def hexadecimal(folds: Hashes, out: Hashes) -> None:
    """The 32 digits of each match, the highest first, eight to a word.

    folds   [lane, match]
    out     [match, word]
    """
    words, number = np.empty((4, _BLOCK), np.uint64), folds.shape[1]
    digits, past = out.reshape(out.size), number >= _MANY
    for begin in range(0, number, _BLOCK):
        end = min(begin + _BLOCK, number)
        _write_digits(folds[0, begin:end], folds[1, begin:end], words, past, digits[4 * begin : 4 * end])
    written_past()


@inlined
def _digits(bits: np.uint64) -> np.uint64:
    """Eight digits at once, without a table: bits are spread, four to a byte, and each byte becomes a digit."""
    bits = (bits >> np.uint64(16)) | ((bits & np.uint64(0xFFFF)) << np.uint64(32))
    bits = _swapped(bits, np.uint64(0x000000FF000000FF), np.uint64(8))
    bits = _swapped(bits, np.uint64(0x000F000F000F000F), np.uint64(4))
    # One in each byte whose digit is a letter; "a" is 39 more than "9" and one.
    letter = ((bits + np.uint64(0x0606060606060606)) >> np.uint64(4)) & np.uint64(0x0101010101010101)
    more = (letter << np.uint64(5)) + (letter << np.uint64(2)) + (letter << np.uint64(1)) + letter
    return bits + np.uint64(0x3030303030303030) + more


@inlined
def _swapped(word: np.uint64, low: np.uint64, bits: np.uint64) -> np.uint64:
    """The halves of each part, the upper one now below, with as much room between them."""
    return ((word >> bits) & low) | ((word & low) << (bits + bits))

"""Match ids over flat arrays: splitmix64 folds of values into events, and of events into matches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.jit import compiled, inlined

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


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
def number_equals(content: Hashes) -> Hashes:
    """The hash of each event: its content and its number among those of equal content, in order."""
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
def match_digits(matches: Ints, events: Hashes, seeds: Hashes, places: Ints, out: npt.NDArray[np.uint8]) -> None:
    """The 32 hexadecimal digits of each match's id.

    matches  [match, variable] numbers of events, −1 where a variable is absent
    places   each variable's place among all variables of the query, from 1
    out      [match, 32] ASCII digits
    """
    for row in range(matches.shape[0]):
        for lane in range(2):
            result = seeds[lane]
            at = 0
            for variable in range(matches.shape[1]):
                while at < places[variable]:
                    at += 1
                    result = mix(result + np.uint64(at))
                if matches[row, variable] >= 0:
                    result = mix(result ^ events[matches[row, variable]])
            while at < places[-1]:
                at += 1
                result = mix(result + np.uint64(at))
            for digit in range(16):
                shift = np.uint64(60 - 4 * digit)
                out[row, 16 * lane + digit] = _DIGITS[np.int64((result >> shift) & np.uint64(15))]

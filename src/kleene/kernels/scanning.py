"""The first pass over the rows of a batch: which of them matter, and whether these are in the order of time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.kernels.jit import compiled, count_bits, inlined, lowest_bit

Flags = npt.NDArray[np.bool_]
# [row]: a place among few values; read-only, as Arrow's arrays are.
Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int32]

# How ends follow each other: some is before the one it follows, none is, each is later.
SHUFFLED, TIED, STRICT = range(3)


# Rows are looked at so many at a time, one bit each, and wanted ones written so many at a time, the last ones over what
# nobody reads. What types come next no processor can predict, so there is a branch for 64 rows and not for each.
_WORD, CHUNK = 64, 8


@compiled
def fill_wanted(codes: Codes, wanted: Flags, rows: Numbers, kept: Numbers) -> int:
    """Write the wanted rows, in order, and their codes; how many. There is room for all rows, and `CHUNK` more."""
    number, bits = np.uint64(0), np.uint64(0)
    if wanted.size > _WORD:
        return _fill_one_by_one(0, codes, wanted, rows, kept, 0)
    for code in range(wanted.size):
        bits |= np.uint64(wanted[code]) << np.uint64(code)
    words = codes.size // _WORD
    for begin in range(0, words * _WORD, _WORD):
        some, mask = codes[begin : begin + _WORD], np.uint64(0)
        # Always 64 of them: several are looked at at once.
        for along in range(_WORD):
            mask |= ((bits >> np.uint64(some[along])) & np.uint64(1)) << np.uint64(along)
        at, end = number, number + np.uint64(count_bits(mask))
        while at < end:
            for more in range(CHUNK):
                # Unsigned: a place that may be negative is tested before each access.
                place = np.uint64(lowest_bit(mask) & (_WORD - 1))
                rows[at + np.uint64(more)] = begin + np.int64(place)
                kept[at + np.uint64(more)] = some[place]
                mask &= mask - np.uint64(1)
            at += np.uint64(CHUNK)
        number = end
    return _fill_one_by_one(words * _WORD, codes, wanted, rows, kept, np.int64(number))


@inlined
def _fill_one_by_one(
    begin: int, codes: Codes, wanted: Flags, rows: Numbers, kept: Numbers, number: int | np.int64
) -> int:
    for row in range(begin, codes.size):
        rows[number], kept[number] = row, codes[row]
        number += 1 if wanted[codes[row]] else 0
    return int(number)


@compiled
def count_codes(codes: Codes, numbers: Ints) -> None:
    """Count the rows of each code."""
    size = codes.size & ~np.int64(3)
    # Of four neighbours each has counts of its own: those of the same code would wait for each other.
    counts = np.zeros((4, numbers.size), np.int64)
    for row in range(0, size, 4):
        for lane in range(4):
            counts[lane, codes[row + lane]] += 1
    for row in range(size, codes.size):
        numbers[codes[row]] += 1
    for lane in range(4):
        for code in range(numbers.size):
            numbers[code] += counts[lane, code]


@compiled
def least_and_greatest(numbers: Ints) -> tuple[int, int]:
    """Of numbers, of which there are some."""
    least = greatest = numbers[0]
    for place in range(numbers.size):
        least, greatest = min(least, numbers[place]), max(greatest, numbers[place])
    return least, greatest


@compiled
def how_ends_follow(ends: Ints) -> int:
    """How ends follow each other."""
    later = True
    not_before = True
    for place in range(1, ends.size):
        later &= ends[place] > ends[place - 1]
        not_before &= ends[place] >= ends[place - 1]
    return STRICT if later else TIED if not_before else SHUFFLED

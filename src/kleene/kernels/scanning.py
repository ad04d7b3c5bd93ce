"""The first pass over the rows of a batch: which of them matter, and whether these are in the order of time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.kernels.jit import compiled

Flags = npt.NDArray[np.bool_]
# [row]: a place among few values; read-only, as Arrow's arrays are.
Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int32]

# How ends follow each other: some is before the one it follows, none is, each is later.
SHUFFLED, TIED, STRICT = range(3)


@compiled
def _fill(codes: Codes, wanted: Flags, rows: Numbers) -> int:
    """Write the wanted rows; how many. There is room for one more, so that no branch can be mispredicted."""
    number = 0
    if wanted.size <= 64:
        # One bit a code: a shift takes less than half of the time of a look-up.
        bits = np.uint64(0)
        for code in range(wanted.size):
            bits |= np.uint64(wanted[code]) << np.uint64(code)
        for row in range(codes.size):
            rows[number] = row
            number += int((bits >> np.uint64(codes[row])) & np.uint64(1))
        return number
    for row in range(codes.size):
        rows[number] = row
        number += wanted[codes[row]]
    return number


def places_of(codes: Codes, wanted: Flags) -> Numbers:
    """The rows whose code is wanted, in order; 32 bits are enough for the rows of a table in memory."""
    rows = np.empty(codes.size + 1, np.int32)
    return rows[: _fill(codes, wanted, rows)]


@compiled
def count_codes(codes: Codes, numbers: Ints) -> None:
    """Count the rows of each code."""
    for row in range(codes.size):
        numbers[codes[row]] += 1


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

"""The order of integers, by their digits from the last one on: a pass a digit, however rows stand."""

from __future__ import annotations

import numpy as np

from kleene.kernels.expression import Ints
from kleene.kernels.jit import compiled

DIGIT = 11


@compiled
def order_by_digits(numbers: Ints, least: int, digits: int, rows: Ints, room: Ints) -> bool:
    """The rows by number, equal ones as they stand; whether they are in `room` and not in `rows`.

    least    no number is less
    digits   how many digits of eleven bits numbers have at most, counted from the least one
    """
    # Differences of 64 bits wrap around to what they are without a sign.
    base, mask, width = np.uint64(np.int64(least)), np.uint64((1 << DIGIT) - 1), np.uint64(DIGIT)
    places = np.zeros((digits, 1 << DIGIT), np.int64)
    for row in range(numbers.size):
        rest = np.uint64(numbers[row]) - base
        for digit in range(digits):
            places[digit, rest & mask] += 1
            rest >>= width
    for digit in range(digits):
        begin = 0
        for value in range(1 << DIGIT):
            begin, places[digit, value] = begin + places[digit, value], begin
    for row in range(numbers.size):
        rows[row] = row
    for digit in range(digits):
        source, target = (rows, room) if digit % 2 == 0 else (room, rows)
        shift = np.uint64(DIGIT * digit)
        for at in range(numbers.size):
            row = source[at]
            own = ((np.uint64(numbers[row]) - base) >> shift) & mask
            target[places[digit, own]] = row
            places[digit, own] += 1
    return digits % 2 == 1

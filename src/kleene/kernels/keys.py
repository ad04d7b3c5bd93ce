"""Partition keys as small numbers, and where in its partition an event stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.kernels.identity import mix
from kleene.kernels.jit import compiled, inlined

Flags = npt.NDArray[np.bool_]


@inlined
def _slot(values: Ints, row: int, known: Ints, table: npt.NDArray[np.int32]) -> Any:
    """Where a key is in the table, or where it belongs."""
    code = np.uint64(0)
    for column in range(values.shape[0]):
        code = mix(code * np.uint64(31) + np.uint64(values[column, row]))
    slot = np.int64(code & np.uint64(table.size - 1))
    while table[slot] >= 0:
        same = True
        for column in range(values.shape[0]):
            same &= known[table[slot], column] == values[column, row]
        if same:
            break
        slot = (slot + 1) & (table.size - 1)
    return slot


@compiled
def intern(
    values: Ints,  #  [column, row]
    missing: Flags,  # [row]: it has no key
    begin: int,
    known: Ints,  #   [code, column]: the keys met so far, with room for more
    table: npt.NDArray[np.int32],  # [hash]: codes by open addressing, −1 where there is none
    number: Ints,  #  [1]: how many keys are known
    codes: Ints,  #   [row]: out; −1 where there is no key
) -> int:
    """The code of each row's key; the first row for which there was no room."""
    for row in range(begin, codes.size):
        if missing[row]:
            codes[row] = -1
            continue
        slot = _slot(values, row, known, table)
        if table[slot] < 0:
            if number[0] >= known.shape[0] or 2 * number[0] >= table.size:
                return row
            for column in range(values.shape[0]):
                known[number[0], column] = values[column, row]
            table[slot] = number[0]
            number[0] += 1
        codes[row] = table[slot]
    return codes.size


# Columns of what is counted by key.
COUNT, BEFORE, STEP, ORDINAL, COUNTED = range(5)


@compiled
def count_positions(
    keys: Ints,  #    [event]: all events of the stream, in order
    steps: Ints,  #   [event]
    counts: Ints,  #  [key, COUNTED]: events so far, events before the last step, that step, steps so far
    positions: Ints,  # [event]: out: how many events of the partition are before it
    ordinals: Ints,  #  [event]: out: the number of its step among those of the partition
) -> None:
    for event in range(keys.size):
        key = keys[event]
        if key < 0:
            positions[event] = -1
            ordinals[event] = -1
            continue
        if counts[key, STEP] != steps[event]:
            counts[key, BEFORE] = counts[key, COUNT]
            counts[key, STEP] = steps[event]
            counts[key, ORDINAL] += 1
        counts[key, COUNT] += 1
        positions[event] = counts[key, BEFORE]
        ordinals[event] = counts[key, ORDINAL]

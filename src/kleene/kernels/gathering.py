"""Gathers values by row number, and splits flat matches by variable: the columns of results are built from these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleene.kernels.jit import borrowed, compiled, inlined, write_past, written_past

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
# Numbers of rows: 32 bits wide, where that is enough; negative where there is no row.
Rows = NDArray[np.signedinteger]


@compiled
def gather(values: NDArray[np.generic], rows: Rows, out: NDArray[np.generic], past: bool) -> None:
    """The values at these rows; an arbitrary one where there is none.

    past   whether they are written past the caches, since nobody reads them soon
    """
    if past:
        for place in range(len(rows)):
            write_past(out, place, values[max(rows[place], 0)])
        written_past()
        return
    for place in range(len(rows)):
        out[place] = values[max(rows[place], 0)]


@compiled
def _fill_rows(places: Rows, rows: Rows, out: Rows) -> None:
    for at in range(len(rows)):
        out[at] = places[max(rows[at], 0)] if rows[at] >= 0 else -1


def rows_at(places: Rows, rows: Rows) -> Rows:
    """The place of each row; negative where there is no row."""
    out = np.empty(len(rows), np.int32)
    _fill_rows(places, rows, out)
    return out


@compiled
def gather_bits(bits: Bytes, first: int, rows: Rows, out: Bytes) -> int:
    """The bit at each row, clear where there is no row; how many are clear.

    bits   [byte]: eight values a byte, the first one the lowest bit; `first` bits come before that of row 0
    out    [byte]: likewise, from bit 0
    """
    clear = 0
    for byte in range(len(out)):
        packed_byte = 0
        for place in range(8 * byte, min(8 * byte + 8, len(rows))):
            bit = 0
            if rows[place] >= 0:
                at = first + rows[place]
                bit = (np.int64(bits[at >> 3]) >> (at & 7)) & 1
            packed_byte |= bit << (place & 7)
            clear += 1 - bit
        out[byte] = packed_byte
    return clear


@inlined
def run_end(variables: Bytes, begin: int, stop: int, variable: int) -> int:
    """The end of the references to a variable that begin at `begin`, if any; those to later variables follow."""
    if begin == stop or variables[begin] != variable:
        return begin
    if variables[stop - 1] == variable:
        return stop
    low, high = begin, stop - 1
    while low + 1 < high:
        middle = (low + high) // 2
        if variables[middle] == variable:
            low = middle
        else:
            high = middle
    return high


class ByVariable(NamedTuple):
    """Matches split by variable, in the order of the result."""

    first: Rows  #   [match]: its first event
    singles: Rows  # [single variable, match]: its event, -1 where it is absent
    begins: Ints  #  [Kleene variable, match]: where its references begin
    sizes: Ints  #   [Kleene variable, match]: how many there are


@compiled
def by_variable(
    offsets: Ints,  # as in `engine.output.matches.Matches`, as are the next two
    events: Ints,
    variables: Bytes,
    order: Ints,  #   [match of the result]: the number of a match
    places: Ints,  #  [variable]: its row in `singles`, or, as -1 - row, in `begins` and `sizes`
    out: ByVariable,
) -> None:
    """Split matches by variable."""
    out = borrowed(out)
    first, singles, begins, sizes = out.first, out.singles, out.begins, out.sizes
    for row in range(len(order)):
        at, stop = offsets[order[row]], offsets[order[row] + 1]
        first[row] = events[at]
        if not len(sizes) and stop - at == len(places):
            for variable in range(len(places)):
                singles[variable, row] = events[at + variable]
            continue
        for variable in range(len(places)):
            place = places[variable]
            if place >= 0:
                present = at < stop and variables[at] == variable
                singles[place, row] = events[at] if present else -1
                at += 1 if present else 0
            else:
                end = run_end(variables, at, stop, variable)
                begins[-1 - place, row] = at
                sizes[-1 - place, row] = end - at
                at = end


@compiled
def fill_lists(events: Rows, begins: Ints, sizes: Ints, out: Rows) -> None:
    """The events of a Kleene variable, those of one match after those of another."""
    at = 0
    for match in range(len(begins)):
        begin, size = begins[match], sizes[match]
        # Parts of arrays: places in them are not negative, and so many are copied at once.
        source, target = events[begin : begin + size], out[at : at + size]
        for place in range(len(source)):
            target[place] = source[place]
        at += size

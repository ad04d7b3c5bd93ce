"""Which events a sequence can go on with: the scan of active instance stacks, with the window in it (SASE §4.3).

A place of the sequence is open for a key until the last window closes that an event at the place before is in. Of most
events that is all that matters, so it is decided ahead of everything else. An event opens the next place or none: that
it is written either way, to a place that nobody reads where there is none, leaves no branch, and what types come next
is what no processor can predict.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.arithmetic import LEAST
from kleene.kernels.expression import Ints
from kleene.kernels.jit import borrowed, compiled, highest_bit
from kleene.kernels.timeline import LATEST, EventBits, Timeline, WindowLength, end_of_window


class Gates(NamedTuple):
    """Until when places are open."""

    # [1 + key · width + place]: the last end that an event may have there. The first place is always open; what is
    # after the last one, and the very first number, nobody reads.
    ends: Ints
    width: int  # places and one more


class Offers(NamedTuple):
    """The events that some place is open for."""

    numbers: npt.NDArray[np.int32]  # [offer]: the event
    places: Ints  #                   [offer]: the places, one bit each


def gates(keys: int, places: int) -> Gates:
    """The first places of so many keys are open, the others are not."""
    ends = np.full(1 + keys * (places + 1), LEAST, np.int64)
    ends[1 :: places + 1] = LATEST
    return Gates(ends, places + 1)


@compiled
def open_places(
    begin: int,
    end: int,
    bits: EventBits,
    time: Timeline,
    within: WindowLength,
    closes: bool,  # whether there is a window that closes places
    known: Gates,
    out: Offers,  #  with room for all events
) -> int:
    """Write the events from `begin` to `end` that some place is open for, and open the places after it; how many."""
    bits, time, known, out = borrowed(bits), borrowed(time), borrowed(known), borrowed(out)
    begins, keys, ends, highs = (
        bits.begins[begin - bits.base :],
        time.keys[begin:],
        time.ends[begin:],
        time.highs[begin:],
    )
    gate_ends, width = known.ends, np.uint64(known.width)
    count = np.uint64(0)
    for at in range(end - begin):
        places, allowed = begins[at], np.int64(0)
        first = np.uint64(1) + np.uint64(keys[at]) * width
        latest = end_of_window(highs[at], within) if closes else LATEST
        # From the last place on: no event comes before itself.
        while places:
            place = highest_bit(places)
            places ^= 1 << place
            gate = first + np.uint64(place)
            is_open = ends[at] <= gate_ends[gate]
            # A place that nobody reads takes what opens nothing.
            gate_ends[(gate + np.uint64(1)) * np.uint64(is_open)] = latest
            allowed |= np.int64(is_open) << place
        out.numbers[count] = begin + at
        out.places[count] = allowed
        count += np.uint64(allowed != 0)
    return int(count)

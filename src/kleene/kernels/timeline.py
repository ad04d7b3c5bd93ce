"""The times of events, and what components they could be: arrays by which every executor orders and measures."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kleene.kernels.arithmetic import GREATEST, LEAST
from kleene.kernels.expression import Ints
from kleene.kernels.jit import inlined

EARLIEST, LATEST = LEAST, GREATEST


class Timeline(NamedTuple):
    """The events that an engine holds, [event], in canonical order."""

    keys: Ints  #       the code of the partition that keeps runs apart
    partitions: Ints  # the code of the partition in which matches must not overlap
    steps: Ints  #      simultaneous events have the same step
    lefts: Ints  #      x is before y when rights[x] < lefts[y]; lefts[y] <= steps[y]
    rights: Ints  #     steps[x] <= rights[x]
    starts: Ints  #     where the window begins to be measured: start, or position
    ends: Ints  #       where it ends: end, or position
    highs: Ints  #      no event up to this one starts after here, as windows are measured
    barriers: Ints  #   an event x is followed by y without another between them when barriers[y] <= rights[x]
    closes: bool  #     whether a window that one event lies outside of is closed for all that come after it


class EventBits(NamedTuple):
    """Which components each event could be, as far as it decides that by itself: [event − base], one bit each."""

    base: int  #     the event that the first bits are of
    begins: Ints  #  single components, and the first events of Kleene components
    takes: Ints  #   the later events of Kleene components
    absents: Ints  # negated components


class WindowLength(NamedTuple):
    """A window, as WITHIN gives it."""

    size: int  # negative: none
    inclusive: bool


@inlined
def outside(end: Any, start: Any, within: WindowLength) -> bool:
    """Whether start and end are further apart than a window allows; there must be a window.

    Times may be anywhere in 64 bits, where the distance of two need not fit: `end - start` must not be taken, and the
    end of a window only where there is one.
    """
    if start > LATEST - within.size:
        return False
    last = start + within.size
    return bool(end > last or (end == last and not within.inclusive))


@inlined
def end_of_window(start: Any, within: WindowLength) -> Any:
    """The last end that is not `outside` a window of this start; there must be a window."""
    if start > LATEST - within.size:
        return LATEST
    last = start + within.size
    return last if within.inclusive else max(last, EARLIEST + 1) - 1


def shifted(times: Ints, by: int) -> Ints:
    """Times shifted, but not beyond 64 bits."""
    by = min(max(by, EARLIEST + 1), LATEST)
    return np.maximum(times, EARLIEST - by) + by if by < 0 else np.minimum(times, LATEST - by) + by


def in_time(moment: int) -> int:
    """A moment, or the nearest one that 64 bits hold."""
    return min(max(moment, EARLIEST), LATEST)

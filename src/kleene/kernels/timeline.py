"""When events are: the arrays by which every executor orders them and measures windows."""

from __future__ import annotations

from typing import NamedTuple

from kleene.kernels.expression import Ints
from kleene.kernels.jit import inlined


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


@inlined
def outside(distance: int, size: int, inclusive: bool) -> bool:
    """Whether a distance is more than a window holds."""
    return distance > size or (distance == size and not inclusive)

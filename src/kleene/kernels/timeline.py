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
    lefts: Ints  #      x is before y when steps[x] < lefts[y]
    starts: Ints  #     where the window begins to be measured: start, or position
    ends: Ints  #       where it ends: end, or position
    ordinals: Ints  #   the number of the event's step among those against which contiguity is judged


@inlined
def outside(distance: int, size: int, inclusive: bool) -> bool:
    """Whether a distance is more than a window holds."""
    return distance > size or (distance == size and not inclusive)

"""When a window is closed: nothing that comes can lie in it any more (the semantics page §3, Negation, and §5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.kernels.timeline import WindowLength, shifted
from kleene.pattern.clock import Window

Flags = npt.NDArray[np.bool_]
# In place of the moment at which a window closed, where nothing closed it.
NEVER = np.iinfo(np.int64).min


def within(window: Window | None) -> WindowLength:
    """A window as kernels read it."""
    return WindowLength(-1, False) if window is None else WindowLength(window.size, window.inclusive)


@dataclass(frozen=True, eq=False)
class Passed:
    """Events in order of arrival, irrelevant ones included: the position of each in its partition, and its end."""

    # [event]
    partitions: Ints
    positions: Ints
    ends: Ints

    def reached(self, partitions: Ints, positions: Ints) -> Ints:
        """When each of these partitions came to this position or a later one; `NEVER` where it did not."""
        if not len(self.ends):
            return np.full(len(partitions), NEVER)
        by_partition = np.argsort(self.partitions, kind="stable")
        # A position beyond the greatest is not reached, however far it is.
        positions = np.minimum(positions, int(self.positions.max()) + 1)
        lowest = min(int(self.positions.min()), int(positions.min(initial=0)))
        width = int(self.positions.max()) + 1 - lowest + 1
        keys = self.partitions[by_partition] * width + self.positions[by_partition] - lowest
        at = np.searchsorted(keys, partitions * width + positions - lowest)
        events = by_partition[np.minimum(at, len(keys) - 1)]
        there = (at < len(keys)) & (self.partitions[events] == partitions)
        return np.where(there, self.ends[events], NEVER)


@dataclass(frozen=True, eq=False)
class Closing:
    """How far time has advanced, which decides what windows are closed."""

    window: Window | None
    # [event]: where windows begin to be measured.
    starts: Ints
    # Up to where time has passed; None: to the end of the stream.
    watermark: int | None
    # Of windows of positions: [event] the code of the partition, and [code] the greatest position met in it.
    partitions: Ints
    positions: Ints
    # For windows of positions whose closing moment is reported: the latest events; None: no moment is needed.
    passed: Passed | None = None

    def moments(self, window: Window, first: Ints) -> Ints:
        """[window]: when the windows that begin with these events closed."""
        starts = self.starts[first]
        if window.events:
            if self.passed is None:
                return np.full(len(first), NEVER)
            return self.passed.reached(self.partitions[first], shifted(starts, window.size + window.inclusive))
        return shifted(starts, window.size)

    def closed(self, first: Ints) -> Flags:
        """Whether the windows that begin with these events are closed."""
        if self.watermark is None or self.window is None:
            return np.full(len(first), self.watermark is None)
        starts = self.starts[first]
        if self.window.events:
            return self.positions[self.partitions[first]] - starts >= self.window.size + self.window.inclusive
        return starts < self.watermark - self.window.size

"""What an operator gives for a batch: its detections, and failed ones, all that end before the watermark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kleene.engine.detections.arrays import by_end, no_detections, size_of, taken, together
from kleene.kernels.detections import DetectionArrays
from kleene.kernels.expression import Ints


@dataclass(frozen=True, eq=False)
class Failures:
    """Failed detections ∅, with the events that λ may still be tested on, and the exception of each."""

    detections: DetectionArrays = field(default_factory=no_detections)
    # [failure]
    exceptions: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def size(self) -> int:
        return size_of(self.detections)

    def take(self, places: Ints) -> Failures:
        return Failures(taken(self.detections, places), self.exceptions[places])

    @staticmethod
    def together(parts: Sequence[Failures]) -> Failures:
        """Those of all parts, by their ends."""
        some = [part for part in parts if part.size]
        if len(some) < 2:
            return some[0] if some else Failures()
        every = Failures(
            together([part.detections for part in some]), np.concatenate([part.exceptions for part in some])
        )
        return every.take(by_end(every.detections))


@dataclass(frozen=True, eq=False)
class DetectionBatch:
    detections: DetectionArrays
    failures: Failures = field(default_factory=Failures)

r"""`E1 \ E2_λ` (NEXT §3.4): whether an exception ends in the time of a detection."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.detections import DetectionArrays, PairTests, fits, is_before
from kleene.kernels.expression import ProgramScope
from kleene.kernels.jit import borrowed, compiled

Flags = npt.NDArray[np.bool_]


@compiled
def cancelled(
    detections: DetectionArrays,
    exceptions: DetectionArrays,  # by their ends
    tests: PairTests,
    scope: ProgramScope,
    has_condition: bool,  # whether λ compares the two
    out: Flags,
) -> None:
    """Which detections an exception cancels: one that ends at their start or later, and before their end."""
    detections, exceptions = borrowed(detections), borrowed(exceptions)
    tests, scope = borrowed(tests), borrowed(scope)
    for number in range(out.size):
        # The first exception that does not end before the detection.
        low, high = 0, exceptions.ends.size
        while low < high:
            middle = (low + high) // 2
            ended = is_before(
                exceptions.ends[middle],
                exceptions.end_ties[middle],
                detections.ends[number],
                detections.end_ties[number],
            )
            low, high = (middle + 1, high) if ended else (low, middle)
        at = low - 1
        while at >= 0 and not is_before(
            exceptions.ends[at], exceptions.end_ties[at], detections.starts[number], detections.start_ties[number]
        ):
            if not has_condition or fits(tests, 0, scope, detections, number, exceptions, at):
                out[number] = True
                break
            at -= 1

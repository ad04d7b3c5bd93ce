"""When a window is closed: nothing that comes can lie in it any more (the semantics page §3, Negation, and §5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.pattern.clock import Window
from kleene.plan.physical import AutomatonPlan, SequencePlan
from kleene.plan.trees import TreePlan

Flags = npt.NDArray[np.bool_]


def has_negated_end(plan: SequencePlan | AutomatonPlan | TreePlan) -> bool:
    """Whether matches are certain only when their window is closed; a closure at the end is decided then as well."""
    if isinstance(plan, TreePlan):
        gaps = [absence.gap for absence in plan.absences] + [node.gap for node in plan.groups]
        return not all(gap.after for gap in gaps)
    places = plan.scans if isinstance(plan, SequencePlan) else plan.states
    return any(absence.after == len(places) - 1 for absence in plan.absences)


def has_negated_start(plan: SequencePlan | AutomatonPlan | TreePlan) -> bool:
    """Whether an event before a match can forbid it."""
    if isinstance(plan, TreePlan):
        # A closure at the start may have no members.
        empty = {node.scan.component.variable for node in plan.groups if not node.scan.component.minimum}
        return not all(set(absence.gap.before) - empty for absence in plan.absences)
    return any(absence.after < 0 for absence in plan.absences)


@dataclass(frozen=True, eq=False)
class Closing:
    """How far time has come."""

    window: Window | None
    # [event]: where windows begin to be measured.
    starts: Ints
    # Up to where time has passed; None: to the end of the stream.
    watermark: int | None
    # Of windows of positions: [event] the code of the partition, and [code] the greatest position met in it.
    partitions: Ints
    positions: Ints

    def closed(self, first: Ints) -> Flags:
        """Whether the windows that begin with these events are closed."""
        if self.watermark is None or self.window is None:
            return np.full(len(first), self.watermark is None)
        starts = self.starts[first]
        if self.window.events:
            return self.positions[self.partitions[first]] - starts >= self.window.size + self.window.inclusive
        return starts < self.watermark - self.window.size

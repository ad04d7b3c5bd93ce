"""When a window is closed: nothing that comes can lie in it any more (the semantics page §3, Negation, and §5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.pattern.clock import LATEST, Window
from kleene.plan.physical import AutomatonPlan, SequencePlan
from kleene.plan.trees import TreePlan

Flags = npt.NDArray[np.bool_]
# In place of the moment at which a window closed, where nothing closed it.
NEVER = np.iinfo(np.int64).min


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
class Passed:
    """Events that came by in order, irrelevant ones included: where each stands in its partition, and when it ended."""

    # [event]
    partitions: Ints
    positions: Ints
    ends: Ints

    def reached(self, partitions: Ints, positions: Ints) -> Ints:
        """When each of these partitions came to this position or a later one; `NEVER` where it did not."""
        if not len(self.ends):
            return np.full(len(partitions), NEVER)
        by_partition = np.argsort(self.partitions, kind="stable")
        lowest = min(int(self.positions.min()), int(positions.min(initial=0)))
        width = max(int(self.positions.max()), int(positions.max(initial=0))) - lowest + 1
        keys = self.partitions[by_partition] * width + self.positions[by_partition] - lowest
        at = np.searchsorted(keys, partitions * width + positions - lowest)
        found = by_partition[np.minimum(at, len(keys) - 1)]
        there = (at < len(keys)) & (self.partitions[found] == partitions)
        return np.where(there, self.ends[found], NEVER)


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
    # Of windows of positions whose closing is to be told: the events that came by last; None: of none that matters.
    passed: Passed | None = None

    def moments(self, window: Window, first: Ints) -> Ints:
        """[window]: when those that begin with these events closed."""
        starts = self.starts[first]
        if window.events:
            if self.passed is None:
                return np.full(len(first), NEVER)
            return self.passed.reached(self.partitions[first], starts + window.size + window.inclusive)
        closed: Ints = np.minimum(starts, LATEST - window.size) + window.size
        return closed

    def closed(self, first: Ints) -> Flags:
        """Whether the windows that begin with these events are closed."""
        if self.watermark is None or self.window is None:
            return np.full(len(first), self.watermark is None)
        starts = self.starts[first]
        if self.window.events:
            return self.positions[self.partitions[first]] - starts >= self.window.size + self.window.inclusive
        return starts < self.watermark - self.window.size

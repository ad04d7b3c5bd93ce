"""Merging equivalent runs (SASE+ §5.2.2): two runs with the same state and the same values to test are one."""

from __future__ import annotations

from dataclasses import replace

from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan, SequencePlan


def merge_runs(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    """A timeout names the one prefix that a run start came to, so there each run stays by itself."""
    if isinstance(plan, SequencePlan) or query.timeouts is not None:
        return plan
    return replace(plan, merges=True)

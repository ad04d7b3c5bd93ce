"""The window into scan and construction (SASE §4.3) and onto every edge (SASE+ §3.2 step 5)."""

from __future__ import annotations

from dataclasses import replace

from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan, SequencePlan


def push_window(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    if query.window is None:
        return plan
    if isinstance(plan, SequencePlan):
        return replace(plan, window_in_scan=True, window_in_construction=True)
    return replace(plan, window_early=True)

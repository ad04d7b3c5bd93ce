"""Conditions across events to construction (SASE §4.2.2, dynamic filtering): tested as soon as their events are bound.

Construction goes from the last place to the first, so a clause is complete at the earliest place that it names.
"""

from __future__ import annotations

from dataclasses import replace

from kleene.pattern.expressions import variables
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan, SequencePlan


def push_to_construction(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    if isinstance(plan, AutomatonPlan):
        return plan
    places = {scan.component.variable: place for place, scan in enumerate(plan.scans)}
    during = [list(clauses) for clauses in plan.during]
    for clause in plan.after:
        named = [places[name] for name in variables(clause) if name in places]
        during[min(named, default=len(places) - 1)].append(clause)
    return replace(plan, during=tuple(map(tuple, during)), after=())

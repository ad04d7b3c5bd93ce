"""CNF conjuncts to the earliest edge (SASE+ §3.2 step 2): where the last event that they name is taken."""

from __future__ import annotations

from dataclasses import replace

from kleene.pattern.conditions import assign_edges
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan, Edge, SequencePlan, StatePlan


def push_to_edges(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    if isinstance(plan, SequencePlan):
        return plan
    tested = [clause for state in plan.states for clause in state.tests]
    line = assign_edges([state.component for state in plan.states], tested)
    states = tuple(
        StatePlan(old.component, Edge(old.begin.mask, new.begin), Edge(old.take.mask, new.take), new.proceed)
        for old, new in zip(plan.states, line.states, strict=True)
    )
    return replace(plan, states=states)

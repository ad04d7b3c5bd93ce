"""Pushes simple predicates to the scan (SASE §4.2): an event that fails a condition on it alone is never visited."""

from __future__ import annotations

from dataclasses import replace

from kleene.pattern.expressions import Attribute, Clause, Which, references, variables
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan, Edge, SequencePlan


def push_simple_predicates(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    return _to_scans(plan) if isinstance(plan, SequencePlan) else _to_edges(plan)


def _to_scans(plan: SequencePlan) -> SequencePlan:
    names = [scan.component.variable for scan in plan.scans]
    masks = {name: list(scan.mask) for name, scan in zip(names, plan.scans, strict=True)}
    others = []
    for clause in plan.after:
        alone = variables(clause)
        if len(alone) == 1 and alone <= set(names):
            masks[next(iter(alone))].append(clause)
        else:
            others.append(clause)
    scans = tuple(replace(scan, mask=tuple(masks[name])) for name, scan in zip(names, plan.scans, strict=True))
    return replace(plan, scans=scans, after=tuple(others))


def _to_edges(plan: AutomatonPlan) -> AutomatonPlan:
    """Moves simple predicates to the edge that takes their event; for a condition on `a[1]` that is the begin edge."""
    tested = [clause for state in plan.states for clause in state.tests]
    states = []
    masked: set[Clause] = set()
    for state in plan.states:
        name = state.component.variable
        first = tuple(clause for clause in tested if _is_on(clause, name, (Which.SINGLE, Which.FIRST)))
        each = tuple(clause for clause in tested if _is_on(clause, name, (Which.CURRENT,)))
        masked.update(first, each)
        states.append(replace(state, begin=Edge(first, state.begin.tests), take=Edge(each, state.take.tests)))
    return replace(plan, states=tuple(state.without(masked) for state in states))


def _is_on(clause: Clause, variable: str, which: tuple[Which, ...]) -> bool:
    """Whether a clause refers to one event of this variable, and to nothing else."""
    clause_references = references(clause)
    return bool(clause_references) and all(
        isinstance(reference, Attribute) and reference.variable == variable and reference.which in which
        for reference in clause_references
    )

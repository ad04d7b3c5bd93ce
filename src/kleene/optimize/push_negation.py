"""Pushes negation to the earliest edge that can decide it: a run that a negated event invalidated is dropped.

In the middle that is the edge which takes the right neighbour, or a later one that binds what a condition names. A
negation at the start waits for the last event, one at the end for the window to close, so both are tested on complete
matches. The edge itself still fires: the positive components are matched first, as if the negated ones were not there
(the semantics page §3); a timeout names the positive prefix, so with TIMEOUTS no run is stopped early.
"""

from __future__ import annotations

from dataclasses import replace

from kleene.pattern.expressions import Aggregate, Agrees, Attribute, Clause, Which, references
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import Absence, AutomatonPlan, SequencePlan


def push_negation(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    if isinstance(plan, SequencePlan) or query.timeouts is not None:
        return plan
    return replace(plan, absences=tuple(_placed(absence, plan) for absence in plan.absences))


def _placed(absence: Absence, plan: AutomatonPlan) -> Absence:
    if not 0 <= absence.after < len(plan.states) - 1:
        return absence
    decided = max([absence.after + 1, *(_known(clause, plan) for clause in absence.conditions)])
    return replace(absence, at=decided) if decided < len(plan.states) else absence


def _known(clause: Clause, plan: AutomatonPlan) -> int:
    """The state on whose begin edge everything that a clause names is known."""
    numbers = {state.component.variable: number for number, state in enumerate(plan.states)}
    known = 0
    for reference in references(clause):
        if reference.variable not in numbers:
            continue
        number = numbers[reference.variable]
        whole = isinstance(reference, Aggregate | Agrees) or (
            isinstance(reference, Attribute) and reference.which is Which.LAST
        )
        later = whole and plan.states[number].component.kind is ComponentKind.KLEENE
        known = max(known, number + 1 if later else number)
    return known

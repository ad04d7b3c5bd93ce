"""Equivalence tests to partitions (PAIS, SASE §4.2.1): the comparisons that a key implies need no test.

A key is what the brackets say, and what spelled-out equalities do that link all components (`pattern.links`).

The first attribute makes the key; the others join it, since a key is coded densely and a longer one costs no memory.
Without the second rule they are tested during construction (§4.2.2, dynamic filtering), as Multi-PAIS's rival is.
"""

from __future__ import annotations

from dataclasses import replace

from kleene.pattern.expressions import Clause
from kleene.pattern.links import key_of
from kleene.pattern.query import BoundQuery
from kleene.plan.implied import implied_by_key
from kleene.plan.physical import Absence, AutomatonPlan, SequencePlan


def push_equivalence(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    """The first attribute of the key: a planner that knows no selectivities takes the order of the text."""
    return with_key(plan, plan.key or key_of(query)[:1])


def push_other_equivalences(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    return with_key(plan, key_of(query)) if plan.key else plan


def with_key(plan: SequencePlan | AutomatonPlan, key: tuple[str, ...]) -> SequencePlan | AutomatonPlan:
    absences = tuple(_by_key(absence, key) for absence in plan.absences)
    if isinstance(plan, SequencePlan):
        return replace(
            plan,
            key=key,
            absences=absences,
            during=tuple(_unless_implied(clauses, key) for clauses in plan.during),
            after=_unless_implied(plan.after, key),
        )
    implied = {clause for state in plan.states for clause in state.tests if implied_by_key(clause, key)}
    return replace(plan, key=key, absences=absences, states=tuple(state.without(implied) for state in plan.states))


def _by_key(absence: Absence, key: tuple[str, ...]) -> Absence:
    """A negated event is looked for among those of the match's key, whichever component it was compared with."""
    return replace(absence, keyed=bool(key), conditions=_unless_implied(absence.conditions, key))


def _unless_implied(clauses: tuple[Clause, ...], key: tuple[str, ...]) -> tuple[Clause, ...]:
    return tuple(clause for clause in clauses if not implied_by_key(clause, key))

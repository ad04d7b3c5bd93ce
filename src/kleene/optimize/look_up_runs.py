"""Runs found by value: where an edge equates a value of the run with one of the event, runs are filed under theirs.

Each other run would have ignored the event, which only the strategies that skip events allow: a look-up needs no more
than that every edge on which an event can go has one, and that is seen when the event comes (`kernels.lookups`).
"""

from __future__ import annotations

from dataclasses import replace

from kleene.optimize.trees.lookups import are_hashed, is_computable
from kleene.pattern.expressions import Aggregate, Attribute, Clause, references
from kleene.pattern.nodes import Component
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import Schema
from kleene.plan.physical import AutomatonPlan, Edge, SequencePlan, StatePlan
from kleene.plan.run_lookups import of_run_and_event


def look_up_runs(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    if isinstance(plan, SequencePlan) or query.strategy.is_contiguous:
        return plan
    present = {state.component.variable: state.component for state in plan.states}

    def with_equalities(edge: Edge, variable: str, *, taking: bool) -> Edge:
        found = tuple(each for each in edge.tests if _finds_runs(each, variable, taking, present, query.schema))
        return replace(edge, equalities=found)

    def looked_up(state: StatePlan) -> StatePlan:
        name = state.component.variable
        begin = with_equalities(state.begin, name, taking=False)
        return replace(state, begin=begin, take=with_equalities(state.take, name, taking=True))

    return replace(plan, states=tuple(map(looked_up, plan.states)))


def _finds_runs(clause: Clause, variable: str, taking: bool, present: dict[str, Component], schema: Schema) -> bool:
    """Whether a clause equates values that each run and each event has: what is missing equals everything."""
    sides = of_run_and_event(clause, variable, taking=taking)
    if sides is None or not are_hashed(*sides) or not all(is_computable(side, aggregates=True) for side in sides):
        return False
    return all(
        isinstance(each, Attribute | Aggregate)
        and each.variable in present
        and (each.attribute is None or _has(present[each.variable], each.attribute, schema))
        for side in sides
        for each in references(side)
    )


def _has(component: Component, attribute: str, schema: Schema) -> bool:
    return all(schema.has(name, attribute) for name in component.types)

"""Refuse an ill-formed plan before it runs: each condition is tested somewhere, and not before its events are bound."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from kleene.pattern.conditions import applicable, assign_edges
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which, references, variables
from kleene.pattern.nodes import Component
from kleene.plan.check_trees import check_tree
from kleene.plan.implied import implied_by_key
from kleene.plan.physical import AutomatonPlan, IllFormedPlan, Plan, ReferencePlan, SequencePlan
from kleene.plan.run_lookups import of_run_and_event
from kleene.plan.trees import TreePlan


def check(plan: Plan) -> Plan:
    """The plan itself, or an error that names the rule it breaks."""
    if not plan.alternatives:
        raise IllFormedPlan("a plan runs something")
    for alternative in plan.alternatives:
        match alternative:
            case SequencePlan():
                _check_sequence(plan, alternative)
            case AutomatonPlan():
                _check_automaton(plan, alternative)
            case TreePlan():
                check_tree(plan.query, alternative)
            case ReferencePlan():
                if len(plan.alternatives) > 1:
                    raise IllFormedPlan("the reference evaluator runs whole queries")
    return plan


def _check_sequence(plan: Plan, sequence: SequencePlan) -> None:
    names = _names([scan.component for scan in sequence.scans])
    if len(sequence.during) != len(names):
        raise IllFormedPlan("there is one list of tests a place")
    for place_, scan in enumerate(sequence.scans):
        for clause in scan.mask:
            if variables(clause) - {scan.component.variable, ""}:
                raise IllFormedPlan(f"the mask of `{names[place_]}` names another variable")
    for place_, clauses in enumerate(sequence.during):
        known = set(names[place_:])
        for clause in clauses:
            if (variables(clause) & set(names)) - known:
                raise IllFormedPlan(f"a test at `{names[place_]}` needs an event that is not bound yet")
    tested = {clause for scan in sequence.scans for clause in scan.mask}
    tested |= {clause for clauses in sequence.during for clause in clauses} | set(sequence.after)
    _check_complete(plan, names, tested, (*sequence.key, *_agreed(names, plan.query.partition, tested)))
    for absence in sequence.absences:
        if not absence.scan.component.negated or not -1 <= absence.after < len(names):
            raise IllFormedPlan("a negated component stands between two places")


def _check_automaton(plan: Plan, automaton: AutomatonPlan) -> None:
    names = _names([state.component for state in automaton.states])
    tested: set[Clause] = set()
    for state in automaton.states:
        name = state.component.variable
        masks = (*state.begin.mask, *state.take.mask)
        if any(variables(clause) != {name} for clause in masks):
            raise IllFormedPlan(f"a mask of `{name}` names another variable, or none")
        tested |= {*masks, *state.tests}
    earliest = assign_edges(
        [state.component for state in automaton.states], [c for s in automaton.states for c in s.tests]
    )
    for number, (state, first) in enumerate(zip(automaton.states, earliest.states, strict=True)):
        waiting = {clause for later in automaton.states[number + 1 :] for clause in later.tests}
        here = {*state.begin.tests, *state.proceed, *state.take.tests, *waiting}
        if not {*first.begin, *first.proceed, *first.take} <= here:
            raise IllFormedPlan(f"a test before `{names[number]}` needs an event that is not taken yet")
        if set(first.take) != set(state.take.tests):
            raise IllFormedPlan(f"what is tested of each event of `{names[number]}` is tested where it is taken")
    _check_complete(plan, names, tested, automaton.key)
    _check_lookups(plan, automaton)
    for absence in automaton.absences:
        if not absence.scan.component.negated or not -1 <= absence.after < len(names):
            raise IllFormedPlan("a negated component stands between two states")
        if absence.at is not None and not absence.after < absence.at < len(names):
            raise IllFormedPlan("a negated component is tested where its right neighbour is taken, or later")


def _check_lookups(plan: Plan, automaton: AutomatonPlan) -> None:
    """Runs are found by tests that equate a value of theirs with one of the event, where they may ignore any other."""
    for state in automaton.states:
        name = state.component.variable
        for edge, taking in ((state.begin, False), (state.take, True)):
            for clause in edge.equalities:
                if plan.query.strategy.is_contiguous:
                    raise IllFormedPlan(
                        f"an event that a run does not equal ends it, so `{name}` finds no runs by value"
                    )
                if clause not in edge.tests or of_run_and_event(clause, name, taking=taking) is None:
                    raise IllFormedPlan(
                        f"`{name}` finds runs by what is no test of a run's value and its own: {clause}"
                    )


def _names(parts: list[Component]) -> list[str]:
    names = [component.variable for component in parts]
    if len(set(names)) != len(names) or not names:
        raise IllFormedPlan(f"there is one place a variable: {names}")
    if any(component.negated for component in parts):
        raise IllFormedPlan("a negated component is no place of a sequence")
    return names


def _check_complete(plan: Plan, names: list[str], tested: Iterable[Clause], key: tuple[str, ...]) -> None:
    for clause in applicable(plan.query.conditions.positive, names):
        if clause not in tested and not implied_by_key(clause, key):
            raise IllFormedPlan(f"nothing tests {clause}")


def _agreed(names: list[str], partition: tuple[str, ...], tested: Iterable[Clause]) -> tuple[str, ...]:
    """The attributes of the partition on which all neighbours are tested to agree, so that all events do."""
    pairs = {(frozenset(variables(clause)), attribute) for clause in tested for attribute in _compared(clause)}
    neighbours = [frozenset(pair) for pair in pairwise(names)]
    return tuple(name for name in partition if all((pair, name) in pairs for pair in neighbours))


def _compared(clause: Clause) -> tuple[str, ...]:
    attributes = [reference.attribute for reference in references(clause) if isinstance(reference, Attribute)]
    return tuple(attributes[:1]) if attributes and implied_by_key(clause, (attributes[0],)) else ()


def agreement(left: str, right: str, attribute: str, like: Iterable[Clause]) -> Clause:
    """That two single events agree on an attribute of the partition, which one of the clauses names."""
    kind = next(
        reference.type
        for clause in like
        for reference in references(clause)
        if isinstance(reference, Attribute) and reference.attribute == attribute
    )
    sides = (Attribute(name, Which.SINGLE, attribute, kind) for name in (left, right))
    return Clause((Comparison("=", *sides),))

"""Refuse an ill-formed plan before it runs: each condition is tested somewhere, and not before its events are bound."""

from __future__ import annotations

from kleene.pattern.expressions import Attribute, Clause, Comparison, variables
from kleene.plan.physical import IllFormedPlan, Plan, SequencePlan


def check(plan: Plan) -> Plan:
    """The plan itself, or an error that names the rule it breaks."""
    if plan.fallback is not None:
        if plan.alternatives:
            raise IllFormedPlan("a plan runs its alternatives or falls back, not both")
        return plan
    if not plan.alternatives:
        raise IllFormedPlan("a plan runs something")
    for alternative in plan.alternatives:
        _check_sequence(plan, alternative)
    return plan


def _check_sequence(plan: Plan, sequence: SequencePlan) -> None:
    names = [scan.component.variable for scan in sequence.scans]
    if len(set(names)) != len(names) or not names:
        raise IllFormedPlan(f"a sequence has one scan a variable: {names}")
    if any(scan.component.negated for scan in sequence.scans):
        raise IllFormedPlan("a negated component is no place of a sequence")
    if len(sequence.during) != len(names):
        raise IllFormedPlan("there is one list of tests a place")
    for place, scan in enumerate(sequence.scans):
        for clause in scan.mask:
            if variables(clause) - {scan.component.variable, ""}:
                raise IllFormedPlan(f"the mask of `{names[place]}` names another variable")
    for place, clauses in enumerate(sequence.during):
        known = set(names[place:])
        for clause in clauses:
            if (variables(clause) & set(names)) - known:
                raise IllFormedPlan(f"a test at `{names[place]}` needs an event that is not bound yet")
    _check_complete(plan, sequence)
    for absence in sequence.absences:
        if not absence.scan.component.negated or not -1 <= absence.after < len(names):
            raise IllFormedPlan("a negated component stands between two places")


def _check_complete(plan: Plan, sequence: SequencePlan) -> None:
    tested = {clause for scan in sequence.scans for clause in scan.mask}
    tested |= {clause for clauses in sequence.during for clause in clauses} | set(sequence.after)
    for clause in plan.query.conditions.positive:
        if clause not in tested and not implied_by_key(clause, sequence):
            raise IllFormedPlan(f"nothing tests {clause}")


def implied_by_key(clause: Clause, sequence: SequencePlan) -> bool:
    """Whether a clause only says that two components agree on an attribute of the key."""
    if len(clause.literals) != 1:
        return False
    literal = clause.literals[0]
    if not isinstance(literal, Comparison) or literal.operator != "=":
        return False
    left, right = literal.left, literal.right
    return (
        isinstance(left, Attribute)
        and isinstance(right, Attribute)
        and left.attribute == right.attribute
        and left.attribute in sequence.key
    )

"""The key of a state: equalities between what an instance holds and what an event brings (CESAR §4.3, the AI-index)."""

from __future__ import annotations

from collections.abc import Iterable

from kleene.algebra.nodes import AttributeName
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which


def keys_of(condition: Iterable[Clause]) -> tuple[tuple[AttributeName, Attribute], ...]:
    """The attributes of an instance that must equal attributes of the event, with these."""
    keys: dict[tuple[AttributeName, Attribute], None] = {}
    for clause in condition:
        key = equality(clause)
        if key is not None:
            keys[key] = None
    return tuple(keys)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def comparison_with_held(clause: Clause) -> tuple[str, AttributeName, Attribute] | None:
    """An order of the event's attribute and one of an instance: the operator, the latter, and the former."""
    match clause.literals:
        case (Comparison(operator, Attribute() as left, Attribute() as right),) if operator in _MIRRORED:
            if left.which is Which.SINGLE and right.which is Which.OVERWRITTEN:
                return operator, (right.variable, right.attribute), left
            if left.which is Which.OVERWRITTEN and right.which is Which.SINGLE:
                return _MIRRORED[operator], (left.variable, left.attribute), right
    return None


def equality(clause: Clause) -> tuple[AttributeName, Attribute] | None:
    """The attribute of an instance and that of the event which a clause compares for equality."""
    match clause.literals:
        case (Comparison("=", Attribute() as left, Attribute() as right),) if left.type is right.type:
            for waiting, brought in ((left, right), (right, left)):
                if waiting.which is Which.OVERWRITTEN and brought.which is Which.SINGLE:
                    return (waiting.variable, waiting.attribute), brought
    return None

"""What a partition key implies."""

from __future__ import annotations

from kleene.pattern.expressions import Attribute, Clause, Comparison


def implied_by_key(clause: Clause, key: tuple[str, ...]) -> bool:
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
        and left.attribute in key
    )

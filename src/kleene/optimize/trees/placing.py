"""Rules by which conditions find their places in trees, for whoever builds one and for whoever searches for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kleene.pattern.expressions import Attribute, Clause, Comparison, Which, references
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.implied import implied_by_key

# Values of these types are equal exactly when they are the same.
_HASHED = frozenset(
    {ValueType.INT, ValueType.STRING, ValueType.BOOL, ValueType.FLOAT, ValueType.TIMESTAMP, ValueType.ZONED}
)


def unless_implied(clauses: Iterable[Clause], key: tuple[str, ...]) -> tuple[Clause, ...]:
    """The conditions that are left to test, each once."""
    return tuple(dict.fromkeys(clause for clause in clauses if not implied_by_key(clause, key)))


def fits_leaf(clause: Clause, component: Component) -> bool:
    """Whether a leaf has a place for a clause on its variable: the mask of a single event names no absent one."""
    return component.kind is not ComponentKind.SINGLE or all(
        isinstance(r, Attribute) and r.variable == component.variable and r.which is Which.SINGLE
        for r in references(clause)
    )


def is_lookup(clause: Clause, always: Mapping[str, Component], schema: Schema) -> bool:
    """Whether a join can look a clause between its sides up: one value on each, which every record has."""
    literal = clause.literals[0]
    if len(clause.literals) > 1 or not isinstance(literal, Comparison) or literal.operator != "=":
        return False
    one, other = literal.left, literal.right
    if not isinstance(one, Attribute) or not isinstance(other, Attribute):
        return False
    if one.type is not other.type or one.type not in _HASHED:
        return False
    return all(
        side.which is Which.SINGLE
        and side.variable in always
        and all(schema.has(name, side.attribute) for name in always[side.variable].types)
        for side in (one, other)
    )

"""Equalities that are tested by hash lookup (ZStream §5.2.2): of one value with another, each of one side alone.

A value is an attribute, or is computed from attributes and constants. Missing makes an equality true of everything
(semantics §2 Missing), which no lookup finds: each event must have what is read of it.

    a.src = b.dst            a lookup between a and b
    a.x + 1 = b.y - c.z      one between a and the join of b and c
    a.x = a.y + b.z          none: a is on both sides
    a.x + sum(k[..].x) = b.y none: an aggregate is of a list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kleene.pattern.expressions import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Constant,
    Negative,
    Value,
    Which,
    equated,
    references,
    variables,
)
from kleene.pattern.nodes import Component, ComponentKind, Disjunction, Leaf, Pattern
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

# The types whose values are equal exactly when they are the same, so that a hash lookup finds the equal ones.
_HASHED = frozenset(
    {
        ValueType.INT,
        ValueType.STRING,
        ValueType.BOOL,
        ValueType.FLOAT,
        ValueType.TIMESTAMP,
        ValueType.ZONED,
        ValueType.DURATION,
    }
)
# An integer is looked up among real numbers as the real number that it equals.
_NUMBERS = frozenset({ValueType.INT, ValueType.FLOAT})
# The events of a Kleene list that every list has.
_ENDS = (Which.FIRST, Which.LAST)

Components = Mapping[str, Component]


def is_lookup(clause: Clause, always: Components, schema: Schema) -> bool:
    """Whether a join can test a clause by hash lookup: it equates one value of each side, which every record has."""
    sides = _equated(clause)
    return sides is not None and all(_is_known(side, always, schema) for side in sides)


def finds_events(clause: Clause, component: Component, always: Components, schema: Schema) -> bool:
    """Whether the events of a negated class or a closure can be looked up by a condition on them.

    always   what is bound wherever they are looked for
    """
    sides = _equated(clause)
    if sides is None or component.preceded_by is not None:
        return False
    own, theirs = sides if component.variable in variables(sides[0]) else reversed(sides)
    which = Which.SINGLE if component.negated else Which.MEMBER
    read = [reference for reference in references(own) if isinstance(reference, Attribute)]
    is_own = all(
        each.variable == component.variable and each.which is which and _has(component, each, schema) for each in read
    )
    return is_own and _is_known(theirs, always, schema)


def bound_beside(pattern: Pattern) -> dict[str, Components]:
    """By variable: the single and Kleene components that every match binds which has that variable's branch."""
    places = dict(_branches(pattern, (), frozenset()))
    taken = [component for component in places if not component.negated and component.kind is not ComponentKind.CLOSURE]
    return {
        component.variable: {each.variable: each for each in taken if places[each] <= own}
        for component, own in places.items()
    }


_Path = tuple[int, ...]


def _branches(pattern: Pattern, path: _Path, above: frozenset[_Path]) -> Iterator[tuple[Component, frozenset[_Path]]]:
    """Each component with the branches of disjunctions that it stands in, each as the path from the root to it."""
    if isinstance(pattern, Leaf):
        yield pattern.component, above
        return
    for number, part in enumerate(pattern.parts):
        here = (*path, number)
        yield from _branches(part, here, above | {here} if isinstance(pattern, Disjunction) else above)


def _equated(clause: Clause) -> tuple[Value, Value] | None:
    """The values that a clause equates, if they are of different variables and of types that can be looked up."""
    sides = equated(clause)
    if sides is None:
        return None
    one, other = sides
    if not is_computable(one) or not is_computable(other) or not are_hashed(one, other):
        return None
    named = variables(one), variables(other)
    return (one, other) if all(named) and named[0].isdisjoint(named[1]) else None


def are_hashed(one: Value, other: Value) -> bool:
    """Whether values of these types are looked up among each other."""
    return {one.type, other.type} == _NUMBERS or (one.type is other.type and one.type in _HASHED)


def is_computable(value: Value, *, aggregates: bool = False) -> bool:
    """Whether a value is computed from attributes and constants, and from aggregates where these are known."""
    match value:
        case Attribute() | Constant():
            return True
        case Aggregate():
            return aggregates
        case Negative(operand):
            return is_computable(operand, aggregates=aggregates)
        case Arithmetic(_, left, right):
            return all(is_computable(side, aggregates=aggregates) for side in (left, right))
        case _:
            return False


def _is_known(value: Value, always: Components, schema: Schema) -> bool:
    """Whether every record with these variables has all that a value reads."""
    return all(
        isinstance(each, Attribute)
        and (component := always.get(each.variable)) is not None
        and _is_of_each(each.which, component)
        and _has(component, each, schema)
        for each in references(value)
    )


def _is_of_each(which: Which, component: Component) -> bool:
    if component.kind is ComponentKind.KLEENE:
        return which in _ENDS and component.minimum > 0
    return component.kind is ComponentKind.SINGLE and which is Which.SINGLE


def _has(component: Component, attribute: Attribute, schema: Schema) -> bool:
    return all(schema.has(name, attribute.attribute) for name in component.types)

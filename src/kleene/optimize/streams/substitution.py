"""Conditions and values with other values in the place of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kleene.algebra.nodes import AttributeName
from kleene.pattern.expressions import Assigned, Attribute, Clause, Constant, Node, Value, Which
from kleene.pattern.rewriting import rewritten
from kleene.pattern.types import ValueType

N = TypeVar("N", bound=Node)


def substituted(node: N, values: Mapping[AttributeName, Value]) -> N:
    """The same expression of what stands for its attributes; `x.last` is fixed where its event came, and stays."""

    def stands_for(part: Node) -> Node | None:
        if not isinstance(part, Attribute):
            return None
        return part if part.which is Which.OVERWRITTEN else values.get((part.variable, part.attribute), part)

    return rewritten(node, stands_for)


def all_substituted(clauses: tuple[Clause, ...], values: Mapping[AttributeName, Value]) -> tuple[Clause, ...]:
    return tuple(substituted(clause, values) for clause in clauses)


def attribute(name: AttributeName, like: Mapping[AttributeName, ValueType]) -> Attribute:
    """A reference to an attribute of a stream with these types."""
    return Attribute(name[0], Which.SINGLE, name[1], like[name])


def assigned(value: Value) -> Value:
    """A value as α assigns it: arithmetic without a result is NULL. What is plainly there needs no care."""
    return value if isinstance(value, Attribute | Constant | Assigned) else Assigned(value, value.type)


def typed(value: Value, kind: ValueType) -> Value:
    """A value as an attribute of this type has it: an integer is a real in a stream of reals."""
    return Assigned(value, kind) if kind is ValueType.FLOAT and value.type is not ValueType.FLOAT else value

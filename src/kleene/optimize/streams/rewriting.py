"""What the rules share: nodes made again above other operands, with their schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kleene.algebra.nodes import AttributeName, Compute, Filter, Node, Rename, StreamSchema
from kleene.pattern.expressions import Clause, Value

# A rule rewrites an operation and the one below it, or has nothing to say of them.
Rule = Callable[[Node], Node | None]


def filtered(operand: Node, condition: Iterable[Clause]) -> Filter:
    return Filter(operand, tuple(condition), operand.schema)


def renamed(operand: Node, names: Iterable[tuple[AttributeName, AttributeName]]) -> Node:
    """The operand itself where nothing is renamed."""
    new = {name: other for name, other in names if name != other}
    attributes = tuple((new.get(name, name), kind) for name, kind in operand.schema.attributes)
    return Rename(operand, tuple(new.items()), StreamSchema(attributes, operand.schema.open)) if new else operand


def computed(operand: Node, assignments: Iterable[tuple[AttributeName, Value]]) -> Compute:
    values = dict(assignments)
    attributes = dict(operand.schema.attributes) | {name: value.type for name, value in values.items()}
    return Compute(operand, tuple(values.items()), StreamSchema(tuple(attributes.items()), operand.schema.open))

"""Conditions and values with other values in the place of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from kleene.algebra.nodes import AttributeName
from kleene.pattern.expressions import Attribute, Clause, Node, Value, Which
from kleene.pattern.interning import Interned, field_names

N = TypeVar("N", bound=Node)


def substituted(node: N, values: Mapping[AttributeName, Value]) -> N:
    """The same expression of what stands for its attributes; `x.last` is fixed where its event came, and stays."""
    if isinstance(node, Attribute):
        present = node.which is not Which.OVERWRITTEN
        return cast(N, values.get((node.variable, node.attribute), node)) if present else node
    kind: type[Interned] = type(node)
    fields = {name: getattr(node, name) for name in field_names(kind)}
    changed = {name: _substituted(value, values) for name, value in fields.items()}
    return node if changed == fields else replace(node, **changed)


def _substituted(value: Any, values: Mapping[AttributeName, Value]) -> Any:
    if isinstance(value, tuple):
        return tuple(_substituted(child, values) for child in value)
    return substituted(cast(Node, value), values) if isinstance(value, Interned) else value


def all_substituted(clauses: tuple[Clause, ...], values: Mapping[AttributeName, Value]) -> tuple[Clause, ...]:
    return tuple(substituted(clause, values) for clause in clauses)


def attribute(name: AttributeName, like: Mapping[AttributeName, Any]) -> Attribute:
    """A reference to an attribute of a stream with these types."""
    return Attribute(name[0], Which.SINGLE, name[1], like[name])

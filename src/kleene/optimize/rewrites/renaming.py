"""Conditions under other names, and when two of them say the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from kleene.pattern.expressions import Clause, Comparison, Literal, Node, variables
from kleene.pattern.interning import Interned, field_names

N = TypeVar("N", bound=Node)
# What a clause says, whatever the order of its literals.
Meaning = frozenset[Literal]

_MIRROR = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def renamed(node: N, names: Mapping[str, str]) -> N:
    """The same expression about other variables."""
    if names.keys().isdisjoint(variables(node)):
        return node
    kind: type[Interned] = type(node)
    fields = {name: getattr(node, name) for name in field_names(kind)}
    changed = {
        name: names.get(value, value) if name == "variable" else _renamed(value, names)
        for name, value in fields.items()
    }
    return replace(node, **changed)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_renamed(child, names) for child in value)
    return renamed(cast(Node, value), names) if isinstance(value, Interned) else value


def meaning(clause: Clause) -> Meaning:
    return frozenset(map(_oriented, clause.literals))


def meanings(clauses: Iterable[Clause]) -> frozenset[Meaning]:
    return frozenset(map(meaning, clauses))


def _oriented(literal: Literal) -> Literal:
    """`a.x < b.x` and `b.x > a.x` are one; an equivalence test gives its pairs in the order of the pattern."""
    if isinstance(literal, Comparison) and literal.right.digest < literal.left.digest:
        return Comparison(_MIRROR[literal.operator], literal.right, literal.left)
    return literal

"""`ρ{a ↦ b} ∘ π{a}` → `π{b} ∘ ρ{a ↦ b}`, and `ρ{a ↦ b} ∘ α{a ↦ v}` → `α{b ↦ v} ∘ ρ{a ↦ b}`.

What π dropped may have the new name: it is called otherwise, since it is dropped after all.
"""

from __future__ import annotations

from collections.abc import Container

from kleene.algebra.nodes import AttributeName, Compute, Node, Project, Rename
from kleene.optimize.streams.rewriting import computed, renamed
from kleene.optimize.streams.substitution import attribute, substituted


def push_rename(node: Node) -> Node | None:
    match node:
        case Rename(Project(operand, kept), names, schema):
            new = dict(names)
            taken = {*schema.names, *operand.schema.names}
            for name in operand.schema.names:
                if name not in kept.names and name in schema.names:
                    new[name] = _free(name, taken)
                    taken.add(new[name])
            return Project(renamed(operand, new.items()), schema)
        case Rename(Compute(operand, assignments), names):
            known = dict(operand.schema.attributes)
            new = dict(names)
            below = renamed(operand, ((old, other) for old, other in names if old in known))
            types = dict(below.schema.attributes)
            after = {old: attribute(other, types) for old, other in names if old in known}
            values = ((new.get(name, name), substituted(value, after)) for name, value in assignments)
            return computed(below, values)
    return None


def _free(name: AttributeName, taken: Container[AttributeName]) -> AttributeName:
    number = 1
    while (free := ("", f"{name[1]}_{number}")) in taken:
        number += 1
    return free

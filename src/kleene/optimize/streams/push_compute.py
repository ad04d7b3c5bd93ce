"""`α{x ↦ v} ∘ π{a}` → `π{a, x} ∘ α{x ↦ v}`: what v reads was kept, and what x overwrites was dropped or is kept."""

from __future__ import annotations

from kleene.algebra.nodes import Compute, Node, Project
from kleene.optimize.streams.rewriting import computed
from kleene.optimize.streams.substitution import attribute, substituted, typed


def push_compute(node: Node) -> Node | None:
    match node:
        case Compute(Project(operand, kept), assignments, schema):
            types = dict(operand.schema.attributes)
            before = {name: typed(attribute(name, types), kind) for name, kind in kept.attributes}
            values = ((name, substituted(value, before)) for name, value in assignments)
            return Project(computed(operand, values), schema)
    return None

"""`α{x ↦ v} ∘ π{a}` → `π{a, x} ∘ α{x ↦ v}`: what v reads was kept, and what x overwrites was dropped or is kept."""

from __future__ import annotations

from kleene.algebra.nodes import Compute, Node, Project
from kleene.optimize.streams.rewriting import computed


def push_compute(node: Node) -> Node | None:
    match node:
        case Compute(Project(operand, _), assignments, schema):
            return Project(computed(operand, assignments), schema)
    return None

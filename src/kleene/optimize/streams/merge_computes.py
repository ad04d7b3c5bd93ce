"""`α{y ↦ x + 1} ∘ α{x ↦ v}` → `α{x ↦ v, y ↦ v + 1}`: what was assigned first is written out where it is read."""

from __future__ import annotations

from kleene.algebra.nodes import Compute, Node
from kleene.optimize.streams.rewriting import computed
from kleene.optimize.streams.substitution import assigned, substituted


def merge_computes(node: Node) -> Node | None:
    match node:
        case Compute(Compute(operand, first), second):
            values = dict(first)
            first_values = {name: assigned(value) for name, value in first}
            later = {name: substituted(value, first_values) for name, value in second}
            return computed(operand, {**values, **later}.items())
    return None

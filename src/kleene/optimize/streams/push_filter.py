"""`σ{p} ∘ π{…}` → `π{…} ∘ σ{p}`; likewise below ρ, with the names before it, and below α, with what it computes.

What α computes is tested as it assigns it: arithmetic without a result is NULL.
"""

from __future__ import annotations

from kleene.algebra.nodes import Compute, Filter, Node, Project, Rename
from kleene.optimize.streams.rewriting import computed, filtered, renamed
from kleene.optimize.streams.substitution import all_substituted, assigned, attribute, typed


def push_filter(node: Node) -> Node | None:
    match node:
        case Filter(Project(operand, schema), condition):
            types = dict(operand.schema.attributes)
            before = {name: typed(attribute(name, types), kind) for name, kind in schema.attributes}
            return Project(filtered(operand, all_substituted(condition, before)), schema)
        case Filter(Rename(operand, names), condition):
            types = dict(operand.schema.attributes)
            before = {new: attribute(old, types) for old, new in names}
            return renamed(filtered(operand, all_substituted(condition, before)), names)
        case Filter(Compute(operand, assignments), condition):
            values = {name: assigned(value) for name, value in assignments}
            return computed(filtered(operand, all_substituted(condition, values)), assignments)
    return None

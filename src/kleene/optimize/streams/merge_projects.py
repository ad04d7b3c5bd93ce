"""`π{a} ∘ π{a, b}` → `π{a}`; a projection that keeps everything as it is goes."""

from __future__ import annotations

from kleene.algebra.nodes import Node, Project


def merge_projects(node: Node) -> Node | None:
    match node:
        case Project(operand, schema) if schema is operand.schema:
            return operand
        case Project(Project(operand, _), schema):
            return Project(operand, schema)
    return None

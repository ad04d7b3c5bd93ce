"""Chains of unary operations, steps of folds included, as `π ∘ α ∘ ρ ∘ σ` (CESAR §3.4, Theorem 3)."""

from __future__ import annotations

from dataclasses import replace

from kleene.algebra.nodes import Carried, Fold, Next, Node, Project, StreamSource, StreamUnion, Unary
from kleene.optimize.streams.merge_computes import merge_computes
from kleene.optimize.streams.merge_filters import merge_filters
from kleene.optimize.streams.merge_projects import merge_projects
from kleene.optimize.streams.merge_renames import merge_renames
from kleene.optimize.streams.push_compute import push_compute
from kleene.optimize.streams.push_filter import push_filter
from kleene.optimize.streams.push_rename import push_rename
from kleene.optimize.streams.rewriting import Rule

RULES: tuple[Rule, ...] = (
    merge_filters,
    push_filter,
    merge_renames,
    push_rename,
    merge_computes,
    push_compute,
    merge_projects,
)


def normal_form(node: Node) -> Node:
    """The same stream, with the same attributes in the same order."""
    rewritten = _normal(node)
    return rewritten if rewritten.schema is node.schema else _settled(Project(rewritten, node.schema))


def _normal(node: Node) -> Node:
    match node:
        case StreamSource() | Carried():
            return node
        case StreamUnion(parts):
            return replace(node, parts=tuple(map(normal_form, parts)))
        case Next(left, right):
            return replace(node, left=normal_form(left), right=normal_form(right))
        case Fold(left=left, right=right, step=step):
            return replace(node, left=normal_form(left), right=normal_form(right), step=normal_form(step))
    return _settled(replace(node, operand=normal_form(node.operand)))


def _settled(node: Node) -> Node:
    """An operation above a chain in normal form, moved to its place in it."""
    while isinstance(node, Unary):
        rewritten = next((other for rule in RULES if (other := rule(node)) is not None), None)
        if rewritten is None:
            return node
        node = rewritten
        if isinstance(node, Unary) and isinstance(node.operand, Unary):
            node = replace(node, operand=_settled(node.operand))
    return node

"""`σ{a} ∘ σ{b}` → `σ{b AND a}`."""

from __future__ import annotations

from kleene.algebra.nodes import Filter, Node
from kleene.optimize.streams.rewriting import filtered


def merge_filters(node: Node) -> Node | None:
    match node:
        case Filter(Filter(operand, first), second):
            return filtered(operand, dict.fromkeys((*first, *second)))
    return None

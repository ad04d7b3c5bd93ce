"""`ρ{b ↦ c} ∘ ρ{a ↦ b}` → `ρ{a ↦ c}`."""

from __future__ import annotations

from kleene.algebra.nodes import Node, Rename
from kleene.optimize.streams.rewriting import renamed


def merge_renames(node: Node) -> Node | None:
    match node:
        case Rename(Rename(operand, first), second):
            before, after = dict(first), dict(second)
            names = {old: after.pop(new, new) for old, new in before.items()}
            return renamed(operand, {**names, **after}.items())
    return None

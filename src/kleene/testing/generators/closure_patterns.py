"""Random patterns with ZStream's closures wherever they may stand (the semantics page §3 ZStream's closure)."""

from __future__ import annotations

from random import Random

from kleene.testing.generators.patterns import (
    DrawnPart,
    DrawnTree,
    Role,
    VariableNames,
    Wishes,
    draw_negation,
    draw_part,
)

Node = DrawnTree | DrawnPart
# `s` is a single component, `k` a closure, `r` one to three of them side by side.
_SHAPES = (
    "s;r;s",
    "s;r;s",
    "s;r;s",
    "s;r",
    "r;s",
    "r;s;r",
    "k;s;s;k",
    "s;r;s;r",
    "s;(k&s);s",
    "s;(k&s)",
    "(s&k);s",
    "s;(k&k);s",
    "(k&k);s",
    "s&k",
    "s&k",
    "k&s&k",
    "(k;s)&s",
    "(s;r)&s",
    "(s;k)&(k;s)",
    "(s;k;s)&(s;k)",
    "s;((r;s)&s);s",
    "s;((s;r)&k);s",
    "s;((k;s)&k)",
    "(s;r;s)|s",
    "(s;k;s)|(k&s)",
    "s;((k&s)|s)",
    "s;((s&k)|k);s",
)


def draw_closures(rng: Random, names: VariableNames, wishes: Wishes) -> DrawnTree:
    """A pattern of one of the shapes, sometimes with a negation in its outermost sequence."""
    tree = _Shape(rng, names, wishes, rng.choice(_SHAPES)).node()
    assert isinstance(tree, DrawnTree)
    if tree.sign == ";" and rng.random() < wishes.negation:
        below = list(tree.below)
        below.insert(rng.randint(0, len(below)), draw_negation(rng, names, wishes))
        tree = DrawnTree(";", tuple(below))
    return tree


class _Shape:
    """Reads a shape from left to right: `|` binds least, then `;`, then `&`; none of them is mixed without brackets."""

    def __init__(self, rng: Random, names: VariableNames, wishes: Wishes, text: str) -> None:
        self.rng, self.names, self.wishes, self.text = rng, names, wishes, text

    def node(self) -> Node:
        below, sign = self._operand(), ""
        while self.text and self.text[0] in ";&|":
            sign, self.text = self.text[0], self.text[1:]
            below += self._operand()
        return DrawnTree(sign, tuple(below)) if len(below) > 1 else below[0]

    def _operand(self) -> list[Node]:
        letter, self.text = self.text[0], self.text[1:]
        if letter == "(":
            inner = self.node()
            self.text = self.text[1:]
            return [inner]
        if letter == "r":
            return [self._part(Role.CLOSURE) for _ in range(self.rng.choice((1, 2, 2, 2, 3)))]
        return [self._part(Role.CLOSURE if letter == "k" else Role.SINGLE)]

    def _part(self, role: Role) -> Node:
        if role is Role.SINGLE and self.rng.random() < self.wishes.kleene:
            part = draw_part(self.rng, self.names, Role.KLEENE, self.wishes)
            return part if part.low else self._part(Role.SINGLE)
        return draw_part(self.rng, self.names, role, self.wishes)

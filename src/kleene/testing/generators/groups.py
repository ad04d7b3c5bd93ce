"""Random patterns with negations in groups and at the ends of nested sequences: the semantics page §3 Negation."""

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


def draw_groups(rng: Random, names: VariableNames, wishes: Wishes, depth: int) -> DrawnTree:
    """A sequence or a conjunction with negations anywhere in it; one part of it is in every match."""
    sign = rng.choice("&&;")
    count = rng.choice((0, 1, 1, 2) if sign == "&" else (1, 1, 2))
    below = [
        draw_part(rng, names, Role.SINGLE, wishes),
        *(_operand(rng, names, wishes, sign, depth) for _ in range(count)),
    ]
    rng.shuffle(below)
    if sign == ";" and rng.random() < wishes.closure:
        below.insert(rng.randint(1, len(below) - 1), draw_part(rng, names, Role.CLOSURE, wishes))
    return _forbidding(rng, names, wishes, DrawnTree(sign, tuple(below)), least=1)


def _operand(rng: Random, names: VariableNames, wishes: Wishes, sign: str, depth: int) -> DrawnTree | DrawnPart:
    if depth > 1 and rng.random() < 0.6:
        other = rng.choice([s for s in "&&;;|" if s != sign])
        # A branch takes an event: nothing in it may be absent.
        own = Wishes(wishes.kleene, 0.0, 0.0, wishes.negation, wishes.any_of) if other == "|" else wishes
        below = tuple(
            _operand(rng, names, own, other, depth - 1) for _ in range(2 if other == "|" else rng.choice((1, 2)))
        )
        return _forbidding(rng, names, wishes, DrawnTree(other, below), least=int(len(below) == 1))
    luck = rng.random()
    if luck < wishes.optional:
        return draw_part(rng, names, Role.OPTIONAL, wishes)
    if luck < wishes.optional + wishes.kleene:
        return draw_part(rng, names, Role.KLEENE, wishes, (("+", 1, 2), ("^2", 2, 2), ("{1,2}", 1, 2)))
    return draw_part(rng, names, Role.SINGLE, wishes)


def _forbidding(rng: Random, names: VariableNames, wishes: Wishes, tree: DrawnTree, least: int) -> DrawnTree:
    """A tree with negations at any places, the ends included; at least so many. A branch of `|` only forbids never."""
    if tree.sign == "|":
        return tree
    number = max(least, rng.choice((1, 1, 1, 2)) if rng.random() < wishes.negation else 0)
    below = list(tree.below)
    for _ in range(number):
        below.insert(rng.randint(0, len(below)), draw_negation(rng, names, wishes))
    return DrawnTree(tree.sign, tuple(below))

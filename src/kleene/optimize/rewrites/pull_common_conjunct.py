"""Distributivity of conjunctions: `(A & B) | (A & C)` is `A & (B | C)`, wherever in them A stands.

Conditions of the rule, besides those on the conditions of the query (`merging`): both are single components of the same
classes with the same conditions on each alone; and the rest of each branch begins and ends with a component that takes
events by itself, since a negation or a closure at its edge would lose its neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator

from kleene.optimize.rewrites.pulling import pull
from kleene.optimize.trees.logical import Logical
from kleene.pattern.nodes import Conjunction, Leaf, Pattern
from kleene.pattern.query import BoundQuery


def pull_common_conjunct(logical: Logical, query: BoundQuery) -> Logical:
    return pull(logical, _conjuncts, lambda conjunct, rest: Conjunction((conjunct, rest)))


def _conjuncts(branch: Pattern) -> Iterator[tuple[Leaf, Pattern]]:
    if not isinstance(branch, Conjunction) or len(branch.parts) < 2:
        return
    for place, part in enumerate(branch.parts):
        if isinstance(part, Leaf):
            rest = (*branch.parts[:place], *branch.parts[place + 1 :])
            yield part, rest[0] if len(rest) == 1 else Conjunction(rest)

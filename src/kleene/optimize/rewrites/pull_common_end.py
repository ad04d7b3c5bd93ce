"""Distributivity at the end of sequences: `(A ; C) | (B ; C)` is `(A | B) ; C`.

Conditions of the rule, besides those on the conditions of the query (`merging`): both are single components of the same
classes with the same conditions on each alone; and the rest of each branch begins and ends with a component that takes
events by itself, since a negation or a closure at its edge would lose its neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator

from kleene.optimize.rewrites.pulling import pull, sequence_of
from kleene.optimize.trees.logical import Logical
from kleene.pattern.nodes import Leaf, Pattern, Sequence
from kleene.pattern.query import BoundQuery


def pull_common_end(logical: Logical, query: BoundQuery) -> Logical:
    return pull(logical, _ends, lambda end, rest: Sequence((rest, end)))


def _ends(branch: Pattern) -> Iterator[tuple[Leaf, Pattern]]:
    if isinstance(branch, Sequence) and len(branch.parts) > 1:
        *rest, end = branch.parts
        if isinstance(end, Leaf):
            yield end, sequence_of(rest)

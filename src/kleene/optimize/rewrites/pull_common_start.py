"""Distributivity at the start of sequences: `(A ; B) | (A ; C)` is `A ; (B | C)`.

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


def pull_common_start(logical: Logical, query: BoundQuery) -> Logical:
    return pull(logical, _starts, lambda start, rest: Sequence((start, rest)))


def _starts(branch: Pattern) -> Iterator[tuple[Leaf, Pattern]]:
    if isinstance(branch, Sequence) and len(branch.parts) > 1:
        start, *rest = branch.parts
        if isinstance(start, Leaf):
            yield start, sequence_of(rest)

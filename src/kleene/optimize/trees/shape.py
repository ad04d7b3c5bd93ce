"""The shape of a tree plan: in which order the parts of a pattern are joined, and where negation and closures stand.

A shape mirrors a pattern: one for each sequence, conjunction and disjunction, None for a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# A binary tree over the positive parts of a sequence (closures left out), or over those of a conjunction, by number:
# `((0, 1), 2)` joins the first two first. One part alone is its number; a disjunction's is 0.
Order = int | tuple["Order", "Order"]


class Where(Enum):
    """Where a negated component or a closure of a sequence is looked at."""

    # NSEQ beside the right or the left neighbour; only of negated components.
    RIGHT = "NSEQ, before its right neighbour"
    LEFT = "NSEQ, after its left neighbour"
    # Right above the join of its two neighbours: NEG, or KSEQ.
    JOIN = "above the join of its neighbours"
    # On whole records.
    TOP = "on top"


@dataclass(frozen=True, slots=True)
class Shape:
    order: Order
    # Of each part that `order` numbers.
    parts: tuple[Shape | None, ...]
    # Of each negated component of this sequence, and of each closure, from left to right.
    negations: tuple[Where, ...] = ()
    closures: tuple[Where, ...] = ()

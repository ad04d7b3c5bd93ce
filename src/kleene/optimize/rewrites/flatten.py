"""Associativity: `A ; (B ; C)` is `A ; B ; C`, and so for `&` and `|`.

Parentheses around one part, or around nothing but negations, say nothing.

Conditions of the rule: none. A match takes the same branches and gives the same variables events before and after, so
that each condition says what it said; those between branches stay true by absence as they were.
"""

from __future__ import annotations

from dataclasses import replace

from kleene.optimize.trees.logical import Logical
from kleene.pattern.gaps import spliced
from kleene.pattern.nodes import Leaf, Pattern
from kleene.pattern.query import BoundQuery


def flatten(logical: Logical, query: BoundQuery) -> Logical:
    return replace(logical, pattern=_flat(logical.pattern))


def _flat(pattern: Pattern) -> Pattern:
    if isinstance(pattern, Leaf):
        return pattern
    parts = spliced(type(pattern), map(_flat, pattern.parts))
    return type(pattern)(tuple(parts)) if len(parts) > 1 else parts[0]

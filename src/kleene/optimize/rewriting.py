"""Applies rewrites to a pattern (ZStream §5.2.1) for as long as they make it simpler."""

from __future__ import annotations

from collections.abc import Collection

from kleene.optimize.rewrites.complexity import complexity
from kleene.optimize.rules import REWRITES
from kleene.optimize.trees.logical import Logical
from kleene.pattern.query import BoundQuery


def rewrite(
    logical: Logical, query: BoundQuery, without: Collection[str] = frozenset()
) -> tuple[Logical, tuple[str, ...]]:
    """The simplest form that the rules reach, and the names of those that changed something.

    Each step makes the pattern less complex, so there is a last one.
    """
    rules = [(name, rule) for name, rule in REWRITES if name not in without]
    used: set[str] = set()
    changed = True
    while changed:
        changed = False
        for name, rule in rules:
            simpler = rule(logical, query)
            # Patterns are interned: one that a rule leaves as it is is the same object.
            if simpler.pattern is not logical.pattern and complexity(simpler.pattern) < complexity(logical.pattern):
                logical, changed = simpler, True
                used.add(name)
    return logical, tuple(name for name, _ in rules if name in used)

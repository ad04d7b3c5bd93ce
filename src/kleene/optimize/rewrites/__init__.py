"""Rewrites of a pattern (ZStream §5.2.1): equivalent expressions with fewer or cheaper operators. One rule a file."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kleene.optimize.rewrites.complexity import complexity
from kleene.optimize.rewrites.drop_impossible import drop_impossible
from kleene.optimize.rewrites.flatten import flatten
from kleene.optimize.rewrites.merge_negations import merge_negations
from kleene.optimize.rewrites.pull_common_conjunct import pull_common_conjunct
from kleene.optimize.rewrites.pull_common_end import pull_common_end
from kleene.optimize.rewrites.pull_common_start import pull_common_start
from kleene.optimize.trees.logical import Logical
from kleene.pattern.query import BoundQuery

Rewrite = Callable[[Logical, BoundQuery], Logical]

# What is dropped need not be compared with anything, so that goes first.
REWRITES: tuple[tuple[str, Rewrite], ...] = (
    ("flatten", flatten),
    ("drop_impossible", drop_impossible),
    ("merge_negations", merge_negations),
    ("pull_common_start", pull_common_start),
    ("pull_common_end", pull_common_end),
    ("pull_common_conjunct", pull_common_conjunct),
)


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

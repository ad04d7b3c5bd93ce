"""What a pattern leaves to the search for an order: which conditions a join may look up, and what may stand low.

These are the rules by which `trees.shapes` allows places and `trees.building` places conditions, here without a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.placing import fits_leaf, unless_implied
from kleene.optimize.trees.shapes import GapSite, SequenceParts, sequence_parts
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.nodes import Component, Conjunction, Disjunction, Leaf, Pattern, Sequence, components
from kleene.plan.physical import Scan
from kleene.plan.trees import Site


@dataclass(frozen=True, slots=True)
class GapChoice:
    """Something negated or grouped between parts."""

    between: GapSite
    # With the conditions that the key does not imply.
    site: Site
    # The other variables that they name.
    named: frozenset[str]
    # Whether it can stand anywhere but on top.
    movable: bool

    @property
    def negated(self) -> bool:
        return self.between.component.negated


def places(logical: Logical, key: tuple[str, ...]) -> dict[str, GapChoice]:
    """Everything that is negated or grouped, by its variable, in the order of the text."""
    found = {place.between.component.variable: place for place in _placed(logical, key, logical.pattern)}
    # Groups by which the members of others are chosen are made on top, in the order of the text.
    chosen_by = {name for place in found.values() if not place.negated for name in place.named if name in found}
    return {
        component.variable: replace(place, movable=place.movable and component.variable not in chosen_by)
        for component in components(logical.pattern)
        if (place := found.get(component.variable)) is not None
    }


def _placed(
    logical: Logical, key: tuple[str, ...], pattern: Pattern, in_conjunction: bool = False
) -> Iterator[GapChoice]:
    if isinstance(pattern, Leaf):
        return
    if isinstance(pattern, Sequence):
        parts = sequence_parts(pattern)
        own = frozenset(component.variable for component in components(pattern))
        for between in (*parts.negations, *parts.closures):
            yield _place(logical, key, between, parts, own, in_conjunction)
    for part in pattern.parts:
        yield from _placed(logical, key, part, in_conjunction or isinstance(pattern, Conjunction))


def _place(
    logical: Logical,
    key: tuple[str, ...],
    between: GapSite,
    parts: SequenceParts,
    own: frozenset[str],
    in_conjunction: bool,
) -> GapChoice:
    component = between.component
    said = (logical.negative if component.negated else logical.members).get(component.variable, ())
    conditions = unless_implied(said, key)
    named = frozenset(name for clause in conditions for name in variables(clause)) & present(logical)
    named -= {component.variable}
    movable = 0 < between.after < len(parts.joined) and named <= own
    if component.negated:
        movable &= all(closure.after != between.after for closure in parts.closures)
    else:
        movable &= not in_conjunction
    return GapChoice(between, Site(Scan(component), between.gap, conditions), named, movable)


def present(logical: Logical) -> frozenset[str]:
    """The variables that have events in some match."""
    return frozenset(component.variable for component in components(logical.pattern) if not component.negated)


def can_test(pattern: Pattern, clause: Clause) -> bool:
    """Whether the tree of a pattern has a place for a clause on its variables: an event's mask names no absent one."""
    if isinstance(pattern, Sequence):
        parts = sequence_parts(pattern).joined
        return len(parts) > 1 or can_test(parts[0], clause)
    return not isinstance(pattern, Leaf) or fits_leaf(clause, pattern.component)


def always_bound(pattern: Pattern) -> Iterator[Component]:
    """The components to which every match of a pattern gives events: those of a disjunction's parts are not."""
    if isinstance(pattern, Leaf):
        yield pattern.component
    elif not isinstance(pattern, Disjunction):
        for part in pattern.parts:
            yield from always_bound(part)

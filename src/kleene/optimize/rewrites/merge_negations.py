"""De Morgan (ZStream §5.2.1): `A ; (!B & !C) ; D` is `A ; !(B | C) ; D`, and `A & !B & !C` is `A & !(B | C)`.

One buffer is looked into instead of two. The negated components of one gap have the same neighbours. If they also
have the same conditions, an event that forbids a match through one of them would do so through any other that took its
class. Whether an event lacks an attribute is judged by its own type, which the merge leaves as it was.

Conditions of the rule: the components stand side by side in one sequence, with nothing between them that takes events,
or in one conjunction; and their clauses of P₋ are the same but for their own names, those that compare with other
branches included. No clause of P₊ names a negated component, so that P₊ stays as it is. Negated pairs stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from kleene.optimize.rewrites.renaming import Meaning, meanings, renamed
from kleene.optimize.trees.logical import Logical
from kleene.pattern.nodes import Component, Conjunction, Disjunction, EventClass, Leaf, Pattern, components
from kleene.pattern.query import BoundQuery

# The variable that stands for any negated component when conditions are compared.
_ANY_ONE = "!"


def merge_negations(logical: Logical, query: BoundQuery) -> Logical:
    pattern = _merged(logical.pattern, logical)
    left = {component.variable for component in components(pattern)}
    negative = {variable: clauses for variable, clauses in logical.negative.items() if variable in left}
    return replace(logical, pattern=pattern, negative=negative)


def _merged(pattern: Pattern, logical: Logical) -> Pattern:
    if isinstance(pattern, Leaf):
        return pattern
    parts = tuple(_merged(part, logical) for part in pattern.parts)
    # A part that only forbids belongs to a gap of what is around it.
    if not isinstance(pattern, Disjunction) and not all(map(_is_negated, parts)):
        if isinstance(pattern, Conjunction) and sum(map(_is_negated, parts)) > 1:
            parts = tuple(sorted(parts, key=_is_negated))
        parts = tuple(
            part
            for negated, gap in groupby(parts, _is_negated)
            for part in (_merged_in_gap(tuple(gap), logical) if negated else gap)
        )
    return type(pattern)(parts)


def _is_negated(part: Pattern) -> bool:
    return isinstance(part, Leaf) and part.component.negated


def _merged_in_gap(gap: tuple[Pattern, ...], logical: Logical) -> list[Pattern]:
    """The negated components of a gap, each merged into the first one with the same conditions."""
    by_conditions: dict[frozenset[Meaning], Component] = {}
    pairs = [part for part in gap if isinstance(part, Leaf) and part.component.preceded_by is not None]
    for component in (part.component for part in gap if isinstance(part, Leaf) and part not in pairs):
        conditions = _conditions_on(component, logical)
        first = by_conditions.setdefault(conditions, component)
        by_conditions[conditions] = replace(first, classes=_classes(first, component))
    return [*map(Leaf, by_conditions.values()), *pairs]


def _conditions_on(component: Component, logical: Logical) -> frozenset[Meaning]:
    clauses = logical.negative.get(component.variable, ())
    return meanings(renamed(clause, {component.variable: _ANY_ONE}) for clause in clauses)


def _classes(first: Component, other: Component) -> tuple[EventClass, ...]:
    return tuple(dict.fromkeys((*first.classes, *other.classes)))

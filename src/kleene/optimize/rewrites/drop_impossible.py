"""Branches of a disjunction that nothing can match, since a condition is false of whatever does.

`((A ; B) | C) WHERE B.x IS NOT NULL` never matches a C: where the branch of C is taken, B is absent and so is its x.

Conditions of the rule:
- A branch goes when some clause of P₊ is false of every match that takes it, whatever its events are: judged by which
  variables are absent there and which attributes are surely present (`pattern.absence.truth`), never by values.
- Of the conditions that name a component which has gone, those that its absence makes true go with it (a comparison
  with it is one); others stay, and are tested with the component absent.
- One branch stays: a condition that no branch can satisfy leaves the disjunction as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kleene.optimize.trees.logical import Logical
from kleene.pattern.absence import truth
from kleene.pattern.expressions import Attribute, Clause, Which, variables
from kleene.pattern.nodes import Component, Disjunction, Leaf, Pattern, components
from kleene.pattern.query import BoundQuery
from kleene.plan.trees import Alias

_Names = frozenset[str]


def drop_impossible(logical: Logical, query: BoundQuery) -> Logical:
    named = _names(logical.pattern)
    tested = frozenset(name for clause in logical.positive for name in variables(clause))
    pattern = _Possible(logical.positive, query).part(logical.pattern, tested - named, _always(logical.pattern))
    return _without(replace(logical, pattern=pattern), named - _names(pattern))


def _names(pattern: Pattern) -> _Names:
    return frozenset(component.variable for component in components(pattern))


def _always(pattern: Pattern) -> dict[str, Component]:
    """The components that every match of a part gives events to."""
    if isinstance(pattern, Leaf):
        return {} if pattern.component.negated else {pattern.component.variable: pattern.component}
    if isinstance(pattern, Disjunction):
        return {}
    return {name: component for part in pattern.parts for name, component in _always(part).items()}


class _Possible:
    """Looks for branches that some match may take."""

    def __init__(self, positive: tuple[Clause, ...], query: BoundQuery) -> None:
        self.positive = positive
        self.query = query

    def part(self, pattern: Pattern, absent: _Names, present: dict[str, Component]) -> Pattern:
        if isinstance(pattern, Leaf):
            return pattern
        if not isinstance(pattern, Disjunction):
            return type(pattern)(tuple(self.part(part, absent, present) for part in pattern.parts))
        possible = []
        for branch in pattern.parts:
            lacking = absent | (_names(pattern) - _names(branch))
            having = present | _always(branch)
            if not self.is_impossible(lacking, having):
                possible.append(self.part(branch, lacking, having))
        if not possible:
            return pattern
        return Disjunction(tuple(possible)) if len(possible) > 1 else possible[0]

    def is_impossible(self, absent: _Names, present: dict[str, Component]) -> bool:
        def has(attribute: Attribute) -> bool:
            component = present.get(attribute.variable)
            if component is None or attribute.which not in (Which.SINGLE, Which.FIRST, Which.LAST):
                return False
            return all(self.query.schema.has(name, attribute.attribute) for name in component.types)

        return any(truth(clause, absent, has) is False for clause in self.positive)


def _without(logical: Logical, gone: _Names) -> Logical:
    """What is left to say when some components are in no match any more."""
    if not gone:
        return logical

    def left(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
        return tuple(clause for clause in clauses if gone.isdisjoint(variables(clause)) or not truth(clause, gone))

    return replace(
        logical,
        positive=left(logical.positive),
        negative={name: left(clauses) for name, clauses in logical.negative.items() if name not in gone},
        members={name: left(clauses) for name, clauses in logical.members.items() if name not in gone},
        aliases=_aliases(logical.aliases, gone),
    )


def _aliases(aliases: Iterable[Alias], gone: _Names) -> tuple[Alias, ...]:
    left = (replace(alias, when=tuple(name for name in alias.when if name not in gone)) for alias in aliases)
    return tuple(alias for alias in left if alias.when and alias.of not in gone)

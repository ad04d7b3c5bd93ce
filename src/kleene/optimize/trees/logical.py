"""The logical form from which a tree plan is built: one part of a query's union, with its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Pattern
from kleene.plan.trees import Alias


@dataclass(frozen=True, slots=True)
class Logical:
    # Nothing in it is optional; disjunctions may stand anywhere.
    pattern: Pattern
    # P₊; P₋ by negated variable; the conditions on the members of closures, by variable (`pattern.conditions`).
    positive: tuple[Clause, ...] = ()
    negative: Mapping[str, tuple[Clause, ...]] = field(default_factory=dict)
    members: Mapping[str, tuple[Clause, ...]] = field(default_factory=dict)
    aliases: tuple[Alias, ...] = ()

"""Divides a pattern into a few patterns without optional components, with one tree each (ZStream §4.4.4).

Optional components are expanded, as in `pattern.alternatives`. Disjunctions stay, so that the parts around them are
joined once for all branches, unless a branch begins or ends with a negation or a closure, whose neighbour is outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product, zip_longest

from kleene.optimize.trees.logical import Logical
from kleene.pattern.closures import at_edge
from kleene.pattern.gaps import spliced
from kleene.pattern.nodes import Conjunction, Disjunction, Leaf, Pattern, Sequence
from kleene.pattern.query import BoundQuery


def options(query: BoundQuery) -> tuple[Logical, ...]:
    """The members of the union that a query stands for; a disjunction of whole patterns gives one for each branch."""
    nonempty = [option for option in _options(query.pattern) if option is not None]
    patterns = dict.fromkeys(part for option in nonempty for part in spliced(Disjunction, [option]))
    said = query.conditions
    return tuple(Logical(pattern, said.positive, said.negative, said.members) for pattern in patterns)


def _options(pattern: Pattern) -> list[Pattern | None]:
    """The patterns that a pattern stands for; None is the one that takes no event."""
    if isinstance(pattern, Leaf):
        return [pattern, None] if pattern.component.optional else [pattern]
    choices = [_options(part) for part in pattern.parts]
    if isinstance(pattern, Disjunction):
        return _of_disjunction(choices)
    return list(dict.fromkeys(_combined(type(pattern), chosen) for chosen in product(*choices)))


def _of_disjunction(choices: list[list[Pattern | None]]) -> list[Pattern | None]:
    """Disjunctions of one option of each branch, since two options of one branch bind the same variables."""
    nonempty = [[option for option in options if option is not None] for options in choices]
    every = [option for options in nonempty for option in options]
    nothing: list[Pattern | None] = [None] if any(None in options for options in choices) else []
    if any(map(_is_open, every)):
        return [*every, *nothing]
    return [*(_combined(Disjunction, chosen) for chosen in zip_longest(*nonempty)), *nothing]


def _combined(kind: type[Sequence | Conjunction | Disjunction], chosen: Iterable[Pattern | None]) -> Pattern | None:
    parts = spliced(kind, [part for part in chosen if part is not None])
    if len(parts) < 2:
        return parts[0] if parts else None
    return kind(tuple(parts))


def _is_open(pattern: Pattern) -> bool:
    """Whether a branch begins or ends with a negation or a closure, so that its neighbour or bound is outside."""
    return any(at_edge(pattern, left=left) for left in (True, False))

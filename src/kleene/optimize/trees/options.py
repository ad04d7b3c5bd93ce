"""A pattern as few patterns in which nothing is optional: one tree each (ZStream §4.4.4).

What may be absent is expanded, as `pattern.alternatives` does. Disjunctions stay, so that what surrounds them is joined
once for all their parts: unless a part begins or ends with a negation or a closure, whose neighbour is then outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product, zip_longest

from kleene.optimize.trees.logical import Logical
from kleene.pattern.nodes import ComponentKind, Conjunction, Disjunction, Leaf, Pattern, Sequence
from kleene.pattern.query import BoundQuery


def options(query: BoundQuery) -> tuple[Logical, ...]:
    """The union that a query stands for; a disjunction of whole patterns is one of its members a part."""
    nonempty = [option for option in _options(query.pattern) if option is not None]
    patterns = dict.fromkeys(part for option in nonempty for part in _flat(Disjunction, [option]))
    said = query.conditions
    return tuple(Logical(pattern, said.positive, said.negative, said.members) for pattern in patterns)


def _options(pattern: Pattern) -> list[Pattern | None]:
    """None stands for the option that takes nothing."""
    if isinstance(pattern, Leaf):
        return [pattern, None] if pattern.component.optional else [pattern]
    choices = [_options(part) for part in pattern.parts]
    if isinstance(pattern, Disjunction):
        return _of_disjunction(choices)
    return list(dict.fromkeys(_combined(type(pattern), chosen) for chosen in product(*choices)))


def _of_disjunction(choices: list[list[Pattern | None]]) -> list[Pattern | None]:
    """Disjunctions of one option of each part, since two options of one part bind the same variables."""
    nonempty = [[option for option in options if option is not None] for options in choices]
    every = [option for options in nonempty for option in options]
    nothing: list[Pattern | None] = [None] if any(None in options for options in choices) else []
    if any(map(_is_open, every)):
        return [*every, *nothing]
    return [*(_combined(Disjunction, chosen) for chosen in zip_longest(*nonempty)), *nothing]


def _combined(kind: type[Sequence | Conjunction | Disjunction], chosen: Iterable[Pattern | None]) -> Pattern | None:
    parts = _flat(kind, [part for part in chosen if part is not None])
    if len(parts) < 2:
        return parts[0] if parts else None
    return kind(tuple(parts))


def _flat(kind: type[Sequence | Conjunction | Disjunction], parts: Iterable[Pattern]) -> list[Pattern]:
    """All three are associative: nested ones of the same kind are one list."""
    return [inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,))]


def _is_open(pattern: Pattern) -> bool:
    """Whether a part of a disjunction begins or ends with what has its neighbour, or the window's bound, outside."""
    ends = (pattern.parts[0], pattern.parts[-1]) if isinstance(pattern, Sequence) else (pattern,)
    return any(
        isinstance(end, Leaf) and (end.component.negated or end.component.kind is ComponentKind.CLOSURE) for end in ends
    )

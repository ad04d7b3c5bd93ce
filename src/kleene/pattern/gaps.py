"""Where a negated component stands: between the parts next to it in its sequence, or next to the group that it is in.

In a group, `B & !C`, a negation stands wherever a member could: its neighbours are those of the group (the semantics
page §3, Negation). So the first part of a nested sequence has the neighbour of what the sequence is in, and so on
outwards; a side on which there is none is open, and the window is its bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kleene.pattern.closures import has_fixed, is_closure
from kleene.pattern.nodes import Component, Conjunction, Disjunction, Leaf, Pattern, Sequence, components


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The parts around a place that take events, from the nearest outwards: the first that is present is a bound."""

    before: tuple[Pattern, ...] = ()
    after: tuple[Pattern, ...] = ()

    @property
    def open_at_start(self) -> bool:
        """Whether the window may be the bound, since no part before is in every match."""
        return all(map(_may_be_empty, self.before))

    @property
    def open_at_end(self) -> bool:
        """Whether the window may be the bound, so that a match is certain only when its window has closed."""
        return all(map(_may_be_empty, self.after))


def negations(pattern: Pattern, around: Neighbours | None = None) -> Iterator[tuple[Component, Neighbours]]:
    """The negated components of a pattern without optional components, each with its neighbours."""
    around = around or Neighbours()
    if isinstance(pattern, Leaf):
        if pattern.component.negated:
            yield pattern.component, around
        return
    for place, part in enumerate(pattern.parts):
        own = around
        if isinstance(pattern, Sequence):
            before, after = reversed(pattern.parts[:place]), pattern.parts[place + 1 :]
            own = Neighbours((*_taking(before), *around.before), (*_taking(after), *around.after))
        yield from negations(part, own)


def _taking(parts: Iterable[Pattern]) -> Iterator[Pattern]:
    return (part for part in parts if not only_forbids(part))


def _may_be_empty(part: Pattern) -> bool:
    """Whether a part may have no event in a match: ZStream's `B*`, or several of them."""
    return not has_fixed(part) and not any(is_closure(each) and each.minimum for each in components(part))


def only_forbids(pattern: Pattern) -> bool:
    """Whether a part takes no event at all."""
    return pattern.component.negated if isinstance(pattern, Leaf) else all(map(only_forbids, pattern.parts))


def lifted(parts: Iterable[Pattern]) -> Iterator[Pattern]:
    """The parts of a sequence or a group, with the negations of a part that only forbids in its place.

    Such a part, `(!B & !C)` or `A? & !C` where A is absent, has no event of its own to stand around.
    """
    for part in parts:
        if not isinstance(part, Leaf) and only_forbids(part):
            yield from lifted(part.parts)
        else:
            yield part


def spliced(kind: type[Sequence | Conjunction | Disjunction], parts: Iterable[Pattern]) -> list[Pattern]:
    """The parts of a pattern of this kind as one list: all three kinds are associative."""
    flat: list[Pattern] = []
    for part in lifted(parts):
        flat += spliced(kind, part.parts) if isinstance(part, kind) and not isinstance(part, Leaf) else [part]
    return flat

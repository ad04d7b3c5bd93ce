"""The parts of a pattern that joins combine, and the negated classes and closures between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.placing import unless_implied
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.gaps import Neighbours, negations
from kleene.pattern.nodes import Component, ComponentKind, Conjunction, Leaf, Pattern, Sequence, components
from kleene.plan.physical import Scan
from kleene.plan.trees import Gap, Join, Site


@dataclass(frozen=True, slots=True)
class BetweenParts:
    """A negated class or a closure of a sequence, or a negated class of a conjunction."""

    # Its scan, its gap, and its conditions except those that the key implies.
    site: Site
    # The number of joined parts that stand before it, where it stands between two of them; None: it is in a group or at
    # an end of a sequence, and its neighbours, if any, are further out.
    after: int | None
    # The other variables of the pattern that its conditions name.
    named: frozenset[str]
    # Whether it can stand anywhere but on top of the whole tree.
    movable: bool

    @property
    def component(self) -> Component:
        return self.site.scan.component


@dataclass(frozen=True)
class Parts:
    """A sequence or a conjunction: parts have numbers from left to right, and a set of them is a bit mask."""

    kind: Join
    joined: tuple[Pattern, ...]
    between: tuple[BetweenParts, ...] = ()

    @cached_property
    def gaps(self) -> Mapping[int, tuple[BetweenParts, ...]]:
        """The negated classes and closures between two parts, by the number of the second part."""
        gaps: dict[int, tuple[BetweenParts, ...]] = {}
        for each in self.between:
            if each.after is not None:
                gaps[each.after] = (*gaps.get(each.after, ()), each)
        return gaps

    @property
    def every(self) -> int:
        return (1 << len(self.joined)) - 1


def all_parts(logical: Logical, key: tuple[str, ...]) -> dict[Pattern, Parts]:
    """The parts of every sequence and conjunction in a pattern."""
    every = tuple(components(logical.pattern))
    present = frozenset(component.variable for component in every if not component.negated)
    conditions, named = {}, {}
    for component in filter(_is_between, every):
        name = component.variable
        said = logical.negative if component.negated else logical.members
        conditions[name] = unless_implied(said.get(name, ()), key)
        named[name] = (frozenset().union(*map(variables, conditions[name])) & present) - {name}
    closures = (c.variable for c in every if _is_between(c) and not c.negated)
    chosen_by = frozenset(name for closure in closures for name in named[closure])
    around = {component.variable: neighbours for component, neighbours in negations(logical.pattern)}
    return dict(_Dividing(conditions, named, chosen_by, around).of(logical.pattern, in_conjunction=False))


@dataclass(frozen=True, slots=True)
class _Dividing:
    # By variable of a negated class or closure: its conditions, and the other variables that these name.
    conditions: Mapping[str, tuple[Clause, ...]]
    named: Mapping[str, frozenset[str]]
    # The closures that the conditions on another closure's members name: their groups are formed on top, in the order
    # of the text.
    chosen_by: frozenset[str]
    # By negated variable: the parts around it.
    around: Mapping[str, Neighbours]

    def of(self, pattern: Pattern, *, in_conjunction: bool) -> Iterator[tuple[Pattern, Parts]]:
        if isinstance(pattern, Leaf):
            return
        if isinstance(pattern, Sequence):
            yield pattern, self._sequence(pattern, in_conjunction=in_conjunction)
        elif isinstance(pattern, Conjunction):
            yield pattern, self._conjunction(pattern)
        for part in pattern.parts:
            yield from self.of(part, in_conjunction=in_conjunction or isinstance(pattern, Conjunction))

    def _conjunction(self, pattern: Conjunction) -> Parts:
        negated = [part.component for part in pattern.parts if isinstance(part, Leaf) and part.component.negated]
        joined = tuple(part for part in pattern.parts if not isinstance(part, Leaf) or not part.component.negated)
        return Parts(Join.CONJ, joined, tuple(self._around(pattern, component) for component in negated))

    def _sequence(self, pattern: Sequence, *, in_conjunction: bool) -> Parts:
        joined = tuple(part for part in pattern.parts if not isinstance(part, Leaf) or not _is_between(part.component))
        own = {component.variable for component in components(pattern)}
        gaps = tuple(_gaps(pattern))
        closed = {after for after, component, _ in gaps if not component.negated}
        between = []
        for after, component, gap in gaps:
            name = component.variable
            if component.negated and not 0 < after < len(joined):
                between.append(self._around(pattern, component))
                continue
            # At an end of the sequence the gap reaches to the bound of the whole match.
            movable = 0 < after < len(joined) and self.named[name] <= own
            if component.negated:
                # Beside a closure the neighbour is known only once the group is.
                movable &= after not in closed
            else:
                # Under a conjunction an event of the group may still be used elsewhere: then it is no member.
                movable &= not in_conjunction and name not in self.chosen_by
            site = Site(Scan(component), gap, self.conditions[name])
            between.append(BetweenParts(site, after, self.named[name], movable))
        return Parts(Join.SEQ, joined, tuple(between))

    def _around(self, pattern: Sequence | Conjunction, component: Component) -> BetweenParts:
        """A negated class in a group, or at an end of a sequence: between the nearest parts further out."""
        name, around = component.variable, self.around[component.variable]
        gap = Gap(_nearest(around.before), _nearest(around.after), _taking(pattern))
        # Beside a closure the neighbour is known only once the group is.
        beside = (part.component for part in (*around.before[:1], *around.after[:1]) if isinstance(part, Leaf))
        grouped = any(each.kind is ComponentKind.CLOSURE for each in beside)
        movable = bool(gap.before and gap.after) and not grouped
        return BetweenParts(Site(Scan(component), gap, self.conditions[name]), None, self.named[name], movable)


# Gaps --------------------------------------------------------------------------------------------------------------


def _gaps(sequence: Sequence) -> Iterator[tuple[int, Component, Gap]]:
    """The negated classes and closures between joined parts, each after the number of parts before it."""
    after = 0
    for place, part in enumerate(sequence.parts):
        if not isinstance(part, Leaf) or not _is_between(part.component):
            after += 1
            continue
        before, behind = reversed(sequence.parts[:place]), sequence.parts[place + 1 :]
        yield after, part.component, Gap(_nearest(before), _nearest(behind), _taking(sequence))


def _taking(pattern: Sequence | Conjunction) -> tuple[str, ...]:
    """The variables of a pattern that every node over all its joins binds."""
    return tuple(component.variable for component in components(pattern) if not _is_between(component))


def _is_between(component: Component) -> bool:
    return component.negated or component.kind is ComponentKind.CLOSURE


def _nearest(parts: Iterable[Pattern]) -> tuple[str, ...]:
    """The variables of the nearest part that is present; a closure may be empty, so the part behind it counts, too."""
    names: list[str] = []
    for part in parts:
        closure = part.component if isinstance(part, Leaf) and part.component.kind is ComponentKind.CLOSURE else None
        if closure is not None:
            names.append(closure.variable)
            if closure.minimum:
                break
        elif not isinstance(part, Leaf) or not part.component.negated:
            # A closure within a part lies between other events of that part, so it is never the nearest.
            names += [component.variable for component in components(part) if not _is_between(component)]
            break
    return tuple(names)


# Sets of parts -----------------------------------------------------------------------------------------------------


def splits(parts: Parts, own: int, *, any_order: bool = True) -> Iterator[tuple[int, int]]:
    """The pairs of sets that a set of at least two parts can be divided into; a sequence joins neighbours only."""
    if parts.kind is Join.CONJ and any_order:
        return _in_two(own)
    return _neighbours(own)


def _neighbours(own: int) -> Iterator[tuple[int, int]]:
    first, end = (own & -own).bit_length() - 1, own.bit_length()
    for middle in range(first + 1, end):
        left = own & ((1 << middle) - 1)
        yield left, own ^ left


def _in_two(own: int) -> Iterator[tuple[int, int]]:
    """Every way to divide a set in two; the sides are interchangeable, so the first part is always on the left."""
    first = own & -own
    rest = own ^ first
    beside = (rest - 1) & rest
    while True:
        yield first | beside, rest ^ beside
        if not beside:
            return
        beside = (beside - 1) & rest

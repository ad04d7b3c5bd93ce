"""The parts of a pattern that joins combine, and the negated classes and closures between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.lookups import bound_beside, finds_events
from kleene.optimize.trees.placing import unless_implied
from kleene.pattern.closures import closures_at_edge, has_fixed, is_closure, side_by_side, takes_first
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.gaps import Neighbours, negations
from kleene.pattern.nodes import Component, Conjunction, Leaf, Pattern, Sequence, components
from kleene.pattern.schema import Schema
from kleene.plan.physical import Scan
from kleene.plan.trees import Gap, Join, Site


@dataclass(frozen=True, slots=True)
class BetweenParts:
    """A negated class or a closure of a sequence or of a conjunction."""

    # Its scan, its gap, and its conditions except those that the key implies.
    site: Site
    # The number of joined parts that stand before it in its sequence; None: it is in a group, or forbids at an end of a
    # sequence, and its neighbours, if any, are further out.
    after: int | None
    # The other variables of the pattern that its conditions name.
    named: frozenset[str]
    # Whether it can stand anywhere but on top of the whole tree.
    movable: bool
    # Of a closure: those that follow it side by side, which it must leave their fewest members.
    leaves: tuple[Site, ...] = ()

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


def all_parts(logical: Logical, key: tuple[str, ...], schema: Schema) -> dict[Pattern, Parts]:
    """The parts of every sequence and conjunction in a pattern."""
    every = tuple(components(logical.pattern))
    beside = bound_beside(logical.pattern)
    present = frozenset(component.variable for component in every if not component.negated)
    conditions, looked_up, named = {}, {}, {}
    for component in every:
        if takes_first(component):
            continue
        name = component.variable
        said = logical.negative if component.negated else logical.members
        conditions[name] = unless_implied(said.get(name, ()), key)
        looked_up[name] = tuple(c for c in conditions[name] if finds_events(c, component, beside[name], schema))
        named[name] = (frozenset().union(*map(variables, conditions[name])) & present) - {name}
    closures = frozenset(component.variable for component in every if is_closure(component))
    chosen_by = frozenset(name for closure in closures for name in named[closure])
    around = {component.variable: neighbours for component, neighbours in negations(logical.pattern)}
    dividing = _Dividing(conditions, looked_up, named, closures, chosen_by, around)
    return dict(dividing.of(logical.pattern, Gap((), ()), in_conjunction=False))


@dataclass(frozen=True, slots=True)
class _Dividing:
    # By variable of a negated class or closure: its conditions, those by which its events are looked up, and the other
    # variables that they name.
    conditions: Mapping[str, tuple[Clause, ...]]
    looked_up: Mapping[str, tuple[Clause, ...]]
    named: Mapping[str, frozenset[str]]
    closures: frozenset[str]
    # The closures that the conditions on another closure's members name: their groups are formed on top, in the order
    # of the text.
    chosen_by: frozenset[str]
    # By negated variable: the parts around it.
    around: Mapping[str, Neighbours]

    def of(self, pattern: Pattern, outer: Gap, *, in_conjunction: bool) -> Iterator[tuple[Pattern, Parts]]:
        """The parts of a pattern and of those within it; `outer` is the gap in which the pattern stands."""
        if isinstance(pattern, Leaf):
            return
        if isinstance(pattern, Sequence):
            yield pattern, self._sequence(pattern, outer, in_conjunction=in_conjunction)
        elif isinstance(pattern, Conjunction):
            yield pattern, self._conjunction(pattern, outer)
        for place, part in enumerate(pattern.parts):
            gap = _gap(pattern, place, outer) if isinstance(pattern, Sequence) else outer
            yield from self.of(part, gap, in_conjunction=in_conjunction or isinstance(pattern, Conjunction))

    def _sequence(self, pattern: Sequence, outer: Gap, *, in_conjunction: bool) -> Parts:
        joined = tuple(part for part in pattern.parts if has_fixed(part))
        own = {component.variable for component in components(pattern)}
        runs = {component: run for run in side_by_side(pattern) for component in run}
        after, between = 0, []
        for place, part in enumerate(pattern.parts):
            if has_fixed(part):
                after += 1
            if not isinstance(part, Leaf) or takes_first(part.component):
                continue
            component, name = part.component, part.component.variable
            inside = 0 < after < len(joined)
            if component.negated and not inside:
                between.append(self._around(pattern, component))
                continue
            gap = _gap(pattern, place, outer)
            # At an end of the sequence the gap reaches to a neighbour outside, or to the bound of the whole match.
            movable = inside and self.named[name] <= own
            leaves: tuple[Site, ...] = ()
            if component.negated:
                movable &= self._is_beside_no_closure(gap)
            else:
                run = runs[component]
                # Under a conjunction an event of the group may still be used elsewhere: then it is no member. Closures
                # side by side take their groups one after the other.
                movable &= not in_conjunction and name not in self.chosen_by and len(run) == 1
                leaves = tuple(self._site(each, gap) for each in run[run.index(component) + 1 :])
            between.append(BetweenParts(self._site(component, gap), after, self.named[name], movable, leaves))
        return Parts(Join.SEQ, joined, tuple(between))

    def _conjunction(self, pattern: Conjunction, outer: Gap) -> Parts:
        between = []
        for part in pattern.parts:
            if not isinstance(part, Leaf) or takes_first(part.component):
                continue
            if part.component.negated:
                between.append(self._around(pattern, part.component))
            else:
                site = self._site(part.component, replace(outer, own=_taking(pattern)))
                between.append(BetweenParts(site, None, self.named[part.component.variable], movable=False))
        return Parts(Join.CONJ, tuple(part for part in pattern.parts if has_fixed(part)), tuple(between))

    def _around(self, pattern: Sequence | Conjunction, component: Component) -> BetweenParts:
        """A negated class in a group, or at an end of a sequence: between the nearest parts further out."""
        around = self.around[component.variable]
        before = _nearest(around.before, (), left=False, closures=True)
        after = _nearest(around.after, (), left=True, closures=True)
        gap = Gap(before, after, _taking(pattern))
        movable = bool(before and after) and self._is_beside_no_closure(gap)
        return BetweenParts(self._site(component, gap), None, self.named[component.variable], movable)

    def _is_beside_no_closure(self, gap: Gap) -> bool:
        """Beside a closure the neighbour is known only once the group is."""
        return self.closures.isdisjoint((*gap.before, *gap.after))

    def _site(self, component: Component, gap: Gap) -> Site:
        name = component.variable
        return Site(Scan(component), gap, self.conditions[name], self.looked_up[name])


# Gaps --------------------------------------------------------------------------------------------------------------


def _gap(sequence: Sequence, place: int, outer: Gap) -> Gap:
    """Where a part stands: what is beside it in its sequence, or where nothing surely is, beside the sequence."""
    part = sequence.parts[place]
    # Closures behind it take their groups later, so that only a negation sees them.
    negated = isinstance(part, Leaf) and part.component.negated
    before = _nearest(reversed(sequence.parts[:place]), outer.before, left=False, closures=True)
    after = _nearest(sequence.parts[place + 1 :], outer.after, left=True, closures=negated)
    return Gap(before, after, _taking(sequence))


def _taking(pattern: Sequence | Conjunction) -> tuple[str, ...]:
    """The variables of a pattern that every node over all its joins binds."""
    return tuple(component.variable for component in components(pattern) if takes_first(component))


def _nearest(parts: Iterable[Pattern], outside: tuple[str, ...], *, left: bool, closures: bool) -> tuple[str, ...]:
    """The variables of the nearest part that is present: a closure may be empty, so the part behind it counts, too.

    left   whether the parts face the gap with their left edge, where a closure in them may be the nearest
    """
    names: list[str] = []
    for part in parts:
        at_edge = closures_at_edge(part, left=left) if closures else ()
        names += [component.variable for component in at_edge]
        names += [component.variable for component in components(part) if takes_first(component)]
        if has_fixed(part) or any(component.minimum for component in at_edge):
            return tuple(names)
    return (*names, *outside)


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

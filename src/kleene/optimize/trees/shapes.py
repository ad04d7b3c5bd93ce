"""The shapes that a pattern's tree may have (ZStream §5): every one, and the one that needs no statistics.

NSEQ looks for a negated event beside one neighbour, so what it compares must be known on that side (§4.4.2). What knows
less stands higher: NEG and KSEQ above the join of the neighbours, or on whole records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product

from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.shape import Order, Shape, Where
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.nodes import Component, ComponentKind, Conjunction, Disjunction, Leaf, Pattern, Sequence, components
from kleene.plan.implied import implied_by_key
from kleene.plan.trees import Gap

Shapes = tuple[Shape | None, ...]


# What a sequence consists of --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GapSite:
    """A negated component or a closure of a sequence."""

    component: Component
    # How many of the joined parts stand before it.
    after: int
    gap: Gap


@dataclass(frozen=True, slots=True)
class SequenceParts:
    """The parts that joins combine, which an `Order` numbers, and what stands between them."""

    joined: tuple[Pattern, ...]
    negations: tuple[GapSite, ...]
    closures: tuple[GapSite, ...]


def sequence_parts(sequence: Sequence) -> SequenceParts:
    joined: list[Pattern] = []
    negations: list[GapSite] = []
    closures: list[GapSite] = []
    for place, part in enumerate(sequence.parts):
        if not isinstance(part, Leaf) or not _is_between(part.component):
            joined.append(part)
            continue
        gap = Gap(_nearest(reversed(sequence.parts[:place])), _nearest(sequence.parts[place + 1 :]))
        found = negations if part.component.negated else closures
        found.append(GapSite(part.component, len(joined), gap))
    return SequenceParts(tuple(joined), tuple(negations), tuple(closures))


def _is_between(component: Component) -> bool:
    return component.negated or component.kind is ComponentKind.CLOSURE


def _nearest(parts: Iterable[Pattern]) -> tuple[str, ...]:
    """The variables of the nearest part that is present: a closure may be empty, so what is behind it counts, too."""
    found: list[str] = []
    for part in parts:
        closure = part.component if isinstance(part, Leaf) and part.component.kind is ComponentKind.CLOSURE else None
        if closure is not None:
            found.append(closure.variable)
            if closure.minimum:
                break
        elif not isinstance(part, Leaf) or not part.component.negated:
            # A closure within a part lies between others of its events, so it never is the one that is next.
            found += [component.variable for component in components(part) if not _is_between(component)]
            break
    return tuple(found)


# Orders -----------------------------------------------------------------------------------------------------------


def left_deep(count: int) -> Order:
    order: Order = 0
    for number in range(1, count):
        order = (order, number)
    return order


def right_deep(count: int) -> Order:
    order: Order = count - 1
    for number in reversed(range(count - 1)):
        order = (number, order)
    return order


def numbers(order: Order) -> tuple[int, ...]:
    """The parts below, from left to right."""
    return (order,) if isinstance(order, int) else (*numbers(order[0]), *numbers(order[1]))


def _contiguous(first: int, end: int) -> Iterator[Order]:
    """Every binary tree over neighbours: Catalan's number of them."""
    if end - first == 1:
        yield first
    for middle in range(first + 1, end):
        for left in _contiguous(first, middle):
            for right in _contiguous(middle, end):
                yield left, right


def _in_any_order(parts: tuple[int, ...]) -> Iterator[Order]:
    """Every binary tree over any parts; sides are not told apart, so the first part stands on the left."""
    if len(parts) == 1:
        yield parts[0]
    first, rest = parts[0], parts[1:]
    for size in range(len(rest)):
        for beside in combinations(rest, size):
            others = tuple(part for part in rest if part not in beside)
            for left in _in_any_order((first, *beside)):
                for right in _in_any_order(others):
                    yield left, right


# Shapes -----------------------------------------------------------------------------------------------------------


def all_shapes(logical: Logical, key: tuple[str, ...] = ()) -> Iterator[Shape | None]:
    """Every shape of a pattern's tree; what the key implies is no condition."""
    return _shapes(logical.pattern, _needs(logical, key), in_conjunction=False)


def default_shape(logical: Logical, key: tuple[str, ...] = ()) -> Shape | None:
    """Left-deep, with negations and closures as low as they may stand."""
    return _lowest(logical.pattern, _needs(logical, key), in_conjunction=False)


def shaped(logical: Logical, order: Order, key: tuple[str, ...] = ()) -> Shape | None:
    """The default with this order of the outermost parts."""
    return _lowest(logical.pattern, _needs(logical, key), in_conjunction=False, order=order)


@dataclass(frozen=True, slots=True)
class _Needs:
    """What the conditions on negated events and on closures' members ask for."""

    # By negated variable or closure: the other variables that its conditions name.
    named: Mapping[str, frozenset[str]]
    # Closures by whose groups the members of another are chosen. Groups are then made in the order of the text, which
    # decides which of them are known.
    chosen_by: frozenset[str]


def _needs(logical: Logical, key: tuple[str, ...]) -> _Needs:
    every = tuple(components(logical.pattern))
    present = frozenset(component.variable for component in every if not component.negated)
    closures = frozenset(c.variable for c in every if c.kind is ComponentKind.CLOSURE)
    named = {}
    for component in every:
        if _is_between(component):
            conditions = (logical.negative if component.negated else logical.members).get(component.variable, ())
            named[component.variable] = (_named(conditions, key) & present) - {component.variable}
    chosen_by = frozenset(name for closure in closures for name in named[closure]) & closures
    return _Needs(named, chosen_by)


def _named(conditions: Iterable[Clause], key: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name for c in conditions if not implied_by_key(c, key) for name in variables(c))


def _shapes(pattern: Pattern, needs: _Needs, *, in_conjunction: bool) -> Iterator[Shape | None]:
    match pattern:
        case Leaf():
            yield None
        case Disjunction(parts):
            for below in _below(parts, needs, in_conjunction=in_conjunction):
                yield Shape(0, below)
        case Conjunction(parts):
            for order in _in_any_order(tuple(range(len(parts)))):
                for below in _below(parts, needs, in_conjunction=True):
                    yield Shape(order, below)
        case Sequence():
            found = sequence_parts(pattern)
            for order in _contiguous(0, len(found.joined)):
                for below in _below(found.joined, needs, in_conjunction=in_conjunction):
                    yield from _placed(found, order, below, needs, in_conjunction=in_conjunction)


def _below(parts: tuple[Pattern, ...], needs: _Needs, *, in_conjunction: bool) -> Iterator[Shapes]:
    """Every combination of the parts' shapes, none of them kept: a conjunction has more than memory holds."""
    if not parts:
        yield ()
        return
    for first in _shapes(parts[0], needs, in_conjunction=in_conjunction):
        for rest in _below(parts[1:], needs, in_conjunction=in_conjunction):
            yield first, *rest


def _lowest(pattern: Pattern, needs: _Needs, *, in_conjunction: bool, order: Order | None = None) -> Shape | None:
    if isinstance(pattern, Leaf):
        return None
    inside = in_conjunction or isinstance(pattern, Conjunction)
    parts = sequence_parts(pattern).joined if isinstance(pattern, Sequence) else pattern.parts
    below = tuple(_lowest(part, needs, in_conjunction=inside) for part in parts)
    if isinstance(pattern, Disjunction):
        return Shape(0, below)
    chosen = left_deep(len(parts)) if order is None else order
    if isinstance(pattern, Conjunction):
        return Shape(chosen, below)
    return next(_placed(sequence_parts(pattern), chosen, below, needs, in_conjunction=inside))


# Places -----------------------------------------------------------------------------------------------------------


def _placed(
    parts: SequenceParts, order: Order, below: Shapes, needs: _Needs, *, in_conjunction: bool
) -> Iterator[Shape]:
    """Every choice of places for what stands between the parts, the lowest first."""
    groups = [_closure_places(closure, parts, order, below, needs, in_conjunction) for closure in parts.closures]
    for closures in product(*groups):
        known = Shape(order, below, (), closures)
        for negations in product(*(_negation_places(negation, parts, known, needs) for negation in parts.negations)):
            yield Shape(order, below, negations, closures)


def _closure_places(
    closure: GapSite, parts: SequenceParts, order: Order, below: Shapes, needs: _Needs, in_conjunction: bool
) -> tuple[Where, ...]:
    """Under a conjunction an event of the group may still be used elsewhere in the match: then it is no member."""
    name = closure.component.variable
    if in_conjunction or name in needs.chosen_by or not 0 < closure.after < len(parts.joined):
        return (Where.TOP,)
    left, right = _join(order, closure.after)
    known = _bound_below(parts, Shape(order, below), (left, right))
    return (Where.JOIN, Where.TOP) if needs.named[name] <= known else (Where.TOP,)


def _negation_places(negation: GapSite, parts: SequenceParts, shape: Shape, needs: _Needs) -> tuple[Where, ...]:
    """Beside a closure the neighbour is known when the group is; at an end the bound is the whole match's."""
    grouped = any(closure.after == negation.after for closure in parts.closures)
    if grouped or not 0 < negation.after < len(parts.joined):
        return (Where.TOP,)
    left, right = _join(shape.order, negation.after)
    sides = {Where.RIGHT: right, Where.LEFT: left, Where.JOIN: (left, right)}
    named = needs.named[negation.component.variable]
    return (*(where for where, side in sides.items() if named <= _bound_below(parts, shape, side)), Where.TOP)


def _join(order: Order, number: int) -> tuple[Order, Order]:
    """The two sides of the join that brings a part and the one before it together."""
    assert not isinstance(order, int)
    left, right = order
    if number in numbers(left):
        return _join(left, number)
    return order if number - 1 in numbers(left) else _join(right, number)


def _bound_below(parts: SequenceParts, shape: Shape, order: Order) -> frozenset[str]:
    """The variables that are known when these parts are joined; of a group, only where KSEQ stands below."""
    inside = numbers(order)
    found = [_bound(parts.joined[number], shape.parts[number]) for number in inside]
    for closure, where in zip(parts.closures, shape.closures, strict=False):
        if where is Where.JOIN and closure.after - 1 in inside and closure.after in inside:
            found.append(frozenset({closure.component.variable}))
    return frozenset().union(*found)


def _bound(pattern: Pattern, shape: Shape | None) -> frozenset[str]:
    if isinstance(pattern, Leaf):
        return frozenset({pattern.component.variable})
    assert shape is not None
    if isinstance(pattern, Sequence):
        return _bound_below(sequence_parts(pattern), shape, shape.order)
    return frozenset().union(*(_bound(part, below) for part, below in zip(pattern.parts, shape.parts, strict=True)))

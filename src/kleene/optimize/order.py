"""The cheapest shape of a tree plan (ZStream §5.2.3): nested patterns first, each then a part of what is around it.

What is negated and what is grouped either stands low, at the split where it belongs (`order_joins`), or on top of the
whole tree. Which of them stand on top decides how many records every node below makes, so that is chosen around the
search: each choice is tried while there are few, else one after the other is moved down where that is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import inf

from kleene.optimize import fingerprints
from kleene.optimize.cost import (
    CALIBRATED,
    Flow,
    Weights,
    absent,
    grouped,
    grouping,
    leaf_cost,
    looking,
    negated,
    testing,
    union_of,
)
from kleene.optimize.fingerprints import Sketch
from kleene.optimize.order_joins import JoinCondition, JoinPart, Joins, Standing, order_of
from kleene.optimize.order_places import GapChoice, always_bound, can_test, places, present
from kleene.optimize.statistics import Known, Statistics
from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.placing import is_lookup, unless_implied
from kleene.optimize.trees.shape import Shape, Where
from kleene.optimize.trees.shapes import SequenceParts, sequence_parts
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.nodes import Component, ComponentKind, Conjunction, Disjunction, Leaf, Pattern, Sequence, components
from kleene.pattern.query import BoundQuery
from kleene.plan.check_trees import holds_when_absent
from kleene.plan.physical import Scan
from kleene.plan.trees import Join

# With more that could stand low or on top, not every combination is tried.
MOST_CHOICES = 4


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The cheapest shape and its cost, and others that the search came by, the cheapest first.

    Those end with another join or have a negation or a closure elsewhere. Two shapes may still be one tree: what stands
    on top of the whole stands where its own join does, if that is the last one.
    """

    shape: Shape | None
    cost: float
    others: tuple[tuple[Shape | None, float], ...] = ()

    @property
    def runner_up_shape(self) -> Shape | None:
        return self.others[0][0] if self.others else None

    @property
    def runner_up_cost(self) -> float:
        return self.others[0][1] if self.others else inf


def best(
    query: BoundQuery,
    logical: Logical,
    statistics: Statistics,
    weights: Weights | None = None,
    key: tuple[str, ...] | None = None,
) -> SearchResult:
    """The shape that `building.build` is to give one option of a query; the key is as there."""
    by = query.partition if key is None else key
    known = Known(statistics, (*query.components, *components(logical.pattern)), by)
    search = _Search(query, logical, known, weights or CALIBRATED)
    ranked = sorted(search.options(), key=lambda option: option.cost)
    costs: dict[Shape | None, float] = {}
    for option in ranked:
        costs.setdefault(option.shape, option.cost)
    (shape, cost), *others = costs.items()
    return SearchResult(shape, cost, tuple(others))


@dataclass(frozen=True, slots=True)
class _Option:
    """A plan of a pattern: what it makes and costs."""

    flow: Flow
    cost: float
    shape: Shape | None
    sketch: Sketch | None
    leaf: bool = False


@dataclass(frozen=True)
class _Search:
    query: BoundQuery
    logical: Logical
    known: Known
    weights: Weights

    def options(self) -> list[_Option]:
        """Plans of the whole pattern, the cheapest and those beside it."""
        movable = [name for name, place in self._places.items() if place.movable]
        if len(movable) <= MOST_CHOICES:
            chosen = (frozenset(low) for size in range(len(movable) + 1) for low in combinations(movable, size))
            return [option for low in chosen for option in self._whole(low)]
        low: frozenset[str] = frozenset()
        found = self._whole(low)
        for name in movable:
            lower = self._whole(low | {name})
            if lower and lower[0].cost < min(option.cost for option in found):
                low |= {name}
            found += lower
        return found

    # The whole pattern -----------------------------------------------------------------------------------------------

    @cached_property
    def _clauses(self) -> tuple[Clause, ...]:
        return unless_implied(self.logical.positive, self.known.key)

    @cached_property
    def _present(self) -> frozenset[str]:
        return present(self.logical)

    @cached_property
    def _places(self) -> dict[str, GapChoice]:
        return places(self.logical, self.known.key)

    def _whole(self, low: frozenset[str]) -> list[_Option]:
        """Plans with just these not on top; none, where they need something that is."""
        top = {name for name in self._places if name not in low}
        if any(self._places[name].named & top for name in low):
            return []
        pattern = self.logical.pattern
        named = [clause for clause in self._clauses if variables(clause) & self._present]
        lower = [clause for clause in named if not variables(clause) & top and can_test(pattern, clause)]
        # With a group on top there is a place for what has none below.
        groups = any(not self._places[name].negated for name in top)
        late = [clause for clause in named if groups and clause not in lower]
        after = len(self._clauses) - len(lower) - len(late)
        found = []
        for option in self._solved(pattern, lower, low):
            flow, cost = self._topped(option, late, top)
            cost += testing(self.weights, flow.card, after)
            found.append(_Option(flow, cost, option.shape, None))
        return found

    def _topped(self, option: _Option, clauses: list[Clause], top: set[str]) -> tuple[Flow, float]:
        """Groups first, since they may be neighbours of what is negated."""
        flow, cost, sketch = option.flow, option.cost, option.sketch
        above = {name: place for name, place in self._places.items() if name in top}
        unknown = {name for name, place in above.items() if not place.negated}
        waiting = list(clauses)
        for name, place in sorted(above.items(), key=lambda item: item[1].negated):
            site = place.site
            if place.negated:
                made, extra = negated(self.weights, flow, absent(site.scan, site.conditions, self.known))
                sketch = None if sketch is None else sketch.adding(absences=(site,))
            else:
                unknown.discard(name)
                tests = tuple(clause for clause in waiting if not variables(clause) & unknown)
                waiting = [clause for clause in waiting if clause not in tests]
                group = grouping(site.scan, site.conditions, tests, self.known)
                _, made, extra = grouped(self.weights, flow, group)
                sketch = None if sketch is None else sketch.adding(tests, groups=(site,))
            flow, extra = self._counted(made, extra, sketch)
            cost += extra
        return flow, cost

    def _counted(self, made: Flow, cost: float, sketch: Sketch | None) -> tuple[Flow, float]:
        counted = None if sketch is None else self.known.cardinality(sketch)
        if counted is None:
            return made, cost
        return Flow(counted, made.size), cost + self.weights.output * (counted - made.card)

    # Its parts -------------------------------------------------------------------------------------------------------

    def _solved(self, pattern: Pattern, clauses: list[Clause], low: frozenset[str]) -> list[_Option]:
        """The best plan first, then one that differs at its last join, if any; none, if something cannot stand low."""
        match pattern:
            case Leaf(component):
                return [self._leaf(component, clauses)]
            case Disjunction(parts):
                return self._disjunction(parts, clauses, low)
            case Conjunction(parts):
                return self._joined(Join.CONJ, SequenceParts(parts, (), ()), clauses, low)
            case Sequence():
                return self._joined(Join.SEQ, sequence_parts(pattern), clauses, low)

    def _leaf(self, component: Component, clauses: list[Clause]) -> _Option:
        mask, tests = (tuple(clauses), ()) if component.kind is ComponentKind.SINGLE else ((), tuple(clauses))
        scan = Scan(component, mask)
        _, flow, cost = leaf_cost(scan, self.known.of_all(tests), len(tests), self.known, self.weights)
        sketch = fingerprints.leaf(scan, tests) if self.known.statistics.cardinalities else None
        flow, cost = self._counted(flow, cost, sketch)
        return _Option(flow, cost, None, sketch, leaf=True)

    def _disjunction(self, parts: tuple[Pattern, ...], clauses: list[Clause], low: frozenset[str]) -> list[_Option]:
        masks = _masks(parts)
        below, here = self._divided(clauses, masks, parts, holds_when_absent)
        solved = [self._solved(part, own, low) for part, own in zip(parts, below, strict=True)]
        if not all(solved):
            return []
        firsts = [options[0] for options in solved]
        flows = [option.flow for option in firsts]
        made = union_of(flows, self.known.of_all(here))
        cost = looking(self.weights, sum(flow.card for flow in flows), len(here)) + self.weights.output * made.card
        cost += sum(option.cost + self._kept(option) for option in firsts)
        sketches = [option.sketch for option in firsts if option.sketch is not None]
        sketch = fingerprints.united(sketches, tuple(here)) if sketches else None
        flow, cost = self._counted(made, cost, sketch)
        first = _Option(flow, cost, Shape(0, tuple(option.shape for option in firsts)), sketch)
        return [first, *_exchanged(first, solved)]

    def _kept(self, option: _Option) -> float:
        return 0.0 if option.leaf else self.weights.record * option.flow.card

    def _joined(self, kind: Join, parts: SequenceParts, clauses: list[Clause], low: frozenset[str]) -> list[_Option]:
        masks = _masks(parts.joined)
        for closure in parts.closures:
            if closure.component.variable in low:
                masks[closure.component.variable] = 3 << closure.after - 1
        below, here = self._divided(clauses, masks, parts.joined)
        solved = [self._solved(part, own, low) for part, own in zip(parts.joined, below, strict=True)]
        if not all(solved):
            return []
        firsts = [options[0] for options in solved]
        joins = Joins(
            kind,
            tuple(JoinPart(option.flow, option.cost, option.leaf, option.sketch) for option in firsts),
            tuple(self._conditions(here, masks, parts)),
            tuple(self._standing(parts, masks, low)),
            self.known,
            self.weights,
        )
        plans, whole = joins.search()
        every = (1 << len(firsts)) - 1
        found = []
        for plan in sorted(whole, key=lambda plan: plan.cost)[:2] if len(firsts) > 1 else [plans[every]]:
            order, low_places = order_of(plan, every, plans)
            shape = Shape(
                order,
                tuple(option.shape for option in firsts),
                tuple(low_places.get(negation.component.variable, Where.TOP) for negation in parts.negations),
                tuple(low_places.get(closure.component.variable, Where.TOP) for closure in parts.closures),
            )
            found.append(_Option(plan.flow, plan.cost, shape, plan.sketch, leaf=len(firsts) == 1 and firsts[0].leaf))
        return [*found, *_exchanged(found[0], solved)] if len(found) == 1 else found

    def _divided(
        self,
        clauses: Iterable[Clause],
        masks: Mapping[str, int],
        parts: tuple[Pattern, ...],
        may_go_down: Callable[[Clause], bool] = lambda clause: True,
    ) -> tuple[list[list[Clause]], list[Clause]]:
        """The clauses that one part can test, by part, and those that none can."""
        below: list[list[Clause]] = [[] for _ in parts]
        here: list[Clause] = []
        for clause in clauses:
            places = self._mask(variables(clause), masks)
            number = places.bit_length() - 1
            alone = places == 1 << number and may_go_down(clause) and can_test(parts[number], clause)
            (below[number] if alone else here).append(clause)
        return below, here

    def _mask(self, names: Iterable[str], masks: Mapping[str, int]) -> int:
        places = 0
        for name in names:
            if name in self._present:
                places |= masks[name]
        return places

    def _conditions(
        self, clauses: list[Clause], masks: Mapping[str, int], parts: SequenceParts
    ) -> Iterator[JoinCondition]:
        closures = frozenset(closure.component.variable for closure in parts.closures)
        always = {c.variable: c for part in parts.joined for c in always_bound(part)}
        for clause in clauses:
            named = variables(clause)
            lookup = is_lookup(clause, always, self.query.schema)
            yield JoinCondition(
                clause, self._mask(named, masks), self.known.selectivity(clause), lookup, closures & named
            )

    def _standing(self, parts: SequenceParts, masks: Mapping[str, int], low: frozenset[str]) -> Iterator[Standing]:
        for between in (*parts.negations, *parts.closures):
            name = between.component.variable
            if name in low:
                place = self._places[name]
                scan, conditions = place.site.scan, place.site.conditions
                what = absent(scan, conditions, self.known) if between.component.negated else None
                yield Standing(name, between.after, self._mask(place.named, masks), place.site, what)


def _exchanged(first: _Option, solved: list[list[_Option]]) -> list[_Option]:
    """The plan in which the part that loses least by it has its second best plan."""
    assert first.shape is not None
    losses = [(options[1].cost - options[0].cost, n) for n, options in enumerate(solved) if len(options) > 1]
    if not losses:
        return []
    loss, number = min(losses)
    shapes = list(first.shape.parts)
    shapes[number] = solved[number][1].shape
    shape = Shape(first.shape.order, tuple(shapes), first.shape.negations, first.shape.closures)
    return [_Option(first.flow, first.cost + loss, shape, first.sketch)]


def _masks(parts: tuple[Pattern, ...]) -> dict[str, int]:
    """By variable, the part that it is of."""
    return {c.variable: 1 << number for number, part in enumerate(parts) for c in components(part)}

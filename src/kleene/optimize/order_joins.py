"""Algorithm 5 of ZStream (§5.2.3): the cheapest tree over the parts of a sequence or conjunction, bushy ones included.

Sets of parts are bit masks. A sequence joins neighbours only, a conjunction of few parts any two sets. What is negated
between two parts is part of the plan: at the split where it stands, the cheapest place that its conditions allow. What
stands on top is not seen here, so the records of a set do not depend on its tree, and Theorem 5.1 holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import exp, inf, log, prod

from kleene.optimize import fingerprints
from kleene.optimize.cost import Absent, Flow, Weights, grouped, grouping, looking, made_by, negated, nseq, pairs
from kleene.optimize.fingerprints import Sketch
from kleene.optimize.statistics import Known
from kleene.optimize.trees.shape import Order, Where
from kleene.pattern.expressions import Clause
from kleene.plan.trees import Join, Site

# A conjunction of more parts is joined in the order of its text: 3ⁿ splits are too many.
MOST_IN_ANY_ORDER = 10


@dataclass(frozen=True, slots=True)
class JoinPart:
    """One part, with the best plan of what it consists of."""

    flow: Flow
    cost: float
    # Whether its records lie in a leaf's buffer already.
    leaf: bool
    sketch: Sketch | None


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """A clause that no part can test alone; that on a group needs the parts beside it."""

    clause: Clause
    places: int
    share: float
    # Whether the join looks it up by hash.
    lookup: bool
    closures: frozenset[str] = frozenset()

    def within(self, joined: int) -> bool:
        """Whether it is tested where these are joined, or below: what speaks of one part waits for its first join."""
        return not self.places & ~joined and joined & (joined - 1) != 0


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands between two parts and is not left to the top: a negated class, or a closure if `absent` is None."""

    variable: str
    # How many parts stand before it, and the parts that its conditions name.
    after: int
    needs: int
    site: Site
    absent: Absent | None


Places = tuple[tuple[str, Where], ...]


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """The best plan of a set of parts, or, of all parts, one of the best with a different last join."""

    flow: Flow
    cost: float
    # Its cost as an operand of another join.
    stored: float
    sketch: Sketch | None
    sides: tuple[int, int] | None = None
    places: Places = ()


@dataclass(frozen=True, slots=True)
class Sums:
    """Of the conditions within a set: the logarithms of their shares, and how many are no lookups."""

    lookups: float
    others: float
    tests: int


@dataclass(frozen=True)
class Joins:
    kind: Join
    parts: tuple[JoinPart, ...]
    conditions: tuple[JoinCondition, ...]
    standing: tuple[Standing, ...]
    known: Known
    weights: Weights

    @cached_property
    def _measured(self) -> bool:
        return bool(self.known.statistics.cardinalities)

    def search(self) -> tuple[dict[int, JoinPlan], list[JoinPlan]]:
        """The best plan of every set of parts that has one, and the best plan of all parts for each last join."""
        plans: dict[int, JoinPlan] = {}
        sums: dict[int, Sums] = {}
        for number, part in enumerate(self.parts):
            plans[1 << number] = JoinPlan(
                part.flow, part.cost, self._stored(part.cost, part.flow, part.leaf), part.sketch
            )
            sums[1 << number] = Sums(0.0, 0.0, 0)
        every = (1 << len(self.parts)) - 1
        whole: list[JoinPlan] = []
        for both, splits in self._sets(every):
            sums[both] = self._sums(both)
            found = self._best(both, splits, plans, sums, whole if both == every else None)
            if found is not None:
                plans[both] = found
        return plans, whole

    def _stored(self, cost: float, flow: Flow, leaf: bool = False) -> float:
        return cost if leaf else cost + self.weights.record * flow.card

    def _sets(self, every: int) -> Iterator[tuple[int, Iterable[tuple[int, int]]]]:
        """Each set of two parts or more after all its subsets, with the pairs of sets that make it up."""
        count = len(self.parts)
        if self.kind is Join.CONJ and count <= MOST_IN_ANY_ORDER:
            yield from ((both, _in_two(both)) for both in range(3, every + 1) if both & (both - 1))
            return
        upto = [(1 << number) - 1 for number in range(count + 1)]
        for size in range(2, count + 1):
            for first in range(count - size + 1):
                end, low = upto[first + size], upto[first]
                yield end ^ low, [(upto[m] ^ low, end ^ upto[m]) for m in range(first + 1, first + size)]

    def _sums(self, both: int) -> Sums:
        lookups = others = 0.0
        tests = 0
        for places, logarithm, lookup in self._logarithms:
            if places & both == places:
                if lookup:
                    lookups += logarithm
                else:
                    others += logarithm
                    tests += 1
        return Sums(lookups, others, tests)

    @cached_property
    def _logarithms(self) -> list[tuple[int, float, bool]]:
        return [(condition.places, log(condition.share), condition.lookup) for condition in self.conditions]

    def _best(
        self,
        both: int,
        splits: Iterable[tuple[int, int]],
        plans: dict[int, JoinPlan],
        sums: dict[int, Sums],
        whole: list[JoinPlan] | None,
    ) -> JoinPlan | None:
        """The cheapest split; where nothing was counted, what comes out is the same for all of them."""
        kind, weights, keys, own, gaps = self.kind, self.weights, self.known.keys, sums[both], self._by_gap
        best: JoinPlan | None = None
        cheapest = inf
        made: Flow | None = None
        sketch: Sketch | None = None
        for sides in splits:
            left, right = plans.get(sides[0]), plans.get(sides[1])
            if left is None or right is None:
                continue
            one, other = sums[sides[0]], sums[sides[1]]
            equal = exp(own.lookups - one.lookups - other.lookups) / keys
            tried = pairs(kind, left.flow, right.flow, equal)
            tests = own.tests - one.tests - other.tests
            here = gaps.get(sides[1] & -sides[1]) if gaps else None
            if here is not None:
                share = equal * exp(own.others - one.others - other.others)
                for plan in self._around(here, both, sides, (left, right), tried, tests, share):
                    if plan.cost < cheapest:
                        best, cheapest = plan, plan.cost
                    if whole is not None:
                        whole.append(plan)
                continue
            if made is None or self._measured:
                share = equal * exp(own.others - one.others - other.others)
                sketch = self._sketched(both, sides, left, right)
                made = self._counted(made_by(kind, left.flow, right.flow, share), sketch)
            cost = left.stored + right.stored + looking(weights, tried, tests) + weights.output * made.card
            if cost < cheapest or whole is not None:
                plan = JoinPlan(made, cost, self._stored(cost, made), sketch, sides)
                if cost < cheapest:
                    best, cheapest = plan, cost
                if whole is not None:
                    whole.append(plan)
        return best

    # Where something stands between the two sides --------------------------------------------------------------------

    @cached_property
    def _by_gap(self) -> dict[int, list[Standing]]:
        """What stands before a part, by the part: the first on the right of its split."""
        found: dict[int, list[Standing]] = {}
        for standing in self.standing:
            found.setdefault(1 << standing.after, []).append(standing)
        return found

    def _around(
        self,
        here: list[Standing],
        both: int,
        sides: tuple[int, int],
        plans: tuple[JoinPlan, JoinPlan],
        tried: float,
        tests: int,
        share: float,
    ) -> Iterator[JoinPlan]:
        """A plan for each choice of places; none, where conditions name what is not joined yet."""
        if here[0].absent is None:
            yield from self._grouping(here[0], both, sides, plans, tried)
            return
        for chosen in product(*(_allowed(standing, both, sides) for standing in here)):
            yield self._negating(here, chosen, both, sides, plans, tried, tests, share)

    def _negating(
        self,
        here: list[Standing],
        chosen: tuple[Where, ...],
        both: int,
        sides: tuple[int, int],
        plans: tuple[JoinPlan, JoinPlan],
        tried: float,
        tests: int,
        share: float,
    ) -> JoinPlan:
        """NSEQ in front of the join, or NEG above it."""
        left, right = plans
        weights = self.weights
        pushed = [pair for pair in zip(here, chosen, strict=True) if pair[1] is not Where.JOIN]
        survive = prod(_absent(standing).survive for standing, _ in pushed)
        stopping = prod(_absent(standing).survive for standing, where in pushed if where is Where.RIGHT)
        cost = left.stored + right.stored + looking(weights, tried * stopping, tests)
        for standing, where in pushed:
            cost += nseq(weights, left.flow if where is Where.LEFT else right.flow, _absent(standing))
        sketch = self._sketched(both, sides, left, right)
        if sketch is not None:
            sketch = sketch.adding(absences=(standing.site for standing, _ in pushed))
        flow = self._counted(made_by(self.kind, left.flow, right.flow, share * survive), sketch)
        cost += weights.output * flow.card
        for standing, place in zip(here, chosen, strict=True):
            if place is Where.JOIN:
                made, extra = negated(weights, flow, _absent(standing))
                sketch = None if sketch is None else sketch.adding(absences=(standing.site,))
                flow = self._counted(made, sketch)
                cost += extra + weights.output * (flow.card - made.card)
        places = tuple((standing.variable, where) for standing, where in zip(here, chosen, strict=True))
        return JoinPlan(flow, cost, self._stored(cost, flow), sketch, sides, places)

    def _grouping(
        self, closure: Standing, both: int, sides: tuple[int, int], plans: tuple[JoinPlan, JoinPlan], tried: float
    ) -> Iterator[JoinPlan]:
        """KSEQ above the join, with the tests of its group."""
        if closure.needs & ~both:
            return
        left, right = plans
        weights = self.weights
        crossing = self._crossing(both, sides)
        on_group = [condition for condition in crossing if closure.variable in condition.closures]
        before = [condition for condition in crossing if closure.variable not in condition.closures]
        share = prod(condition.share for condition in before) / self.known.keys
        sketch = self._sketched(both, sides, left, right, before)
        flow = self._counted(made_by(self.kind, left.flow, right.flow, share), sketch)
        cost = left.stored + right.stored + weights.output * flow.card
        cost += looking(weights, tried, sum(not condition.lookup for condition in before))
        tests = tuple(condition.clause for condition in on_group)
        group = grouping(closure.site.scan, closure.site.conditions, tests, self.known)
        _, made, extra = grouped(weights, flow, group)
        sketch = None if sketch is None else sketch.adding(tests, groups=(closure.site,))
        flow = self._counted(made, sketch)
        cost += extra + weights.output * (flow.card - made.card)
        yield JoinPlan(flow, cost, self._stored(cost, flow), sketch, sides, ((closure.variable, Where.JOIN),))

    # What was counted ------------------------------------------------------------------------------------------------

    def _crossing(self, both: int, sides: tuple[int, int]) -> list[JoinCondition]:
        """The conditions that the join of two sides is the first to know enough for."""
        return [c for c in self.conditions if c.within(both) and not any(map(c.within, sides))]

    def _sketched(
        self,
        both: int,
        sides: tuple[int, int],
        left: JoinPlan,
        right: JoinPlan,
        conditions: list[JoinCondition] | None = None,
    ) -> Sketch | None:
        if left.sketch is None or right.sketch is None:
            return None
        tested = self._crossing(both, sides) if conditions is None else conditions
        return fingerprints.joined(self.kind, left.sketch, right.sketch).adding(c.clause for c in tested)

    def _counted(self, flow: Flow, sketch: Sketch | None) -> Flow:
        counted = None if sketch is None else self.known.cardinality(sketch)
        return flow if counted is None else Flow(counted, flow.size)


def _absent(standing: Standing) -> Absent:
    assert standing.absent is not None
    return standing.absent


def _allowed(standing: Standing, both: int, sides: tuple[int, int]) -> list[Where]:
    known = ((Where.RIGHT, sides[1]), (Where.LEFT, sides[0]), (Where.JOIN, both))
    return [where for where, side in known if not standing.needs & ~side]


def _in_two(both: int) -> Iterator[tuple[int, int]]:
    """Every way to divide a set; the sides are alike, so the first part is on the left."""
    first = both & -both
    rest = both ^ first
    beside = (rest - 1) & rest
    while True:
        yield first | beside, rest ^ beside
        if not beside:
            return
        beside = (beside - 1) & rest


def order_of(plan: JoinPlan, own: int, plans: dict[int, JoinPlan]) -> tuple[Order, dict[str, Where]]:
    """The tree of a plan of these parts, and where in it something stands that is not on top."""
    if plan.sides is None:
        return own.bit_length() - 1, {}
    (left, lefts), (right, rights) = (order_of(plans[side], side, plans) for side in plan.sides)
    return (left, right), {**lefts, **rights, **dict(plan.places)}

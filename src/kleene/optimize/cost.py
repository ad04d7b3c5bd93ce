"""What a tree plan costs (ZStream §5.1): Formula 1, Table 2, and how many records each node makes in one window.

Where events come evenly, the events that a sequence of k parts takes lie in its window like k - 1 points thrown at
random before the last: each order of them is equally likely, so prod(CARD) / (k - 1)! records are completed in the time
of one window, and each of the gaps between them is 1/k of a window long. Table 2 says the same of two classes with
another normalisation: its Pt = 1/2 for every pair of a window is one record for each event and each event before it, no
further away than a window. Unlike a product of Pt, (k - 1)! does not depend on the order of the joins, so Theorem 5.1
holds. Records that were counted (`Statistics.cardinalities`) go before the estimate, and so stand for a measured Pt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, lgamma
from typing import NamedTuple

from kleene.optimize.statistics import Known, Statistics
from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component, ComponentKind, components
from kleene.pattern.query import BoundQuery
from kleene.plan import trees
from kleene.plan.costs import Costed, NodeCost
from kleene.plan.physical import Scan
from kleene.plan.trees import GroupNode, Join, JoinNode, LeafNode, NegNode, Side, Site, TreePlan, UnionNode


@dataclass(frozen=True, slots=True)
class Weights:
    """What one step costs; `predicate` is the paper's k, `output` its p, and these are the paper's values."""

    # A record that is looked at, or two that are tried together.
    input: float = 1.0
    # A condition that is tested on it, relative to looking at it.
    predicate: float = 0.25
    # A record that is put together.
    output: float = 1.0
    # An event that comes to a leaf buffer.
    event: float = 1.0
    # A record for which NSEQ or NEG looks for the event that forbids it, relative to `input`.
    lookup: float = 1.0
    # A record that is kept in the buffer of an inner node; the paper has it in `output`.
    record: float = 0.0


# As they were measured on this engine by `make bench-trees`, where looking at a pair takes 5 ns.
CALIBRATED = Weights(predicate=0.8, output=6.0, event=60.0, lookup=15.0)


# A count of records stays a number, even of lists of all kinds.
MOST = 1e100
# Where a closure of n members finds fewer in its gap on average, some records still have a group.
FEWEST_GROUPS = 0.01


class Flow(NamedTuple):
    """The records of a node in one window, and how many events each takes."""

    card: float
    size: float


class Estimate(NamedTuple):
    """Of one node in one window: the combinations that it tries, the records that it makes, and its own cost."""

    tried: float
    flow: Flow
    cost: float


def cost_of(query: BoundQuery, plan: TreePlan, statistics: Statistics, weights: Weights | None = None) -> Costed:
    """The cost of one window of events, in events touched."""
    model = CostModel(Known(statistics, (*query.components, *components(plan.pattern)), plan.key), weights)
    nodes: list[NodeCost] = []

    def costed(node: trees.Node) -> tuple[Flow, float]:
        below = [costed(child) for child in trees.children(node)]
        tried, flow, own = model.estimate(node, *(flow for flow, _ in below))
        nodes.append(NodeCost(tried, flow.card, own))
        return flow, sum(cost for _, cost in below) + own

    flow, total = costed(plan.root)
    return Costed(total + model.after(flow, plan), tuple(nodes))


class CostModel:
    """Formula 1 for every kind of node: what the search for a tree minimises, and what `explain` shows."""

    def __init__(self, known: Known, weights: Weights | None = None) -> None:
        self.known, self.weights = known, weights or CALIBRATED
        self.counted = bool(known.statistics.cardinalities)

    def estimate(self, node: trees.Node, *flows: Flow) -> Estimate:
        """What a node does with the records of its children."""
        estimate = self._join(node, *flows) if isinstance(node, JoinNode) else self._other(node, *flows)
        counted = self.known.cardinality(node) if self.counted else None
        if counted is None:
            return estimate
        tried, output, cost = estimate
        return Estimate(tried, Flow(counted, output.size), cost + self.weights.output * (counted - output.card))

    def after(self, flow: Flow, plan: TreePlan) -> float:
        """What is tested on whole records."""
        return self._testing(flow.card, len(plan.after))

    def _other(self, node: LeafNode | UnionNode | GroupNode | NegNode, *flows: Flow) -> Estimate:
        match node:
            case LeafNode():
                return self._leaf(node)
            case UnionNode():
                return self._union(node, flows)
            case GroupNode():
                return self._group(node, *flows)
            case NegNode():
                return self._neg(node, *flows)

    # A kind of node each ---------------------------------------------------------------------------------------------

    def _leaf(self, node: LeafNode) -> Estimate:
        """One record an event; of a Kleene component, one for each list of events of one key in a window.

        A leaf buffers each event; only lists are put together there.
        """
        known, component = self.known, node.scan.component
        rate = known.rate(node.scan)
        if component.kind is ComponentKind.SINGLE:
            return Estimate(rate, Flow(rate, 1.0), self.weights.event * rate)
        tried = known.keys * lists(rate / known.keys, component)
        output = Flow(tried * known.of_all(node.tests), 1.0)
        return Estimate(tried, output, self._looking(tried, len(node.tests)) + self.weights.output * output.card)

    def _join(self, node: JoinNode, left: Flow, right: Flow) -> Estimate:
        """SEQ, CONJ, and NSEQ in front of SEQ: a bound beside the right side also stops the loop over the left.

        SEQ goes through the left records before the right one's start, in what the right one leaves of its window; CONJ
        looks from each side at the other. A hash lookup visits only equal ones.
        """
        known, weights, is_sequence = self.known, self.weights, node.kind is Join.SEQ
        share = known.of_all(node.equalities) / known.keys
        pairs = left.card * right.card
        tried = pairs * share / right.size if is_sequence else 2 * pairs * share
        share *= known.of_all(node.tests)
        cost = 0.0
        for side, absence in node.pushed:
            survive = self._survive(absence)
            share *= survive
            tried *= survive if side is Side.RIGHT else 1.0
            cost += self._searching(left.card if side is Side.LEFT else right.card, absence.conditions)
        size = left.size + right.size
        # CONJ: the same for each of the ways to interleave them, (kL-1)!(kR-1)!/(k-1)! · k!/(kL! kR!).
        ordered = _ordered(left.size, right.size) if is_sequence else size / (left.size * right.size)
        output = Flow(min(pairs * ordered * share, MOST), size)
        cost += self._looking(tried, len(node.tests)) + weights.output * output.card
        if weights.record:
            cost += self._kept((node.left, node.right), (left, right))
        return Estimate(tried, output, cost)

    def _union(self, node: UnionNode, flows: tuple[Flow, ...]) -> Estimate:
        """The size is that of the average record."""
        tried = sum(flow.card for flow in flows)
        size = sum(flow.card * flow.size for flow in flows) / tried
        output = Flow(tried * self.known.of_all(node.tests), size)
        cost = self._looking(tried, len(node.tests)) + self.weights.output * output.card
        return Estimate(tried, output, cost + self._kept(node.parts, flows))

    def _group(self, node: GroupNode, flow: Flow) -> Estimate:
        """KSEQ goes through the members in its gap, of which a record of k events leaves 1/k of the window to each."""
        known, component = self.known, node.scan.component
        members = known.rate(node.scan) * known.of_all(node.members) / known.keys
        groups = flow.card
        if component.maximum is not None:
            # In the gap of its two neighbours, whatever else is joined: as with `survival`.
            groups *= max(members / 2 - component.maximum + 1, FEWEST_GROUPS)
        tried = flow.card * members / flow.size
        output = Flow(groups * known.of_all(node.tests), flow.size)
        cost = self._looking(tried, len(node.members)) + self._testing(groups, len(node.tests))
        return Estimate(tried, output, cost + self.weights.output * output.card)

    def _neg(self, node: NegNode, flow: Flow) -> Estimate:
        """Each record looks once for the event that forbids it."""
        output = Flow(flow.card * self._survive(node.absence), flow.size)
        cost = self._searching(flow.card, node.absence.conditions) + self.weights.output * output.card
        return Estimate(flow.card, output, cost)

    # Formula 1 -------------------------------------------------------------------------------------------------------

    def _looking(self, tried: float, tests: int) -> float:
        """Without the output: C_i + (n k) C_i."""
        return self.weights.input * tried * (1 + self.weights.predicate * tests)

    def _searching(self, records: float, conditions: tuple[Clause, ...]) -> float:
        """NSEQ and NEG: one look-up a record, and what is tested there."""
        weights = self.weights
        return weights.input * records * (weights.lookup + weights.predicate * len(conditions))

    def _testing(self, records: float, tests: int) -> float:
        return self.weights.input * self.weights.predicate * records * tests

    def _kept(self, nodes: Iterable[trees.Node], flows: Iterable[Flow]) -> float:
        """What a join reads from inner nodes lies in their buffers."""
        cards = (flow.card for node, flow in zip(nodes, flows, strict=True) if not isinstance(node, LeafNode))
        return self.weights.record * sum(cards)

    def _survive(self, absence: Site) -> float:
        return survival(absence.scan, absence.conditions, self.known)


def survival(scan: Scan, conditions: tuple[Clause, ...], known: Known) -> float:
    """Which part of the records a negated class leaves.

    With b forbidding events a window, a gap of u windows is free of them with probability exp(-b u). The gap of two
    events is of any length up to the window's, so this is its mean. Gaps in longer records are shorter; the formula
    stays, so that the records of a sub-pattern do not depend on when they were tested.
    """
    forbidding = known.rate(scan) * known.of_all(conditions) / known.keys
    return -expm1(-forbidding) / forbidding


def lists(rate: float, component: Component) -> float:
    """How many lists of a length that a component allows end in one window: the sum of rateⁿ / (n - 1)!."""
    total, term, length = 0.0, rate, 1
    while component.maximum is None or length <= component.maximum:
        if length >= component.minimum:
            total += term
            if term <= 1e-9 * total or total > MOST:
                break
        term *= rate / length
        length += 1
    return min(total, MOST)


@lru_cache(maxsize=1024)
def _ordered(left: float, right: float) -> float:
    """(kL-1)!(kR-1)!/(k-1)!; the parts of a union may differ in size, so a size need not be whole."""
    return exp(lgamma(left) + lgamma(right) - lgamma(left + right))

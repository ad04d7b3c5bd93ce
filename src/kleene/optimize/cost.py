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

    # A record that is visited, or a pair of records that is tried.
    input: float = 1.0
    # A condition tested on a record or a pair, relative to `input`.
    predicate: float = 0.25
    # A record that a node outputs.
    output: float = 1.0
    # An event that enters a leaf buffer.
    event: float = 1.0
    # A search by NSEQ or NEG for the event that forbids a record, relative to `input`.
    lookup: float = 1.0
    # A record stored in the buffer of an inner node; the paper counts this as part of `output`.
    record: float = 0.0


# The weights that `make bench-trees` measured on this engine, where visiting a pair takes 5 ns.
CALIBRATED = Weights(predicate=0.8, output=6.0, event=60.0, lookup=15.0)


# The upper limit of an estimated count: the number of lists of events can overflow a float.
MOST = 1e100
# The fewest groups per record: where a gap holds fewer members than a closure needs on average, some records still
# have a group.
FEWEST_GROUPS = 0.01


class Flow(NamedTuple):
    """The records that a node outputs in one window, and the number of events in each."""

    card: float
    size: float


class Estimate(NamedTuple):
    """The work of one node in one window: the combinations that it tries, the records that it outputs, its own cost."""

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
        """The work of a node, given the records of its children; a count of its records replaces the estimate."""
        estimate = self._join(node, *flows) if isinstance(node, JoinNode) else self._other(node, *flows)
        counted = self.known.cardinality(node) if self.counted else None
        if counted is None:
            return estimate
        tried, output, cost = estimate
        return Estimate(tried, Flow(counted, output.size), cost + self.weights.output * (counted - output.card))

    def least(self, kind: Join, left: Flow, right: Flow, records: float) -> float:
        """What a join costs at least that makes so many records: what it costs if it only looks up."""
        if kind is Join.SEQ:
            tried = records / (_ordered(left.size, right.size) * right.size)
        else:
            tried = 2 * records / _interleaved(left.size, right.size)
        return self.weights.input * tried + self.weights.output * records

    def after(self, flow: Flow, plan: TreePlan) -> float:
        """The cost of the conditions that are tested on whole records."""
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

    # One method for each kind of node --------------------------------------------------------------------------------

    def _leaf(self, node: LeafNode) -> Estimate:
        """A leaf has one record per event; that of a Kleene component, one per list of events of one key in a window.

        A leaf buffers each event, so only lists cost output.
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
        ordered = _ordered(left.size, right.size) if is_sequence else _interleaved(left.size, right.size)
        output = Flow(min(pairs * ordered * share, MOST), left.size + right.size)
        cost += self._looking(tried, len(node.tests)) + weights.output * output.card
        if weights.record:
            cost += self._storing((node.left, node.right), (left, right))
        return Estimate(tried, output, cost)

    def _union(self, node: UnionNode, flows: tuple[Flow, ...]) -> Estimate:
        """A union has the records of all its parts; their size is the average."""
        tried = sum(flow.card for flow in flows)
        size = sum(flow.card * flow.size for flow in flows) / tried
        output = Flow(tried * self.known.of_all(node.tests), size)
        cost = self._looking(tried, len(node.tests)) + self.weights.output * output.card
        return Estimate(tried, output, cost + self._storing(node.parts, flows))

    def _group(self, node: GroupNode, flow: Flow) -> Estimate:
        """KSEQ goes through the members in its gap; each gap of a record of k events is 1/k of the window long."""
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
        """NEG searches once per record for the event that forbids it."""
        output = Flow(flow.card * self._survive(node.absence), flow.size)
        cost = self._searching(flow.card, node.absence.conditions) + self.weights.output * output.card
        return Estimate(flow.card, output, cost)

    # Formula 1 -------------------------------------------------------------------------------------------------------

    def _looking(self, tried: float, tests: int) -> float:
        """The cost of the combinations that a node tries, without its output: C_i + (n k) C_i."""
        return self.weights.input * tried * (1 + self.weights.predicate * tests)

    def _searching(self, records: float, conditions: tuple[Clause, ...]) -> float:
        """The cost of NSEQ and NEG: one lookup per record, and the conditions tested there."""
        weights = self.weights
        return weights.input * records * (weights.lookup + weights.predicate * len(conditions))

    def _testing(self, records: float, tests: int) -> float:
        return self.weights.input * self.weights.predicate * records * tests

    def _storing(self, nodes: Iterable[trees.Node], flows: Iterable[Flow]) -> float:
        """The cost of storing the records of those children that are inner nodes."""
        cards = (flow.card for node, flow in zip(nodes, flows, strict=True) if not isinstance(node, LeafNode))
        return self.weights.record * sum(cards)

    def _survive(self, absence: Site) -> float:
        return survival(absence.scan, absence.conditions, self.known)


def survival(scan: Scan, conditions: tuple[Clause, ...], known: Known) -> float:
    """The fraction of the records that a negated class does not forbid.

    With b forbidding events per window, a gap of u windows is free of them with probability exp(-b u). The gap of two
    events has any length up to the window's, so the fraction is the mean over u. Gaps in longer records are shorter;
    the formula stays, so that the records of a sub-pattern do not depend on when they were tested.
    """
    forbidding = known.rate(scan) * known.of_all(conditions) / known.keys
    if scan.component.preceded_by is not None:
        # Half of the pairs of a window are in order.
        forbidding *= known.rate(Scan(scan.component.preceded_by)) / known.keys / 2
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


def _interleaved(left: float, right: float) -> float:
    """The same for each of the ways to interleave two records: (kL-1)!(kR-1)!/(k-1)! · k!/(kL! kR!)."""
    return (left + right) / (left * right)

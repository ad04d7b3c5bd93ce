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
from math import exp, expm1, lgamma, prod

from kleene.optimize.fingerprints import sketch
from kleene.optimize.statistics import Known, Statistics
from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component, ComponentKind, components
from kleene.pattern.query import BoundQuery
from kleene.plan import trees
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of one node in one window: the combinations that it tries, the records that it makes, and its own cost."""

    node: trees.Node
    tried: float
    made: float
    cost: float


@dataclass(frozen=True, slots=True)
class Cost:
    total: float
    # Children before their parents.
    nodes: tuple[Estimate, ...]


def cost_of(query: BoundQuery, plan: TreePlan, statistics: Statistics, weights: Weights | None = None) -> Cost:
    """The cost of one window of events, in events touched."""
    weights = weights or CALIBRATED
    known = Known(statistics, (*query.components, *components(plan.pattern)), plan.key)
    found: list[Estimate] = []
    root = _flow(plan.root, known, weights, found)
    total = sum(estimate.cost for estimate in found) + testing(weights, root.card, len(plan.after))
    return Cost(total, tuple(found))


# The formulas, which the search for an order uses as well ----------------------------------------------------------

# A count of records stays a number, even of lists of all kinds.
MOST = 1e100
# Where a closure of n members finds fewer in its gap on average, some records still have a group.
FEWEST_GROUPS = 0.01


@dataclass(frozen=True, slots=True)
class Flow:
    """The records of a node in one window, and how many events each takes."""

    card: float
    size: float


def pairs(kind: Join, left: Flow, right: Flow, equal: float) -> float:
    """The combinations that a join tries; a hash lookup visits only equal ones.

    SEQ goes through the left records before the right one's start, in what the right one leaves of its window; CONJ
    looks from each side at the other.
    """
    tried = left.card * right.card * equal
    return tried / right.size if kind is Join.SEQ else 2 * tried


def made_by(kind: Join, left: Flow, right: Flow, share: float) -> Flow:
    """The records of a join of which this share satisfies all its conditions."""
    size = left.size + right.size
    # CONJ: the same for each of the ways to interleave them, (kL-1)!(kR-1)!/(k-1)! · k!/(kL! kR!).
    ordered = _ordered(left.size, right.size) if kind is Join.SEQ else size / (left.size * right.size)
    return Flow(min(left.card * right.card * ordered * share, MOST), size)


@lru_cache(maxsize=1024)
def _ordered(left: float, right: float) -> float:
    """(kL-1)!(kR-1)!/(k-1)!; the parts of a union may differ in size, so a size need not be whole."""
    return exp(lgamma(left) + lgamma(right) - lgamma(left + right))


def union_of(flows: Iterable[Flow], share: float) -> Flow:
    """The size is that of the average record."""
    flows = tuple(flows)
    card = sum(flow.card for flow in flows)
    return Flow(card * share, sum(flow.card * flow.size for flow in flows) / card)


def leaf_flow(scan: Scan, share: float, known: Known) -> Flow:
    """One record an event; of a Kleene component, one for each list of events of one key in a window."""
    rate = known.rate(scan)
    if scan.component.kind is ComponentKind.SINGLE:
        return Flow(rate * share, 1.0)
    return Flow(known.keys * lists(rate / known.keys, scan.component) * share, 1.0)


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


def looking(weights: Weights, tried: float, tests: int) -> float:
    """Formula 1 without the output: C_i + (n k) C_i."""
    return weights.input * tried * (1 + weights.predicate * tests)


def searching(weights: Weights, records: float, tests: int) -> float:
    """NSEQ and NEG: one look-up a record, and what is tested there."""
    return weights.input * records * (weights.lookup + weights.predicate * tests)


def testing(weights: Weights, records: float, tests: int) -> float:
    return weights.input * weights.predicate * records * tests


@dataclass(frozen=True, slots=True)
class Absent:
    """What a negated class does to records: which part survives, and what is tested with each event."""

    survive: float
    conditions: int


def absent(scan: Scan, conditions: tuple[Clause, ...], known: Known) -> Absent:
    """With b forbidding events a window, a gap of u windows is free of them with probability exp(-b u).

    The gap of two events is of any length up to the window's, so this is its mean. Gaps in longer records are shorter;
    the formula stays, so that the records of a sub-pattern do not depend on when they were tested.
    """
    forbidding = known.rate(scan) * known.of_all(conditions) / known.keys
    return Absent(-expm1(-forbidding) / forbidding, len(conditions))


@dataclass(frozen=True, slots=True)
class ClosureEstimate:
    """What KSEQ does with a record: members that it goes through, groups that it makes, which part of them holds."""

    # In a whole window; a record of k events leaves 1/k of it to each gap.
    members: float
    groups: float
    share: float
    conditions: int
    tests: int


def grouping(scan: Scan, chosen: tuple[Clause, ...], tests: tuple[Clause, ...], known: Known) -> ClosureEstimate:
    component = scan.component
    members = known.rate(scan) * known.of_all(chosen) / known.keys
    groups = 1.0
    if component.maximum is not None:
        # In the gap of its two neighbours, whatever else is joined: as with `absent`.
        groups = max(members / 2 - component.maximum + 1, FEWEST_GROUPS)
    return ClosureEstimate(members, groups, known.of_all(tests), len(chosen), len(tests))


def grouped(weights: Weights, flow: Flow, group: ClosureEstimate) -> tuple[float, Flow, float]:
    """KSEQ on records: the members that it goes through, what comes out, and the cost."""
    tried = flow.card * group.members / flow.size
    groups = flow.card * group.groups
    made = Flow(groups * group.share, flow.size)
    cost = looking(weights, tried, group.conditions) + testing(weights, groups, group.tests)
    return tried, made, cost + weights.output * made.card


def negated(weights: Weights, flow: Flow, what: Absent) -> tuple[Flow, float]:
    """NEG on records: each looks once for the event that forbids it."""
    made = Flow(flow.card * what.survive, flow.size)
    return made, searching(weights, flow.card, what.conditions) + weights.output * made.card


# Trees -------------------------------------------------------------------------------------------------------------


def _flow(node: trees.Node, known: Known, weights: Weights, found: list[Estimate]) -> Flow:
    flows = [_flow(child, known, weights, found) for child in trees.children(node)]
    counted = known.cardinality(sketch(node)) if known.statistics.cardinalities else None
    tried, made, cost = _estimate(node, flows, known, weights)
    if counted is not None:
        cost += weights.output * (counted - made.card)
        made = Flow(counted, made.size)
    found.append(Estimate(node, tried, made.card, cost))
    return made


def _estimate(node: trees.Node, flows: list[Flow], known: Known, weights: Weights) -> tuple[float, Flow, float]:
    match node:
        case LeafNode(scan=scan, tests=tests):
            return leaf_cost(scan, known.of_all(tests), len(tests), known, weights)
        case JoinNode():
            return _join(node, flows[0], flows[1], known, weights)
        case UnionNode(tests=tests):
            made = union_of(flows, known.of_all(tests))
            tried = sum(flow.card for flow in flows)
            cost = looking(weights, tried, len(tests)) + kept(weights, node.parts, flows)
            return tried, made, cost + weights.output * made.card
        case GroupNode():
            return grouped(weights, flows[0], grouping(node.scan, node.members, node.tests, known))
        case NegNode(absence=absence):
            made, cost = negated(weights, flows[0], _absent(absence, known))
            return flows[0].card, made, cost


def leaf_cost(scan: Scan, share: float, tests: int, known: Known, weights: Weights) -> tuple[float, Flow, float]:
    """A leaf buffers each event; only lists are put together there."""
    rate, made = known.rate(scan), leaf_flow(scan, share, known)
    if scan.component.kind is ComponentKind.SINGLE and not tests:
        return rate, made, weights.event * rate
    tried = made.card / share
    return tried, made, looking(weights, tried, tests) + weights.output * made.card


def _join(node: JoinNode, left: Flow, right: Flow, known: Known, weights: Weights) -> tuple[float, Flow, float]:
    """SEQ, CONJ, and NSEQ in front of SEQ: a bound beside the right side also stops the loop over the left."""
    absents = [(side, _absent(absence, known)) for side, absence in node.pushed]
    found = [(left if side is Side.LEFT else right, what) for side, what in absents]
    survive = prod(what.survive for _, what in found)
    equal = known.of_all(node.equalities) / known.keys
    tried = pairs(node.kind, left, right, equal) * prod(what.survive for side, what in absents if side is Side.RIGHT)
    made = made_by(node.kind, left, right, equal * known.of_all(node.tests) * survive)
    cost = looking(weights, tried, len(node.tests)) + sum(nseq(weights, side, what) for side, what in found)
    return tried, made, cost + weights.output * made.card + kept(weights, (node.left, node.right), (left, right))


def _absent(absence: Site, known: Known) -> Absent:
    return absent(absence.scan, absence.conditions, known)


def nseq(weights: Weights, side: Flow, what: Absent) -> float:
    """Each record of one side looks once for its bound."""
    return searching(weights, side.card, what.conditions)


def kept(weights: Weights, nodes: Iterable[trees.Node], flows: Iterable[Flow]) -> float:
    """What a join reads from inner nodes lies in their buffers."""
    cards = (f.card for node, f in zip(nodes, flows, strict=True) if not isinstance(node, LeafNode))
    return weights.record * sum(cards)

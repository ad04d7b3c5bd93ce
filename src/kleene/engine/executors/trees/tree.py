"""A tree plan as operators: events go into leaf buffers, and an assembly round gives the records of the root."""

from __future__ import annotations

from kleene.engine.executors.trees.closures import ClosureStep
from kleene.engine.executors.trees.conditions import conditions
from kleene.engine.executors.trees.joins import JoinOperator
from kleene.engine.executors.trees.leaves import KleeneLeaf, LeafOperator, is_kleene
from kleene.engine.executors.trees.negated_pairs import ForbiddingPairs
from kleene.engine.executors.trees.negations import Forbidding
from kleene.engine.executors.trees.operators import Above, ClassEvents, Operator, Setting, Step, Union, kept_by
from kleene.engine.executors.trees.records import ListPool, NamedRecords
from kleene.engine.executors.trees.rounds import Round
from kleene.kernels.expression import Ints
from kleene.kernels.joins import END, START, Records
from kleene.kernels.timeline import Timeline
from kleene.plan.trees import GroupNode, Join, JoinNode, LeafNode, NegNode, Node, TreePlan, UnionNode, walk


class OperatorTree:
    def __init__(self, plan: TreePlan, setting: Setting) -> None:
        self.plan, self._setting = plan, setting
        for node in walk(plan.root):
            if isinstance(node, GroupNode) or (isinstance(node, LeafNode) and is_kleene(node)):
                setting.pools.setdefault(node.scan.component.variable, ListPool())
        self._takers: dict[str, LeafOperator | ClassEvents] = {}
        early, late = _split(plan.root)
        self.root = self._operator(early)
        _mark_root(self.root)
        # Steps that wait for the window to close: negations and closures at the end, and the steps above them.
        self.late = [self._step(node) for node in late]
        self._after = conditions(plan.after, setting.columns, setting.strings)
        self.finals = _finals(plan.root)

    # Making

    def _operator(self, node: Node) -> Operator:
        match node:
            case LeafNode():
                leaf = KleeneLeaf(node, self._setting) if is_kleene(node) else LeafOperator(node, self._setting)
                self._takers[node.scan.component.variable] = leaf
                return leaf
            case JoinNode():
                joined = JoinOperator(node, self._operator(node.left), self._operator(node.right), self._setting)
                for pushed in joined.pushed:
                    self._takers[pushed.candidates.component.variable] = pushed.candidates
                return joined
            case UnionNode():
                parts = [self._operator(part) for part in node.parts]
                return Union(node, parts, node.tests, self._setting)
            case GroupNode() | NegNode():
                return Above(node, self._operator(node.child), self._step(node), self._setting)

    def _step(self, node: GroupNode | NegNode) -> Step:
        step = self._new_step(node)
        self._takers |= {taker.component.variable: taker for taker in step.takers}
        return step

    def _new_step(self, node: GroupNode | NegNode) -> Step:
        if isinstance(node, GroupNode):
            return ClosureStep(node, self._setting)
        pair = node.absence.scan.component.preceded_by is not None
        return (ForbiddingPairs if pair else Forbidding)(node.absence, self._setting)

    # Rounds

    def offer(self, variable: str, events: Ints, at: Round) -> None:
        """Offer the events of a component, in order."""
        taker = self._takers[variable]
        if isinstance(taker, LeafOperator):
            taker.offer(events)
        else:
            taker.offer(events, at)

    def assemble(self, at: Round) -> NamedRecords:
        """Run an assembly round; the new records of the root."""
        self.root.assemble(at)
        return self.root.bound(self.root.consume())

    def decided(self, bound: NamedRecords, at: Round) -> NamedRecords:
        """The whole records that pass the last steps; their windows have closed, or need not close."""
        for step in self.late:
            bound = step.applied(bound, at)
        records = kept_by(self._after, bound, at)
        if at.within.size >= 0 and at.window.within.size < 0 and len(records.times):
            # Where windows cannot be tested on parts of a match.
            span = records.times[:, END] - records.times[:, START]
            good = span <= at.within.size if at.within.inclusive else span < at.within.size
            records = Records(records.refs[good], records.times[good])
        return NamedRecords(records, bound.columns, bound.pools)

    def forget_before(self, earliest: int, time: Timeline) -> None:
        """Drop the lists of Kleene components that start too early to grow."""
        for taker in self._takers.values():
            if isinstance(taker, KleeneLeaf):
                taker.forget_before(earliest, time)

    def is_leaf(self, variable: str) -> bool:
        return isinstance(self._takers[variable], LeafOperator)

    def counted(self) -> tuple[tuple[int, int], ...]:
        """Combinations tried and records made, in the order of `plan.trees.walk`."""
        counts = [operator.counts for operator in self.root.everything()] + [step.counts for step in self.late]
        return tuple((each.tried, each.records) for each in counts)

    @property
    def tried(self) -> int:
        return sum(operator.counts.tried for operator in self.root.everything())

    def forget_counts(self) -> None:
        for counts in (*(operator.counts for operator in self.root.everything()), *(step.counts for step in self.late)):
            counts.tried = counts.records = 0

    @property
    def waits(self) -> bool:
        """Whether matches are certain only when their window has closed."""
        return bool(self.late)

    @property
    def nbytes(self) -> int:
        return sum(operator.nbytes for operator in self.root.everything()) + sum(
            pool.nbytes for pool in self._setting.pools.values()
        )


def _mark_root(operator: Operator) -> None:
    """Mark the joins whose records leave the tree, and are not rebuilt."""
    if isinstance(operator, JoinOperator):
        operator.is_root = True
    else:
        for below in operator.below:
            _mark_root(below)


def _split(root: Node) -> tuple[Node, list[GroupNode | NegNode]]:
    """The part that runs in rounds, and the steps that run when windows have closed, from the bottom up."""
    chain: list[GroupNode | NegNode] = []
    node = root
    while isinstance(node, GroupNode | NegNode):
        chain.append(node)
        node = node.child
    chain.reverse()
    for place, each in enumerate(chain):
        gap = each.gap if isinstance(each, GroupNode) else each.absence.gap
        if not gap.after:
            return each.child, chain[place:]
    return root, []


def _finals(node: Node) -> frozenset[str]:
    """The variables of which one must have a new event for anything to be assembled (§4.3)."""
    match node:
        case LeafNode():
            return frozenset({node.scan.component.variable})
        case JoinNode(kind=kind, left=left, right=right):
            return _finals(right) if kind is Join.SEQ else _finals(left) | _finals(right)
        case UnionNode(parts=parts):
            return frozenset().union(*map(_finals, parts))
        case GroupNode(child=child) | NegNode(child=child):
            return _finals(child)

"""What the nodes of a tree counted, in words: a line a component, a line a join, and where the records became none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from kleene.diagnosis.stream import DiagnosedStream
from kleene.diagnosis.wording import all_of, counted, key_text, one_of, own_conditions, types_of, why_unseen
from kleene.engine.state.statistics import ComponentCounts
from kleene.pattern.explaining import aligned
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Measured
from kleene.plan.explain_trees import completing, gap_text, leaving_text, print_tree
from kleene.plan.physical import Scan
from kleene.plan.trees import (
    GroupNode,
    Join,
    JoinNode,
    LeafNode,
    NegNode,
    Node,
    TreePlan,
    UnionNode,
    bound,
    children,
    walk,
)


@dataclass(frozen=True)
class TreeWording:
    """One alternative of a query that ran as a tree: its plan, its counts, and the stream."""

    query: BoundQuery
    plan: TreePlan
    counts: Sequence[ComponentCounts]
    # None: nothing was assembled, since there were no events.
    measured: Measured | None
    stream: DiagnosedStream
    number: int
    # The window as it was written.
    within: str | None

    def lines(self, *, matched: bool) -> Iterator[str]:
        """The numbers of events and records by component and node; without a match, the node at which none was left."""
        rows = [(count.variable, self._component(count)) for count in self.counts]
        rows += [(print_tree(node), self._node(node)) for node in self._tried if not isinstance(node, LeafNode)]
        yield from aligned(rows)
        if not matched:
            yield self._verdict()

    # What there is

    @cached_property
    def _scans(self) -> dict[str, Scan]:
        nodes = (node for node in walk(self.plan.root) if isinstance(node, LeafNode | GroupNode))
        return {node.scan.component.variable: node.scan for node in nodes}

    @cached_property
    def _usable(self) -> dict[str, int]:
        """Events that could be one of a component and have a key."""
        return {count.variable: self.stream.begins(self.number, place) for place, count in enumerate(self.counts)}

    @cached_property
    def _tried(self) -> dict[Node, tuple[int, int]]:
        """By node, from the leaves up: combinations tried and records made. No two nodes have the same variables."""
        counts = () if self.measured is None else self.measured.nodes
        return dict(zip(walk(self.plan.root), counts, strict=False))

    def _records(self, node: Node) -> int:
        return self._tried.get(node, (0, 0))[1]

    # A component, a node

    def _component(self, count: ComponentCounts) -> str:
        scan = self._scans[count.variable]
        kind = types_of(scan.component)
        if not count.seen:
            return f"no event of {kind}"
        return f"{counted(count.seen, 'event')} of {kind}{own_conditions(scan.mask, count.passed, count.seen)}"

    def _node(self, node: Node) -> str:
        tried, records = self._tried[node]
        match node:
            case JoinNode():
                return f"{counted(tried, 'pair')} tried, {_number(records)} made" if tried else "no pair to try"
            case NegNode(absence=absence):
                name = absence.name
                return f"{counted(tried, 'record')}, {_number(tried - records)} stopped by a negated {name}"
            case GroupNode(scan=scan):
                return f"{counted(tried, 'record')}, {_number(records)} made with a group of {scan.component.variable}"
            case _:
                return counted(records, "record")

    # Why nothing came further

    def _verdict(self) -> str:
        missing = self._missing(self.plan.root)
        if missing is not None:
            return f"nothing reached {missing.component.variable}: {self._why_missing(missing)}"
        if self.measured is None:
            return "nothing was put together"
        node = self._empty(self.plan.root)
        if node is None:
            return f"nothing that {print_tree(self.plan.root)} made is a match: {self._why_no_match()}"
        if isinstance(node, LeafNode):
            return f"nothing was made of {node.scan.component.variable}: {self._why_unused(node)}"
        return f"nothing was made by {print_tree(node)}: {self._why_none(node)}"

    def _missing(self, node: Node) -> Scan | None:
        """A component without which there is no record, and for which there was no event."""
        if isinstance(node, UnionNode):
            missing = [self._missing(part) for part in node.parts]
            return None if None in missing else missing[0]
        below = next((scan for child in children(node) if (scan := self._missing(child)) is not None), None)
        if below is not None or not isinstance(node, LeafNode | GroupNode):
            return below
        component = node.scan.component
        return node.scan if component.minimum and not self._usable.get(component.variable) else None

    def _why_missing(self, scan: Scan) -> str:
        count = next(count for count in self.counts if count.variable == scan.component.variable)
        if not count.seen:
            return why_unseen(scan.component, self.query, self.stream)
        if not count.passed:
            return f"no event of {types_of(scan.component)} has {all_of(scan.mask)}"
        having = f" with {all_of(scan.mask)}" if scan.mask else ""
        return f"every event of {types_of(scan.component)}{having} lacks {key_text(self.query)}"

    def _empty(self, node: Node) -> Node | None:
        """The lowest node that made nothing; None when this one made something."""
        if self._records(node):
            return None
        below = (empty for child in children(node) if (empty := self._empty(child)) is not None)
        return next(below, node)

    def _why_unused(self, leaf: LeafNode) -> str:
        """Why a leaf made no record: events were dropped before the join, or no list of them meets its conditions."""
        component = leaf.scan.component
        if component.kind is ComponentKind.KLEENE and (leaf.tests or component.minimum > 1):
            needed = [f"at least {component.minimum} events"] if component.minimum > 1 else []
            return f"no list of its events has {' and '.join([*needed, *([all_of(leaf.tests)] if leaf.tests else [])])}"
        last = " or ".join(completing(self.plan.root))
        if self._tried[leaf][0]:
            return f"each of its events came too early for {last} (WITHIN {self.within})"
        return f"no event for {last} came after its events"

    def _why_none(self, node: Node) -> str:
        tried, _ = self._tried[node]
        match node:
            case JoinNode():
                return self._why_no_pair(node) if not tried else self._why_failed(node, tried)
            case NegNode(absence=absence):
                name = absence.name
                return f"{counted(tried, 'record')} stopped by a negated {name} {gap_text(absence.gap)}"
            case GroupNode(scan=scan, gap=gap, members=members, tests=tests, leaves=leaves):
                component = scan.component
                least = f"{component.minimum} " if component.minimum > 1 else ""
                chosen = f" with {all_of(members)}" if members else ""
                failed = f", or those failed {one_of(tests)}" if tests else ""
                where = f"{gap_text(gap)}{leaving_text(leaves)}"
                return f"no record has {least}{types_of(component)}{chosen} {where}{failed}"
            case UnionNode(tests=tests) | LeafNode(tests=tests):
                return f"{counted(tried, 'record')} failed {one_of(tests)}"

    def _why_no_pair(self, node: JoinNode) -> str:
        """Why a join made no record although both sides made some."""
        needed = ["in this order"] if node.kind is Join.SEQ else []
        needed += [f"with the same {key_text(self.query)}"] if self.plan.key else []
        needed += [f"with {all_of(node.equalities)}"] if node.equalities else []
        needed += [f"in time (WITHIN {self.within})"] if self.within else []
        needed += [f"with no {name} between" for name in _negated(node)]
        return f"no two of its parts came {', '.join(needed)}"

    def _why_failed(self, node: JoinNode, tried: int) -> str:
        tests = (*node.equalities, *node.tests)
        reasons = [f"failed {one_of(tests)}"] if tests else []
        # Of two single events in order only those in time are tried.
        if self.within and not (node.kind is Join.SEQ and isinstance(node.left, LeafNode)):
            reasons.append(f"lie further apart than WITHIN {self.within}")
        reasons += [f"have a negated {name} between" for name in _negated(node)]
        if node.kind is Join.CONJ and _types(node.left) & _types(node.right):
            reasons.append("are the same event")
        return f"{counted(tried, 'pair')} {' or '.join(reasons) or 'came to nothing'}"

    def _why_no_match(self) -> str:
        if self.plan.after:
            return f"it failed {one_of(self.plan.after)}"
        return (
            f"first and last event lie further apart than WITHIN {self.within}" if self.within else "nothing is known"
        )


def _number(number: int) -> str:
    return f"{number:,}" if number else "none"


def _types(node: Node) -> set[str]:
    return {name for component in bound(node) for name in component.types}


def _negated(node: JoinNode) -> list[str]:
    return [absence.name for _, absence in node.pushed]

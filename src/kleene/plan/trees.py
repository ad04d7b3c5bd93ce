"""Tree plans (ZStream §4): joins over buffers of events, in the order that the plan says.

A node makes records. A record binds events to the variables of the components below it; a variable of another branch of
a disjunction stays absent. Single events are leaves; a closure and a negated class have buffers of their own, which
KSEQ, NSEQ and NEG look into.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component, Pattern
from kleene.plan.physical import AutomatonPlan, ReferencePlan, Scan, SequencePlan


class Join(Enum):
    """How a join orders its two sides."""

    SEQ = "each event of the left before each of the right"
    CONJ = "in any order"


class Side(Enum):
    """Beside which neighbour NSEQ looks for the event that negates."""

    LEFT = "the first one after the left neighbour"
    RIGHT = "the last one before the right neighbour"


@dataclass(frozen=True, slots=True)
class Gap:
    """Where something stands: the variables of the parts next to it, or to its group; empty: the window's bound."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    # The variables of the sequence or group that it is in: a record of another branch of a disjunction binds none.
    own: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """A negated class or pair, or a closure, between two parts.

    conditions   what must hold of one of its events and of the match: for the match to be forbidden, or for the event
                 to be a member
    equalities   those of the conditions by which its events are looked up: a value of the event equals one of the match
    """

    scan: Scan
    gap: Gap
    conditions: tuple[Clause, ...] = ()
    equalities: tuple[Clause, ...] = ()

    @property
    def scans(self) -> tuple[Scan, ...]:
        """All that is looked for: of a negated pair two, the second one with `scan`."""
        return (*(Scan(component) for component in self.scan.component.forbidden[:-1]), self.scan)

    @property
    def name(self) -> str:
        """What is negated, for people: `b`, or of a pair `(b ; c)`."""
        return self.scan.component.forbidden_text


@dataclass(frozen=True, slots=True)
class LeafNode:
    """A leaf buffer (§4.2): the events of one class that satisfy what is asked of one event alone.

    Of a Kleene component (`A+ a[]`), a record is a list of them, one after the other; `tests` are its own conditions.
    """

    scan: Scan
    tests: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinNode:
    """SEQ (Algorithm 1) and CONJ (Algorithm 3)."""

    kind: Join
    left: Node
    right: Node
    # Equalities of a value of the left with one of the right, by hash lookup (§5.2.2).
    equalities: tuple[Clause, ...] = ()
    tests: tuple[Clause, ...] = ()
    # NSEQ (Algorithm 2): what is negated between the two sides, tested as a bound on time beside one of them.
    pushed: tuple[tuple[Side, Site], ...] = ()


@dataclass(frozen=True, slots=True)
class UnionNode:
    """DISJ (§4.4.4): the records of its parts, merged by their end."""

    parts: tuple[Node, ...]
    tests: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupNode:
    """KSEQ (Algorithm 4): the closure between two parts of each record, or between one and the window's bound."""

    child: Node
    scan: Scan
    gap: Gap
    # What a member must satisfy together with the record.
    members: tuple[Clause, ...] = ()
    # What can be tested now that the group is known.
    tests: tuple[Clause, ...] = ()
    # The closures that follow it side by side: it takes only members that leave each of them the fewest it needs.
    leaves: tuple[Site, ...] = ()
    # Those of what a member must satisfy by which members are looked up.
    equalities: tuple[Clause, ...] = ()

    @property
    def site(self) -> Site:
        return Site(self.scan, self.gap, self.members, self.equalities)


@dataclass(frozen=True, slots=True)
class NegNode:
    """NEG (§4.4.2): drops the records that an event of a negated class forbids."""

    child: Node
    absence: Site


Node = LeafNode | JoinNode | UnionNode | GroupNode | NegNode


@dataclass(frozen=True, slots=True)
class Alias:
    """A component that a rewrite merged with another: where one of `when` is present, `of` is shown as `variable`."""

    variable: str
    of: str
    when: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TreePlan:
    """One part of a query's union as a tree of joins."""

    # What it matches, rewritten; disjunctions stay, components that may be absent are expanded.
    pattern: Pattern
    root: Node
    # The equivalence attributes by which every join looks up.
    key: tuple[str, ...] = ()
    # What is tested on whole records, since no part of the tree knows enough: constants, and what asks for absence.
    after: tuple[Clause, ...] = ()
    aliases: tuple[Alias, ...] = ()

    @property
    def absences(self) -> tuple[Site, ...]:
        return absences(self.root)

    @property
    def groups(self) -> tuple[GroupNode, ...]:
        return tuple(node for node in walk(self.root) if isinstance(node, GroupNode))

    @property
    def has_negated_end(self) -> bool:
        """Whether matches are certain only when their window is closed, as with a closure at the end."""
        gaps = [absence.gap for absence in self.absences] + [node.gap for node in self.groups]
        return not all(gap.after for gap in gaps)

    @property
    def has_negated_start(self) -> bool:
        """Whether an event before a match can forbid it, or be added to it when its window closes."""
        # A closure at the start may have no members.
        empty = {node.scan.component.variable for node in self.groups if not node.scan.component.minimum}
        late = [node.gap for node in self.groups] if self.has_negated_end else []
        return not all(set(gap.before) - empty for gap in [*(absence.gap for absence in self.absences), *late])


Alternative = SequencePlan | AutomatonPlan | TreePlan | ReferencePlan


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case LeafNode():
            return ()
        case JoinNode(left=left, right=right):
            return left, right
        case UnionNode(parts=parts):
            return parts
        case GroupNode(child=child) | NegNode(child=child):
            return (child,)


def walk(node: Node) -> Iterator[Node]:
    """Every node, children before their parents, from left to right."""
    for child in children(node):
        yield from walk(child)
    yield node


def tests_of(node: Node) -> tuple[Clause, ...]:
    """The clauses of P₊ that a node tests."""
    match node:
        case LeafNode(scan=scan, tests=tests):
            return (*scan.mask, *tests)
        case JoinNode(equalities=equalities, tests=tests):
            return (*equalities, *tests)
        case UnionNode(tests=tests) | GroupNode(tests=tests):
            return tests
        case NegNode():
            return ()


def absences(node: Node) -> tuple[Site, ...]:
    """Everything that is negated, from the leaves up."""
    sites: list[Site] = []
    for each in walk(node):
        if isinstance(each, NegNode):
            sites.append(each.absence)
        elif isinstance(each, JoinNode):
            sites += [absence for _, absence in each.pushed]
    return tuple(sites)


def bound(node: Node) -> tuple[Component, ...]:
    """The components to which a node's records give events, from left to right; a closure comes after what it joins."""
    own = (node.scan.component,) if isinstance(node, LeafNode | GroupNode) else ()
    return (*(component for child in children(node) for component in bound(child)), *own)


def variables_bound(node: Node) -> tuple[str, ...]:
    return tuple(component.variable for component in bound(node))

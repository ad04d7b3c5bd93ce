"""Tree plans for people (ZStream §4): the tree drawn, at each node what it tests and how many records it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.printing import print_clause
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Costed, Measured
from kleene.plan.explain_lines import OUTPUTS, Row, classes_text, scan_text
from kleene.plan.physical import Scan
from kleene.plan.trees import (
    Gap,
    GroupNode,
    Join,
    JoinNode,
    LeafNode,
    NegNode,
    Node,
    Side,
    Site,
    TreePlan,
    UnionNode,
    children,
    walk,
)

TREE = "tree of joins (ZStream §4)"


def tree_rows(
    plan: TreePlan, query: BoundQuery, costed: Costed | None = None, measured: Measured | None = None
) -> Iterator[Row]:
    """The rows that describe one alternative; beside each node, its expected and its measured number of records."""
    yield "executor", f"{TREE}: records are put together from the leaves up"
    yield "partition", f"by {', '.join(plan.key)}: records of different keys never meet" if plan.key else "none"
    for number, line in enumerate(_drawn(plan, _figures(plan, query, costed, measured))):
        yield ("" if number else "tree"), line
    for number, clause in enumerate(plan.after):
        yield ("" if number else "whole record"), print_clause(clause)
    for alias in plan.aliases:
        yield f"alias {alias.variable}", f"what {alias.of} is called where {_or(alias.when)} is present"
    yield "window", _window(query)
    yield "output", f"{OUTPUTS[query.output]}, {_when(plan)}"


def _window(query: BoundQuery) -> str:
    if query.window is None:
        return "none"
    # Positions are counted from start to end, and a part of a match may then be longer than the whole.
    whole = query.counts_events and query.schema.start is not None
    return "tested on whole records" if whole else "stops joins early"


def _when(plan: TreePlan) -> str:
    if waiting(plan):
        return "when its window has closed"
    last = completing(plan.root)
    return f"when its last event `{last[0]}` has come" if len(last) == 1 else "when its last event has come"


def waiting(plan: TreePlan) -> int:
    """How many nodes from the root down wait for the window to close: a node at the end, and all nodes above it."""
    number, deepest, node = 0, 0, plan.root
    while isinstance(node, GroupNode | NegNode):
        number += 1
        gap = node.gap if isinstance(node, GroupNode) else node.absence.gap
        deepest = deepest if gap.after else number
        node = node.child
    return deepest


def completing(node: Node) -> tuple[str, ...]:
    """The variables of which one is the last to come (§4.3)."""
    match node:
        case LeafNode(scan=scan):
            return (scan.component.variable,)
        case JoinNode(kind=Join.SEQ, right=right):
            return completing(right)
        case JoinNode() | UnionNode():
            return tuple(name for child in children(node) for name in completing(child))
        case GroupNode(child=child) | NegNode(child=child):
            return completing(child)


# In one line -------------------------------------------------------------------------------------------------------


def print_tree(node: Node) -> str:
    """`SEQ(SEQ(a, b), NSEQ(!c, d))`."""
    match node:
        case LeafNode(scan=scan):
            return _name(scan.component)
        case JoinNode(kind=kind, left=left, right=right, pushed=pushed):
            sides = {Side.LEFT: print_tree(left), Side.RIGHT: print_tree(right)}
            for side, absence in pushed:
                negated = f"!{absence.name}"
                parts = (sides[side], negated) if side is Side.LEFT else (negated, sides[side])
                sides[side] = f"NSEQ({', '.join(parts)})"
            return f"{kind.name}({sides[Side.LEFT]}, {sides[Side.RIGHT]})"
        case UnionNode(parts=parts):
            return f"DISJ({', '.join(map(print_tree, parts))})"
        case GroupNode(child=child, scan=scan):
            return f"KSEQ({print_tree(child)}, {scan.component.variable})"
        case NegNode(child=child, absence=absence):
            return f"NEG({print_tree(child)}, !{absence.name})"


# Drawn -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    # Shown to the right of a node.
    figure: str = ""


def _drawn(plan: TreePlan, figures: Iterable[str]) -> Iterator[str]:
    lines = _Drawing(plan, iter(figures)).block(plan.root, waiting(plan))
    width = max((len(line.text) for line in lines if line.figure), default=0)
    for line in lines:
        yield f"{line.text:<{width}}  {line.figure}" if line.figure else line.text


@dataclass(frozen=True, slots=True)
class _Drawing:
    plan: TreePlan
    # In the order of `walk`, in which nodes are drawn as well.
    figures: Iterator[str]

    def block(self, node: Node, late: int) -> list[_Line]:
        """A node, what it tests, then those below it; so many nodes from here down wait for the window."""
        below = [self.block(child, max(late - 1, 0)) for child in children(node)]
        waits = "; waits until the window has closed" if late else ""
        own = _Line(f"{node_text(node, self.plan.key)}{waits}", next(self.figures, ""))
        if isinstance(node, JoinNode):
            below[1:1] = [self._negating(side, absence) for side, absence in node.pushed]
        gutter = "│  " if below else "   "
        return [own, *(_Line(gutter + text) for text in node_tests(node, self.plan.key)), *_hung(below)]

    def _negating(self, side: Side, absence: Site) -> list[_Line]:
        own = _Line(f"{nseq_text(side, absence)}: {_chosen(absence.scans, absence.gap, self.plan.key)}")
        return [own, *(_Line(f"   {text}") for text in site_tests(absence, "with"))]


def _hung(blocks: Sequence[list[_Line]]) -> Iterator[_Line]:
    for number, block in enumerate(blocks):
        first, later = ("└─ ", "   ") if number == len(blocks) - 1 else ("├─ ", "│  ")
        for place, line in enumerate(block):
            yield _Line(f"{later if place else first}{line.text}", line.figure)


def node_text(node: Node, key: Sequence[str] = ()) -> str:
    """A node by itself."""
    match node:
        case LeafNode(scan=scan):
            lists = f", every list of {_length(scan.component)}" if scan.component.kind is ComponentKind.KLEENE else ""
            return f"{_leaf(scan)}{lists}"
        case JoinNode(kind=kind):
            return kind.name
        case UnionNode():
            return "DISJ"
        case GroupNode(scan=scan, gap=gap, leaves=leaves):
            name = scan.component.variable
            return f"KSEQ {name}: {_group(scan.component)} {_chosen((scan,), gap, key)}{leaving_text(leaves)}"
        case NegNode(absence=absence):
            return f"NEG no {absence.name}: {_chosen(absence.scans, absence.gap, key)}"


def nseq_text(side: Side, absence: Site) -> str:
    """`NSEQ no b, by the last one before c`."""
    gap = absence.gap
    beside = f"first one after {_names(gap.before)}" if side is Side.LEFT else f"last one before {_names(gap.after)}"
    return f"NSEQ no {absence.name}, by the {beside}"


def node_tests(node: Node, key: Sequence[str] = ()) -> Iterator[str]:
    """What a node tests, a condition a line."""
    match node:
        case LeafNode(tests=tests) | UnionNode(tests=tests):
            yield from _tests("test", tests)
        case JoinNode(equalities=equalities, tests=tests):
            yield from _lookup([*([", ".join(key)] if key else []), *map(print_clause, equalities)])
            yield from _tests("test", tests)
        case GroupNode(tests=tests):
            yield from site_tests(node.site, "member")
            yield from _tests("test", tests)
        case NegNode(absence=absence):
            yield from site_tests(absence, "with")


def site_tests(site: Site, word: str = "") -> Iterator[str]:
    """How the events of a negated class or a closure are found, and what is tested of each."""
    yield from _lookup(list(map(print_clause, site.equalities)))
    yield from _tests(word, (clause for clause in site.conditions if clause not in site.equalities))


def _lookup(values: Sequence[str]) -> Iterator[str]:
    if values:
        yield f"lookup by {' and '.join(values)}"


def _tests(word: str, clauses: Iterable[Clause]) -> Iterator[str]:
    return (f"{word} {print_clause(clause)}".lstrip() for clause in clauses)


def _leaf(scan: Scan) -> str:
    """`a: Shelf where a.price > 5`; a class that gives its variable its name is not said twice."""
    name = _name(scan.component)
    return scan_text(scan) if name == classes_text(scan.component) else f"{name}: {scan_text(scan)}"


def _name(component: Component) -> str:
    return f"{component.variable}[]" if component.kind is ComponentKind.KLEENE else component.variable


def _chosen(scans: Sequence[Scan], gap: Gap, key: Sequence[str]) -> str:
    same = f" of the same {', '.join(key)}" if key else ""
    return f"{' and then '.join(map(scan_text, scans))}{same}, {gap_text(gap)}"


def gap_text(gap: Gap) -> str:
    """Between which parts something stands."""
    if gap.before and gap.after:
        return f"between {_names(gap.before)} and {_names(gap.after)}"
    if not gap.before and not gap.after:
        return f"around {_names(gap.own)} within the window" if gap.own else "anywhere within the window"
    side = f"after {_names(gap.before)}" if gap.before else f"before {_names(gap.after)}"
    return f"{side} within the window"


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)


def _length(component: Component) -> str:
    low, high = component.minimum, component.maximum
    return f"{low} or more" if high is None else f"{low}" if low == high else f"{low} to {high}"


def _group(component: Component) -> str:
    """A closure takes all that there are, or so many in a row."""
    if component.maximum is not None:
        return f"every {component.maximum} in a row of"
    return f"all, {component.minimum} or more, of" if component.minimum > 1 else "all of"


def leaving_text(leaves: Sequence[Site]) -> str:
    """`, leaving C and 2 of E`: what the closures that follow side by side need at least."""
    needed = [each.scan.component for each in leaves if each.scan.component.minimum]
    names = [f"{c.minimum} of {c.variable}" if c.minimum > 1 else c.variable for c in needed]
    return f", leaving {' and '.join(names)}" if names else ""


# How many ----------------------------------------------------------------------------------------------------------


def _figures(plan: TreePlan, query: BoundQuery, costed: Costed | None, measured: Measured | None) -> Iterator[str]:
    """The number of records in the time of one window, for each node: expected, then measured."""
    unit = "a window" if query.window is not None else "in all"
    for number, _ in enumerate(walk(plan.root)):
        said = []
        if costed is not None and number < len(costed.nodes):
            said.append(f"~{amount(costed.nodes[number].records)} {unit}")
        if measured is not None and number < len(measured.nodes):
            records = measured.nodes[number][1]
            counted = amount(records / measured.windows if measured.windows > 0 else records)
            said.append(f"{counted} measured" if said else f"{counted} {unit} measured")
        yield ", ".join(said)


def amount(number: float) -> str:
    """`0.02`, `8.5`, `120`, `1.2 k`, `3.4 M`."""
    if number <= 0:
        return "0"
    if number < 10:
        return f"{float(f'{number:.2g}'):g}"
    for size, sign in ((1.0, ""), (1e3, " k"), (1e6, " M"), (1e9, " G")):
        scaled = number / size
        # What would be rounded to the next thousand belongs there.
        if scaled < 999.5:
            return f"{scaled:.1f}{sign}".replace(".0", "") if scaled < 9.95 and sign else f"{scaled:.0f}{sign}"
    return f"{number:.1e}"

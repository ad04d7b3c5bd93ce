"""Fingerprints: stable keys of the scans, clauses and sub-patterns that statistics describe.

A fingerprint depends on what a query means, not on how it is written: variables are named after the classes and the
places of their components, `a.x > b.x` is `b.x < a.x`, and two trees that join the same parts in different orders have
the same one. So the statistics of one query serve every other query with the same scan, clause or sub-pattern, and
every other plan of the same query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from hashlib import blake2b

from kleene.pattern.expressions import Clause, Comparison, Literal, Node, references
from kleene.pattern.interning import Interned, field_names
from kleene.pattern.nodes import Component
from kleene.plan import trees
from kleene.plan.physical import Scan
from kleene.plan.trees import Gap, GroupNode, Join, JoinNode, LeafNode, NegNode, UnionNode

Components = Mapping[str, Component]

_MIRRORED = {">": "<", ">=": "<="}
_SYMMETRIC = ("=", "!=")


@lru_cache(maxsize=1 << 14)
def of_classes(component: Component) -> str:
    """The fingerprint of a component's event classes, whatever its variable is."""
    classes = (
        f"{sorted(event_class.types)}{sorted(clause.digest.hex() for clause in event_class.predicate)}"
        for event_class in component.classes
    )
    return _hashed("classes", *sorted(classes))


def of_scan(scan: Scan) -> str:
    """The fingerprint of a scan: its classes and its mask; a negated component and a positive one have the same."""
    known = {scan.component.variable: scan.component}
    return _hashed("scan", of_classes(scan.component), *sorted(template(c, known).text for c in scan.mask))


def of_clause(clause: Clause, components: Components) -> str:
    """The fingerprint of a clause between components; those of one class are ranked by their place in the pattern."""
    clause_template = template(clause, components)
    classes = [_class_of(name, components) for name in clause_template.variables]
    ranks = _ranks(clause_template.variables, classes, components)
    return _hashed(
        "clause", clause_template.text, *(f"{label}{rank}" for label, rank in zip(classes, ranks, strict=True))
    )


# Clauses -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Template:
    """The text of a clause with numbers for its variables, and the variables in the order of their numbers."""

    text: str
    variables: tuple[str, ...]


def template(clause: Clause, components: Components) -> Template:
    names = dict.fromkeys(reference.variable for reference in references(clause))
    return _template(clause, tuple(components[name] for name in names if name in components))


@lru_cache(maxsize=1 << 14)
def _template(clause: Clause, named: tuple[Component, ...]) -> Template:
    components = {component.variable: component for component in named}

    def by_class(name: str) -> str:
        return _class_of(name, components)

    def position(node: Node) -> tuple[int, ...]:
        return tuple(components[r.variable].position for r in references(node) if r.variable in components)

    def one_way(literal: Literal) -> Literal:
        if not isinstance(literal, Comparison):
            return literal
        left, right = literal.left, literal.right
        if literal.operator in _MIRRORED:
            return Comparison(_MIRRORED[literal.operator], right, left)
        if literal.operator in _SYMMETRIC:
            left, right = sorted((left, right), key=lambda side: (_text(side, by_class), position(side)))
        return Comparison(literal.operator, left, right)

    numbers: dict[str, int] = {}

    def numbered(name: str) -> str:
        return f"${numbers.setdefault(name, len(numbers))}"

    literals = sorted(map(one_way, clause.literals), key=lambda literal: (_text(literal, by_class), position(literal)))
    text = " or ".join(_text(literal, numbered) for literal in literals)
    return Template(text, tuple(numbers))


def _text(value: object, label: Callable[[str], str]) -> str:
    if isinstance(value, Interned):
        shown = (
            label(getattr(value, name)) if name == "variable" else _text(getattr(value, name), label)
            for name in field_names(type(value))
        )
        return f"{type(value).__name__}({','.join(shown)})"
    if isinstance(value, Enum):
        return value.name
    return f"{type(value).__name__}:{value!r}"


def _class_of(name: str, components: Components) -> str:
    return of_classes(components[name]) if name in components else ""


def _ranks(names: Iterable[str], classes: list[str], components: Components) -> list[int]:
    """For each variable, the number of others of its class that stand before it in the pattern."""
    placed = [
        (label, components[name].position if name in components else 0)
        for name, label in zip(names, classes, strict=True)
    ]
    return [sum(other < position for c, other in placed if c == label) for label, position in placed]


# Sub-patterns ------------------------------------------------------------------------------------------------------


def of_node(node: trees.Node, components: Components, key: tuple[str, ...] = ()) -> str:
    """The fingerprint of a node's records: what the node joins and tests, not in which order."""
    structure, scans = _structure(node)
    labels = {scan.component.variable: str(number) for number, scan in enumerate(scans)}
    nodes = [each for each in trees.walk(node) if isinstance(each, GroupNode)]
    groups = [each.site for each in nodes]
    for group in groups:
        labels[group.scan.component.variable] = _placed("group", group.scan, group.gap, labels)
    lines = [_labelled(c, components, labels) for each in trees.walk(node) for c in trees.tests_of(each)]
    for group in groups:
        members = sorted(_labelled(clause, components, labels) for clause in group.conditions)
        lines.append(_hashed(labels[group.scan.component.variable], *members))
    for each in nodes:
        for site in each.leaves:
            own = {**labels, site.scan.component.variable: "?"}
            members = sorted(_labelled(clause, components, own) for clause in site.conditions)
            lines.append(
                _hashed(
                    "leaves",
                    labels[each.scan.component.variable],
                    _placed("next", site.scan, site.gap, labels),
                    *members,
                )
            )
    for absence in trees.absences(node):
        own = {**labels, **{each.variable: "!" + n * "," for n, each in enumerate(absence.scan.component.forbidden)}}
        conditions = sorted(_labelled(clause, components, own) for clause in absence.conditions)
        places = (_placed("absence", scan, absence.gap, labels) for scan in absence.scans)
        lines.append(_hashed(*places, *conditions))
    return _hashed("node", repr(key), structure, *sorted(lines))


def _structure(node: trees.Node) -> tuple[str, tuple[Scan, ...]]:
    """The operators and scans as text, and the scans in an order that does not depend on the text of the pattern."""
    match node:
        case LeafNode(scan=scan):
            component = scan.component
            return f"{component.kind.name}{component.minimum},{component.maximum}:{of_scan(scan)}", (scan,)
        case GroupNode(child=child) | NegNode(child=child):
            return _structure(child)
        case JoinNode(kind=kind):
            name, parts = kind.name, [_structure(part) for part in _operands(node, kind)]
        case UnionNode():
            name, parts = "DISJ", [_structure(part) for part in node.parts]
    if name != Join.SEQ.name:
        parts.sort(key=lambda part: (part[0], part[1][0].component.position))
    return f"{name}({';'.join(text for text, _ in parts)})", tuple(scan for _, scans in parts for scan in scans)


def _operands(node: trees.Node, kind: Join) -> Iterator[trees.Node]:
    """Sequence and conjunction are associative: a join of joins of the same kind is one list."""
    while isinstance(node, GroupNode | NegNode):
        node = node.child
    if isinstance(node, JoinNode) and node.kind is kind:
        yield from _operands(node.left, kind)
        yield from _operands(node.right, kind)
    else:
        yield node


def _placed(what: str, scan: Scan, gap: Gap, labels: Mapping[str, str]) -> str:
    before, after = (sorted(labels[name] for name in side if name in labels) for side in (gap.before, gap.after))
    component = scan.component
    return _hashed(what, of_scan(scan), f"{component.minimum},{component.maximum}", repr(before), repr(after))


def _labelled(clause: Clause, components: Components, labels: Mapping[str, str]) -> str:
    clause_template = template(clause, components)
    return _hashed("in", clause_template.text, *(labels.get(name, "") for name in clause_template.variables))


def _hashed(*parts: str) -> str:
    hasher = blake2b(digest_size=16)
    for part in parts:
        hasher.update(part.encode() + b"\0")
    return hasher.hexdigest()

"""The nodes of the stream algebra (CESAR §2). Equal nodes are one object, and a digest names a node in every process.

An attribute of a stream is a pair: the id of its stream and its name, or no id for one that was renamed or computed.
Bound conditions refer to it as `Attribute(id, …, name)`; what it was before the newest event overwrote it
(`x.last`) is `Which.OVERWRITTEN`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kleene.pattern.expressions import Clause, Value
from kleene.pattern.interning import Interned
from kleene.pattern.nodes import EventClass
from kleene.pattern.types import ValueType

# The id of a stream, or "" for what was renamed or computed; and the attribute's own name.
AttributeName = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class StreamSchema(Interned):
    """The attributes of a stream in order, and their types.

    open   the ids of streams of which any name may be an attribute: nothing is known of their columns yet
    """

    attributes: tuple[tuple[AttributeName, ValueType], ...]
    open: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[AttributeName, ...]:
        return tuple(name for name, _ in self.attributes)

    def type_of(self, name: AttributeName) -> ValueType | None:
        """The type of an attribute; None when the stream has no such attribute."""
        known = next((kind for attribute, kind in self.attributes if attribute == name), None)
        return ValueType.UNKNOWN if known is None and name[0] in self.open else known


@dataclass(frozen=True, slots=True, eq=False)
class StreamSource(Interned):
    """The events of a class, whose attributes have the id of the stream, and the column behind each attribute."""

    event_class: EventClass
    id: str
    schema: StreamSchema
    columns: tuple[tuple[AttributeName, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Interned):
    """σ: the events that satisfy all clauses."""

    operand: Node
    condition: tuple[Clause, ...]
    schema: StreamSchema


@dataclass(frozen=True, slots=True, eq=False)
class Project(Interned):
    """π: the events with these attributes alone, each set of values once."""

    operand: Node
    schema: StreamSchema


@dataclass(frozen=True, slots=True, eq=False)
class Rename(Interned):
    """ρ: attributes, each with its new name."""

    operand: Node
    names: tuple[tuple[AttributeName, AttributeName], ...]
    schema: StreamSchema


@dataclass(frozen=True, slots=True, eq=False)
class Compute(Interned):
    """α: attributes with what is computed of the values before all of them."""

    operand: Node
    assignments: tuple[tuple[AttributeName, Value], ...]
    schema: StreamSchema


@dataclass(frozen=True, slots=True, eq=False)
class StreamUnion(Interned):
    """∪: the events of all parts, which have the same attributes."""

    parts: tuple[Node, ...]
    schema: StreamSchema


@dataclass(frozen=True, slots=True, eq=False)
class Next(Interned):
    """`;θ`: each left event with the first right events after it that satisfy the condition."""

    left: Node
    right: Node
    condition: tuple[Clause, ...]
    schema: StreamSchema


@dataclass(frozen=True, slots=True, eq=False)
class Carried(Interned):
    """What the step of a fold is applied to: one more event after what was folded so far."""

    schema: StreamSchema


@dataclass(frozen=True, slots=True, eq=False)
class Fold(Interned):
    """μ: next again and again, each time with the step applied (CESAR §2.3).

    init    for each attribute of the right that the left lacks, its value before the first round
    entry   the clauses of the condition without `.last`, which an event satisfies to be folded at all
    step    a chain of unary nodes above `Carried`, whose schema is that of the fold
    """

    left: Node
    right: Node
    init: tuple[tuple[AttributeName, Value], ...]
    entry: tuple[Clause, ...]
    condition: tuple[Clause, ...]
    step: Node
    schema: StreamSchema


Unary = Filter | Project | Rename | Compute
Node = StreamSource | Unary | StreamUnion | Next | Fold | Carried


def children(node: Node) -> tuple[Node, ...]:
    """The streams that a node reads; the step of a fold is a part of the fold."""
    match node:
        case StreamSource() | Carried():
            return ()
        case StreamUnion(parts):
            return parts
        case Next(left=left, right=right) | Fold(left=left, right=right):
            return left, right
    return (node.operand,)


def walk(node: Node) -> Iterator[Node]:
    """Every node, children before their parents, each once."""
    seen: set[Node] = set()

    def below(each: Node) -> Iterator[Node]:
        if each in seen:
            return
        seen.add(each)
        for child in children(each):
            yield from below(child)
        yield each

    return below(node)


def chain(node: Node) -> tuple[list[Unary], Node]:
    """The unary nodes from this one down, outermost first, and what the innermost is applied to."""
    unary: list[Unary] = []
    while isinstance(node, Unary):
        unary.append(node)
        node = node.operand
    return unary, node


def sources(node: Node) -> tuple[StreamSource, ...]:
    return tuple(each for each in walk(node) if isinstance(each, StreamSource))

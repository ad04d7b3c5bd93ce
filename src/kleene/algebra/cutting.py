"""Expressions that are not linear-plus, cut into some that are (CESAR §3.5, resubscription).

What stands on the right of `;` or μ and is no base stream becomes a stream of its own, which the rest reads as if it
were one. It is called after its digest, so that equal parts are one stream, whichever queries they stand in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kleene.algebra.bind import reads_last
from kleene.algebra.names import show
from kleene.algebra.nodes import (
    AttributeName,
    Filter,
    Fold,
    Next,
    Node,
    StreamSource,
    StreamUnion,
    Unary,
)
from kleene.algebra.query import BoundStreamQuery
from kleene.pattern.nodes import EventClass
from kleene.pattern.schema import private


def cut(query: BoundStreamQuery) -> tuple[BoundStreamQuery, ...]:
    """The linear-plus queries that a query is made of, makers before readers; the last one is the query itself."""
    cutter = Cutter(query)
    root = cutter.linear_plus(query.root)
    return *cutter.streams.values(), replace(query, root=root, schema=cutter.schema)


def part_name(node: Node) -> str:
    """What the stream of a part is called, in every process."""
    return private(f"stream {node.digest.hex()}")


def part_columns(node: Node) -> tuple[tuple[AttributeName, str], ...]:
    """The columns in which the events of a part have their attributes: no other stream has them."""
    digest = node.digest.hex()
    return tuple((each, private(f"{digest} {show(each)}")) for each in node.schema.names)


@dataclass
class Cutter:
    """Cuts the parts of one query, and keeps the streams that they become."""

    query: BoundStreamQuery

    def __post_init__(self) -> None:
        self.streams: dict[str, BoundStreamQuery] = {}
        # With the types of the events that the streams so far make.
        self.schema = self.query.schema

    def linear_plus(self, node: Node) -> Node:
        """The same stream, with its parts read from streams of their own where they are not linear-plus."""
        match node:
            case StreamUnion(parts):
                return replace(node, parts=tuple(map(self.linear_plus, parts)))
            case Next(left, right) | Fold(left, right):
                return replace(node, left=self.linear_plus(left), right=self._as_base(right))
            case StreamSource():
                return node
        assert isinstance(node, Unary), "what a fold carries stands in its step alone"
        return replace(node, operand=self.linear_plus(node.operand))

    def _as_base(self, node: Node) -> Node:
        """Unary operations stay with the reader; what they are applied to is read from its own stream.

        A selection that names `x.last` stays with the `;` or μ that overwrites x.
        """
        names_last = isinstance(node, Filter) and any(map(reads_last, node.condition))
        if isinstance(node, Unary) and not names_last:
            return replace(node, operand=self._as_base(node.operand))
        return node if isinstance(node, StreamSource) else self._resubscribed(node)

    def _resubscribed(self, node: Node) -> StreamSource:
        """A part read from its own stream."""
        name = part_name(node)
        if name not in self.streams:
            root = self.linear_plus(node)
            columns = part_columns(node)
            written = self.query.written
            part = BoundStreamQuery(name, self.schema, root, name, node.digest, part_columns=columns, written=written)
            self.streams[name] = part
            self.schema = self.schema.adding_types(part.made_types)
        return StreamSource(EventClass(name, (name,)), name, node.schema, part_columns(node))

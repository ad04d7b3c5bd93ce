"""Queries of streams, cut wherever a part can be read from a stream of its own, and not only where they must be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from kleene.algebra.bind import reads_last
from kleene.algebra.cutting import Cutter
from kleene.algebra.nodes import Filter, Node, StreamSource
from kleene.algebra.query import BoundStreamQuery


@dataclass
class CutAnywhere(Cutter):
    draw: Random
    # The parts that are being made streams: each is cut once.
    begun: set[Node] = field(default_factory=set)

    def linear_plus(self, node: Node) -> Node:
        if not isinstance(node, StreamSource) and node not in self.begun and self.draw.random() < 0.4:
            return self._resubscribed(node)
        # A selection that names `x.last` stays with what overwrites x.
        if isinstance(node, Filter) and any(map(reads_last, node.condition)):
            return self._kept(node)
        return super().linear_plus(node)

    def _resubscribed(self, node: Node) -> StreamSource:
        self.begun.add(node)
        return super()._resubscribed(node)

    def _kept(self, node: Node) -> Node:
        if isinstance(node, Filter):
            return replace(node, operand=self._kept(node.operand))
        return super().linear_plus(node)


def cut_anywhere(query: BoundStreamQuery, draw: Random) -> tuple[BoundStreamQuery, ...]:
    """Linear-plus queries that a query is made of, makers before readers."""
    cutter = CutAnywhere(query, draw)
    root = cutter.linear_plus(query.root)
    return *cutter.streams.values(), replace(query, root=root, schema=cutter.schema)

"""A bound query of streams for people: what its parts were taken for."""

from __future__ import annotations

from collections.abc import Iterator

from kleene.algebra.linear_plus import is_linear_plus
from kleene.algebra.names import show
from kleene.algebra.nodes import StreamSource, sources
from kleene.algebra.printing import print_stream
from kleene.algebra.query import BoundStreamQuery
from kleene.pattern.explaining import aligned, clock_text


def stream_explanation(query: BoundStreamQuery) -> Iterator[str]:
    """The bound query, line by line."""
    yield from aligned(_head(query))


def _head(query: BoundStreamQuery) -> Iterator[tuple[str, str]]:
    yield "query", query.name
    yield "stream", print_stream(query.root)
    named = [_source(source) for source in sources(query.root)]
    yield "reads", ", ".join(named)
    yield "time", f"`{query.schema.time}`, {clock_text(query.schema)}"
    if query.schema.tie_breaker is not None:
        yield "ties", f"broken by `{query.schema.tie_breaker}`"
    shape = (
        "linear-plus: one automaton" if is_linear_plus(query.root) else "not linear-plus: cut into streams of its own"
    )
    yield "shape", shape
    attributes = ", ".join(f"{show(name)} {kind.value}" for name, kind in query.root.schema.attributes)
    yield "result", attributes or "whatever its events have"
    if query.publish is not None:
        yield "into", f"stream {query.publish}"


def _source(source: StreamSource) -> str:
    kind = source.event_class.name
    return kind if source.id == kind else f"{kind} {source.id}"

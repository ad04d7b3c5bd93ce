"""The stream algebra by its definitions (CESAR §2): every operator as the set that the paper defines.

Slow, and independent of any automaton. A stream is a set: events with equal values and intervals are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kleene.algebra.nodes import (
    AttributeName,
    Carried,
    Compute,
    Filter,
    Fold,
    Next,
    Node,
    Project,
    Rename,
    StreamSchema,
    StreamSource,
    StreamUnion,
)
from kleene.pattern.expressions import Clause
from kleene.reference.stream_values import StreamBindings, StreamEvent, holds_all, value_of
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline
from kleene.reference.values import Environment, holds

Values = Mapping[AttributeName, Any]


@dataclass(frozen=True, slots=True)
class Traced:
    """An event and, where a newer event overwrote some of its values, what they were before."""

    event: StreamEvent
    last: Values = field(default_factory=dict)


@dataclass(frozen=True)
class StreamEvaluator:
    """Evaluates expressions over the events of one input."""

    timeline: ReferenceTimeline

    def evaluate(self, node: Node) -> list[StreamEvent]:
        """The events of a stream, each once, by end, start and values."""
        events = {traced.event.key: traced.event for traced in self._stream(node)}
        return sorted(events.values(), key=lambda event: event.order)

    def _stream(self, node: Node) -> list[Traced]:
        match node:
            case StreamSource():
                return self._source(node)
            case StreamUnion(parts):
                return [Traced(retyped(traced.event, node.schema)) for part in parts for traced in self._once(part)]
            case Next():
                return self._next(node)
            case Fold():
                return self._fold(node)
            case Carried():
                raise TypeError("what a fold carries is known inside its step alone")
        return [
            Traced(event, traced.last if isinstance(node, Filter) else {})
            for traced in self._stream(node.operand)
            if (event := apply(node, traced.event, traced.last)) is not None
        ]

    def _once(self, node: Node) -> list[Traced]:
        """The events of a stream that an operator reads: a set, without what its values were before."""
        return [Traced(event) for event in self.evaluate(node)]

    def _source(self, node: StreamSource) -> list[Traced]:
        events = (event for event in self.timeline.events if in_class(node, event, self.timeline))
        return [Traced(leaf(node, event, self.timeline)) for event in events]

    def _next(self, node: Next) -> list[Traced]:
        """§2.2: with each left event, the right ones of smallest end among those after it that satisfy θ."""
        right = self.evaluate(node.right)
        return [
            traced
            for event in self.evaluate(node.left)
            for traced in first_after(event, right, node.condition, node.schema)
        ]

    def _fold(self, node: Fold) -> list[Traced]:
        """§2.3: ⋃ S[n] for n ≥ 1."""
        right = self.evaluate(node.right)
        current = [event for each in self.evaluate(node.left) if (event := entered(node, each)) is not None]
        results: list[Traced] = []
        while current:
            extended = [
                Traced(event, traced.last)
                for each in current
                for traced in first_after(each, right, node.condition, node.schema)
                if (event := stepped(node.step, traced)) is not None
            ]
            results += extended
            current = list({traced.event.key: traced.event for traced in extended}.values())
        return results


def in_class(node: StreamSource, event: ReferenceEvent, timeline: ReferenceTimeline) -> bool:
    if event.type not in node.event_class.types:
        return False
    environment = Environment(timeline, {"": (event,)})
    return all(holds(clause, environment) for clause in node.event_class.predicate)


def leaf(node: StreamSource, event: ReferenceEvent, timeline: ReferenceTimeline) -> StreamEvent:
    """An event of the input as one of a stream: its attributes, and its points, without type and time columns."""
    first: tuple[Any, ...] = ()
    last: tuple[Any, ...] = ()
    if timeline.schema.tie_breaker is not None:
        first, last = (event.tie if event.first_tie is None else event.first_tie,), (event.tie,)
    values = {attribute: event.values.get(column) for attribute, column in node.columns}
    whole = StreamEvent(values, (event.start, *first), (event.end, *last))
    return retyped(whole, node.schema)


def first_after(
    event: StreamEvent, right: Iterable[StreamEvent], condition: tuple[Clause, ...], schema: StreamSchema
) -> list[Traced]:
    """`e ;θ E2`: the concatenations with the events of smallest end that start after it and satisfy θ, all ties."""
    passed = []
    for other in right:
        if event.end < other.start:
            traced = concatenated(event, other, schema)
            if holds_all(condition, StreamBindings(traced.event, traced.last)):
                passed.append((other.end, traced))
    first = min((end for end, _ in passed), default=None)
    return [traced for end, traced in passed if end == first]


def concatenated(event: StreamEvent, other: StreamEvent, schema: StreamSchema) -> Traced:
    """§2.2: the values of both, of namesakes those of the newer one, from the start of one to the end of the other."""
    values = {**event.values, **other.values}
    return Traced(retyped(StreamEvent(values, event.start, other.end), schema), event.values)


def entered(node: Fold, event: StreamEvent) -> StreamEvent | None:
    """An event of S[0]: with the first values of the right, if it satisfies the clauses of θ without `.last`."""
    bindings = StreamBindings(event, {})
    values = {**event.values, **{name: value_of(value, bindings) for name, value in node.init}}
    begun = retyped(StreamEvent(values, event.start, event.end), node.schema)
    return begun if holds_all(node.entry, StreamBindings(begun, {})) else None


def stepped(step: Node, traced: Traced) -> StreamEvent | None:
    """What the step of a fold makes of one round; None when a selection refuses it."""
    if isinstance(step, Carried):
        return traced.event
    assert isinstance(step, Filter | Project | Rename | Compute), "a step is a chain of unary operations"
    event = stepped(step.operand, traced)
    return None if event is None else apply(step, event, traced.last)


def apply(node: Filter | Project | Rename | Compute, event: StreamEvent, last: Values) -> StreamEvent | None:
    """What a unary operation makes of one event; None when a selection refuses it."""
    match node:
        case Filter(_, condition):
            return event if holds_all(condition, StreamBindings(event, last)) else None
        case Project():
            return event.with_values({name: event.values[name] for name in node.schema.names}, node.schema)
        case Rename(_, names):
            new = dict(names)
            return event.with_values({new.get(name, name): each for name, each in event.values.items()}, node.schema)
        case Compute(_, assignments):
            bindings = StreamBindings(event, last)
            computed = {name: value_of(value, bindings) for name, value in assignments}
            return event.with_values({**event.values, **computed}, node.schema)


def retyped(event: StreamEvent, schema: StreamSchema) -> StreamEvent:
    return event.with_values(event.values, schema)

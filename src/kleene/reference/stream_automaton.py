"""Linear-plus expressions as event automata, run as Algorithm 1 says (CESAR §3.2–3.4).

A second reading of the algebra, which shares none of its definitions with `streams`: instances at states, step by step
of simultaneous events. ∃-edges make an instance for each event that satisfies them; a ∀-edge keeps an instance where no
event of the step can serve it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from kleene.algebra.nodes import Fold, Next, Node, StreamSchema, StreamSource, StreamUnion, Unary, chain
from kleene.pattern.expressions import Clause
from kleene.reference.stream_values import StreamBindings, StreamEvent, holds_all
from kleene.reference.streams import Traced, apply, concatenated, entered, in_class, leaf, retyped, stepped
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline

_START = 0


# What is done to an event on its way into a state: an operation, the entry of a fold, or the types of a union.
Action = Unary | Fold | StreamSchema


@dataclass(frozen=True)
class ReferenceFormula:
    """θ1 and the renaming of an edge: what an event of the input must be, and as what it is concatenated."""

    source: StreamSource
    # Innermost first.
    operations: tuple[Unary, ...]

    def taken(self, event: ReferenceEvent, timeline: ReferenceTimeline) -> StreamEvent | None:
        if not in_class(self.source, event, timeline):
            return None
        return _acted(self.operations, Traced(leaf(self.source, event, timeline)))


@dataclass(frozen=True)
class ExistentialEdge:
    """An ∃-edge: forward to another state, or rebinding an instance at its own.

    condition   θ2, of the instance with the event; none on edges from the start
    step        what a round of a fold does then
    actions     what stands above, innermost first, up to the state that it enters
    """

    source: int
    target: int
    formula: ReferenceFormula
    condition: tuple[Clause, ...] = ()
    schema: StreamSchema | None = None
    step: Node | None = None
    actions: tuple[Action, ...] = ()

    def fired(self, instance: StreamEvent | None, event: StreamEvent) -> StreamEvent | None:
        """The instance that an event makes of another one, or None."""
        traced = Traced(event)
        if instance is not None:
            assert self.schema is not None, "an edge that has an instance concatenates"
            traced = concatenated(instance, event, self.schema)
            if not holds_all(self.condition, StreamBindings(traced.event, traced.last)):
                return None
        if self.step is not None:
            extended = stepped(self.step, traced)
            if extended is None:
                return None
            traced = replace(traced, event=extended)
        return _acted(self.actions, traced)


@dataclass(frozen=True)
class FilterEdge:
    """A ∀-edge: the condition to stay is that no event of a step satisfies these."""

    state: int
    formula: ReferenceFormula
    condition: tuple[Clause, ...]
    schema: StreamSchema

    def stays(self, instance: StreamEvent, events: list[ReferenceEvent], timeline: ReferenceTimeline) -> bool:
        for each in events:
            event = self.formula.taken(each, timeline)
            if event is None or not instance.end < event.start:
                continue
            traced = concatenated(instance, event, self.schema)
            if holds_all(self.condition, StreamBindings(traced.event, traced.last)):
                return False
        return True


@dataclass
class EventAutomaton:
    """The automaton of a linear-plus expression (Fig. 3–6)."""

    states: int = 1
    edges: list[ExistentialEdge] = field(default_factory=list)
    filters: list[FilterEdge] = field(default_factory=list)
    final: int = _START

    @staticmethod
    def of(node: Node) -> EventAutomaton:
        automaton = EventAutomaton()
        entering = automaton._entering(node)
        automaton.final = automaton._state()
        automaton.edges += [replace(edge, target=automaton.final) for edge in entering]
        return automaton

    def _state(self) -> int:
        self.states += 1
        return self.states - 1

    def _entering(self, node: Node) -> list[ExistentialEdge]:
        """The edges that enter the final state of an expression, which the caller names."""
        operations, inner = chain(node)
        above = tuple(reversed(operations))
        match inner:
            case StreamSource():
                return [ExistentialEdge(_START, -1, ReferenceFormula(inner, above))]
            case StreamUnion(parts, schema):
                edges = [edge for part in parts for edge in self._entering(part)]
                return [replace(edge, actions=(*edge.actions, schema, *above)) for edge in edges]
            case Next(left, right, condition, schema):
                state = self._reached(self._entering(left))
                formula = _formula(right)
                self.filters.append(FilterEdge(state, formula, condition, schema))
                return [ExistentialEdge(state, -1, formula, condition, schema, actions=above)]
            case Fold(left=left, right=right, condition=condition, step=step, schema=schema):
                entering = self._entering(left)
                state = self._reached([replace(edge, actions=(*edge.actions, inner)) for edge in entering])
                formula = _formula(right)
                self.filters.append(FilterEdge(state, formula, condition, schema))
                rebind = ExistentialEdge(state, state, formula, condition, schema, step)
                self.edges.append(rebind)
                return [replace(rebind, target=-1, actions=above)]
        raise TypeError(f"not linear-plus: {inner!r}")

    def _reached(self, edges: list[ExistentialEdge]) -> int:
        state = self._state()
        self.edges += [replace(edge, target=state) for edge in edges]
        return state

    def run(self, timeline: ReferenceTimeline) -> list[StreamEvent]:
        """The events that it outputs, each once, by end, start and values."""
        outputs: dict[object, StreamEvent] = {}
        instances: dict[object, tuple[StreamEvent, int]] = {}
        for step in _steps(timeline):
            # Algorithm 1: instances of this step are offered later steps only.
            following: dict[object, tuple[StreamEvent, int]] = {}
            for instance, state in instances.values():
                loops = [each for each in self.filters if each.state == state]
                if any(each.stays(instance, step, timeline) for each in loops):
                    following[state, instance.key] = instance, state
            for edge, successor in self._fired(list(instances.values()), step, timeline):
                if edge.target == self.final:
                    outputs[successor.key] = successor
                else:
                    following[edge.target, successor.key] = successor, edge.target
            instances = following
        return sorted(outputs.values(), key=lambda event: event.order)

    def _fired(
        self, instances: list[tuple[StreamEvent, int]], step: list[ReferenceEvent], timeline: ReferenceTimeline
    ) -> Iterator[tuple[ExistentialEdge, StreamEvent]]:
        for edge in self.edges:
            at = [instance for instance, state in instances if state == edge.source]
            begun: list[StreamEvent | None] = [None] if edge.source == _START else list(at)
            for each in step:
                event = edge.formula.taken(each, timeline)
                if event is None:
                    continue
                for instance in begun:
                    if instance is None or instance.end < event.start:
                        successor = edge.fired(instance, event)
                        if successor is not None:
                            yield edge, successor


def _formula(right: Node) -> ReferenceFormula:
    operations, source = chain(right)
    assert isinstance(source, StreamSource), "the right of a linear-plus expression is a base stream"
    return ReferenceFormula(source, tuple(reversed(operations)))


def _acted(actions: Iterable[Action], traced: Traced) -> StreamEvent | None:
    """An event after some actions, one after the other; None when one of them refuses it."""
    event: StreamEvent | None = traced.event
    for action in actions:
        if event is None:
            return None
        match action:
            case Fold():
                event = entered(action, event)
            case StreamSchema():
                event = retyped(event, action)
            case _:
                event = apply(action, event, traced.last)
    return event


def _steps(timeline: ReferenceTimeline) -> Iterator[list[ReferenceEvent]]:
    """Events of equal end, and equal tie-breaker where there is one, by time."""
    tied = timeline.schema.tie_breaker is not None

    def point(event: ReferenceEvent) -> tuple[object, ...]:
        return (event.end, event.tie) if tied else (event.end,)

    for _, step in groupby(sorted(timeline.events, key=point), key=point):
        yield list(step)

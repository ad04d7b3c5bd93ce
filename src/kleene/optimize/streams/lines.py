"""A line of single components as an event automaton, so that queries of the main spelling share nodes (CESAR §4.3).

A run of NFA^b (SASE+ §3.2) is an instance: what kills it is the filter of its node. Skip till next match: the filter is
the next component's own begin edge. Contiguity: every event of the stream, or of the partition. Skip till any match:
nothing, since an instance that was served stays; the filter is only by what it is found.

Variables are called by their places, so that queries which name them otherwise share, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from kleene.algebra.nodes import AttributeName, StreamSchema, StreamSource
from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.optimize.streams.automaton import is_of_event
from kleene.optimize.streams.keys import comparison_with_held, equality
from kleene.pattern.conditions import assign_edges
from kleene.pattern.expressions import (
    Attribute,
    Clause,
    Comparison,
    Constant,
    Elapsed,
    IsNull,
    Node,
    OpenParameter,
    Value,
    Which,
    references,
)
from kleene.pattern.nodes import Component, ComponentKind, EventClass, components, is_linear
from kleene.pattern.query import BoundQuery
from kleene.pattern.rewriting import parts, rewritten
from kleene.pattern.schema import is_private, private
from kleene.pattern.types import ValueType
from kleene.plan.program import NotCompilable
from kleene.plan.streams import FINAL, START, EventAutomaton, InputFormula, StreamEdge, WaitingState

# The number of an event among all that a run has seen: results are numbers, and events are gathered by them.
EVENT = private("event")

# Every event, whatever its type.
EVERY_EVENT = EventClass("", ())

N = TypeVar("N", bound=Node)


def plan_line(query: BoundQuery) -> EventAutomaton:
    """The automaton of a line of single components; `NotCompilable` says why a query is none."""
    reason = why_no_line(query)
    if reason is not None:
        raise NotCompilable(reason)
    return _Line(query).automaton()


def result_identity(query: BoundQuery, columns: Iterable[str]) -> object:
    """What lines have in common whose results are alike, ids included: the events of places are the rest."""
    named = tuple(component.variable for component in query.positives)
    return named, query.partition, query.returns, query.columns_compared(columns)


def why_no_line(query: BoundQuery) -> str | None:
    schema = query.schema
    single = all(_is_single(component) for component in query.components)
    if len(query.alternatives) != 1 or not is_linear(query.alternatives[0]) or not single:
        return "it is no line of single events"
    if query.output is not OutputMode.ALL:
        return f"its output is {query.output.value}"
    if query.timeouts is not None or query.into is not None:
        return "other queries may read the stream that it makes"
    if query.counts_events:
        return "its window counts events"
    if schema.start is not None and schema.tie_breaker is not None:
        return "its events last, and have a tie-breaker"
    if any(not isinstance(each, Attribute) for clause in query.conditions.positive for each in references(clause)):
        return "a condition is about more than attributes"
    if query.strategy.is_contiguous and (schema.types or schema.made_types or schema.streams):
        return "contiguity among events whose types have attributes of their own"
    if (reason := depends_on_constants(query)) is not None:
        return reason
    for component in query.components:
        named = [
            each.attribute
            for clause in query.conditions.positive
            for each in references(clause)
            if isinstance(each, Attribute) and each.variable == component.variable
        ]
        if not all(schema.has(kind, name) for kind in component.types for name in (*named, *query.partition)):
            return "a condition is about an attribute that some of its events lack"
    return None


def depends_on_constants(query: BoundQuery) -> str | None:
    """Why what a template's results are like depends on the constants of each query; None: it does not."""
    if query.returns is None:
        return None
    if any(isinstance(part, OpenParameter) for column in query.returns for part in parts(column.value)):
        return "a constant of RETURN differs from query to query"
    # Ids cover the columns that a query with RETURN reads; on constants it depends whether a part of an OR says all.
    groups = (query.conditions.positive, *query.conditions.negative.values(), *query.conditions.members.values())
    choices = (clause for group in groups for clause in group if len(clause.literals) > 1)
    if any(isinstance(part, OpenParameter) for clause in choices for part in parts(clause)):
        return "it depends on the constants of an OR which columns its ids cover"
    return None


def of_one_event(query: BoundQuery, component: Component, condition: Iterable[Clause]) -> EventAutomaton:
    """The automaton of the events of a component for which clauses about them alone hold."""
    return _of_one(_source(query, _class_of(component), 0), condition)


def every_event(query: BoundQuery, condition: Iterable[Clause]) -> EventAutomaton:
    """The same of all events, whatever their type."""
    return _of_one(_source(query, EVERY_EVENT, 0), condition)


def _of_one(source: StreamSource, condition: Iterable[Clause]) -> EventAutomaton:
    def placed(part: Node) -> Node | None:
        return Attribute(source.id, Which.SINGLE, part.attribute, part.type) if isinstance(part, Attribute) else None

    formula = InputFormula(source, tuple(dict.fromkeys(rewritten(clause, placed) for clause in condition)))
    number = Attribute(source.id, Which.SINGLE, EVENT, ValueType.INT)
    held = StreamSchema((((source.id, EVENT), ValueType.INT),))
    return EventAutomaton((formula,), (), (StreamEdge(START, FINAL, 0, (), (number,)),), held)


def _source(query: BoundQuery, event_class: EventClass, place: int) -> StreamSource:
    """The events of a class at a place of a line."""
    name = str(place)
    columns = {column: kind for column, kind in (query.schema.columns or {}).items() if not is_private(column)}
    attributes = (*(((name, column), kind) for column, kind in columns.items()), ((name, EVENT), ValueType.INT))
    read = tuple(((name, column), column) for column in columns)
    return StreamSource(event_class, name, StreamSchema(attributes), read)


def _class_of(component: Component) -> EventClass:
    classes = component.classes
    if len(classes) == 1:
        return classes[0]
    if any(each.predicate for each in classes):
        raise NotCompilable("one of several classes has a condition")
    return EventClass("", component.types)


def _is_single(component: Component) -> bool:
    plain = component.kind is ComponentKind.SINGLE and component.maximum == component.minimum == 1
    return plain and not component.optional and not component.negated


class _Line:
    def __init__(self, query: BoundQuery) -> None:
        self._query = query
        self._components = tuple(components(query.alternatives[0]))
        self._places = {component.variable: place for place, component in enumerate(self._components)}
        begins = [state.begin for state in assign_edges(self._components, query.conditions.positive).states]
        # [place]: what must hold of its event and those before.
        self._begins = [tuple(self._placed(clause, place) for clause in each) for place, each in enumerate(begins)]
        self._begins[0] += tuple(self._has_key(name) for name in query.partition)
        if len(self._components) == 1 and query.schema.start is not None:
            # An event that lasts may be longer than the window by itself.
            self._begins[0] += self._window(of_event=True)
        self._formulas: dict[InputFormula, int] = {}

    def automaton(self) -> EventAutomaton:
        last = len(self._components) - 1
        states, edges = [], []
        for place in range(last + 1):
            target = FINAL if place == last else place
            if place == 0:
                formula = self._formula(self._source(0), self._begins[0])
                edges.append(StreamEdge(START, target, formula, (), self._values(0)))
                continue
            state, tested = self._waiting(place)
            states.append(state)
            edges.append(StreamEdge(place - 1, target, self._taking(place), tested, self._values(place)))
        return EventAutomaton(tuple(self._formulas), tuple(states), tuple(edges), self._held(last))

    def _waiting(self, place: int) -> tuple[WaitingState, tuple[Clause, ...]]:
        """The state of what waits for the event of a place, and what the edge that takes it tests besides."""
        begin, held = self._begins[place], self._held(place - 1)
        window = self._window()
        match self._query.strategy:
            case SelectionStrategy.SKIP_TILL_NEXT_MATCH:
                others = tuple(clause for clause in begin if not is_of_event(clause))
                return WaitingState(held, self._taking(place), (*others, *window)), ()
            case SelectionStrategy.SKIP_TILL_ANY_MATCH:
                keys = tuple(clause for clause in begin if equality(clause) is not None)
                keys = keys or tuple(clause for clause in begin if comparison_with_held(clause) is not None)
                others = tuple(clause for clause in begin if clause not in keys)
                return WaitingState(held, self._taking(place), (*keys, *window), stays=True), others
        every = replace(self._source(place), event_class=EVERY_EVENT)
        keys = ()
        if self._query.strategy is SelectionStrategy.PARTITION_CONTIGUITY:
            keys = tuple(self._same_key(name, place) for name in self._query.partition)
        others = tuple(clause for clause in begin if clause not in keys)
        return WaitingState(held, self._formula(every), (*keys, *window)), others

    # Events

    def _formula(self, source: StreamSource, condition: Iterable[Clause] = ()) -> int:
        return self._formulas.setdefault(InputFormula(source, tuple(condition)), len(self._formulas))

    def _taking(self, place: int) -> int:
        """The formula of an edge: events of the component, of which the edge itself tests more."""
        if self._query.strategy is SelectionStrategy.SKIP_TILL_NEXT_MATCH:
            return self._formula(self._source(place), filter(is_of_event, self._begins[place]))
        return self._formula(self._source(place))

    def _source(self, place: int) -> StreamSource:
        return _source(self._query, _class_of(self._components[place]), place)

    # Values

    def _held(self, last: int) -> StreamSchema:
        """What an instance holds after the event of a place: its events, and what later conditions ask of them."""
        attributes: dict[AttributeName, ValueType] = {(str(place), EVENT): ValueType.INT for place in range(last + 1)}
        later = [clause for begin in self._begins[last + 1 :] for clause in begin]
        if self._query.strategy is SelectionStrategy.PARTITION_CONTIGUITY and last + 1 < len(self._components):
            later += [self._same_key(name, last + 1) for name in self._query.partition]
        asked = {
            ((each.variable, each.attribute), each.type)
            for clause in later
            for each in references(clause)
            if isinstance(each, Attribute) and int(each.variable) <= last
        }
        return StreamSchema((*attributes.items(), *sorted(asked, key=lambda item: item[0])))

    def _values(self, place: int) -> tuple[Value, ...]:
        return tuple(
            Attribute(name, Which.SINGLE if int(name) == place else Which.OVERWRITTEN, attribute, kind)
            for (name, attribute), kind in self._held(place).attributes
        )

    # Conditions

    def _placed(self, clause: N, place: int) -> N:
        """A clause of which the event of a place is the newest, and the others are held."""

        def moved(part: Node) -> Node | None:
            if not isinstance(part, Attribute):
                return None
            own = self._places[part.variable]
            which = Which.SINGLE if own == place else Which.OVERWRITTEN
            return Attribute(str(own), which, part.attribute, part.type)

        return rewritten(clause, moved)

    def _key(self, name: str, place: int, which: Which) -> Attribute:
        kind = (self._query.schema.columns or {}).get(name, ValueType.UNKNOWN)
        return Attribute(str(place), which, name, kind)

    def _has_key(self, name: str) -> Clause:
        return Clause((IsNull(self._key(name, 0, Which.SINGLE), True),))

    def _same_key(self, name: str, place: int) -> Clause:
        first = self._key(name, 0, Which.OVERWRITTEN)
        return Clause((Comparison("=", self._key(name, place, Which.SINGLE), first),))

    def _window(self, *, of_event: bool = False) -> tuple[Clause, ...]:
        window = self._query.window
        if window is None:
            return ()
        most = window.size if window.inclusive else window.size - 1
        elapsed = Elapsed(ValueType.INT, 1, 0, of_event)
        return (Clause((Comparison("<=", elapsed, Constant(most, ValueType.INT)),)),)

"""All queries of a template as one query: their constants become columns of events, the query's number a key.

An event stands once for each query that it concerns, with the constants of that query. So the executor of the template
runs once for all of them, and a query is a partition. What an event concerns is found by the conditions on single
events (`concerned`), which a predicate index looks up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kleene.lang import tree
from kleene.optimize.streams.lines import depends_on_constants, every_event, of_one_event
from kleene.pattern.bind_expression import Scopes
from kleene.pattern.conditions import Conditions, bind_conditions
from kleene.pattern.expressions import (
    Aggregate,
    Agrees,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Literal,
    Node,
    OpenParameter,
    Value,
    Which,
    references,
)
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.query import BoundQuery, sometimes_absent
from kleene.pattern.rewriting import parts, rewritten
from kleene.pattern.schema import OWNER, private
from kleene.pattern.types import ValueType
from kleene.plan.program import NotCompilable
from kleene.plan.streams import EventAutomaton

# By variable.
Clauses = Mapping[str, tuple[Clause, ...]]


@dataclass(frozen=True, slots=True)
class TemplateRows:
    """A template whose queries run as one.

    query       the one that runs: over events with the columns of parameters, by the number of their query
    columns     the column of each parameter
    concerned   automata of one event each: an event that one of them takes concerns a query
    """

    query: BoundQuery
    columns: Mapping[str, str]
    concerned: tuple[EventAutomaton, ...]


def template_rows(query: BoundQuery, parameters: Mapping[str, ValueType]) -> TemplateRows:
    """The one query for all queries of a template; `NotCompilable` says why each runs by itself."""
    reason = _why_alone(query)
    if reason is not None:
        raise NotCompilable(reason)
    columns = {name: private(f"parameter {name}") for name in parameters}
    types = {columns[name]: kind for name, kind in parameters.items()}
    schema = query.schema.with_attributes({OWNER: ValueType.INT, **types})
    scopes = Scopes(
        schema,
        {component.variable: component for component in query.components},
        frozenset(),
        sometimes_absent(query.pattern),
        {},
        False,
        alternatives=query.alternatives,
    )
    owned = bind_conditions(tree.Equivalence((tree.EquivalenceItem(OWNER),)), scopes)
    conditions = _joined(_with_columns(query, columns), owned)
    strategy, partition = query.strategy, (*query.partition, OWNER)
    if strategy is tree.SelectionStrategy.STRICT_CONTIGUITY:
        strategy = tree.SelectionStrategy.PARTITION_CONTIGUITY
    one = replace(query, schema=schema, conditions=conditions, partition=partition, strategy=strategy)
    return TemplateRows(one, columns, tuple(_concerned(query)))


def _why_alone(query: BoundQuery) -> str | None:
    if query.output is tree.OutputMode.COMPRESSED:
        return f"its output is {query.output.value}"
    if query.timeouts is not None or query.into is not None:
        return "other queries may read the stream that it makes"
    if query.strategy is tree.SelectionStrategy.STRICT_CONTIGUITY and query.partition:
        return "strict contiguity is of the whole stream, and its results have a key"
    if query.schema.streams or query.schema.made_types:
        return "its events come from several streams"
    if any(isinstance(part, OpenParameter) for column in query.returns or () for part in parts(column.value)):
        return "a constant of RETURN differs from query to query"
    return depends_on_constants(query)


# Constants as columns ------------------------------------------------------------------------------------------------


def _with_columns(query: BoundQuery, columns: Mapping[str, str]) -> Conditions:
    """The conditions with parameters as attributes of events that they speak of anyway."""
    components = {component.variable: component for component in query.components}

    def changed(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
        return tuple(Clause(tuple(_literal(each, columns, components) for each in c.literals)) for c in clauses)

    conditions = query.conditions
    return replace(
        conditions,
        positive=changed(conditions.positive),
        negative={name: changed(clauses) for name, clauses in conditions.negative.items()},
        members={name: changed(clauses) for name, clauses in conditions.members.items()},
    )


def _literal(literal: Literal, columns: Mapping[str, str], components: Mapping[str, Component]) -> Literal:
    if not any(isinstance(part, OpenParameter) for part in parts(literal)):
        return literal
    variable, which = _place(literal, components)

    def column(part: Node) -> Node | None:
        return Attribute(variable, which, columns[part.name], part.type) if isinstance(part, OpenParameter) else None

    return rewritten(literal, column)


def _place(literal: Literal, components: Mapping[str, Component]) -> tuple[str, Which]:
    """The event whose copy of a constant a literal reads: one that it reads already, so that it is tested as before."""
    named = references(literal)
    for each in named:
        if isinstance(each, Attribute):
            return each.variable, each.which
    for each in named:
        if isinstance(each, Aggregate | Agrees) and components[each.variable].kind is ComponentKind.KLEENE:
            return each.variable, Which.FIRST
    raise NotCompilable("a constant is compared with nothing that a single event has")


def _joined(left: Conditions, right: Conditions) -> Conditions:
    def both(of_left: Clauses, of_right: Clauses) -> Clauses:
        return {name: (*of_left.get(name, ()), *of_right.get(name, ())) for name in {**of_left, **of_right}}

    return Conditions(
        (*left.positive, *right.positive),
        both(left.negative, right.negative),
        both(left.members, right.members),
        (*left.equivalences, *right.equivalences),
    )


# What an event concerns ----------------------------------------------------------------------------------------------


def _concerned(query: BoundQuery) -> Iterator[EventAutomaton]:
    """The automata of single events, of which one takes each event that can change what a query finds."""
    keys = dict(_key_values(query))
    if query.strategy.is_contiguous or query.counts_events:
        # Every event of the partition counts.
        yield every_event(query, [_equal("", Which.SINGLE, name, value) for name, value in keys.items()])
        return
    for component in query.components:
        for which, clauses in _own_clauses(query, component):
            implied = [_equal(component.variable, which, name, value) for name, value in keys.items()]
            yield of_one_event(query, component, (*clauses, *implied))


def _own_clauses(query: BoundQuery, component: Component) -> Iterator[tuple[Which, tuple[Clause, ...]]]:
    """By the places that an event can fill: the clauses that speak of it alone."""
    conditions = query.conditions
    negative = tuple(clause for listed in conditions.negative.values() for clause in listed)
    clauses = negative if component.negated else conditions.positive
    if component.kind is ComponentKind.CLOSURE:
        clauses = conditions.members.get(component.variable, ())
    places = {
        ComponentKind.SINGLE: (Which.SINGLE,),
        ComponentKind.KLEENE: (Which.FIRST, Which.CURRENT),
        ComponentKind.CLOSURE: (Which.MEMBER,),
    }[component.kind]
    for which in places:
        yield which, tuple(clause for clause in clauses if _is_of(clause, component, which, query))


def _is_of(clause: Clause, component: Component, which: Which, query: BoundQuery) -> bool:
    """Whether a clause speaks of one place of a component alone, whose events all have what it reads."""
    named = references(clause)
    return bool(named) and all(
        isinstance(each, Attribute)
        and (each.variable, each.which) == (component.variable, which)
        and all(query.schema.has(kind, each.attribute) for kind in component.types)
        for each in named
    )


def _key_values(query: BoundQuery) -> Iterator[tuple[str, Value]]:
    """The attributes of the partition that a query fixes, by a condition on one of its events, for all of them."""
    absent = sometimes_absent(query.pattern)
    for clause in query.conditions.positive:
        match clause.literals:
            case (Comparison("=", Attribute() as attribute, Constant() | OpenParameter() as value),):
                pass
            case (Comparison("=", Constant() | OpenParameter() as value, Attribute() as attribute),):
                pass
            case _:
                continue
        is_there = attribute.which in (Which.SINGLE, Which.FIRST) and attribute.variable not in absent
        if is_there and attribute.attribute in query.partition:
            yield attribute.attribute, value


def _equal(variable: str, which: Which, name: str, value: Value) -> Clause:
    return Clause((Comparison("=", Attribute(variable, which, name, value.type), value),))

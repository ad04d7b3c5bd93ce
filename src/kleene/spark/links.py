"""Equalities that link all components of a query, `a.tag = b.tag and a.tag = c.tag`: they route it as a key would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.pattern.conditions import assign_edges
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which
from kleene.pattern.nodes import Component, ComponentKind, components
from kleene.pattern.query import BoundQuery

# An attribute of a variable: equal to all others of its group in every match.
Term = tuple[str, str]


def linking_columns(query: BoundQuery, columns: pa.Schema) -> Mapping[str, str]:
    """The column by which the events of each type can be routed; nothing when no equality links all components.

    Count windows and NON_OVERLAP depend on the partition, which an equality does not make; contiguity is judged among
    all events (the semantics page §3, "Partition").
    """
    if query.counts_events or query.output is OutputMode.NON_OVERLAP or query.strategy.is_contiguous:
        return {}
    by_type: dict[str, str] = {}
    for pattern in query.alternatives:
        linked = _linked(query, list(components(pattern)), columns, _by_edges(query))
        if linked is None:
            return {}
        for kind, name in linked.items():
            # An event that went to two buckets could meet the same events in both.
            if by_type.setdefault(kind, name) != name:
                return {}
    return by_type


# `a[i].x = a[1].x` and `a[i].x = a[i-1].x` make all events of a closure equal.
_ITERATED = ({Which.CURRENT, Which.FIRST}, {Which.CURRENT, Which.PREVIOUS})


def _by_edges(query: BoundQuery) -> bool:
    """Whether it matters which edge tests an equality: a run must not go on with an event of another bucket."""
    return query.strategy is SelectionStrategy.SKIP_TILL_NEXT_MATCH or query.timeouts is not None


def _linked(query: BoundQuery, parts: list[Component], columns: pa.Schema, by_edges: bool) -> Mapping[str, str] | None:
    """The column of each type in one alternative."""
    by_name = {component.variable: component for component in parts}
    clauses = [*query.conditions.positive, *(c for listed in query.conditions.negative.values() for c in listed)]
    pairs = [pair for clause in clauses if (pair := _equality(query, clause, by_name, columns)) is not None]
    for group in _groups(pair for pair in pairs if pair[0][0] != pair[1][0]):
        terms = [term for term in group if _agrees_with_itself(term, by_name[term[0]], pairs)]
        chosen = dict(reversed(terms))
        if set(chosen) != set(by_name):
            continue
        if by_edges and not _each_edge_tests(query, parts, chosen, columns):
            continue
        named: dict[str, str] = {}
        kinds = ((kind, chosen[component.variable]) for component in parts for kind in component.types)
        if all(named.setdefault(kind, name) == name for kind, name in kinds):
            return named
    return None


def _equality(
    query: BoundQuery, clause: Clause, present: Mapping[str, Component], columns: pa.Schema
) -> tuple[Term, Term] | None:
    """The two attributes that a clause makes equal in every match."""
    (literal, *more) = clause.literals
    if more or not isinstance(literal, Comparison) or literal.operator != "=":
        return None
    sides = literal.left, literal.right
    if not all(isinstance(side, Attribute) and _is_certain(query, side, present, columns) for side in sides):
        return None
    left, right = sides
    assert isinstance(left, Attribute)
    assert isinstance(right, Attribute)
    if columns.field(left.attribute).type != columns.field(right.attribute).type:
        return None
    if left.variable == right.variable:
        around = {left.which, right.which}
        if left.attribute != right.attribute or around not in _ITERATED:
            return None
    elif Which.CURRENT in (left.which, right.which) or Which.PREVIOUS in (left.which, right.which):
        # A closure of one event has no second one that could be compared.
        return None
    return (left.variable, left.attribute), (right.variable, right.attribute)


def _is_certain(query: BoundQuery, side: Attribute, present: Mapping[str, Component], columns: pa.Schema) -> bool:
    """Whether the attribute is there whenever the variable is; a comparison with one that is missing is true."""
    component = present.get(side.variable)
    if component is None or component.kind is ComponentKind.CLOSURE or side.attribute not in columns.names:
        return False
    has = all(query.schema.has(kind, side.attribute) for kind in component.types)
    return has and hashes_like_equality(columns.field(side.attribute).type)


def hashes_like_equality(kind: pa.DataType) -> bool:
    """Whether values that are equal to us have equal hashes in Spark (`division` helps); not so for nested ones."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_time(kind))


def _groups(pairs: Iterable[tuple[Term, Term]]) -> list[list[Term]]:
    """Attributes that are equal to each other, in the order in which they were met."""
    groups: list[list[Term]] = []
    for pair in pairs:
        touched = [group for group in groups if any(term in group for term in pair)]
        merged = list(dict.fromkeys([term for group in touched for term in group] + list(pair)))
        groups = [group for group in groups if group not in touched] + [merged]
    return groups


def _agrees_with_itself(term: Term, component: Component, pairs: list[tuple[Term, Term]]) -> bool:
    """Whether all events of a variable have the same value: those of a closure only where a condition says so."""
    return component.kind is ComponentKind.SINGLE or (term, term) in pairs


def _each_edge_tests(query: BoundQuery, parts: list[Component], chosen: Mapping[str, str], columns: pa.Schema) -> bool:
    """Whether every event that a run takes is compared with one that it has."""
    by_name = {component.variable: component for component in parts}
    line = assign_edges(parts, query.conditions.positive)
    seen: set[Term] = set()
    for state in line.states:
        own = (state.component.variable, chosen[state.component.variable])
        if seen and not any(_ties(query, clause, own, seen, by_name, columns) for clause in state.begin):
            return False
        if state.component.kind is ComponentKind.KLEENE and not any(
            _ties(query, clause, own, {own}, by_name, columns) for clause in state.take
        ):
            return False
        seen.add(own)
    return True


def _ties(
    query: BoundQuery,
    clause: Clause,
    own: Term,
    others: set[Term],
    present: Mapping[str, Component],
    columns: pa.Schema,
) -> bool:
    pair = _equality(query, clause, present, columns)
    return pair is not None and own in pair and (pair[0] in others if pair[1] == own else pair[1] in others)

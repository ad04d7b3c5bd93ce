"""The matches of a rewritten pattern, by the reference: under the names that the query gave its components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from kleene.frames.arrow import schema_on
from kleene.frames.streams import to_table
from kleene.optimize.trees.logical import Logical
from kleene.pattern import Query, Schema
from kleene.pattern.conditions import Conditions
from kleene.pattern.gaps import lifted, spliced
from kleene.pattern.nodes import Conjunction, Disjunction, Leaf, Pattern
from kleene.pattern.query import BoundQuery
from kleene.reference.evaluator import evaluate, events_of
from kleene.reference.limits import Limits
from kleene.reference.timeline import ReferenceEvent
from kleene.testing.generators import GeneratedCase, schema_of

Rows = int | tuple[int, ...] | None
Bindings = frozenset[tuple[str, Rows]]


def bound_case(case: GeneratedCase) -> tuple[BoundQuery, list[ReferenceEvent]]:
    table, given = to_table(case.events, Schema(**schema_of(case)))
    schema = schema_on(table.schema, given)
    return Query(case.query_text, params=case.params).bind(schema), events_of(table, schema)[0]


def logicals(query: BoundQuery) -> list[Logical]:
    """The parts of a query's union: what may be absent is there in some and not in others, disjunctions stay."""
    conditions = query.conditions
    return [
        Logical(option, conditions.positive, conditions.negative, conditions.members)
        for option in dict.fromkeys(_present(query.pattern))
        if option is not None
    ]


def _present(pattern: Pattern) -> Iterator[Pattern | None]:
    if isinstance(pattern, Leaf):
        yield Leaf(replace(pattern.component, optional=False))
        if pattern.component.optional:
            yield None
        return
    for options in product(*(list(_present(part)) for part in pattern.parts)):
        present = [part for part in options if part is not None]
        # In a sequence `flatten` lifts what only forbids; in a conjunction binding has done so.
        parts = tuple(lifted(present) if isinstance(pattern, Conjunction) else present)
        yield type(pattern)(parts) if len(parts) > 1 else parts[0] if parts else None


def matches(logical: Logical, query: BoundQuery, events: Iterable[ReferenceEvent]) -> set[Bindings]:
    rewritten = replace(
        query,
        pattern=logical.pattern,
        alternatives=tuple(map(_flat, _expanded(logical.pattern))),
        conditions=Conditions(logical.positive, logical.negative, logical.members),
    )
    found = evaluate(rewritten, events, Limits(), []).matches
    named = [_under_own_names(logical, match.bindings) for match in found]
    assert len(set(named)) == len(named), "a match is found twice"
    return set(named)


def _expanded(pattern: Pattern) -> list[Pattern]:
    """The union that a pattern stands for, without disjunction."""
    if isinstance(pattern, Leaf):
        return [pattern]
    if isinstance(pattern, Disjunction):
        return [option for part in pattern.parts for option in _expanded(part)]
    return [type(pattern)(parts) for parts in product(*map(_expanded, pattern.parts))]


def _flat(pattern: Pattern) -> Pattern:
    if isinstance(pattern, Leaf):
        return pattern
    parts = spliced(type(pattern), map(_flat, pattern.parts))
    return type(pattern)(tuple(parts)) if len(parts) > 1 else parts[0]


def _under_own_names(logical: Logical, bindings: dict[str, Any]) -> Bindings:
    own = dict(bindings)
    for alias in logical.aliases:
        assert bindings[alias.variable] is None, "a merged component has no events of its own"
        if any(bindings[name] not in (None, ()) for name in alias.when):
            assert own[alias.of] is not None, "two names are shown for one component"
            own[alias.variable], own[alias.of] = own[alias.of], None
    return frozenset(own.items())

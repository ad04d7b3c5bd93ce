"""Queries that run together: what they declare, in which order they feed each other, and what they make (INTO)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kleene.errors import CompositionCycle, QueryError, UnknownKind
from kleene.lang import tree
from kleene.lang.format import format_declaration
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

# A query with its place among those that were given.
Placed = tuple[int, BoundQuery]


def declared_together(schema: Schema, queries: Sequence[Query]) -> Schema:
    """The schema with everything that queries declare; each may declare the stream that all of them read.

    What contradicts an earlier declaration is an error.
    """
    declarations: dict[str, tree.Declaration] = {}
    for query in queries:
        declarations |= {format_declaration(each): each for each in query.tree.declarations}
        try:
            schema.declaring(list(declarations.values()))
        except QueryError as error:
            error.locate(query.text, query.origin)
            raise
    return schema.declaring(list(declarations.values()))


def types_read(query: Query, schema: Schema) -> tuple[str, ...]:
    """The event types that a query names, classes resolved."""
    names: dict[str, None] = {}
    for name in query.inputs:
        declared = schema.classes.get(name)
        names.update(dict.fromkeys([name] if declared is None else [part.name for part in declared.types]))
    return tuple(names)


def streams_made(query: Query) -> tuple[str, ...]:
    """The streams that a query makes: of its matches (RETURN … INTO) and of its timeouts (TIMEOUTS INTO)."""
    returns = query.tree.returns
    return tuple(name for name in (None if returns is None else returns.into, query.tree.timeouts) if name is not None)


def in_dependency_order(queries: Sequence[Query], schema: Schema) -> list[tuple[int, Query]]:
    """Makers before readers; a cycle is an error that names it."""
    if not queries:
        raise UnknownKind("no query was given", hint="pass a query, or a list of at least one")
    makers: dict[str, list[int]] = {}
    for number, query in enumerate(queries):
        for name in streams_made(query):
            makers.setdefault(name, []).append(number)
    order: dict[int, None] = {}
    # Queries that are being visited, each with its stream that the one before it reads.
    path: list[int] = []
    streams: list[str] = []

    def visit(number: int, stream: str) -> None:
        if number in order:
            return
        if number in path:
            names = " → ".join([stream, *streams[path.index(number) + 1 :], stream])
            raise CompositionCycle(f"queries feed each other in a cycle: {names}")
        path.append(number)
        streams.append(stream)
        for name in types_read(queries[number], schema):
            for maker in makers.get(name, ()):
                visit(maker, name)
        path.pop()
        streams.pop()
        order[number] = None

    for number in range(len(queries)):
        visit(number, "")
    return [(number, queries[number]) for number in order]


def bound_in_order(order: Iterable[tuple[int, Query]], schema: Schema) -> list[Placed]:
    """Queries in dependency order, each bound to the streams that it reads and to what those before it make."""
    made: dict[str, dict[str, ValueType]] = {}
    bound = []
    for place, query in order:
        one = query.bind(schema.reading(types_read(query, schema)).adding_types(made))
        for name, columns in types_made(one).items():
            made[name] = {**made.get(name, {}), **columns}
        bound.append((place, one))
    return bound


def types_made(query: BoundQuery) -> dict[str, dict[str, ValueType]]:
    """The types of the events that a query makes, and their attributes.

    Those of its matches have the columns of RETURN; those of its timeouts the key, and how far the run came.
    """
    made: dict[str, dict[str, ValueType]] = {}
    if query.timeouts is not None:
        known = query.schema.columns or {}
        key = {name: known.get(name, ValueType.UNKNOWN) for name in query.partition}
        made[query.timeouts] = {**key, "reached": ValueType.INT}
    if query.into is not None:
        columns = {column.name: column.value.type for column in query.returns or ()}
        made[query.into] = {**made.get(query.into, {}), **columns}
    return made


def families(queries: Sequence[BoundQuery]) -> list[list[int]]:
    """Queries that feed each other, directly or not, by number."""
    owner = list(range(len(queries)))
    for number, query in enumerate(queries):
        for maker, other in enumerate(queries):
            if not set(other.makes).isdisjoint(query.types):
                ours, theirs = owner[number], owner[maker]
                owner = [ours if one == theirs else one for one in owner]
    return [[number for number, one in enumerate(owner) if one == family] for family in sorted(set(owner))]

"""Queries that run together: what they declare, in which order they feed each other, and what they make (INTO)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kleene.errors import CompositionCycle, QueryError, Span, UnknownKind
from kleene.lang import tree
from kleene.lang.format import format_declaration
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.queries.any_query import AnyBoundQuery, AnyQuery

# A query with its place among those that were given.
Placed = tuple[int, AnyBoundQuery]


def declared_together(schema: Schema, queries: Sequence[AnyQuery]) -> Schema:
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


def types_read(query: AnyQuery, schema: Schema) -> tuple[str, ...]:
    """The event types that a query names, classes resolved."""
    names: dict[str, None] = {}
    for name in query.inputs:
        declared = schema.classes.get(name)
        names.update(dict.fromkeys([name] if declared is None else [part.name for part in declared.types]))
    return tuple(names)


def in_dependency_order(queries: Sequence[AnyQuery], schema: Schema) -> list[tuple[int, AnyQuery]]:
    """Queries with their numbers, those that make a stream before those that read it; a cycle is an error."""
    if not queries:
        raise UnknownKind("no query was given", hint="pass a query, or a list of at least one")
    makers: dict[str, list[int]] = {}
    for number, query in enumerate(queries):
        for name in query.tree.makes:
            makers.setdefault(name, []).append(number)

    def inputs_of(number: int) -> Iterator[tuple[str, int]]:
        return ((name, maker) for name in types_read(queries[number], schema) for maker in makers.get(name, ()))

    order: dict[int, None] = {}
    for first in range(len(queries)):
        if first in order:
            continue
        # Queries that are being visited, each with its stream that the one before it reads, and what is left to visit.
        path: dict[int, tuple[str, Iterator[tuple[str, int]]]] = {first: ("", inputs_of(first))}
        while path:
            number, (_, left) = next(reversed(path.items()))
            stream, maker = next(left, (None, number))
            if stream is None:
                order[number] = None
                del path[number]
            elif maker in path:
                visited = list(path)
                between = [path[each][0] for each in visited[visited.index(maker) + 1 :]]
                raise _cycle([stream, *between, stream], queries[number])
            elif maker not in order:
                path[maker] = stream, inputs_of(maker)
    return [(number, queries[number]) for number in order]


def _cycle(streams: Sequence[str], reader: AnyQuery) -> CompositionCycle:
    """The error of streams that are made of each other; the reader is the query that names the first of them."""
    hint = "one of them must read events alone, or streams of queries that read none of these"
    if len(streams) == 2:
        hint = "a stream cannot be made of itself: call what the query makes otherwise"
    error = CompositionCycle(
        f"queries feed each other in a cycle: {' → '.join(streams)}",
        place_of_type(reader.tree.body, streams[0]) or place_of_type(reader.tree.declarations, streams[0]),
        hint,
    )
    error.locate(reader.text, reader.origin)
    return error


def place_of_type(part: object, name: str) -> Span | None:
    """Where a part of a text names a type."""
    named = (node.span for node in tree.walk(part) if isinstance(node, tree.TypeName) and node.name == name)
    return next(named, None)


def bound_in_order(order: Iterable[tuple[int, AnyQuery]], schema: Schema) -> list[Placed]:
    """Queries in dependency order, each bound to the streams that it reads and to what those before it make."""
    composite_types: dict[str, dict[str, ValueType]] = {}
    bound = []
    for place, query in order:
        one = query.bind(schema.reading(types_read(query, schema)).adding_types(composite_types))
        for name, columns in one.made_types.items():
            composite_types[name] = {**composite_types.get(name, {}), **columns}
        bound.append((place, one))
    return bound


def families(queries: Sequence[AnyBoundQuery]) -> list[list[int]]:
    """Groups of queries, by number, that feed each other directly or through others."""
    # Union-find over queries and streams: the parent of each member; the root of a family is its own parent.
    owners: dict[int | str, int | str] = {}

    def family(member: int | str) -> int | str:
        while owners.setdefault(member, member) != member:
            owners[member] = owners[owners[member]]
            member = owners[member]
        return member

    streams = {name for query in queries for name in query.makes}
    between = streams.intersection(name for query in queries for name in query.types)
    for number, query in enumerate(queries):
        for name in between.intersection((*query.makes, *query.types)):
            owners[family(name)] = family(number)
    members: dict[int | str, list[int]] = {}
    for number in range(len(queries)):
        members.setdefault(family(number), []).append(number)
    return list(members.values())

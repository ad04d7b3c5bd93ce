"""The graph of queries that run together: nodes are queries, edges the streams that one makes and another reads.

It is made once for some queries and the columns of their events, before any event has come; `GraphRun` runs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import pyarrow as pa

from kleene.algebra.cutting import cut
from kleene.algebra.query import BoundStreamQuery
from kleene.engine.compiling import why_not_compiled
from kleene.engine.output.outputs import EngineOutputs
from kleene.frames.arrow import empty_table, value_type
from kleene.frames.composites import beside_composites, composite_rows, timeout_rows, with_composites
from kleene.frames.results import result_schema, several_schema, shown, timeout_schema
from kleene.frames.streams import input_of
from kleene.pattern import nodes
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import FIRST_TIE, LAST_TIE, is_private
from kleene.pattern.types import ValueType
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery
from kleene.queries.feeding import Placed

# Rows of a query's input, and what an error calls them.
Part = tuple[str, pa.Table]
EVENTS_GIVEN = "the events"


@dataclass(frozen=True)
class QueryNode:
    """A query of a graph.

    number    its place among the queries that were given; negative for a part of another query (`algebra.cutting`)
    query     as it was bound
    runs      as it runs: matches with their events in lists where another query reads them, over composite events where
              it reads some; of a stream that is not linear-plus, what is left when its parts are cut off
    parts     what it is given, by name, with the columns of each: the events, then the streams made by nodes before it;
              of those that it does not read nothing comes, but its events have their columns, too
    lag       how far its time is behind that of the events: composite events are certain later than they end. None:
              its time stands still until all events have come
    read      whether another query reads its matches, or its timeouts
    several   whether its matches are to stand in one table with those of other queries, with their events in lists
    """

    number: int
    query: AnyBoundQuery
    runs: AnyBoundQuery
    parts: tuple[tuple[str, pa.Schema], ...]
    lag: int | None = 0
    read: bool = False
    several: bool = False

    @property
    def is_part(self) -> bool:
        """Whether it is a part of another query: nobody but queries sees its results."""
        return self.number < 0

    @cached_property
    def feeds_on(self) -> tuple[str, ...]:
        """The streams of other queries that it reads."""
        return tuple(name for name, _ in self.parts[1:] if name in self.runs.types)

    @cached_property
    def nothing(self) -> tuple[Part, ...]:
        """Its input when no event comes: empty tables."""
        return tuple((name, empty_table(columns)) for name, columns in self.parts)

    @cached_property
    def columns(self) -> pa.Schema:
        """Those of its events, wherever they come from."""
        return with_composites(self.nothing[0][1], self.nothing[1:]).schema

    @cached_property
    def _match_names(self) -> list[str]:
        listed: list[str] = result_schema(self.runs if self.several else self.query, self.columns).names
        return [name for name in listed if name not in (FIRST_TIE, LAST_TIE)]

    @cached_property
    def _timeout_names(self) -> list[str]:
        assert isinstance(self.query, BoundQuery), "a stream has no timeouts"
        listed: list[str] = timeout_schema(self.query, self.columns).names
        return listed

    def shown(self, outputs: EngineOutputs) -> EngineOutputs:
        """Its outputs without the private columns that only queries reading them need."""
        if self.runs is self.query and self.query.into is None:
            return outputs
        matches, timeouts = outputs.matches, outputs.timeouts
        return replace(
            outputs,
            matches=None if matches is None else matches.select(self._match_names),
            timeouts=None if timeouts is None else timeouts.select(self._timeout_names),
        )

    def input(self, events: pa.Table, streams: int, composites: Iterable[Part]) -> list[Part]:
        """Its part of some events, and the composite events that it reads.

        streams   how many streams the events are of
        """
        own = input_of(self.query.schema, events, streams)
        if len(self.parts) == 1:
            return [(EVENTS_GIVEN, own)]
        coming = [part for part in composites if part[0] in self.feeds_on]
        return [(EVENTS_GIVEN, beside_composites(own, self.query.schema)), *self.nothing[1:], *coming]

    def one_table(self, parts: Sequence[Part]) -> pa.Table:
        """The input of an engine; `NotCompilable` where values would have to change to stand in one column."""
        if self.conflict is not None:
            raise NotCompilable(self.conflict)
        return with_composites(parts[0][1], parts[1:])

    @cached_property
    def conflict(self) -> str | None:
        """Why the parts of its input cannot stand in one table as they are; None: they can."""
        for name, columns in self.parts if len(self.parts) > 1 else ():
            for column in columns:
                kind = value_type(column.type)
                if kind not in (ValueType.UNKNOWN, value_type(self.columns.field(column.name).type)):
                    return f"`{column.name}` is of another type in {name} than elsewhere"
        return None

    def composites(self, matches: pa.Table | None, timeouts: pa.Table | None, events: pa.Schema) -> Iterator[Part]:
        """The events that it makes of its matches and of its timeouts; `events` are the columns of those given."""
        if self.query.into is not None and matches is not None:
            yield self.query.into, composite_rows(self.query, matches, events)
        runs = self.runs
        if isinstance(runs, BoundQuery) and runs.timeouts is not None and runs.identified and timeouts is not None:
            yield runs.timeouts, timeout_rows(runs, timeouts, events)


@dataclass(frozen=True)
class QueryGraph:
    """Queries in an order in which makers come before readers.

    columns   those of the events, and those that composite events bring
    events    those of the events alone
    streams   how many streams the events are of
    """

    nodes: tuple[QueryNode, ...]
    columns: pa.Schema
    events: pa.Schema
    streams: int

    @staticmethod
    def of(bound: Sequence[Placed], events: pa.Schema, *, streams: int = 0, several: bool = False) -> QueryGraph:
        """The graph of queries that were bound in dependency order.

        several   whether all matches are to stand in one table, with their events in lists
        """
        runners = with_parts(bound)
        read = frozenset(name for _, _, runs in runners for name in runs.types)
        listed: list[QueryNode] = []
        composite_schemas: list[tuple[str, pa.Schema]] = []
        # By stream: how far it is behind the events.
        lags: dict[str, int | None] = {}
        empty = empty_table(events)
        for number, query, runs in runners:
            node = _node(number, query, runs, empty, streams, tuple(composite_schemas), read, several)
            node = replace(node, lag=latest([lags[name] for name in node.feeds_on]))
            listed.append(node)
            for name, rows in node.composites(*_nothing_of(node), events) if query.makes else ():
                composite_schemas.append((name, rows.schema))
                lags[name] = latest([lags.get(name, 0), _behind(node) if name == query.into else node.lag])
        whole = with_composites(empty, [(name, empty_table(columns)) for name, columns in composite_schemas])
        return QueryGraph(tuple(listed), whole.schema, events, streams)

    @cached_property
    def in_order_given(self) -> tuple[QueryNode, ...]:
        """The queries that were given, without the parts that they were cut into."""
        return tuple(sorted((node for node in self.nodes if not node.is_part), key=attrgetter("number")))

    @cached_property
    def _match_columns(self) -> dict[int, pa.Schema]:
        """By number of a query: the columns of its matches, as far as these were asked for."""
        return {}

    @cached_property
    def several_columns(self) -> pa.Schema:
        """The columns of one table for the matches of all queries."""
        return several_schema([node.query for node in self.in_order_given], self.columns)

    def match_columns(self, node: QueryNode) -> pa.Schema:
        """The columns of a query's matches."""
        known = self._match_columns
        if node.number not in known:
            is_stream = isinstance(node.query, BoundStreamQuery)
            columns = result_schema(node.query, node.columns if is_stream else shown(self.columns))
            known[node.number] = shown(columns) if is_stream else columns
        return known[node.number]

    def timeout_columns(self, node: QueryNode) -> pa.Schema | None:
        """The columns of a query's timeouts; None for a query without TIMEOUTS."""
        query = node.query
        if not isinstance(query, BoundQuery) or query.timeouts is None:
            return None
        return timeout_schema(query, shown(self.columns))

    def on_reference(self, settings: Settings) -> dict[int, str]:
        """The queries, by number, that no engine can run on events with these columns, and why."""
        reasons = ((node.number, why_not_on_engine(node, settings)) for node in self.nodes)
        return {number: reason for number, reason in reasons if reason is not None}


def with_parts(bound: Sequence[Placed]) -> list[tuple[int, AnyBoundQuery, AnyBoundQuery]]:
    """Queries and what is to run of them, with the parts that they are cut into before them.

    Equal parts of several queries are one stream.
    """
    placed: list[tuple[int, AnyBoundQuery, AnyBoundQuery]] = []
    parts: dict[str, None] = {}
    for number, query in bound:
        if not isinstance(query, BoundStreamQuery):
            placed.append((number, query, query))
            continue
        *own_parts, rest = cut(query)
        for part in own_parts:
            if part.name not in parts:
                parts[part.name] = None
                placed.append((-len(parts), part, part))
        placed.append((number, query, rest))
    return placed


def why_not_on_engine(node: QueryNode, settings: Settings) -> str | None:
    """Why a query must stay on the reference evaluator; None when it need not."""
    return node.conflict or why_not_compiled(node.runs, node.columns, settings)


def latest(lags: Collection[int | None]) -> int | None:
    """The largest of some lags, of which None is endless."""
    known = [lag for lag in lags if lag is not None]
    return max(known, default=0) if len(known) == len(lags) else None


def _node(
    number: int,
    query: AnyBoundQuery,
    runs: AnyBoundQuery,
    events: pa.Table,
    streams: int,
    composite_schemas: tuple[tuple[str, pa.Schema], ...],
    read: frozenset[str],
    several: bool,
) -> QueryNode:
    if isinstance(query, BoundQuery):
        listing = query.listing() if several or query.into is not None else query
        runs = listing.identifying() if query.timeouts in read else listing
        composite_schemas = tuple(each for each in composite_schemas if not is_private(each[0]))
    else:
        composite_schemas = tuple(each for each in composite_schemas if each[0] in runs.types)
    is_read = not read.isdisjoint(query.makes)
    own = input_of(query.schema, events, streams)
    if not any(name in runs.types for name, _ in composite_schemas):
        return QueryNode(number, query, runs, ((EVENTS_GIVEN, own.schema),), read=is_read, several=several)
    # Composite events last, and so does what stands beside them.
    runs = among_composites(runs)
    beside = beside_composites(own, query.schema).schema
    return QueryNode(number, query, runs, ((EVENTS_GIVEN, beside), *composite_schemas), read=is_read, several=several)


def among_composites(query: AnyBoundQuery) -> AnyBoundQuery:
    """A query on events some of which are composite."""
    return replace(query, schema=query.schema.of_composites())


def _nothing_of(node: QueryNode) -> tuple[pa.Table, pa.Table | None]:
    """Empty tables of matches and of timeouts."""
    matches, runs = empty_table(result_schema(node.runs, node.columns)), node.runs
    if not isinstance(runs, BoundQuery) or runs.timeouts is None:
        return matches, None
    return matches, empty_table(timeout_schema(runs, node.columns))


def _behind(node: QueryNode) -> int | None:
    """How far the stream of a query's matches is behind the events: none that ends before that is still to come."""
    query = node.query
    if not isinstance(query, BoundQuery) or not decides_late(query):
        return node.lag
    window = query.window
    if node.lag is None or window is None or window.events:
        return None
    return node.lag + window.size


def decides_late(query: BoundQuery) -> bool:
    """Whether a match is certain only when its window has closed: something may forbid it until then, or add to it."""
    pattern = query.pattern
    # In a sequence a group is whole when what follows it has come; elsewhere it may still grow.
    in_sequence = isinstance(pattern, nodes.Sequence) and all(isinstance(part, nodes.Leaf) for part in pattern.parts)
    if not in_sequence:
        return any(_is_open(component) for component in query.components)
    return any(_is_open(list(nodes.components(each))[-1]) for each in query.alternatives)


def _is_open(component: nodes.Component) -> bool:
    return component.negated or component.kind is nodes.ComponentKind.CLOSURE

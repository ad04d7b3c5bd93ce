"""Where events go: into buckets by the hash of their key, never one group an entity; else into slices of time.

Events of one match must meet, and nothing else must. So any part of a partition key routes a query, and so does an
equality that links all components; without either, a window lets time be cut. Identical events always go together,
which keeps the ids of their matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.engine.compiling import why_not_compiled
from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.optimize.detections import linking as detections
from kleene.optimize.detections.lengths import reach as reach_of
from kleene.pattern.closures import closures_at_edge
from kleene.pattern.expressions import Attribute
from kleene.pattern.gaps import negations
from kleene.pattern.nodes import ComponentKind, components
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Policy
from kleene.queries.any_query import AnyBoundQuery, is_pattern
from kleene.queries.feeding import families
from kleene.spark.eql_queries import eql_type_keys
from kleene.spark.family_keys import family_keys
from kleene.spark.links import hashes_like_equality, linking_columns
from kleene.spark.stream_queries import is_alone, longest, type_keys


@dataclass(frozen=True, slots=True)
class ByKey:
    """Buckets by the hash of columns: those of an event's type, or the same ones for all types (None)."""

    columns: tuple[tuple[str | None, tuple[str, ...]], ...]

    def describe(self) -> str:
        named = [", ".join(names) if kind is None else f"{kind}.{', '.join(names)}" for kind, names in self.columns]
        return f"buckets by hash of {' = '.join(named)}"


@dataclass(frozen=True, slots=True)
class ByTime:
    """Slices of time, or of positions where a window counts events.

    before, after   how much of what lies around its slice a match can depend on, in steps of time or positions
    by_end          whether a match belongs to the slice in which it ends; otherwise to that in which it begins, as a
                    timeout always does
    """

    before: int
    after: int
    by_end: bool = False
    events: bool = False

    def describe(self) -> str:
        kind = "positions" if self.events else "time"
        if not self.before and not self.after:
            return f"slices of {kind}"
        around = [f"{length:,} {side}" for length, side in ((self.before, "before"), (self.after, "after")) if length]
        return f"slices of {kind}, each with {' and '.join(around)} it"


@dataclass(frozen=True, slots=True)
class OneTask:
    reason: str

    def describe(self) -> str:
        return f"one task handles all events: {self.reason}"


Route = ByKey | ByTime | OneTask


def routes_of(queries: Sequence[AnyBoundQuery], columns: pa.Schema, policy: Policy = Policy.FAIL) -> tuple[Route, ...]:
    """How the events of each query are divided. Queries that feed each other have the same route.

    policy   what happens where a budget is exceeded
    """
    routes = [_alone(query, columns, policy) for query in queries]
    for family in families(queries):
        if len(family) > 1:
            together = _together([queries[number] for number in family], columns)
            for number in family:
                routes[number] = together
    return tuple(_shared(routes))


def selects_afterwards(query: AnyBoundQuery, route: Route) -> bool:
    """Whether slices find matches of which one task then selects those that do not overlap."""
    return isinstance(route, ByTime) and query.output is OutputMode.NON_OVERLAP


def _alone(query: AnyBoundQuery, columns: pa.Schema, policy: Policy) -> Route:
    if isinstance(query, BoundStreamQuery):
        return _stream_alone(query, columns, policy)
    if isinstance(query, BoundEqlQuery):
        return _eql_alone(query, columns, policy)
    key = _partition_key(query, columns)
    if key:
        return ByKey(((None, key),))
    linked = linking_columns(query, columns)
    if linked and (len(set(linked.values())) == 1 or _has_type_names(query, columns)):
        return ByKey(tuple(sorted((kind, (name,)) for kind, name in linked.items())))
    return _by_time(query, columns, policy)


def _stream_alone(query: BoundStreamQuery, columns: pa.Schema, policy: Policy) -> Route:
    """By a key, else by time where results last for a limited time."""
    if is_alone(query):
        return ByTime(0, 0, by_end=True)
    if _has_type_names(query, columns):
        way = next(type_keys(query, columns), None)
        if way is not None:
            return _by_types(way.columns)
    length = longest(query)
    if length is None:
        return OneTask(f"`{query.name}` has neither an equality on every `;` and μ nor a bound on DUR")
    if policy is not Policy.FAIL:
        return OneTask(f"`{query.name}` may leave out what its budget does not allow")
    return ByTime(0, length + 1)


def _eql_alone(query: BoundEqlQuery, columns: pa.Schema, policy: Policy) -> Route:
    """By a key, else by time where detections last for a limited time."""
    if detections.is_alone(query):
        return ByTime(0, 0, by_end=True)
    if _has_type_names(query, columns):
        way = next(eql_type_keys(query, columns), None)
        if way is not None:
            return _by_types(way.columns)
    reach = reach_of(query)
    if reach is None:
        reason = detections.why_not_linked(query)
        return OneTask(f"`{query.name}` cannot be divided by key ({reason}), nor by time without an OCCURS WITHIN")
    if policy is not Policy.FAIL:
        return OneTask(f"`{query.name}` may leave out what its budget does not allow")
    return ByTime(reach.before, reach.length + 1)


def _by_types(columns: Mapping[str, str]) -> ByKey:
    return ByKey(tuple(sorted((kind, (name,)) for kind, name in columns.items())))


def _partition_key(query: BoundQuery, columns: pa.Schema) -> tuple[str, ...]:
    if query.strategy is SelectionStrategy.STRICT_CONTIGUITY:
        return ()
    return tuple(name for name in query.partition if hashes_like_equality(columns.field(name).type))


def _has_type_names(query: AnyBoundQuery, columns: pa.Schema) -> bool:
    schema = query.schema
    return schema.constant_type is None and pa.types.is_string(columns.field(schema.type).type)


def _by_time(query: BoundQuery, columns: pa.Schema, policy: Policy) -> Route:
    window = query.window
    if _is_lone(query):
        return ByTime(0, 0, by_end=True)
    if window is None and query.strategy is SelectionStrategy.STRICT_CONTIGUITY:
        return OneTask(f"strict_contiguity of `{query.name}` is judged against all events, and it has no window")
    if window is None:
        return OneTask(f"`{query.name}` has neither a partition key, such as `[id]`, nor a window")
    if window.events and query.schema.start is not None:
        return OneTask(f"`{query.name}` counts positions of events that last")
    if window.events and query.timeouts is not None:
        return OneTask(f"`{query.name}` tells when a position was reached, which may be far from where its runs began")
    if query.output is OutputMode.NON_OVERLAP:
        if query.schema.tie_breaker is not None:
            return OneTask(f"`{query.name}` selects among matches by the tie-breaker of their events")
        if why_not_compiled(query, columns) is not None:
            return OneTask(f"`{query.name}` selects among matches, and runs on the reference evaluator")
        if policy is not Policy.FAIL:
            return OneTask(f"`{query.name}` selects among matches, some of which its budget may leave out")
    # What is outside by one step more does no harm: the engine tests the window itself.
    length = window.size + 1
    first, last = _ends(query)
    # All matches that end with an event must meet where one row stands for them, and where they are counted.
    if query.output is OutputMode.COMPRESSED or policy is not Policy.FAIL:
        later = last or query.timeouts is not None
        return ByTime(2 * length if first else length, length if later else 0, by_end=True, events=window.events)
    return ByTime(length if first else 0, length, events=window.events)


def _is_lone(query: BoundQuery) -> bool:
    """Whether a match is one event, whatever is around it."""
    listed = [list(components(pattern)) for pattern in query.alternatives]
    alone = all(len(parts) == 1 and parts[0].kind is ComponentKind.SINGLE for parts in listed)
    return alone and query.output is OutputMode.ALL


def _ends(query: BoundQuery) -> tuple[bool, bool]:
    """Whether what lies before a match's first event, and after its last, can decide on it."""
    around = [neighbours for pattern in query.alternatives for _, neighbours in negations(pattern)]
    before, after = (any(closures_at_edge(each, left=left) for each in query.alternatives) for left in (True, False))
    return before or any(each.open_at_start for each in around), after or any(each.open_at_end for each in around)


# Several queries ---------------------------------------------------------------------------------------------------


def _together(family: Sequence[AnyBoundQuery], columns: pa.Schema) -> Route:
    """A key that all have, and that a composite event hands on, routes a family; else one task does it all."""
    patterns = [query for query in family if is_pattern(query)]
    shared = _shared_partition(patterns, columns) if len(patterns) == len(family) else ()
    if shared:
        return ByKey(((None, shared),))
    keys = family_keys(family, columns)
    if keys and all(_has_type_names(query, columns) for query in family):
        return _by_types(keys)
    pairs = ((maker, reader) for maker in family for reader in family)
    maker, reader = next(pair for pair in pairs if not set(pair[0].makes).isdisjoint(pair[1].types))
    return OneTask(f"`{reader.name}` reads what `{maker.name}` makes")


def _shared_partition(family: Sequence[BoundQuery], columns: pa.Schema) -> tuple[str, ...]:
    """The attributes by which all patterns of a family partition their events, and that composite events have."""
    if any(query.strategy is SelectionStrategy.STRICT_CONTIGUITY for query in family):
        return ()
    return tuple(
        name
        for name in family[0].partition
        if all(name in query.partition and _hands_on(query, name) for query in family)
        and name in columns.names
        and hashes_like_equality(columns.field(name).type)
    )


def _hands_on(query: BoundQuery, name: str) -> bool:
    """Whether the composite events that a query makes have its key; those of its timeouts always do."""
    if query.into is None:
        return True
    returned = {column.name: column.value for column in query.returns or ()}
    value = returned.get(name)
    return isinstance(value, Attribute) and value.attribute == name


def _shared(routes: Sequence[Route]) -> list[Route]:
    """A query that is routed by more columns than another may as well be routed by those of the other."""
    keys = {frozenset(key) for key in map(_general, routes) if key}
    least = {own: min((key for key in keys if key <= own), key=lambda key: (len(key), sorted(key))) for own in keys}
    shared = []
    for route in routes:
        own = frozenset(_general(route))
        shared.append(ByKey(((None, tuple(sorted(least[own]))),)) if own else route)
    return shared


def _general(route: Route) -> tuple[str, ...]:
    """The columns by which events of all types go."""
    return route.columns[0][1] if isinstance(route, ByKey) and route.columns[0][0] is None else ()

"""Queries of the stream algebra on Spark: which events they can use, and where these go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from kleene.algebra.cutting import cut
from kleene.algebra.nodes import sources
from kleene.algebra.query import BoundStreamQuery
from kleene.optimize.streams.automaton import columns_used, plan_stream
from kleene.optimize.streams.linking import SourceKeys, linked
from kleene.pattern.schema import is_private
from kleene.plan.streams import InputFormula, StreamPlan
from kleene.spark.links import hashes_like_equality


@lru_cache(maxsize=1024)
def plans_of(query: BoundStreamQuery) -> tuple[StreamPlan, ...]:
    """The automata that run a query, those of its parts first."""
    return tuple(plan_stream(part) for part in cut(query))


def formulas_of(query: BoundStreamQuery) -> list[InputFormula]:
    """The ways in which a query takes an event of its input, those of other queries' streams included."""
    every = dict.fromkeys(formula for plan in plans_of(query) for formula in plan.formulas)
    return [formula for formula in every if not is_private(formula.source.id)]


def columns_needed_by(query: BoundStreamQuery) -> tuple[str, ...]:
    """The columns of the input that become attributes or are tested, and those that say when and what events are."""
    named = {name for plan in plans_of(query) for name in columns_used(plan) if not is_private(name)}
    return tuple(sorted(named | set(query.schema.own_columns)))


def longest(query: BoundStreamQuery) -> int | None:
    """How many steps of time a result may last, with all that decides on it; None: any number."""
    every = [plan.longest for plan in plans_of(query)]
    known = [each for each in every if each is not None]
    return sum(known) if len(known) == len(every) else None


@dataclass(frozen=True)
class TypeKeys:
    """A column for each type by which events may be divided, and those that composite events hand on.

    handed_on   by stream: the columns in which its events have the same value
    """

    columns: Mapping[str, str]
    handed_on: Mapping[str, frozenset[str]] = field(default_factory=dict)


def type_keys(query: BoundStreamQuery, columns: pa.Schema) -> Iterator[TypeKeys]:
    """The ways to divide the events of a query by key."""
    for way in linked(query.root):
        by_type = _by_type(way)
        if by_type is not None and hash_alike(by_type, columns):
            composite_columns = dict(query.made_columns)
            handed_on = frozenset(composite_columns[name] for name in way.key if name in composite_columns)
            yield TypeKeys(by_type, dict.fromkeys(query.makes, handed_on))


def _by_type(way: SourceKeys) -> dict[str, str] | None:
    """The column of each type; None where a type would have two."""
    by_type: dict[str, str] = {}
    for source, column in way.columns.items():
        for name in source.event_class.types:
            if by_type.setdefault(name, column) != column:
                return None
    return by_type


def hash_alike(by_type: Mapping[str, str], columns: pa.Schema) -> bool:
    """Whether equal values go to one bucket; streams of other queries have columns that are not known here."""
    kinds = {columns.field(name).type for name in by_type.values() if name in columns.names}
    return len(kinds) <= 1 and all(map(hashes_like_equality, kinds))


def is_alone(query: BoundStreamQuery) -> bool:
    """Whether a result is one event, whatever is around it."""
    return not any(plan.states for plan in plans_of(query)) and bool(sources(query.root))

"""A query of either algebra, parsed or bound: a pattern or a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from kleene.algebra.eql_query import BoundEqlQuery, EqlQuery
from kleene.algebra.query import BoundStreamQuery, StreamQuery
from kleene.lang import recognise
from kleene.pattern.query import BoundQuery, Query

AnyQuery = Query | StreamQuery | EqlQuery
AnyBoundQuery = BoundQuery | BoundStreamQuery

# The spellings of the stream algebra; every other one writes patterns.
STREAM_SPELLINGS = frozenset({"cesar"})
EQL_SPELLINGS = frozenset({"eql", "next"})


def is_pattern(query: AnyBoundQuery) -> TypeGuard[BoundQuery]:
    """Whether a query is one of a pattern, with a strategy, a window and alternatives."""
    return isinstance(query, BoundQuery) and not isinstance(query, BoundEqlQuery)


def read_query(
    text: str,
    name: str | None = None,
    params: Mapping[str, object] | None = None,
    spelling: str | None = None,
    origin: str = "query",
) -> AnyQuery:
    """A query of a pattern or of a stream, as its spelling says; it is parsed when its tree is asked for.

    >>> type(read_query("A a ; B b")).__name__, type(read_query("PATTERN A a ; B b")).__name__
    ('StreamQuery', 'Query')
    """
    written = spelling or recognise(text)
    kind = StreamQuery if written in STREAM_SPELLINGS else EqlQuery if written in EQL_SPELLINGS else Query
    return kind(text, name, dict(params or {}), spelling, origin)

"""Queries as users hold them: what `pattern` and `algebra` have parsed, which can also be explained and shown."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from kleene import algebra, pattern
from kleene.explanation import Explanation, explain_query
from kleene.pattern import Schema
from kleene.pattern.written_query import WrittenQuery
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyQuery

if TYPE_CHECKING:
    from kleene.pattern.query import BoundQuery


class Explainable(WrittenQuery):
    """What a query of either algebra can do besides being run."""

    def explain(
        self,
        schema: Schema | None = None,
        events: Any = None,
        settings: Settings | None = None,
        *,
        analyze: bool = False,
    ) -> Explanation:
        """How it is understood and how it will run: `kleene.explain`."""
        assert isinstance(self, Query | StreamQuery | EqlQuery)
        return explain_query(self, schema=schema, events=events, settings=settings, analyze=analyze)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.format())}</pre>"


class Query(Explainable, pattern.Query):
    """A query of a pattern. `kleene.query(text)` makes one."""

    def on(self, events: Any, schema: Schema | None = None) -> BoundQuery:
        """This query bound to the columns of events, for an `Engine`; the rows are not read.

        events   a table of any kind that `match` takes, or an Arrow schema
        schema   what the columns mean, where that is not `type` and `ts`

        >>> rows = [{"type": "A", "ts": 1, "x": 5}]
        >>> Query("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10").on(rows).partition
        ('x',)
        """
        return self.bind(columns_known(events, schema or Schema()))


class StreamQuery(Explainable, algebra.StreamQuery):
    """A query of the stream algebra. `kleene.query(text)` makes one, and so does `kleene.stream(…).query()`."""


class EqlQuery(Explainable, algebra.EqlQuery):
    """A query in EQL. `kleene.query(text)` makes one."""


ExplainableQuery = Query | StreamQuery | EqlQuery


def explainable(query: AnyQuery) -> ExplainableQuery:
    kind: type[ExplainableQuery] = Query
    if isinstance(query, algebra.StreamQuery):
        kind = StreamQuery
    elif isinstance(query, algebra.EqlQuery):
        kind = EqlQuery
    return kind(query.text, query.name, query.params, query.spelling, query.origin)


def columns_known(events: Any, schema: Schema) -> Schema:
    """A schema that knows every column of events."""
    import pyarrow as pa

    from kleene.frames.arrow import schema_on
    from kleene.frames.kinds import FrameKind, kind_of, tables_read, to_arrow

    if isinstance(events, pa.Schema):
        return schema_on(events, schema)
    if type(events).__module__.startswith("pyspark"):
        from kleene.spark.types import arrow_schema

        return schema_on(arrow_schema(getattr(events, "schema", events)), schema)
    events = tables_read(events)
    if kind_of(events) is FrameKind.STREAMS:
        from kleene.frames.streams import to_table

        table, known = to_table(events, schema)
        return schema_on(table.schema, known)
    return schema_on(to_arrow(events).schema, schema)

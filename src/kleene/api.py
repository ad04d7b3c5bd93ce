"""The public face: make a query, find its matches, unfold those that are shared, ask how it runs and why not."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from kleene.builder import BuiltQuery
from kleene.errors import UnknownKind, UnknownSpelling
from kleene.explainable import ExplainableQuery, columns_known, explainable
from kleene.explanation import Explanation, explain_query
from kleene.frames.outputs import Outputs
from kleene.pattern import Schema
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyQuery, read_query
from kleene.queries.parameters import check_parameters

if TYPE_CHECKING:
    import pyarrow as pa

    from kleene.frames.notebook import Rows
    from kleene.spark.streaming.live import Live

_LOG = logging.getLogger("kleene")


T_co = TypeVar("T_co", covariant=True)


class Table(Protocol):
    """A pyarrow, pandas, Polars or Spark table: what they have in common."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""


class LazyTable(Protocol[T_co]):
    """A lazy frame of Polars."""

    def lazy(self) -> Any:
        """Itself. The method tells a lazy frame from a Spark data frame, which has `collect` but not `lazy`."""

    def collect(self) -> T_co:
        """The table that it stands for."""


T = TypeVar("T", bound=Table)
EventRows = Sequence[Mapping[str, object]]
# A query, its text, or an expression that was built; or several of these.
OneQuery = str | AnyQuery | BuiltQuery
QueryInput = OneQuery | Sequence[OneQuery]


def query(
    text: str | BuiltQuery,
    *,
    name: str | None = None,
    params: Mapping[str, object] | None = None,
    spelling: str | None = None,
) -> ExplainableQuery:
    """Parse a query; a wrong one raises an error that shows the place.

    text       the query, in any spelling that Kleene knows, or what `kleene.stream` or `kleene.events` began
    name       what the `query` column of its matches says
    params     values for `:name` in the text; a name that nothing has is an error when the query runs
    spelling   the name of the spelling, where the text should not decide

    >>> query("PATTERN SEQ(Shelf a, Exit b) WHERE [tag] WITHIN 12 hours").format().splitlines()[0]
    'PATTERN SEQ(Shelf a, Exit b)'
    """
    if isinstance(text, BuiltQuery):
        return text.query(name, params)
    if not isinstance(text, str):
        raise UnknownSpelling(f"a query is a text, not a {type(text).__name__}")
    parsed_query = explainable(read_query(text, name, params, spelling))
    parsed_query.tree  # noqa: B018 - parsing now, so that a wrong text is wrong here
    return parsed_query


@overload
def match(
    events: EventRows | Mapping[str, EventRows],
    query: QueryInput,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    settings: Settings | None = None,
) -> Rows: ...


@overload
def match(
    events: LazyTable[T] | Mapping[str, LazyTable[T]],
    query: QueryInput,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    settings: Settings | None = None,
) -> T: ...


@overload
def match(
    events: T | Mapping[str, T],
    query: QueryInput,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    settings: Settings | None = None,
) -> T: ...


@overload
def match(
    events: Any,
    query: QueryInput,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    settings: Settings | None = None,
) -> Any: ...


def match(
    events: Any,
    query: QueryInput,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    settings: Settings | None = None,
) -> Any:
    """Every match of a query, as the same kind of table as the events.

    events     a pyarrow table, a pandas, Polars or Spark data frame, a list of dicts, or a dict of these by stream
               name; also whatever exports an Arrow stream (`__arrow_c_stream__`), for which matches are a pyarrow table
    query      a query or its text; several give one table with an `events` column
    schema     what the columns mean, where that is not `type` and `ts`
    settings   budgets, and rules of the optimiser that are to stay off

    >>> rows = [{"type": "A", "ts": 1, "x": 5}, {"type": "B", "ts": 2, "x": 5}]
    >>> match(rows, "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10")[0]["key"]
    {'x': 5}
    """
    return outputs(events, query, schema=schema, params=params, settings=settings).matches


def outputs(
    events: Any,
    query: QueryInput,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    settings: Settings | None = None,
) -> Outputs[Any]:
    """Like `match`, with the timeouts and the bad rows beside the matches."""
    from kleene.frames.kinds import on_spark, tables_read

    queries = _queries(query, params, schema)
    events = tables_read(events)
    if on_spark(events):
        if _is_stream(events):
            return _live_outputs(events, queries, schema, settings, several=_several(query))
        from kleene.spark.batch import spark_outputs

        return spark_outputs(events, queries, schema=schema, several=_several(query), settings=settings)
    return _in_process(events, queries, schema=schema, several=_several(query), settings=settings or Settings())


def live(
    events: Any,
    query: QueryInput,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
    settings: Settings | None = None,
) -> Live:
    """Queries on a Spark stream, to be run once for all of their outputs: `kleene.live(…).start(…)`.

    events     a streaming data frame, or a dict of these by stream name
    query      a query or its text, or several, each with a name of its own
    settings   `Settings(stream=Stream(delay="10 seconds"))` says how long events are waited for
    """
    from kleene.spark.streaming.live import live as live_on_spark

    return live_on_spark(events, _queries(query, params, schema), schema=schema, settings=settings)


def decompress(rows: Any, *, within: Any = None) -> Iterator[dict[str, Any]]:
    """The matches in what `match` gave for OUTPUT COMPRESSED: the rows of OUTPUT ALL, each made when it is asked for.

    rows     the result or some of its rows, of any kind; a Spark data frame is fetched as its rows are needed
    within   the whole result, where `rows` are only some of it: rows whose matches share events hold these once

    >>> rows = [{"type": "A", "ts": ts} for ts in (1, 2, 3)] + [{"type": "B", "ts": 4}]
    >>> shared = match(rows, "PATTERN A+ a[] ; B b OUTPUT COMPRESSED")
    >>> shared[0]["count"]
    '7'
    >>> [[a["ts"] for a in found["a"]] for found in decompress(shared)]
    [[3], [2], [2, 3], [1], [1, 2], [1, 2, 3], [1, 3]]
    """
    from kleene.frames.decompress import decompressed

    return decompressed(rows, within)


def flat(result: Any) -> Any:
    """A result with one row for each event of a match and no nested columns: for CSV files and BI tools.

    result   what `match` gave, of any kind; the same kind comes back, for Spark nothing runs yet

    >>> rows = [{"type": "A", "ts": 1, "x": 5}, {"type": "B", "ts": 2, "x": 5}]
    >>> for row in flat(match(rows, "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10")):
    ...     print(row["start"], row["end"], row["key_x"], row["variable"], row["position"], row["ts"])
    1 2 5 a 1 1
    1 2 5 b 1 2
    """
    from kleene.frames.kinds import FrameKind, kind_of

    if kind_of(result) is FrameKind.SPARK:
        from kleene.spark.flat import flat_frame

        return flat_frame(result)
    from kleene.frames.flat import flat_result

    return flat_result(result)


def parquet(session: Any, *paths: Any, **options: Any) -> Any:
    """Parquet files as a Spark data frame whose files tasks of Kleene may read themselves, which is faster.

    session   a Spark session
    paths     files, folders or patterns, as for `session.read.parquet`; `options` as there, too

    It is the data frame that `session.read.parquet` gives, with the same rows. What you make of it, with a filter or
    another column, is read by Spark; so is everything of which it is not certain that the answer would be the same.
    `kleene.explain(query, events=…)` says which.
    """
    from kleene.spark.parquet.opening import open_parquet

    return open_parquet(session, [str(path) for path in paths], options)


def sql(session: Any, statement: str, *, settings: Settings | None = None) -> Any:
    """Run SQL on Spark in which `KLEENE(table, 'PATTERN …')` stands for the matches of a pattern in a table.

    session     a Spark session
    statement   SELECT tag_id FROM KLEENE(readings, 'PATTERN SEQ(Shelf s, Exit e) WHERE [tag_id] WITHIN 1 hour')
    """
    from kleene.spark.sql import sql as run

    return run(session, statement, settings=settings)


def explain(
    query: QueryInput,
    *,
    schema: Schema | None = None,
    events: Any = None,
    params: Mapping[str, object] | None = None,
    settings: Settings | None = None,
    analyze: bool = False,
) -> Explanation:
    """How a query is understood and how it will run: its text, and its picture in Mermaid's notation.

    query      a query; of several, also the streams between them: who makes each and who reads it
    schema     what the columns mean
    events     the events it would run on, of any kind: their columns are then known; a sample of those that are in
               this process is looked at
    params     values for `:name`; without them the plan is shown, too
    settings   rules of the optimiser that are switched off
    analyze    run it on the events, here, and show what each part did beside what was expected

    >>> made = explain("PATTERN SEQ(A a, B b) WHERE [x] AND a.y < 5 WITHIN 10")
    >>> print(*(line for line in made.text.splitlines() if "scan" in line), sep="\\n")
      scan a     A where a.y < 5
      scan b     B
      window     stops scan and construction early
    """
    from kleene.frames.kinds import tables_read

    queries = _queries(query, params, schema)
    if not _several(query):
        return explain_query(queries[0], schema=schema, events=tables_read(events), settings=settings, analyze=analyze)
    if analyze:
        raise UnknownKind("one query is analysed at a time", hint="give it alone, or leave `analyze` out")
    from kleene.explanation.several import explain_queries

    return explain_queries(queries, schema=schema, events=tables_read(events), settings=settings)


def why(
    events: Any,
    query: OneQuery,
    *,
    schema: Schema | None = None,
    params: Mapping[str, object] | None = None,
) -> str:
    """Why a query has the matches that it has, or none: how far events and runs came, in plain words.

    >>> print(why([{"type": "A", "ts": 1}], "PATTERN SEQ(A a, B b)").splitlines()[-1].strip())
    nothing reached b: no event of B came (there are only A)
    """
    from kleene.diagnosis import diagnose
    from kleene.frames.kinds import tables_read

    (one,) = _queries(query, params, schema)
    return diagnose(tables_read(events), one, schema=schema)


def infer_schema(events: Any, **roles: Any) -> Schema:
    """What a table's columns mean, from their types: a `Schema` with every column known.

    events   a table, a data frame, or an Arrow or Spark schema
    roles    what the schema says of them, as in `Schema`: time="at", tie_breaker="seq", …

    >>> infer_schema([{"type": "A", "at": 5, "x": 1.5}], time="at").columns["x"]
    <ValueType.FLOAT: 'float'>
    """
    return columns_known(events, Schema(**roles))


def _is_stream(events: Any) -> bool:
    frames = events.values() if isinstance(events, Mapping) else [events]
    return any(getattr(frame, "isStreaming", False) for frame in frames)


def _live_outputs(
    events: Any, queries: list[AnyQuery], schema: Schema | None, settings: Settings | None, *, several: bool
) -> Outputs[Any]:
    from kleene.spark.streaming.live import Live

    stream = Live(events, queries, schema, settings or Settings(), several=several)
    return Outputs(stream.matches(), stream.timeouts(), stream.bad_rows(), stream.compressed(), stream.late())


def _several(query: object) -> bool:
    return not isinstance(query, OneQuery)


def _queries(
    query_input: QueryInput,
    params: Mapping[str, object] | None,
    schema: Schema | None,
) -> list[AnyQuery]:
    listed = [query_input] if isinstance(query_input, OneQuery) else list(query_input)
    queries = [_with_params(item, params) for item in listed]
    check_parameters(queries, schema)
    return queries


def _with_params(item: OneQuery, params: Mapping[str, object] | None) -> AnyQuery:
    if isinstance(item, str):
        return read_query(item, params=params) if params else _read(item)
    query = item.query() if isinstance(item, BuiltQuery) else item
    return query if params is None else replace(query, params={**query.params, **params})


@lru_cache(maxsize=256)
def _read(text: str) -> AnyQuery:
    """The same query for the same text: what was parsed, bound and planned for it serves its next run."""
    return read_query(text)


def _in_process(
    events: Any, queries: Sequence[AnyQuery], *, schema: Schema | None, several: bool, settings: Settings
) -> Outputs[Any]:
    from kleene.evaluation import evaluate
    from kleene.frames.kinds import FrameKind, from_arrow, kind_of
    from kleene.frames.notebook import Rows
    from kleene.frames.unseen import with_named_columns

    kind = kind_of(events)
    shown = FrameKind.ARROW
    if kind is not FrameKind.STREAMS:
        shown = kind
    elif events:
        shown = kind_of(next(iter(events.values())))
    events = with_named_columns(events, queries, schema)
    tables = evaluate(events, queries, schema=schema, several=several, settings=settings)
    if tables.bad_rows.num_rows:
        _LOG.warning("%d rows are no events and were set aside", tables.bad_rows.num_rows)

    def in_kind(table: pa.Table | None) -> Any:
        if table is None:
            return None
        result = from_arrow(table, shown)
        return Rows(result) if shown is FrameKind.ROWS else result

    return Outputs(*map(in_kind, (tables.matches, tables.timeouts, tables.bad_rows, tables.compressed)))

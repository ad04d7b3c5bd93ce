"""A set of standing queries: thousands of them, loaded from a table, matched in one pass over events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from kleene.engine.query_sets.run import SharedRun
from kleene.engine.query_sets.shared_queries import SharedQueries
from kleene.engine.query_sets.shared_stream import SharedStream
from kleene.engine.readiness import uncompiled_if_few, when_ready
from kleene.errors import BudgetExceeded, UnknownKind
from kleene.frames.arrow import schema_on
from kleene.frames.kinds import FrameKind, from_arrow, kind_of, tables_read, to_arrow
from kleene.frames.streams import to_table
from kleene.pattern.schema import Schema
from kleene.plan.settings import Policy, Settings
from kleene.queries.any_query import AnyQuery
from kleene.query_set.explaining import description, explanation
from kleene.query_set.loading import Added, LoadedQueries
from kleene.query_set.outputs import SetOutputs, check_results, shared_outputs, with_alone

# So many events of a batch go through uncompiled kernels, while these are compiled.
_FEW_EVENTS = 1 << 10


class QuerySet:
    """Standing queries over events of one kind, which run as one.

    events     what events look like: a table of them, of any kind that `match` takes, or an Arrow schema
    schema     what the columns mean, where that is not `type` and `ts`
    settings   budgets: of all that waits for queries that share, and of each query that runs by itself

    >>> rules = QuerySet(pa.schema({"type": pa.string(), "ts": pa.int64(), "name": pa.string(), "price": pa.float64()}))
    >>> rules.add("σ{name = 'IBM' and price > 100.0}(Stock S)", name="dear")
    'dear'
    >>> limits = pa.table({"name": ["low", "high"], "limit": [50.0, 150.0]})
    >>> rules.add_many("σ{price > :limit}(Stock S)", limits).number
    2
    >>> rows = [{"type": "Stock", "ts": 1, "name": "IBM", "price": 120.0}]
    >>> sorted(row["query"] for row in rules.match(rows).matches[0])
    ['dear', 'low']
    """

    def __init__(self, events: Any, *, schema: Schema | None = None, settings: Settings | None = None) -> None:
        columns, declared, sample = _columns(events, schema or Schema())
        self._schema = schema_on(columns, declared)
        self._settings = settings or Settings()
        if self._settings.budget.policy is not Policy.FAIL:
            raise UnknownKind(
                "a set of queries drops nothing", hint="leave the policy out: a run over its budget fails"
            )
        self._queries = LoadedQueries(SharedQueries(columns, self._schema, self._settings))
        self._stream: SharedStream | None = None
        if sample is not None:
            self._shared.see(sample, None)

    # Queries that come and go

    def add(self, query: str | AnyQuery, *, name: str | None = None, params: Mapping[str, object] | None = None) -> str:
        """Put in a query; its name.

        query    its text, or what `kleene.query` made of it
        name     by which it is removed, and which its matches have; without one it gets a number
        params   values for `:name` in the text
        """
        if isinstance(query, str):
            return self._queries.add(query, name, params, None, self._live.moment)
        given = {**query.params, **(params or {})}
        return self._queries.add(query.text, name or query.name, given, query.spelling, self._live.moment)

    def add_many(self, queries: str | Iterable[str], table: Any = None, *, names: Any = None) -> Added:
        """Put in many queries; those that are wrong are refused one by one, and the others come in.

        queries   a template, of which each row of a table gives the parameters; or the texts of queries
        table     for a template: a column for each parameter
        names     the names of the queries, or the column that has them; without it the column `name`, if there is one
        """
        since = self._live.moment
        if not isinstance(queries, str):
            if table is not None and names is None:
                names = to_arrow(table).column("name")
            return self._queries.add_texts(queries, names, since)
        if table is None:
            raise UnknownKind("a template needs a table of its parameters", hint="add_many(template, table)")
        return self._queries.add_rows(queries, to_arrow(table), names, since)

    def remove(self, name: str) -> None:
        """Remove a query: what ends from now on is none of its matches."""
        self._queries.remove(name, self._run)

    # What there is

    def __len__(self) -> int:
        return len(self._queries)

    def __contains__(self, name: object) -> bool:
        return name in self._queries

    @property
    def names(self) -> list[str]:
        return self._queries.names

    @property
    def nbytes(self) -> int:
        """The bytes of all queries that share."""
        self._queries.flush()
        return self._shared.nbytes

    def describe(self, name: str) -> str:
        """A query as one would write it by itself, and how it runs."""
        self._queries.flush()
        return description(self._queries, name)

    def explain(self) -> str:
        """How the set runs: what its queries share, by what events find them, and which run by themselves, and why."""
        self._queries.flush()
        return explanation(self._queries)

    # Events

    def match(self, events: Any, *, results: str = "matches") -> SetOutputs:
        """What the queries find in a bounded input, whatever else the set has seen.

        results   "matches": a row for each query and match, as the query has it by itself; "queries": a row for each
                  match with the list of its queries; "counts": how many each query has
        """
        check_results(results)
        events = tables_read(events)
        kind = kind_of(events)
        if kind is FrameKind.STREAMS:
            kind = next(map(kind_of, events.values()), FrameKind.ARROW)
        table, _ = to_table(events, self._schema)
        self._queries.flush()
        self._shared.see(table, self._run)
        outputs = when_ready(lambda: self._bounded(table, results), table.num_rows, *self._shared.plans)
        alone = [(name, self._queries.run_of(each.query).finish(table)) for name, each in self._queries.alone.items()]
        return with_alone(outputs, alone, results).in_kind(lambda rows: from_arrow(rows, kind))

    def _bounded(self, table: pa.Table, results: str) -> SetOutputs:
        return shared_outputs(self._shared, *SharedStream(self._shared, lives=False).finish(table), results)

    def process(self, batch: Any, watermark: int | None = None, *, results: str = "matches") -> SetOutputs:
        """Take in a batch of a stream, and match the events that the watermark has passed."""
        check_results(results)
        table, _ = to_table(tables_read(batch), self._schema)
        self._queries.flush()
        self._shared.see(table, self._run)
        if watermark is not None and self._settings.budget.state_bytes is None:
            self._shared.check_bounded()
        stream = self._live
        with uncompiled_if_few(table.num_rows, _FEW_EVENTS, *self._shared.executors):
            outputs = shared_outputs(self._shared, *stream.process(table, watermark), results)
        self._within_budget(stream.state_bytes)
        alone = [(name, list(each.run.process(table, watermark))) for name, each in self._queries.alone.items()]
        return with_alone(outputs, alone, results)

    def finish(self, batch: Any = None, *, results: str = "matches") -> SetOutputs:
        """Take in the last batch of a stream, if there is one, and decide everything that waits."""
        check_results(results)
        empty = self._shared.columns.empty_table()
        table = empty if batch is None else to_table(tables_read(batch), self._schema)[0]
        self._queries.flush()
        stream = self._live
        with uncompiled_if_few(table.num_rows, _FEW_EVENTS, *self._shared.executors):
            outputs = shared_outputs(self._shared, *stream.finish(table), results)
        alone = [(name, list(each.run.finish(table))) for name, each in self._queries.alone.items()]
        self._stream = None
        self._queries.restart()
        return with_alone(outputs, alone, results)

    def _within_budget(self, state_bytes: int) -> None:
        most = self._settings.budget.state_bytes
        if most is not None and state_bytes > most:
            raise BudgetExceeded(
                f"the instances that wait take {state_bytes:,} bytes, more than {most:,}",
                hint="bound DUR, narrow the conditions, or raise the budget: Settings(budget=Budget(state_bytes=…))",
            )

    @property
    def _shared(self) -> SharedQueries:
        return self._queries.shared

    @property
    def _run(self) -> SharedRun | None:
        """What waits for queries that share, if a stream has begun."""
        return None if self._stream is None else self._stream.run

    @property
    def _live(self) -> SharedStream:
        if self._stream is None:
            self._stream = SharedStream(self._shared)
        return self._stream


def _columns(events: Any, schema: Schema) -> tuple[pa.Schema, Schema, pa.Table | None]:
    """The columns of events, what they mean, and events, if there are some."""
    if isinstance(events, pa.Schema):
        return events, schema, None
    table, declared = to_table(tables_read(events), schema)
    return table.schema, declared, table

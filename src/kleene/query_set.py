"""A set of standing queries: thousands of them, loaded from a table, matched in one pass over events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.composition.graph_run import GraphRun
from kleene.composition.query_graph import QueryGraph
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.query_sets.access_paths import RangePath
from kleene.engine.query_sets.coming import PendingQueries, Refusals
from kleene.engine.query_sets.compiling import TYPE
from kleene.engine.query_sets.run import SharedRun
from kleene.engine.query_sets.shared_queries import (
    FEW_QUERIES,
    Found,
    SharedQueries,
    SharedTemplate,
)
from kleene.engine.query_sets.shared_stream import SharedStream
from kleene.engine.readiness import uncompiled_if_few, when_ready
from kleene.errors import BadParameter, BudgetExceeded, KleeneError, NameTaken, NoSuchQuery, UnknownKind, did_you_mean
from kleene.frames.arrow import schema_on, value_type
from kleene.frames.kinds import FrameKind, from_arrow, kind_of, tables_read, to_arrow
from kleene.frames.numbers import to_numpy
from kleene.frames.rows import BadRow, bad_row_table
from kleene.frames.streams import to_table
from kleene.lang.literals import Plain
from kleene.optimize.streams.sharing import SharedPlan
from kleene.pattern.schema import Schema, is_private
from kleene.pattern.types import ValueType
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Policy, Settings
from kleene.queries.any_query import AnyQuery, read_query
from kleene.queries.feeding import bound_in_order, in_dependency_order
from kleene.queries.parameters import check_parameters
from kleene.queries.templates import Template, TemplateReader

RESULTS = ("matches", "queries", "counts")
# So many queries that came one by one are put in together.
_PENDING_AT_MOST = 1 << 11
# Where most of at least so many queries are gone, their memory is given back.
_WORTH_COMPACTING = 1 << 12
# So many events of a batch go through uncompiled kernels, while these are compiled.
_FEW_EVENTS = 1 << 10
# So many templates and queries are listed.
_SHOWN = 20
_LIFTED = frozenset({ValueType.INT, ValueType.FLOAT, ValueType.STRING, ValueType.BOOL})


@dataclass(frozen=True)
class Added:
    """What became of the rows of a table of queries.

    number    how many queries came in
    refused   a row for each that did not: its row number, its name, the code of the error and the whole message
    """

    number: int
    refused: pa.Table


@dataclass(frozen=True)
class SetOutputs:
    """What the queries of a set found.

    matches   a table for each shape of result; none when only counts were asked for
    counts    how many matches each query has, of those that have some
    bad_rows  the rows that are no events
    late      the events that came after the watermark had passed them
    """

    matches: tuple[Any, ...]
    counts: Any
    bad_rows: Any
    late: Any


@dataclass(frozen=True, eq=False)
class _Alone:
    """A query that cannot share: it runs by itself."""

    query: AnyQuery
    why: str
    run: GraphRun


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
        self._shared = SharedQueries(columns, self._schema, self._settings)
        if sample is not None:
            self._shared.see(sample, None)
        self._reader = TemplateReader()
        # Why queries of a template run by themselves.
        self._refused: dict[Template, str] = {}
        self._alone: dict[str, _Alone] = {}
        self._pending = PendingQueries()
        self._stream: SharedStream | None = None
        self._automatic = 0

    # Queries that come and go

    def add(self, query: str | AnyQuery, *, name: str | None = None, params: Mapping[str, object] | None = None) -> str:
        """Put in a query; its name.

        query    its text, or what `kleene.query` made of it
        name     by which it is removed, and which its matches have; without one it gets a number
        params   values for `:name` in the text
        """
        text, given, own_name, spelling = query, params, name, None
        if not isinstance(query, str):
            text, given = query.text, {**query.params, **(params or {})}
            own_name, spelling = name or query.name, query.spelling
        assert isinstance(text, str)
        prepared = self._prepared(text, given, spelling)
        named = own_name or self._next_name()
        with uncompiled_if_few(1, FEW_QUERIES, SharedPlan):
            self._check_free(named)
        if prepared is None:
            self._add_alone(read_query(text, named, given, spelling), named)
            return named
        template, constants = prepared
        self._pending.add(named, template, constants, self._live.moment)
        if len(self._pending) >= _PENDING_AT_MOST:
            self._flush()
        return named

    def add_many(self, queries: str | Iterable[str], table: Any = None, *, names: Any = None) -> Added:
        """Put in many queries; those that are wrong are refused one by one, and the others come in.

        queries   a template, of which each row of a table gives the parameters; or the texts of queries
        table     for a template: a column for each parameter
        names     the names of the queries, or the column that has them; without it the column `name`, if there is one
        """
        if not isinstance(queries, str):
            if table is not None and names is None:
                names = to_arrow(table).column("name")
            return self._add_texts(queries, names)
        if table is None:
            raise UnknownKind("a template needs a table of its parameters", hint="add_many(template, table)")
        return self._add_rows(queries, to_arrow(table), names)

    def remove(self, name: str) -> None:
        """Remove a query: what ends from now on is none of its matches."""
        if name in self._alone:
            del self._alone[name]
            return
        if self._pending.removed(name):
            return
        with uncompiled_if_few(1, FEW_QUERIES, SharedPlan):
            self._shared.remove(self._number(name))
        queries = self._shared.queries
        if queries.size > _WORTH_COMPACTING and queries.live < queries.size // 2:
            self._shared.compact(self._run)

    # What there is

    def __len__(self) -> int:
        return self._shared.queries.live + len(self._pending) + len(self._alone)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return name in self._alone or name in self._pending.names or self._shared.queries.find(name) is not None

    @property
    def names(self) -> list[str]:
        self._flush()
        queries = self._shared.queries
        return [*queries.names(queries.numbers).to_pylist(), *self._alone]

    @property
    def nbytes(self) -> int:
        """The bytes of all queries that share."""
        self._flush()
        return self._shared.nbytes

    def describe(self, name: str) -> str:
        """A query as one would write it by itself, and how it runs."""
        if name in self._alone:
            alone = self._alone[name]
            return f"{alone.query.canonical}\n-- runs by itself: {alone.why}"
        self._flush()
        number = self._number(name)
        template = self._shared.template_of(number)
        text, params = template.template.text_of(self._shared.constants_of(number))
        listed = ", ".join(f":{each} = {value!r}" for each, value in params.items())
        reason = self._shared.why_no_nodes(template)
        engine = "" if reason is None else f"\n-- one engine runs all queries of its template: {reason}"
        return f"{text}{f' -- {listed}' if listed else ''}{engine}"

    def explain(self) -> str:
        """How the set runs: what its queries share, by what events find them, and which run by themselves, and why."""
        self._flush()
        shared, queries = self._shared, self._shared.queries
        counts = np.bincount(queries.template[queries.numbers], minlength=1)
        in_engines = sum(int(counts[number]) for number in shared.row_templates if number < len(counts))
        lines = [
            f"{len(self):,} queries: {queries.live - in_engines:,} share nodes, {in_engines:,} the engine of their"
            f" template, {len(self._alone):,} run by themselves"
        ]
        if queries.live > in_engines:
            levels = ", ".join(f"{number:,}" for number in shared.nodes.levels)
            lines.append(f"nodes       {levels} after one event, after two, …")
            for columns, number in sorted(shared.nodes.access_paths.items(), key=lambda path: (-path[1], path[0])):
                lines.append(f"edges       {number:,} by {self._columns_shown(columns)}")
            lines += [f"ranges      {_path_shown(path)}" for path in shared.paths.chosen]
            for columns, order in shared.nodes.shapes.room_names:
                sorted_by = f", in order of {order}" if order else ""
                lines.append(f"waiting     by {self._columns_shown(columns)}{sorted_by}")
        for number in np.argsort(-counts, kind="stable")[:_SHOWN].tolist():
            if counts[number]:
                lines.append(f"template    {counts[number]:,} × {shared.text_of(number)}")
                if number in shared.row_templates:
                    lines.append(f"            one engine: {shared.row_templates[number].why_no_nodes}")
        lines += [f"by itself   {name}: {each.why}" for name, each in list(self._alone.items())[:_SHOWN]]
        return "\n".join(lines)

    def _columns_shown(self, columns: Sequence[str]) -> str:
        names = {TYPE: self._schema.type}
        shown = [names.get(name, "class" if is_private(name) else name) for name in columns]
        return ", ".join(shown) or "their node alone"

    # Events

    def match(self, events: Any, *, results: str = "matches") -> SetOutputs:
        """What the queries find in a bounded input, whatever else the set has seen.

        results   "matches": a row for each query and match, as the query has it by itself; "queries": a row for each
                  match with the list of its queries; "counts": how many each query has
        """
        _check_results(results)
        events = tables_read(events)
        kind = kind_of(events)
        if kind is FrameKind.STREAMS:
            kind = next(map(kind_of, events.values()), FrameKind.ARROW)
        table, _ = to_table(events, self._schema)
        self._flush()
        self._shared.see(table, self._run)
        outputs = when_ready(lambda: self._bounded(table, results), table.num_rows, *self._shared.plans)
        alone = [(name, self._run_of(each.query).finish(table)) for name, each in self._alone.items()]
        return _in_kind(_with_alone(outputs, alone, results), lambda rows: from_arrow(rows, kind))

    def _bounded(self, table: pa.Table, results: str) -> SetOutputs:
        return self._outputs(*SharedStream(self._shared, lives=False).finish(table), results)

    def process(self, batch: Any, watermark: int | None = None, *, results: str = "matches") -> SetOutputs:
        """Take in a batch of a stream, and match the events that the watermark has passed."""
        _check_results(results)
        table, _ = to_table(tables_read(batch), self._schema)
        self._flush()
        self._shared.see(table, self._run)
        if watermark is not None and self._settings.budget.state_bytes is None:
            self._shared.check_bounded()
        stream = self._live
        with uncompiled_if_few(table.num_rows, _FEW_EVENTS, *self._shared.executors):
            outputs = self._outputs(*stream.process(table, watermark), results)
        self._within_budget(stream.state_bytes)
        alone = [(name, list(each.run.process(table, watermark))) for name, each in self._alone.items()]
        return _with_alone(outputs, alone, results)

    def finish(self, batch: Any = None, *, results: str = "matches") -> SetOutputs:
        """Take in the last batch of a stream, if there is one, and decide everything that waits."""
        _check_results(results)
        empty = self._shared.columns.empty_table()
        table = empty if batch is None else to_table(tables_read(batch), self._schema)[0]
        self._flush()
        stream = self._live
        with uncompiled_if_few(table.num_rows, _FEW_EVENTS, *self._shared.executors):
            outputs = self._outputs(*stream.finish(table), results)
        alone = [(name, list(each.run.finish(table))) for name, each in self._alone.items()]
        self._stream = None
        for name, each in self._alone.items():
            self._alone[name] = _Alone(each.query, each.why, self._run_of(each.query))
        return _with_alone(outputs, alone, results)

    def _within_budget(self, state_bytes: int) -> None:
        most = self._settings.budget.state_bytes
        if most is not None and state_bytes > most:
            raise BudgetExceeded(
                f"the instances that wait take {state_bytes:,} bytes, more than {most:,}",
                hint="bound DUR, narrow the conditions, or raise the budget: Settings(budget=Budget(state_bytes=…))",
            )

    @property
    def _run(self) -> SharedRun | None:
        """What waits for queries that share, if a stream has begun."""
        return None if self._stream is None else self._stream.run

    @property
    def _live(self) -> SharedStream:
        if self._stream is None:
            self._stream = SharedStream(self._shared)
        return self._stream

    # How queries are put in

    def _flush(self) -> None:
        """Put in what waits for that: one by one, queries would cost a hundred times as much."""
        for (template, since), (names, constants) in self._pending.taken():
            if not names:
                continue
            with uncompiled_if_few(len(names), FEW_QUERIES, SharedPlan):
                numbers, _ = self._shared.queries.reserve(pa.array(names))
            self._shared.add(template, self._columns_of(template, constants), numbers, since)

    def _prepared(
        self, text: str, params: Mapping[str, object] | None, spelling: str | None
    ) -> tuple[SharedTemplate, Sequence[Plain]] | None:
        """The template that a query shares, and its constants; None: it runs by itself. A wrong one is an error."""
        template, constants = self._reader.read(text, params, spelling)
        if template not in self._refused:
            try:
                return self._template(template), constants
            except (NotCompilable, KleeneError) as reason:
                # What cannot be said of a parameter may be said of a constant; and the error of a wrong query shows
                # the query as it was written.
                self._refused[template] = str(reason)
        whole = self._reader.whole(text, params, spelling)
        try:
            return self._template(whole), ()
        except NotCompilable as reason:
            self._refused[whole] = str(reason)
            return None
        except KleeneError:
            self._reader.forget(text, params, spelling)
            raise

    def _template(self, template: Template) -> SharedTemplate:
        """A template that is ready to take in queries; when it is first seen, its parameters are looked at."""
        if not self._shared.knows(template):
            check_parameters([template.query], self._schema)
        return self._shared.template(template)

    def _columns_of(self, template: SharedTemplate, rows: Sequence[Sequence[Plain]]) -> dict[str, np.ndarray]:
        """By parameter, [query]: constants as arrays."""
        columns = {}
        for place, (name, kind) in enumerate(template.template.parameters):
            values: list[Any] = [row[place] for row in rows]
            if kind is ValueType.STRING:
                values = [self._shared.values.strings.code(value) for value in values]
            columns[name] = np.array(values, np.float64 if kind is ValueType.FLOAT else np.int64)
        return columns

    def _add_alone(self, query: AnyQuery, name: str) -> None:
        why = self._refused.get(self._reader.whole(query.text, query.params, query.spelling), "it cannot share")
        self._alone[name] = _Alone(query, why, self._run_of(query))

    def _run_of(self, query: AnyQuery) -> GraphRun:
        order = in_dependency_order([query], self._schema)
        bound = bound_in_order(order, self._schema)
        return GraphRun(QueryGraph.of(bound, self._shared.columns, streams=0, several=False), self._settings)

    def _add_texts(self, texts: Iterable[str], names: Any) -> Added:
        listed = list(texts) if not isinstance(texts, pa.Array | pa.ChunkedArray) else texts.to_pylist()
        refused = Refusals()
        by_template: dict[SharedTemplate, tuple[list[int], list[Sequence[Plain]]]] = {}
        alone: list[tuple[int, str]] = []
        for row, text in enumerate(listed):
            try:
                prepared = self._prepared(text, None, None)
            except KleeneError as problem:
                refused.add(row, problem)
                continue
            if prepared is None:
                alone.append((row, text))
                continue
            rows, constants = by_template.setdefault(prepared[0], ([], []))
            rows.append(row)
            constants.append(prepared[1])
        column = self._named(names, len(listed))
        number = 0
        for template, (rows, constants) in by_template.items():
            chosen = column.take(pa.array(rows))
            number += self._put(template, self._columns_of(template, constants), np.array(rows), chosen, refused)
        for row, text in alone:
            name = column[row].as_py()
            try:
                self._check_free(name)
                self._add_alone(read_query(text, name), name)
                number += 1
            except KleeneError as problem:
                refused.add(row, problem)
        return Added(number, refused.table(column))

    def _add_rows(self, text: str, table: pa.Table, names: Any) -> Added:
        """Queries of a template: a row of parameters each."""
        query = read_query(text)
        wanted = sorted(query.parameters)
        missing = [name for name in wanted if name not in table.column_names]
        if missing:
            raise BadParameter(
                f"parameter `:{missing[0]}` has no column",
                hint=did_you_mean(missing[0], table.column_names) or f"the table has {', '.join(table.column_names)}",
            )
        if isinstance(names, str):
            names = table.column(names)
        elif names is None and "name" in table.column_names and "name" not in query.parameters:
            names = table.column("name")
        column = self._named(names, table.num_rows)
        refused = Refusals()
        types = {name: value_type(table.schema.field(name).type) for name in wanted}
        known = np.ones(table.num_rows, np.bool_)
        for name in wanted:
            known &= to_numpy(pc.is_valid(table.column(name)))
        template = None
        if set(types.values()) <= _LIFTED:
            of_types = self._reader.of_columns(text, types)
            if of_types not in self._refused:
                try:
                    template = self._shared.template(of_types)
                except NotCompilable as reason:
                    self._refused[of_types] = str(reason)
        if template is None:
            known[:] = False
        number = 0
        if template is not None and known.any():
            rows = np.flatnonzero(known)
            chosen, named = (
                (table, column) if known.all() else (table.take(pa.array(rows)), column.take(pa.array(rows)))
            )
            values = {name: self._parameter(chosen.column(name), types[name]) for name in wanted}
            number += self._put(template, values, rows, named, refused)
        for row in np.flatnonzero(~known).tolist():
            name = column[row].as_py()
            try:
                self._check_free(name)
                self.add(text, name=name, params={each: table.column(each)[row].as_py() for each in wanted})
                number += 1
            except KleeneError as problem:
                refused.add(row, problem)
        return Added(number, refused.table(column))

    def _parameter(self, column: pa.ChunkedArray, kind: ValueType) -> np.ndarray:
        """[row]: the values of a parameter."""
        if kind is ValueType.STRING:
            encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
            codes = np.array(
                [self._shared.values.strings.code(text) for text in encoded.dictionary.to_pylist()], np.int64
            )
            return codes[to_numpy(encoded.indices)] if len(codes) else np.zeros(0, np.int64)
        return to_numpy(column.cast(pa.float64() if kind is ValueType.FLOAT else pa.int64()))

    def _put(
        self,
        template: SharedTemplate,
        values: Mapping[str, np.ndarray],
        rows: np.ndarray,
        names: pa.Array,
        refused: Refusals,
    ) -> int:
        """Put in queries of one template whose names are free; how many there are."""
        self._flush()
        free = (
            np.array([name is not None and name not in self._alone for name in names.to_pylist()])
            if (names.null_count or self._alone)
            else np.ones(len(rows), np.bool_)
        )
        for row in rows[~free].tolist():
            refused.add(
                row, NameTaken("another query of the set has this name", hint="give each query a name of its own")
            )
        if not free.all():
            names, rows = names.filter(pa.array(free)), rows[free]
            values = {name: array[free] for name, array in values.items()}
        with uncompiled_if_few(len(names), FEW_QUERIES, SharedPlan):
            numbers, known = self._shared.queries.reserve(names)
        taken = known >= 0
        for row, name in zip(rows[taken].tolist(), names.filter(pa.array(taken)).to_pylist(), strict=True):
            refused.add(row, _taken(name))
        fresh = ~taken
        if fresh.any():
            own = values if fresh.all() else {name: array[fresh] for name, array in values.items()}
            self._shared.add(template, own, numbers[fresh], self._live.moment)
        return int(fresh.sum())

    # Names

    def _named(self, names: Any, size: int) -> pa.Array:
        if names is None:
            return pa.array([self._next_name() for _ in range(size)], pa.string())
        column = names if isinstance(names, pa.Array | pa.ChunkedArray) else pa.array(list(names), pa.string())
        if len(column) != size:
            raise UnknownKind(f"{size:,} queries and {len(column):,} names", hint="give each query a name")
        combined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return combined.cast(pa.string())

    def _next_name(self) -> str:
        while True:
            self._automatic += 1
            name = f"q{self._automatic}"
            if name not in self:
                return name

    def _check_free(self, name: str | None) -> None:
        if name is None:
            raise NameTaken("this query has no name", hint="give each query a name of its own")
        if name in self:
            raise _taken(name)

    def _number(self, name: str) -> int:
        number = self._shared.queries.find(name)
        if number is None:
            raise NoSuchQuery(f"there is no query `{name}` in the set", hint=did_you_mean(name, self.names[:10_000]))
        return number

    # Results

    def _outputs(self, found: list[Found], bad: list[BadRow], late: pa.Table, results: str) -> SetOutputs:
        shared = self._shared
        tables: dict[Any, list[pa.Table]] = {}
        counts = np.zeros(shared.queries.size, np.int64)
        for each in found:
            counts += np.bincount(each.queries, minlength=shared.queries.size)
            if results == "counts" or not len(each.queries):
                continue
            rows = shared.table_of(each, lists=results == "queries")
            tables.setdefault(rows.schema.to_string(), []).append(rows)
        some = np.flatnonzero(counts)
        counted = pa.table({"query": shared.queries.names(some), "matches": pa.array(counts[some])})
        return SetOutputs(tuple(pa.concat_tables(each) for each in tables.values()), counted, bad_row_table(bad), late)


def _with_alone(
    outputs: SetOutputs, alone: Sequence[tuple[str, Iterable[tuple[Any, EngineOutputs]]]], results: str
) -> SetOutputs:
    """The outputs of queries that share, and of those that ran by themselves."""
    tables, names, counts = list(outputs.matches), [], []
    for name, made in alone:
        matches = next((each.matches for node, each in made if not node.is_part and each.matches is not None), None)
        if matches is None or not matches.num_rows:
            continue
        names.append(name)
        counts.append(matches.num_rows)
        if results == "matches":
            tables.append(matches)
        elif results == "queries":
            listed = pa.array([[name]] * matches.num_rows, pa.list_(pa.string()))
            tables.append(matches.drop_columns(["match_id", "query"]).add_column(0, "queries", listed))
    counted = pa.concat_tables(
        [outputs.counts, pa.table({"query": pa.array(names, pa.string()), "matches": pa.array(counts, pa.int64())})]
    )
    return SetOutputs(tuple(tables), counted, outputs.bad_rows, outputs.late)


def _in_kind(outputs: SetOutputs, in_kind: Any) -> SetOutputs:
    return SetOutputs(
        tuple(map(in_kind, outputs.matches)), in_kind(outputs.counts), in_kind(outputs.bad_rows), in_kind(outputs.late)
    )


def _path_shown(path: RangePath) -> str:
    if path.shares is None:
        return f"by {path.columns[0]}, then {', '.join(path.columns[1:])}: no event was seen yet"
    named = [f"{name} (of {share:.0%} of events)" for name, share in zip(path.columns, path.shares, strict=True)]
    return f"by {named[0]}, then {', '.join(named[1:])}"


def _taken(name: str) -> NameTaken:
    return NameTaken(f"a query of the set is called `{name}` already", hint="give it another name, or remove that one")


def _check_results(results: str) -> None:
    if results not in RESULTS:
        raise UnknownKind(
            f"there are no results `{results}`", hint=did_you_mean(results, RESULTS) or f"one of {', '.join(RESULTS)}"
        )


def _columns(events: Any, schema: Schema) -> tuple[pa.Schema, Schema, pa.Table | None]:
    """The columns of events, what they mean, and events, if there are some."""
    if isinstance(events, pa.Schema):
        return events, schema, None
    table, declared = to_table(tables_read(events), schema)
    return table.schema, declared, table

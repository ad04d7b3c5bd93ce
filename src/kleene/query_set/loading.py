"""How queries get into a set: one by one, as texts, or as rows of a table; whether they share or run by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.composition.graph_run import GraphRun
from kleene.composition.query_graph import QueryGraph
from kleene.engine.intake.strings import string_codes
from kleene.engine.query_sets.coming import PendingQueries, Refusals
from kleene.engine.query_sets.run import SharedRun
from kleene.engine.query_sets.shared_queries import FEW_QUERIES, SharedQueries, SharedTemplate
from kleene.engine.readiness import uncompiled_if_few
from kleene.errors import BadParameter, KleeneError, NameTaken, NoSuchQuery, UnknownKind, did_you_mean
from kleene.frames.arrow import value_type
from kleene.frames.numbers import to_numpy
from kleene.lang.literals import Plain
from kleene.optimize.streams.sharing import SharedPlan
from kleene.pattern.types import ValueType
from kleene.plan.program import NotCompilable
from kleene.queries.any_query import AnyQuery, read_query
from kleene.queries.feeding import bound_in_order, in_dependency_order
from kleene.queries.parameters import check_parameters
from kleene.queries.templates import Template, TemplateReader

# So many queries that came one by one are put in together.
_PENDING_AT_MOST = 1 << 11
# Where most of at least so many queries are gone, their memory is given back.
_WORTH_COMPACTING = 1 << 12
_LIFTED = frozenset({ValueType.INT, ValueType.FLOAT, ValueType.STRING, ValueType.BOOL})


@dataclass(frozen=True)
class Added:
    """What became of the rows of a table of queries.

    number    how many queries came in
    refused   a row for each that did not: its row number, its name, the code of the error and the whole message
    """

    number: int
    refused: pa.Table


@dataclass(frozen=True, eq=False)
class Alone:
    """A query that cannot share: it runs by itself."""

    query: AnyQuery
    why: str
    run: GraphRun


class LoadedQueries:
    """The queries of a set: those that share, those on their way there, and those that run by themselves.

    A query that comes lives from a moment on, `since`.
    """

    def __init__(self, shared: SharedQueries) -> None:
        self.shared = shared
        self.alone: dict[str, Alone] = {}
        self._reader = TemplateReader()
        # Why queries of a template run by themselves.
        self._refused: dict[Template, str] = {}
        self._pending = PendingQueries()
        self._automatic = 0

    def __len__(self) -> int:
        return self.shared.queries.live + len(self._pending) + len(self.alone)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return name in self.alone or name in self._pending.names or self.shared.queries.find(name) is not None

    @property
    def names(self) -> list[str]:
        self.flush()
        queries = self.shared.queries
        return [*queries.names(queries.numbers).to_pylist(), *self.alone]

    def number(self, name: str) -> int:
        """The number of a query that shares."""
        number = self.shared.queries.find(name)
        if number is None:
            raise NoSuchQuery(f"there is no query `{name}` in the set", hint=did_you_mean(name, self.names[:10_000]))
        return number

    # One query

    def add(
        self, text: str, name: str | None, params: Mapping[str, object] | None, spelling: str | None, since: int
    ) -> str:
        """Put in a query; its name."""
        prepared = self._prepared(text, params, spelling)
        named = name or self._next_name()
        with uncompiled_if_few(1, FEW_QUERIES, SharedPlan):
            self._check_free(named)
        if prepared is None:
            self._add_alone(read_query(text, named, params, spelling), named)
            return named
        template, constants = prepared
        self._pending.add(named, template, constants, since)
        if len(self._pending) >= _PENDING_AT_MOST:
            self.flush()
        return named

    def remove(self, name: str, run: SharedRun | None) -> None:
        """Remove a query; what waits for the others goes on in a run."""
        if name in self.alone:
            del self.alone[name]
            return
        if self._pending.removed(name):
            return
        with uncompiled_if_few(1, FEW_QUERIES, SharedPlan):
            self.shared.remove(self.number(name))
        queries = self.shared.queries
        if queries.size > _WORTH_COMPACTING and queries.live < queries.size // 2:
            self.shared.compact(run)

    def flush(self) -> None:
        """Put in what waits for that: one by one, queries would cost a hundred times as much."""
        for (template, since), (names, constants) in self._pending.taken():
            if not names:
                continue
            with uncompiled_if_few(len(names), FEW_QUERIES, SharedPlan):
                numbers, _ = self.shared.queries.reserve(pa.array(names))
            self.shared.add(template, self._columns_of(template, constants), numbers, since)

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
        if not self.shared.knows(template):
            check_parameters([template.query], self.shared.schema)
        return self.shared.template(template)

    def _columns_of(self, template: SharedTemplate, rows: Sequence[Sequence[Plain]]) -> dict[str, np.ndarray]:
        """By parameter, [query]: constants as arrays."""
        columns = {}
        for place, (name, kind) in enumerate(template.template.parameters):
            values: list[Any] = [row[place] for row in rows]
            if kind is ValueType.STRING:
                with uncompiled_if_few(len(rows), FEW_QUERIES, SharedPlan):
                    columns[name] = self.shared.values.strings.codes(values)
            else:
                columns[name] = np.array(values, np.float64 if kind is ValueType.FLOAT else np.int64)
        return columns

    # Those that run by themselves

    def _add_alone(self, query: AnyQuery, name: str) -> None:
        why = self._refused.get(self._reader.whole(query.text, query.params, query.spelling), "it cannot share")
        self.alone[name] = Alone(query, why, self.run_of(query))

    def run_of(self, query: AnyQuery) -> GraphRun:
        """A run of a query by itself that has seen no events."""
        schema, shared = self.shared.schema, self.shared
        bound = bound_in_order(in_dependency_order([query], schema), schema)
        return GraphRun(QueryGraph.of(bound, shared.columns, streams=0, several=False), shared.settings)

    def restart(self) -> None:
        """Let queries that run by themselves begin anew."""
        self.alone = {name: Alone(each.query, each.why, self.run_of(each.query)) for name, each in self.alone.items()}

    # Many queries

    def add_texts(self, texts: Iterable[str], names: Any, since: int) -> Added:
        """Put in queries that are texts."""
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
            number += self._put(template, self._columns_of(template, constants), np.array(rows), chosen, refused, since)
        for row, text in alone:
            name = column[row].as_py()
            try:
                self._check_free(name)
                self._add_alone(read_query(text, name), name)
                number += 1
            except KleeneError as problem:
                refused.add(row, problem)
        return Added(number, refused.table(column))

    def add_rows(self, text: str, table: pa.Table, names: Any, since: int) -> Added:
        """Put in queries of a template: a row of parameters each."""
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
                    template = self.shared.template(of_types)
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
            number += self._put(template, values, rows, named, refused, since)
        for row in np.flatnonzero(~known).tolist():
            name = column[row].as_py()
            try:
                self._check_free(name)
                params = {each: table.column(each)[row].as_py() for each in wanted}
                self.add(text, name, params, None, since)
                number += 1
            except KleeneError as problem:
                refused.add(row, problem)
        return Added(number, refused.table(column))

    def _parameter(self, column: pa.ChunkedArray, kind: ValueType) -> np.ndarray:
        """[row]: the values of a parameter."""
        if kind is ValueType.STRING:
            with uncompiled_if_few(len(column), FEW_QUERIES, SharedPlan):
                return string_codes(column.cast(pa.string()).combine_chunks(), self.shared.values.strings)[0]
        return to_numpy(column.cast(pa.float64() if kind is ValueType.FLOAT else pa.int64()))

    def _put(
        self,
        template: SharedTemplate,
        values: Mapping[str, np.ndarray],
        rows: np.ndarray,
        names: pa.Array,
        refused: Refusals,
        since: int,
    ) -> int:
        """Put in queries of one template whose names are free; how many there are."""
        self.flush()
        free = (
            np.array([name is not None and name not in self.alone for name in names.to_pylist()])
            if (names.null_count or self.alone)
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
            numbers, known = self.shared.queries.reserve(names)
        taken = known >= 0
        for row, name in zip(rows[taken].tolist(), names.filter(pa.array(taken)).to_pylist(), strict=True):
            refused.add(row, _taken(name))
        fresh = ~taken
        if fresh.any():
            own = values if fresh.all() else {name: array[fresh] for name, array in values.items()}
            self.shared.add(template, own, numbers[fresh], since)
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


def _taken(name: str) -> NameTaken:
    return NameTaken(f"a query of the set is called `{name}` already", hint="give it another name, or remove that one")

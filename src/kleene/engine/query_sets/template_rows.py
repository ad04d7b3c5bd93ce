"""Queries of one template that are no lines: one engine runs them all, each over the events that concern it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kleene.codegen.value_kinds import ValueKind
from kleene.engine.engine import Engine, check_bounded
from kleene.engine.output.gathering import taken_rows
from kleene.engine.output.identity import Hashes, event_hashes
from kleene.engine.query_sets.compiling import Parameters, SharedCompiler
from kleene.engine.query_sets.graph import QueryNodes
from kleene.engine.query_sets.held_events import steps_of
from kleene.engine.query_sets.intake import SharedIntake, compared_by_class
from kleene.engine.query_sets.lasting_arrays import with_some_room
from kleene.engine.query_sets.results import found_pairs
from kleene.engine.query_sets.run import SharedRun
from kleene.engine.query_sets.stored import ALWAYS_THERE, GONE
from kleene.engine.streams.cells import CellValues
from kleene.engine.streams.compiling import EventLayout
from kleene.engine.streams.intake import Points
from kleene.frames.arrow import arrow_type
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.kernels.expression import Ints
from kleene.kernels.opcodes import VALUE
from kleene.kernels.stream_instances import FIRST_VALUE
from kleene.optimize.streams.sharing import share
from kleene.optimize.template_rows import TemplateRows
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import EVENT_HASH, OWNER, OWNER_DIGEST
from kleene.pattern.types import ValueType
from kleene.plan.settings import Settings

# So many rows, of events with constants, go through an engine at once.
_AT_ONCE = 1 << 21


class PredicateIndex:
    """Which queries of a template an event concerns: conditions on single events, looked up by the event's values."""

    def __init__(self, rows: TemplateRows, columns: pa.Schema, layout: EventLayout, values: CellValues) -> None:
        self._values, self._layout, self._schema = values, layout, rows.query.schema
        self._nodes = QueryNodes(values.strings)
        types = {name: column.type for name, column in layout.columns.items()}
        self.plans = plans = [share(automaton, types) for automaton in rows.concerned]
        self._shaped = [self._nodes.shaped(SharedCompiler(plan, columns, layout).nodes()) for plan in plans]
        self._sources = {formula.source for plan in plans for formula in plan.plan.formulas}
        # [row, place among the ways to concern a query]: where it ends.
        self._ended = np.zeros((0, len(plans)), np.int32)

    @property
    def nbytes(self) -> int:
        return self._nodes.nbytes + int(self._ended.nbytes)

    def add(self, first: int, given: Parameters) -> None:
        """Put in the queries of the rows from `first` on."""
        rows = np.arange(first, first + given.size)
        self._ended = with_some_room(self._ended, first + given.size)
        for place, shaped in enumerate(self._shaped):
            self._ended[rows, place] = self._nodes.add(shaped, given, self._number(rows, place))
        self._nodes.freeze_if_many()

    def remove(self, row: int) -> None:
        for place in range(len(self._shaped)):
            self._nodes.remove(int(self._number(np.array([row]), place)[0]), int(self._ended[row, place]))

    def _number(self, rows: Ints, place: int) -> Ints:
        """What nodes know a row by, at one of the places where it ends."""
        return rows * len(self._shaped) + place

    def pairs(self, table: pa.Table, points: Points) -> tuple[Ints, Ints]:
        """Events by their places in a table, and the rows of queries that they concern: by event, each pair once."""
        atoms = tuple(self._nodes.shapes.columns)
        intake = SharedIntake(self._schema, self._layout, atoms, compared_by_class(self._sources, atoms))
        run = SharedRun(self._nodes, self._values)
        always = np.full(len(self._nodes.following), ALWAYS_THERE)
        # Event and row in one number.
        found, size = [np.zeros(0, np.int64)], max(len(self._ended), 1)
        for coming in intake.events(table, points, self._values, 0):
            for results in run.advance(coming):
                pairs = found_pairs(results, self._nodes.node_table, self._nodes.following, always)
                events = np.repeat(results.cells[:, FIRST_VALUE], pairs.counts)
                found.append(events * size + pairs.queries // len(self._shaped))
        each = np.unique(np.concatenate(found))
        return each // size, each % size


@dataclass(frozen=True, eq=False)
class RowMatches:
    """Matches of queries of one template.

    table     as an engine gives it, but that `query` has numbers
    queries   [match]: the number of its query
    """

    table: pa.Table
    queries: Ints


@dataclass(frozen=True, eq=False)
class QueryFacts:
    """What rows ask of the queries that they are: constants, [query, parameter], and what identifies them in ids."""

    constants: Callable[[Ints], Ints]
    digests: Callable[[Ints], Hashes]


class RowQueries:
    """The queries of one template, which one engine runs: rows are never used twice."""

    def __init__(
        self,
        query: BoundQuery,
        rows: TemplateRows,
        why_no_nodes: str,
        columns: pa.Schema,
        layout: EventLayout,
        values: CellValues,
    ) -> None:
        """No queries yet; `NotCompilable` where no engine runs the template.

        query          the template as it was written
        why_no_nodes   why its queries are not part of the automaton
        """
        self.query, self.rows, self.why_no_nodes, self._values = query, rows, why_no_nodes, values
        self.index = PredicateIndex(rows, columns, layout, values)
        self.size = 0
        # [row]: the number of its query, GONE when it is removed; and [query]: its row.
        self.numbers: Ints = np.full(0, GONE, np.int64)
        self._rows: Ints = np.full(0, GONE, np.int64)
        empty = columns.empty_table()
        nothing, no_hashes = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        facts = QueryFacts(lambda _: np.zeros((0, len(rows.columns)), np.int64), lambda _: no_hashes)
        self._no_events = self._owned(empty, nothing, nothing, no_hashes, facts)
        engine = Engine(rows.query)
        engine.check(self._no_events.schema)
        self.plan = engine.plan

    def add(self, numbers: Ints, given: Parameters) -> None:
        self.index.add(self.size, given)
        rows = np.arange(self.size, self.size + len(numbers))
        self.size += len(numbers)
        self.numbers = with_some_room(self.numbers, self.size, GONE)
        self.numbers[rows] = numbers
        self._rows = with_some_room(self._rows, int(numbers.max(initial=-1)) + 1, GONE)
        self._rows[numbers] = rows

    def remove(self, number: int) -> None:
        row = int(self._rows[number])
        self.index.remove(row)
        self.numbers[row] = GONE

    def renumber(self, old: Ints, new: Ints) -> None:
        """Queries have new numbers, in the order of the old ones; there are no others."""
        rows = self._rows[old]
        self._rows = np.full(int(new.max(initial=-1)) + 1, GONE, np.int64)
        self._rows[new], self.numbers[rows] = rows, new

    def check_bounded(self) -> None:
        """Refuse the template where its state could grow for ever on a stream."""
        check_bounded(self.rows.query, has_negated_end=self.plan.has_negated_end)

    # Events with constants

    def concerned(self, table: pa.Table, points: Points, queries: QueryFacts) -> Iterator[tuple[pa.Table, int | None]]:
        """The events of ordered rows that concern queries, once for each of these, some at a time.

        With each part the moment before which no event is left; None: it is the last part.
        """
        if not self.size or not table.num_rows:
            yield self._no_events, None
            return
        events, rows = self.index.pairs(table, points)
        hashes = event_hashes(self.query, table, steps_of(points))
        begin = 0
        while begin < len(events):
            end = self._cut(events, points.ends, begin)
            part = self._owned(table, events[begin:end], rows[begin:end], hashes, queries)
            yield part, None if end == len(events) else int(points.ends[events[end]])
            begin = end
        if not len(events):
            yield self._no_events, None

    def _cut(self, events: Ints, ends: Ints, begin: int) -> int:
        """Where a part of the pairs ends: not within one moment, and only where windows close."""
        end = begin + _AT_ONCE
        if end >= len(events) or self.query.window is None or self.query.window.events:
            return len(events)
        moment = ends[events[end]]
        first = int(np.searchsorted(ends[events], moment))
        return first if first > begin else int(np.searchsorted(ends[events], moment, side="right"))

    def _owned(self, table: pa.Table, events: Ints, rows: Ints, hashes: Hashes, queries: QueryFacts) -> pa.Table:
        """Events with the row of the query that each is for, and its constants."""
        distinct, places = np.unique(rows, return_inverse=True)
        numbers = self.numbers[distinct]
        constants, digests = queries.constants(numbers), queries.digests(numbers)
        owned = taken_rows(table, events)
        owned = owned.append_column(OWNER, to_arrow(rows))
        owned = owned.append_column(OWNER_DIGEST, to_arrow(digests[places].view(np.int64)))
        owned = owned.append_column(EVENT_HASH, to_arrow(hashes[events].view(np.int64)))
        types = self.rows.query.schema.columns or {}
        for place, column in enumerate(self.rows.columns.values()):
            owned = owned.append_column(
                column, self._values_of(constants[:, place], types[column]).take(to_arrow(places))
            )
        return owned

    def _values_of(self, cells: Ints, kind: ValueType) -> pa.Array:
        states = np.full(len(cells), VALUE, np.uint8)
        return self._values.to_arrow(np.ascontiguousarray(cells), states, ValueKind(kind), arrow_type(kind))


class RowRun:
    """A run of the queries of one template over events."""

    def __init__(self, queries: RowQueries, settings: Settings) -> None:
        self._queries = queries
        self._engine = Engine(queries.rows.query, settings)

    @property
    def state_bytes(self) -> int:
        return self._engine.nbytes

    def match(self, table: pa.Table, points: Points, watermark: int | None, facts: QueryFacts) -> Iterator[RowMatches]:
        """Take in settled rows in their order, all that end before a watermark; None ends time."""
        for part, before in self._queries.concerned(table, points, facts):
            moment = watermark if before is None else before
            outputs = self._engine.finish(part) if moment is None else self._engine.process(part, moment)
            if outputs.matches is not None and outputs.matches.num_rows:
                yield from self._of_queries(outputs.matches)

    def _of_queries(self, matches: pa.Table) -> Iterator[RowMatches]:
        """The matches of queries that are still there."""
        rows = to_numpy(matches.column("query").cast(pa.int64()))
        numbers = self._queries.numbers[rows]
        if (numbers == GONE).any():
            there = numbers != GONE
            matches, numbers = matches.filter(to_arrow(there)), numbers[there]
        if len(numbers):
            yield RowMatches(matches, numbers)

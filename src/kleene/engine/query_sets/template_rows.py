"""Queries of one template that are no lines: one engine runs them all, each over the events that concern it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kleene.codegen.value_kinds import ValueKind
from kleene.engine.engine import Engine, check_bounded
from kleene.engine.output.identity import Hashes, event_hashes
from kleene.engine.query_sets.compiling import Parameters, SharedCompiler
from kleene.engine.query_sets.graph import QueryNodes
from kleene.engine.query_sets.held_events import steps_of
from kleene.engine.query_sets.intake import SharedIntake, compared_by_class
from kleene.engine.query_sets.lasting_arrays import with_some_room
from kleene.engine.query_sets.results import found_pairs
from kleene.engine.query_sets.run import SharedRun
from kleene.engine.query_sets.stored import ALWAYS_THERE, GONE
from kleene.engine.state.event_rows import taken_rows
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
from kleene.pattern.schema import EVENT_HASH, OWNER, OWNER_DIGEST, SHARED_ID
from kleene.pattern.types import ValueType
from kleene.plan.settings import Settings

# So many rows, of events with constants, go through an engine at once.
_AT_ONCE = 1 << 21
# So many queries are put in at once.
_AT_ONCE_IN = 1 << 14


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
    content   [match]: the same number for the same match of several queries
    """

    table: pa.Table
    queries: Ints
    content: Ints


@dataclass(frozen=True, eq=False)
class QueryFacts:
    """What rows ask of the queries that they are: constants, [query, parameter], and what identifies them in ids."""

    constants: Callable[[Ints], Ints]
    digests: Callable[[Ints], Hashes]


class RowQueries:
    """The queries of one template, which one engine runs.

    To the engine, which keeps its own of what waits for it, a query is a number that no other query ever has: its row.
    Here queries have places in the order of their rows, which change when the memory of those that are gone is given
    back.
    """

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
        self._columns, self._layout = columns, layout
        self.index = PredicateIndex(rows, columns, layout, values)
        # How many queries there were, and how many places there are.
        self._last_row, self.size = 0, 0
        # [place]: the row, and the number of the query, GONE when it is removed; and [query]: its place.
        self._rows: Ints = np.zeros(0, np.int64)
        self._numbers: Ints = np.full(0, GONE, np.int64)
        self._places: Ints = np.full(0, GONE, np.int64)
        empty = columns.empty_table()
        nothing, no_hashes = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        facts = QueryFacts(lambda _: np.zeros((0, len(rows.columns)), np.int64), lambda _: no_hashes)
        self._no_events = self._owned(empty, nothing, nothing, no_hashes, facts)
        engine = Engine(rows.query)
        engine.check(self._no_events.schema)
        self.plan = engine.plan

    def add(self, numbers: Ints, given: Parameters) -> None:
        self.index.add(self.size, given)
        rows = np.arange(self._last_row, self._last_row + len(numbers))
        self._last_row += len(numbers)
        self._put(numbers, rows)

    def _put(self, numbers: Ints, rows: Ints) -> None:
        places = np.arange(self.size, self.size + len(numbers))
        self.size += len(numbers)
        self._rows = with_some_room(self._rows, self.size)
        self._numbers = with_some_room(self._numbers, self.size, GONE)
        self._places = with_some_room(self._places, int(numbers.max(initial=-1)) + 1, GONE)
        self._rows[places], self._numbers[places], self._places[numbers] = rows, numbers, places

    def remove(self, number: int) -> None:
        place = int(self._places[number])
        self.index.remove(place)
        self._numbers[place] = GONE

    def compact(self, old: Ints, new: Ints, given: Callable[[Ints], Parameters]) -> None:
        """Give back the memory of queries that are gone; those that are left have new numbers.

        given   the constants of some of them, by their places among the old numbers
        """
        order = np.argsort(self._places[old])
        rows = self._rows[self._places[old[order]]]
        self.index = PredicateIndex(self.rows, self._columns, self._layout, self._values)
        for begin in range(0, len(order), _AT_ONCE_IN):
            self.index.add(begin, given(order[begin : begin + _AT_ONCE_IN]))
        self.size = 0
        self._rows, self._numbers, self._places = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._put(new[order], rows)

    def numbers_of(self, rows: Ints) -> Ints:
        """[row]: the number of the query; GONE when it is removed."""
        if not self.size:
            return np.full(len(rows), GONE, np.int64)
        places = np.minimum(np.searchsorted(self._rows[: self.size], rows), self.size - 1)
        return np.where(self._rows[places] == rows, self._numbers[places], GONE)

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
        events, places = self.index.pairs(table, points)
        hashes = event_hashes(self.query, table, steps_of(points))
        begin = 0
        while begin < len(events):
            end = self._cut(events, points.ends, begin)
            part = self._owned(table, events[begin:end], places[begin:end], hashes, queries)
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

    def _owned(self, table: pa.Table, events: Ints, owners: Ints, hashes: Hashes, queries: QueryFacts) -> pa.Table:
        """Events with the row of the query that each is for, and its constants.

        owners   [event]: the places of the queries
        """
        distinct, places = np.unique(owners, return_inverse=True)
        numbers = self._numbers[distinct]
        constants, digests = queries.constants(numbers), queries.digests(numbers)
        owned = taken_rows(table, events)
        owned = owned.append_column(OWNER, to_arrow(self._rows[owners]))
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
        numbers = self._queries.numbers_of(to_numpy(matches.column("query").cast(pa.int64())))
        if (numbers == GONE).any():
            there = numbers != GONE
            matches, numbers = matches.filter(to_arrow(there)), numbers[there]
        if len(numbers):
            content = matches.column(SHARED_ID).combine_chunks().dictionary_encode().indices
            yield RowMatches(matches.drop_columns([SHARED_ID]), numbers, to_numpy(content).astype(np.int64))

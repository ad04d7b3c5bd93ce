"""One slot of a division: its events in the order of time, its queries and their outputs.

Events go through engines piece by piece, so that memory follows the window and not the slot. A query that no engine
runs, or that has no window, takes the slot's events at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.composition.graph_run import GraphRun
from kleene.composition.query_graph import QueryGraph, QueryNode
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.readiness import run_when_ready
from kleene.engine.warming import all_kept
from kleene.frames.arrow import as_integers, schema_on
from kleene.frames.compressed import some_rows
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.frames.results import several_table
from kleene.frames.type_names import types_among
from kleene.lang.tree import OutputMode
from kleene.optimize.detections.planning import plan_detections
from kleene.optimize.streams.automaton import plan_stream
from kleene.optimize.streams.bounds import unbounded_state
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery, AnyQuery
from kleene.queries.feeding import bound_in_order, in_dependency_order
from kleene.spark.packing import Piece, Slices

# So many events wait before they are matched; more would have more matches at a time than a worker should hold.
_MOST_WAITING = 1 << 16
RANK = "kleene rank"
# The kind of output that says that events of a type are there; the type follows.
TYPE_SEEN = "type "


@dataclass(frozen=True)
class SlotGroup:
    """A group of slots: which queries it serves, and which columns its events have.

    queries   by number
    base      the number of its first slot, of so many `slots`
    slices    how time is cut, where it is; a match belongs to the slice in which it ends (`by_end`) or begins, and a
              timeout to that in which it begins
    finds     whether a later task applies NON_OVERLAP to the matches of all slots; each then has its rank in its slot
    per_task  whether it has a slot for each of Spark's tasks for the state of a stream; `slots` is the session's number
    """

    queries: tuple[int, ...]
    columns: tuple[str, ...]
    base: int
    slots: int
    slices: Slices | None = None
    by_end: bool = False
    finds: bool = False
    per_task: bool = False


class OutputChunk(NamedTuple):
    """Rows of an output of a query, or a number to be added up."""

    query: int
    kind: str
    number: int
    rows: pa.Table | None = None


@dataclass(frozen=True)
class TaskContext:
    """The queries of a task, the columns of its events, and its slots."""

    queries: Sequence[AnyQuery]
    schema: Schema
    columns: pa.Schema
    parts: Sequence[SlotGroup]
    several: bool = False
    settings: Settings = field(default_factory=Settings)

    def part_of(self, slot: int) -> SlotGroup:
        return next(part for part in self.parts if part.base <= slot < part.base + part.slots)

    @cached_property
    def bound(self) -> Mapping[int, AnyBoundQuery]:
        known = schema_on(self.columns, self.schema)
        return dict(bound_in_order(in_dependency_order(self.queries, known), known))

    @cached_property
    def _graphs(self) -> Mapping[int, QueryGraph]:
        """By the first slot of a group."""
        graphs = {}
        for part in self.parts:
            served = frozenset(part.queries)
            queries = [
                (number, _finding(query) if part.finds and not self.several else query)
                for number, query in self.bound.items()
                if number in served
            ]
            columns = pa.schema([self.columns.field(name) for name in part.columns])
            graphs[part.base] = QueryGraph.of(queries, columns, streams=self._streams, several=self.several)
        return graphs

    def graph_of(self, part: SlotGroup) -> QueryGraph:
        """The queries that a group of slots serves, on the columns that its events have."""
        return self._graphs[part.base]

    @cached_property
    def _streams(self) -> int:
        """The number of streams that the events come from."""
        return len(schema_on(self.columns, self.schema).streams)

    @cached_property
    def several_columns(self) -> pa.Schema:
        """The columns of one table for the matches of all queries."""
        every = QueryGraph.of(list(self.bound.items()), self.columns, streams=self._streams, several=True)
        return every.several_columns

    @cached_property
    def _on_reference(self) -> Mapping[int, Mapping[int, str]]:
        """By the first slot of a group, what `on_reference` gives."""
        return {base: graph.on_reference(self.settings) for base, graph in self._graphs.items()}

    def on_reference(self, part: SlotGroup) -> Mapping[int, str]:
        """The queries of a group that no engine can run, by number, and why."""
        return self._on_reference[part.base]

    def runs_in_pieces(self, part: SlotGroup) -> bool:
        """Whether engines can take the events of a slot piece by piece, and forget those whose windows have closed."""
        known = self.on_reference(part)
        return all(_forgets(node) and node.number not in known for node in self.graph_of(part).nodes)


def _finding(query: AnyBoundQuery) -> AnyBoundQuery:
    """A query that gives all of its matches, of which a later task selects some."""
    return replace(query, output=OutputMode.ALL) if isinstance(query, BoundQuery) else query


def _forgets(node: QueryNode) -> bool:
    """Whether a query needs events for a limited time."""
    query = node.runs
    if isinstance(query, BoundEqlQuery):
        return plan_detections(query).unbounded is None
    if isinstance(query, BoundQuery):
        return query.window is not None
    return unbounded_state(plan_stream(query)) is None


def slot_outputs(work: TaskContext, slot: int, pieces: Iterable[Piece]) -> Iterator[OutputChunk]:
    """All outputs of the queries of a slot on its events."""
    part = work.part_of(slot)
    seen = _Counted(work, part, slot)
    tables = ((piece.begin, seen.of(named(piece.events, part, work.columns))) for piece in pieces)
    for chunk in _query_outputs(work, part, tables):
        if chunk.rows is None or part.slices is None:
            yield chunk
            continue
        rows = _owned(chunk.kind, chunk.rows, part, slot)
        yield OutputChunk(chunk.query, chunk.kind, rows.num_rows, rows)
    yield OutputChunk(part.queries[0], "kept", seen.events)
    yield from types_seen(work, part, seen.types)


def types_seen(work: TaskContext, part: SlotGroup, types: Collection[str]) -> Iterator[OutputChunk]:
    """The types that queries name and events have: for each a chunk of its own kind, without rows."""
    for number in part.queries:
        for name in work.bound[number].types:
            if name in types:
                yield OutputChunk(number, f"{TYPE_SEEN}{name}", 1)


def named(events: pa.Table, part: SlotGroup, columns: pa.Schema) -> pa.Table:
    """The events under their own names and types.

    Columns come numbered, timestamps in the session's time zone, and strings as wide as its settings say.
    """
    return events.rename_columns(list(part.columns)).cast(pa.schema([columns.field(name) for name in part.columns]))


def _owned(kind: str, rows: pa.Table, part: SlotGroup, slot: int) -> pa.Table:
    """The rows that belong to this slice; its neighbours find the others."""
    by_end = part.by_end and kind != "timeouts"
    here = _own(rows.column("end" if by_end else "start"), part, slot)
    return rows if here.all() else some_rows(rows, here)


def _own(times: pa.ChunkedArray, part: SlotGroup, slot: int) -> npt.NDArray[np.bool_]:
    assert part.slices is not None
    own: npt.NDArray[np.bool_] = part.slices.owner(to_numpy(as_integers(times))) == slot - part.base
    return own


class _Counted:
    """Counts the events that are a slot's own, and their types; those around a slice are counted elsewhere."""

    def __init__(self, work: TaskContext, part: SlotGroup, slot: int) -> None:
        self._part, self._slot, self._time = part, slot, work.schema.time
        self.events = 0
        # The types of events, as far as queries name them; once all have been met, no further event is looked at.
        self.types: set[str] = set()
        self._wanted = {name for number in part.queries for name in work.bound[number].types}
        self._type = None if work.schema.constant_type is not None else work.schema.type

    def of(self, table: pa.Table) -> pa.Table:
        if self._type in table.column_names and not self.types.issuperset(self._wanted):
            self.types |= types_among(table.column(self._type), self._wanted)
        if self._part.slices is None:
            self.events += table.num_rows
        else:
            self.events += int(_own(table.column(self._time), self._part, self._slot).sum())
        return table


# Runs --------------------------------------------------------------------------------------------------------------


def _query_outputs(work: TaskContext, part: SlotGroup, tables: Iterator[tuple[int, pa.Table]]) -> Iterator[OutputChunk]:
    batches = _batches(tables, _MOST_WAITING if work.runs_in_pieces(part) else None)
    batch, watermark = next(batches)
    if watermark is not None or all_kept():
        return _run(work, part, new_run(work, part), chain([(batch, watermark)], batches))

    def whole(graph: GraphRun) -> list[OutputChunk]:
        return list(_run(work, part, graph, [(batch, None)]))

    return iter(run_when_ready(lambda: new_run(work, part), attrgetter("plans"), whole, batch.num_rows))


def new_run(work: TaskContext, part: SlotGroup, snapshots: Mapping[int, bytes] | None = None) -> GraphRun:
    """A run of the queries of a slot, from the beginning or from snapshots."""
    return GraphRun(work.graph_of(part), work.settings, on_reference=work.on_reference(part), snapshots=snapshots)


def _run(
    work: TaskContext, part: SlotGroup, graph: GraphRun, batches: Iterable[tuple[pa.Table, int | None]]
) -> Iterator[OutputChunk]:
    rank = 0
    for batch, watermark in batches:
        for node, outputs in graph.finish(batch) if watermark is None else graph.process(batch, watermark):
            for chunk in output_chunks(work, node, outputs):
                yield _ranked(chunk, part, rank)
                rank += chunk.number
    for number, dropped in graph.dropped.items():
        if dropped:
            yield OutputChunk(number, "dropped", dropped)


def _batches(tables: Iterator[tuple[int, pa.Table]], most: int | None) -> Iterator[tuple[pa.Table, int | None]]:
    """A slot's events in batches worth a call, each with how far time has come; None at the end.

    most   how many events wait for a call; None: all of them
    """
    waiting: list[pa.Table] = []
    size = 0
    for begin, table in tables:
        if most is not None and size >= most:
            # Nothing before the next piece is still to come.
            yield pa.concat_tables(waiting), begin
            waiting, size = [], 0
        waiting.append(table)
        size += table.num_rows
    yield pa.concat_tables(waiting), None


def _in_one_table(work: TaskContext, chunk: OutputChunk) -> OutputChunk:
    """The output of one query as part of the outputs of all."""
    rows = chunk.rows
    if chunk.kind == "matches" and rows is not None:
        rows = several_table([(work.bound[chunk.query], rows)], work.several_columns)
    return chunk._replace(query=0, rows=rows)


def output_chunks(work: TaskContext, node: QueryNode, outputs: EngineOutputs) -> Iterator[OutputChunk]:
    """The outputs of a query in one step, in its own tables or in those of all queries."""
    for kind in ("matches", "timeouts", "compressed"):
        rows: pa.Table | None = getattr(outputs, kind)
        if rows is not None and rows.num_rows:
            chunk = OutputChunk(node.number, kind, rows.num_rows, rows)
            yield _in_one_table(work, chunk) if work.several else chunk


def _ranked(chunk: OutputChunk, part: SlotGroup, first: int) -> OutputChunk:
    """The chunk with the rank of each match, where a later task selects among matches."""
    if not part.finds or chunk.kind != "matches" or chunk.rows is None:
        return chunk
    ranks = to_arrow(np.arange(first, first + chunk.number, dtype=np.int64))
    return chunk._replace(rows=chunk.rows.append_column(RANK, ranks))

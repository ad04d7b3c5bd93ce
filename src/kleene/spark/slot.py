"""One slot of a division: its events in the order of time, its queries, what they make.

Events go through engines piece by piece, so that memory follows the window and not the slot. What no engine runs, what
has no window, and queries that feed each other take the slot's events at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.compiling import why_not_compiled
from kleene.engine.engine import Batch, Engine
from kleene.engine.readiness import when_ready
from kleene.engine.warming import all_kept
from kleene.evaluation import evaluate
from kleene.frames.arrow import as_integers, schema_on, with_columns
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.frames.results import several_schema, several_table
from kleene.frames.type_names import types_among
from kleene.lang.tree import OutputMode
from kleene.optimize.planner import plan_query
from kleene.pattern.feeding import bound_in_order, families, in_dependency_order
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.spark.packing import Piece, Slices

# So many events wait before they are matched; more would have more matches at a time than a worker should hold.
_MOST_WAITING = 1 << 16
RANK = "kleene rank"
# The kind of output that says that events of a type are there; the type follows.
TYPE_SEEN = "type "


@dataclass(frozen=True)
class Part:
    """A group of slots: which queries it serves, and which columns its events have.

    queries   by number
    base      the number of its first slot, of so many `slots`
    slices    how time is cut, where it is; a match belongs to the slice in which it ends (`by_end`) or begins, and a
              timeout to that in which it begins
    finds     whether NON_OVERLAP is left to whoever sees the matches of all slots; each then has its rank in its slot
    """

    queries: tuple[int, ...]
    columns: tuple[str, ...]
    base: int
    slots: int
    slices: Slices | None = None
    by_end: bool = False
    finds: bool = False


class Made(NamedTuple):
    """Rows of an output of a query, or a number to be added up."""

    query: int
    kind: str
    number: int
    rows: pa.Table | None = None


@dataclass(frozen=True)
class Work:
    """What a task knows."""

    queries: Sequence[Query]
    schema: Schema
    columns: pa.Schema
    parts: Sequence[Part]
    several: bool = False
    settings: Settings = field(default_factory=Settings)

    def part_of(self, slot: int) -> Part:
        return next(part for part in self.parts if part.base <= slot < part.base + part.slots)

    @cached_property
    def bound(self) -> Mapping[int, BoundQuery]:
        known = schema_on(self.columns, self.schema)
        return dict(bound_in_order(in_dependency_order(self.queries, known), known))

    @cached_property
    def several_columns(self) -> pa.Schema:
        """The columns of one table for the matches of all queries."""
        return several_schema([self.bound[number] for number in range(len(self.queries))], self.columns)

    @cached_property
    def in_pieces(self) -> frozenset[int]:
        """The queries that read no other one's events, and that an engine can run piece by piece."""
        made = {name for query in self.bound.values() for name in query.makes}
        return frozenset(
            number
            for number, query in self.bound.items()
            if query.window is not None
            and not made.intersection(query.types)
            and why_not_compiled(query, self.columns, self.settings) is None
        )

    @cached_property
    def replayed(self) -> frozenset[int]:
        """The queries that no engine runs on a stream: those of families, and those that an engine cannot run."""
        numbers = list(self.bound)
        alone = {numbers[family[0]] for family in families(list(self.bound.values())) if len(family) == 1}
        return frozenset(
            number
            for number in numbers
            if number not in alone or why_not_compiled(self.bound[number], self.columns, self.settings) is not None
        )


def made_in(work: Work, slot: int, pieces: Iterable[Piece]) -> Iterator[Made]:
    """Everything that the queries of a slot make of its events."""
    part = work.part_of(slot)
    seen = _Counted(work, part, slot)
    tables = ((piece.begin, seen.of(named(piece.events, part, work.columns))) for piece in pieces)
    made = _in_pieces(work, part, tables) if work.in_pieces.issuperset(part.queries) else _at_once(work, part, tables)
    for one in made:
        if one.rows is None or part.slices is None:
            yield one
            continue
        rows = _owned(one.kind, one.rows, part, slot)
        yield Made(one.query, one.kind, rows.num_rows, rows)
    yield Made(part.queries[0], "kept", seen.events)
    yield from types_made_known(work, part, seen.types)


def types_made_known(work: Work, part: Part, types: Collection[str]) -> Iterator[Made]:
    """Which of the types that queries name there are: a kind of output for each, of no rows."""
    for number in part.queries:
        for name in work.bound[number].types:
            if name in types:
                yield Made(number, f"{TYPE_SEEN}{name}", 1)


def named(events: pa.Table, part: Part, columns: pa.Schema) -> pa.Table:
    """Columns come numbered, timestamps in the session's time zone, and strings as wide as its settings say."""
    return events.rename_columns(list(part.columns)).cast(pa.schema([columns.field(name) for name in part.columns]))


def _owned(kind: str, rows: pa.Table, part: Part, slot: int) -> pa.Table:
    """The rows that belong to this slice; its neighbours find the others."""
    by_end = part.by_end and kind != "timeouts"
    here = _own(rows.column("end" if by_end else "start"), part, slot)
    return rows if here.all() else rows.filter(to_arrow(here))


def _own(times: pa.ChunkedArray, part: Part, slot: int) -> npt.NDArray[np.bool_]:
    assert part.slices is not None
    own: npt.NDArray[np.bool_] = part.slices.owner(to_numpy(as_integers(times))) == slot - part.base
    return own


class _Counted:
    """How many events a slot has of its own, and their types; those from around a slice are counted elsewhere."""

    def __init__(self, work: Work, part: Part, slot: int) -> None:
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


# Piece by piece ----------------------------------------------------------------------------------------------------


def _in_pieces(work: Work, part: Part, tables: Iterator[tuple[int, pa.Table]]) -> Iterator[Made]:
    batches = _batches(tables)
    batch, watermark = next(batches)
    if watermark is not None or all_kept():
        return _from_engines(work, part, chain([(batch, watermark)], batches))
    plans = [plan_query(asked(work, part, number), work.settings) for number in part.queries]
    return iter(when_ready(lambda: list(_from_engines(work, part, [(batch, None)])), batch.num_rows, *plans))


def _from_engines(work: Work, part: Part, batches: Iterable[tuple[pa.Table, int | None]]) -> Iterator[Made]:
    engines = {number: Engine(asked(work, part, number), work.settings) for number in part.queries}
    rank = 0
    for batch, watermark in batches:
        for number, engine in engines.items():
            given = [engine.process(batch, watermark)]
            if watermark is None:
                given.append(engine.finish())
            for one in given:
                for made in made_of(work, number, one):
                    yield _ranked(made, part, rank)
                    rank += made.number
    for number, engine in engines.items():
        if engine.statistics.dropped:
            yield Made(number, "dropped", engine.statistics.dropped)


def _batches(tables: Iterator[tuple[int, pa.Table]]) -> Iterator[tuple[pa.Table, int | None]]:
    """A slot's events in batches worth a call, each with how far time has come; None at the end."""
    waiting: list[pa.Table] = []
    size = 0
    for begin, table in tables:
        if size >= _MOST_WAITING:
            # Nothing before the next piece is still to come.
            yield pa.concat_tables(waiting), begin
            waiting, size = [], 0
        waiting.append(table)
        size += table.num_rows
    yield pa.concat_tables(waiting), None


def asked(work: Work, part: Part, number: int) -> BoundQuery:
    query = work.bound[number]
    if work.several:
        return query.listing()
    return replace(query, output=OutputMode.ALL) if part.finds else query


def _in_one_table(work: Work, made: Made) -> Made:
    """What a query made, as part of the outputs of all."""
    rows = made.rows
    if made.kind == "matches" and rows is not None:
        rows = several_table([(work.bound[made.query], rows)], work.several_columns)
    return made._replace(query=0, rows=rows)


def made_of(work: Work, number: int, batch: Batch) -> Iterator[Made]:
    """What a query made of a batch, in its own tables or in those of all queries."""
    for kind in ("matches", "timeouts", "compressed"):
        rows: pa.Table | None = getattr(batch, kind)
        if rows is not None and rows.num_rows:
            made = Made(number, kind, rows.num_rows, rows)
            yield _in_one_table(work, made) if work.several else made


def _ranked(made: Made, part: Part, first: int) -> Made:
    """With the order in which matches were found, where somebody else selects among them."""
    if not part.finds or made.kind != "matches" or made.rows is None:
        return made
    ranks = to_arrow(np.arange(first, first + made.number, dtype=np.int64))
    return made._replace(rows=made.rows.append_column(RANK, ranks))


# At once -----------------------------------------------------------------------------------------------------------


def _at_once(work: Work, part: Part, tables: Iterator[tuple[int, pa.Table]]) -> Iterator[Made]:
    return made_at_once(work, part.queries, pa.concat_tables([table for _, table in tables]))


def made_at_once(work: Work, numbers: Sequence[int], events: pa.Table) -> Iterator[Made]:
    """What some of the queries make of events, of which all are there."""
    # The queries' types may declare columns that nobody reads.
    table = with_columns(events, work.columns)
    listed = [work.queries[number] for number in numbers]
    for place, number in enumerate(numbers[:1] if work.several else numbers):
        # The result is that of the first query; those that feed it may follow.
        queries = [listed[place], *listed[:place], *listed[place + 1 :]]
        made = evaluate(table, queries, schema=work.schema, several=work.several, settings=work.settings)
        for kind in ("matches", "timeouts", "compressed"):
            rows: pa.Table | None = getattr(made, kind)
            if rows is not None and not work.several:
                # Those of the others come with them.
                rows = rows.filter(pc.equal(rows.column("query"), work.bound[number].name))
            if rows is not None:
                yield Made(0 if work.several else number, kind, rows.num_rows, rows)

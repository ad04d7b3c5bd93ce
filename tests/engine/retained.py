"""What the reference found as an engine would hold it, to compare tables of results with the reference's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.executors.windows import NEVER
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.strings import StringPool
from kleene.engine.output.matches import Matches
from kleene.engine.output.ordering import Spans
from kleene.engine.output.returned import check_returns, columns_returned
from kleene.engine.output.tables import match_table, timeout_table
from kleene.engine.state.event_rows import EventRows
from kleene.frames.streams import to_table
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.reference import tables as expected_tables
from kleene.reference.evaluator import Result, reference_results
from kleene.reference.matches import Match
from kleene.reference.timeline import ReferenceTimeline


@dataclass(frozen=True)
class Retained:
    """What the reference found, as an engine would hold it: events numbered in canonical order."""

    result: Result
    table: pa.Table
    spans: Spans
    numbers: dict[int, int]

    @staticmethod
    def of(result: Result, whole: pa.Table) -> Retained:
        query = result.query
        names = query.columns_read if query.columns_read is not None else whole.column_names
        timeline = ReferenceTimeline.of(result.events, query.schema, names, query.partition)
        steps = {event.index: number for number, step in enumerate(timeline.steps) for event in step}
        rows = [event.index for event in timeline.events]
        spans = Spans(
            np.array([steps[row] for row in rows], np.int64),
            np.array([event.start for event in timeline.events], np.int64),
            np.array([event.end for event in timeline.events], np.int64),
        )
        numbers = {row: number for number, row in enumerate(rows)}
        return Retained(result, whole.take(pa.array(rows, pa.int64())), spans, numbers)

    @property
    def query(self) -> BoundQuery:
        return self.result.query

    def flat(self, matches: Sequence[Match]) -> Matches:
        offsets, events, variables = [0], [], []
        for match in matches:
            for place, component in enumerate(self.query.positives):
                for event in match.selected.get(component.variable, ()):
                    events.append(self.numbers[event.index])
                    variables.append(place)
            offsets.append(len(events))
        return Matches(np.array(offsets, np.int64), np.array(events, np.int64), np.array(variables, np.uint8))

    def made(self, matches: Sequence[Match]) -> pa.Table:
        strings = StringPool()
        store = ColumnStore.from_table(self.table, columns_returned(self.query), self.query.schema, strings)
        return match_table(self.query, EventRows(self.table), self.spans, self.flat(matches), store, strings)


def evaluated(events: Any, query: Query, schema: Schema) -> tuple[Retained, pa.Table]:
    table, given = to_table(events, schema.declaring(query.tree.declarations))
    (result,) = reference_results(table, [query], schema=given)
    return Retained.of(result, table), table


def compare(retained: Retained, whole: pa.Table, rng: random.Random) -> None:
    check_returns(retained.query, whole.schema)
    wanted = expected_tables.match_table(retained.result, whole)
    matches = list(retained.result.matches)
    for _ in range(2):
        made = retained.made(matches)
        made.validate(full=True)
        assert made.schema == wanted.schema
        assert made.to_pylist() == wanted.to_pylist()
        # As an executor gives them: in the order of their ends, or in none.
        rng.shuffle(matches)
        if rng.random() < 0.5:
            matches.sort(key=lambda match: match.end)
    if retained.query.timeouts is not None:
        late = list(retained.result.late)
        rng.shuffle(late)
        closed = np.array([NEVER if timeout.closed is None else timeout.closed for timeout in late], np.int64)
        prefixes = retained.flat([timeout.prefix for timeout in late])
        made = timeout_table(retained.query, EventRows(retained.table), retained.spans, prefixes, closed)
        wanted = expected_tables.timeout_table(retained.result, whole)
        made.validate(full=True)
        assert made.schema == wanted.schema
        assert made.to_pylist() == wanted.to_pylist()

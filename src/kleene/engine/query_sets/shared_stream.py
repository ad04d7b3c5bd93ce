"""A run of a set's queries over events: of those that share nodes, and of templates that have engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kleene.engine.intake.arrivals import Arrivals
from kleene.engine.query_sets.held_events import HeldEvents
from kleene.engine.query_sets.results import SharedFound, found_pairs
from kleene.engine.query_sets.run import SharedRun
from kleene.engine.query_sets.shared_queries import Found, SharedQueries
from kleene.engine.query_sets.stored import ALWAYS_THERE
from kleene.engine.query_sets.template_rows import RowMatches, RowRun
from kleene.engine.streams.intake import Points
from kleene.frames.rows import BadRow
from kleene.kernels.shared_machine import SharedResults
from kleene.kernels.shared_nodes import LEADS_TO
from kleene.kernels.stream_instances import FIRST_VALUE
from kleene.pattern.query import BoundQuery


class SharedStream:
    """A run of a set's queries over events."""

    def __init__(self, shared: SharedQueries, *, lives: bool = True) -> None:
        """A run that has seen no events; `lives`: queries that come later have no results from before."""
        self._shared, self._lives = shared, lives
        self._arrivals = Arrivals(shared.schema)
        self.run = SharedRun(shared.nodes, shared.values)
        self._events = HeldEvents()
        self._row_runs: dict[int, RowRun] = {}
        # Those that the instances know of.
        self._removals = shared.removals

    @property
    def moment(self) -> int:
        """The moment from which on a query lives that comes now: nothing that ends earlier is still to come."""
        return ALWAYS_THERE if self._arrivals.watermark is None else self._arrivals.watermark

    @property
    def state_bytes(self) -> int:
        """The bytes of what waits."""
        rows = sum(each.state_bytes for each in self._row_runs.values())
        return self.run.state_bytes + self._events.nbytes + rows

    def process(self, batch: pa.Table, watermark: int | None) -> tuple[list[Found], list[BadRow], pa.Table]:
        """Take in a batch, and match the events that the watermark has passed; bad rows and late events beside."""
        bad, late = self._arrivals.add(batch)
        return ([] if watermark is None else self._match(watermark)), bad, late

    def finish(self, batch: pa.Table) -> tuple[list[Found], list[BadRow], pa.Table]:
        """Take in the last batch, which ends time."""
        bad, late = self._arrivals.add(batch)
        return self._match(None), bad, late

    def _match(self, watermark: int | None) -> list[Found]:
        table = self._arrivals.settled(watermark)
        if table is None:
            return []
        if self._removals != self._shared.removals:
            # Instances of queries that are gone wait no longer; time has nothing to do with it.
            self.run.expire(ALWAYS_THERE)
            self._removals = self._shared.removals
        found: list[SharedFound] = []
        intake = self._shared.intake
        rows, points = intake.ordered(table)
        first = self._events.end
        self._events.add(rows, points)
        for events in intake.events(rows, points, self._shared.values, first):
            for results in self.run.advance(events):
                found += self._found(results)
        if self._arrivals.watermark is not None:
            self.run.expire(self._arrivals.watermark)
        found = self._with_events(found)
        oldest = self.run.oldest_event()
        self._events.drop_before(self._events.end if oldest is None else oldest)
        passed = None if watermark is None else self._arrivals.watermark
        return [*found, *self._of_rows(rows, points, passed)]

    def _of_rows(self, rows: pa.Table, points: Points, watermark: int | None) -> Iterator[RowMatches]:
        """The matches of templates that are no lines."""
        shared = self._shared
        facts = shared.facts
        for number, queries in shared.row_templates.items():
            if number not in self._row_runs:
                self._row_runs[number] = RowRun(queries, shared.settings)
            yield from self._row_runs[number].match(rows, points, watermark, facts(number))

    def _with_events(self, found: list[SharedFound]) -> list[SharedFound]:
        """The same with the events of lines."""
        of_lines = [isinstance(each.query, BoundQuery) and len(each.pairs.queries) > 0 for each in found]
        if not any(of_lines):
            return found
        firsts = (each.results.cells[:, FIRST_VALUE].min() for each, line in zip(found, of_lines, strict=True) if line)
        events = self._events.from_number(int(min(firsts)))
        return [replace(each, events=events) if line else each for each, line in zip(found, of_lines, strict=True)]

    def _found(self, results: SharedResults) -> Iterator[SharedFound]:
        """Results by their shape."""
        nodes, queries = self._shared.nodes, self._shared.queries
        since = queries.since if self._lives else np.full(len(queries.since), ALWAYS_THERE)
        shapes = nodes.shapes.results_of[nodes.shapes_of(results.nodes)]
        for number in np.unique(shapes).tolist():
            own = SharedResults(*(array[shapes == number] for array in results))
            pairs = found_pairs(own, nodes.node_table, nodes.following, since)
            query = self._shared.template_of(int(nodes.node_table[own.nodes[0], LEADS_TO])).bound
            yield SharedFound(query, nodes.shapes.results[number].cells, own, pairs)

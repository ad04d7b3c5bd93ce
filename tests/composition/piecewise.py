"""A graph of queries over pieces of a stream, which must give what the reference gives on all of it at once."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from tests.engine.agreement import content
from tests.engine.feeding import Listed

from kleene.composition.graph_run import GraphRun
from kleene.composition.query_graph import QueryGraph, QueryNode
from kleene.composition.reference_run import check_evaluated_again
from kleene.engine.output.outputs import EngineOutputs
from kleene.errors import NotOnStreams
from kleene.evaluation import outputs_of
from kleene.frames.arrow import as_integers, schema_on
from kleene.frames.outputs import Outputs
from kleene.frames.rows import BadRow
from kleene.plan.settings import Settings
from kleene.queries.feeding import bound_in_order, in_dependency_order


def graph_of(listed: Listed) -> QueryGraph:
    known = schema_on(listed.table.schema, listed.schema)
    bound = bound_in_order(in_dependency_order(listed.queries, known), known)
    return QueryGraph.of(bound, listed.table.schema, streams=len(known.streams), several=listed.several)


class PiecewiseRun:
    """A run that is given events a little out of order, and that goes on in another process now and then."""

    def __init__(self, listed: Listed, settings: Settings, draw: random.Random) -> None:
        self.draw, self.several = draw, listed.several
        # What a query without a window holds is bounded by this, on paper.
        self.settings = replace(settings, budget=replace(settings.budget, state_bytes=1 << 40))
        self.graph = graph_of(listed)
        self.on_reference = self.graph.on_reference(self.settings)
        self.run = self._new_run()
        self.time = listed.schema.time
        good = listed.table.filter(pc.is_valid(listed.table.column(self.time)))
        noise = draw.choice([0, 0, 2, 5])
        ends = as_integers(good.column(self.time)).to_pylist()
        order = sorted(range(len(ends)), key=lambda row: ends[row] + draw.randint(0, noise))
        self.events, self.ends = good.take(pa.array(order, pa.int64())), [ends[row] for row in order]
        self.given: dict[int, list[EngineOutputs]] = defaultdict(list)
        self.at, self.watermark = 0, None if not ends else min(ends)
        self.by_snapshot = self.by_replay = 0

    def _new_run(self, snapshots: Mapping[int, bytes] | None = None) -> GraphRun:
        return GraphRun(self.graph, self.settings, on_reference=self.on_reference, snapshots=snapshots)

    def outputs(self) -> Outputs[pa.Table]:
        """Everything that it gives, piece after piece."""
        while self.at < len(self.ends):
            size = self.draw.randint(1, max(1, len(self.ends) // 2))
            piece = self.events.slice(self.at, size)
            self.at += size
            moves = self.draw.random() < 0.8
            if moves:
                latest = min(self.ends[self.at :], default=max(self.ends) + 1) - self.draw.choice([0, 0, 1])
                self.watermark = latest if self.watermark is None else max(latest, self.watermark)
            self._take(self.run.process(piece, self.watermark if moves else None))
            if self.draw.random() < 0.5:
                self._go_on_elsewhere(moved=moves)
        self._take(self.run.finish())
        known = {number: _together(pieces) for number, pieces in self.given.items()}
        return outputs_of(self.graph, known, several=self.several)

    def _take(self, made: object) -> None:
        for node, given in made:  # type: ignore[attr-defined]
            assert isinstance(node, QueryNode)
            assert given.late is None or not given.late.num_rows, "a composite event came late"
            self.given[node.number].append(given)

    def _go_on_elsewhere(self, *, moved: bool) -> None:
        """From snapshots, or from the events that may still matter."""
        horizon = self.run.horizon
        if horizon is None or self.watermark is None or self.draw.random() < 0.5:
            snapshots = dict(self.run.snapshots())
            self.run = self._new_run(snapshots)
            # A query on the reference evaluator is told how far time has come.
            self.run.replay(self.graph.events.empty_table(), self.watermark)
            self.by_snapshot += 1
            return
        if not moved:
            return
        came = self.events.slice(0, self.at)
        matters = pc.greater_equal(as_integers(came.column(self.time)), self.watermark - horizon)
        self.run = self._new_run()
        self.run.replay(came.filter(matters), self.watermark)
        self.by_replay += 1


def _together(pieces: list[EngineOutputs]) -> EngineOutputs:
    def rows(kind: str) -> pa.Table | None:
        tables = [table for piece in pieces if (table := getattr(piece, kind)) is not None]
        return pa.concat_tables(tables) if tables else None

    bad: list[BadRow] = [row for piece in pieces for row in piece.bad]
    return EngineOutputs(rows("matches"), rows("timeouts"), rows("compressed"), bad=bad)


def check_pieces(listed: Listed, settings: Settings, draw: random.Random) -> PiecewiseRun | None:
    """Compare whole rows, ids included; in which order they come is not said. None where no stream could be run."""
    run = PiecewiseRun(listed, settings, draw)
    try:
        for node in run.graph.nodes:
            if node.number in run.on_reference:
                check_evaluated_again(node, run.settings.budget, "")
    except NotOnStreams:
        return None
    made = run.outputs()
    assert sorted(content(made.matches)) == sorted(content(listed.expected.matches)), listed.text
    assert sorted(content(made.timeouts)) == sorted(content(listed.expected.timeouts)), listed.text
    return run

"""A run of a graph of queries: each query has an engine, and takes in events and what other queries make of them.

Within a step makers come before readers: what one made is part of what the next takes in. A reader's time is behind
that of the events by as much as its composite events are certain later than they end, so that none of them comes late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kleene.composition.contract import QueryRunner
from kleene.composition.engine_run import EngineRun
from kleene.composition.query_graph import Part, QueryGraph, QueryNode
from kleene.composition.reference_run import ReferenceRun
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.state.statistics import Alive
from kleene.frames.arrow import as_integers, empty_table
from kleene.pattern.schema import IDENTITY
from kleene.plan.any_plan import AnyPlan
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings

_LOG = logging.getLogger("kleene")
_EARLIEST = -(2**63)


@dataclass
class QueryRun:
    """One query of a graph while it runs."""

    node: QueryNode
    runner: QueryRunner
    begun: bool = False

    def process(self, parts: Sequence[Part], watermark: int | None) -> EngineOutputs:
        """Take in events, and match those that the watermark has passed."""
        return self._begin(lambda runner: runner.process(parts, watermark))

    def finish(self, parts: Sequence[Part], threads: int = 1) -> EngineOutputs:
        """Take in the last of the input, which ends time; `threads`: how many cores may be used."""
        return self._begin(lambda runner: runner.finish(parts, threads))

    def replay(self, parts: Sequence[Part], watermark: int | None) -> EngineOutputs:
        """Take in events whose outputs an equal run gave; they are given again where other queries read them."""
        self.begun = True
        return self.runner.replay(parts, watermark)

    def _begin(self, work: Callable[[QueryRunner], EngineOutputs]) -> EngineOutputs:
        """Do some work; a query that no engine can run changes to the reference evaluator with the first events."""
        try:
            outputs = work(self.runner)
        except NotCompilable as problem:
            if self.begun:
                raise
            say_slow(self.node, str(problem))
            self.runner = ReferenceRun(self.node, str(problem))
            outputs = work(self.runner)
        self.begun = True
        return outputs

    def time(self, watermark: int | None) -> int | None:
        """The watermark of this query when the events are at a watermark: behind it by the lag of its streams."""
        if watermark is None or self.node.lag is None:
            return None
        return max(watermark - self.node.lag, _EARLIEST)

    def in_event_time(self, moment: int | None) -> int | None:
        """The watermark of the events at which this query's own watermark reaches a moment; None: there is none."""
        return None if moment is None or self.node.lag is None else moment + self.node.lag


class GraphRun:
    """The queries of a graph while they run. It has one owner."""

    def __init__(
        self,
        graph: QueryGraph,
        settings: Settings | None = None,
        *,
        on_reference: Mapping[int, str] | None = None,
        snapshots: Mapping[int, bytes] | None = None,
    ) -> None:
        """A run that has seen nothing, or that goes on where snapshots of its queries were taken.

        on_reference   the queries, by number, that no engine can run, and why; others that turn out to be such change
                       to the reference evaluator with the first events
        """
        self.graph, self.settings = graph, settings or Settings()
        known, saved = on_reference or {}, snapshots or {}
        self.runs = [
            QueryRun(node, self._runner(node, known.get(node.number), saved.get(node.number))) for node in graph.nodes
        ]

    def _runner(self, node: QueryNode, reason: str | None, snapshot: bytes | None) -> QueryRunner:
        if reason is None:
            try:
                return EngineRun(node, self.settings, snapshot)
            except NotCompilable as problem:
                reason = str(problem)
                say_slow(node, reason)
        return ReferenceRun(node, reason, snapshot)

    @property
    def plans(self) -> list[AnyPlan]:
        """How its queries run, as far as that is known before the first events."""
        return [run.runner.plan for run in self.runs]

    # Events in, matches out

    def process(self, events: pa.Table, watermark: int | None = None) -> Iterator[tuple[QueryNode, EngineOutputs]]:
        """Take in events, of which none is late, and give what became certain, query by query, as it is asked for.

        watermark   no event before it is still to come, in steps of the time column; None leaves it where it was
        """
        return self._step(events, lambda run, parts: run.process(parts, run.time(watermark)))

    def finish(self, events: pa.Table | None = None, *, threads: int = 1) -> Iterator[tuple[QueryNode, EngineOutputs]]:
        """Take in the last events, and decide everything that waits; `threads`: how many cores may be used."""
        last = empty_table(self.graph.events) if events is None else events
        return self._step(last, lambda run, parts: run.finish(parts, threads))

    def replay(self, events: pa.Table, watermark: int | None) -> None:
        """Take in events whose outputs an equal run has already given.

        Where `replays_by_update`, events and watermarks must be those of the other run.
        """
        for _ in self._step(events, lambda run, parts: run.replay(parts, run.time(watermark))):
            pass

    def _step(
        self, events: pa.Table, work: Callable[[QueryRun, Sequence[Part]], EngineOutputs]
    ) -> Iterator[tuple[QueryNode, EngineOutputs]]:
        composites: list[Part] = []
        for run in self.runs:
            outputs = work(run, run.node.input(events, self.graph.streams, composites))
            if run.node.read:
                composites += run.node.composites(outputs.matches, outputs.timeouts, self.graph.events)
            if not run.node.is_part:
                yield run.node, run.node.shown(outputs)

    # What is held

    @property
    def replays_by_update(self) -> bool:
        """Whether only the same batches and watermarks build an equal run: what a budget drops depends on them."""
        return any(run.runner.replays_by_update for run in self.runs)

    @property
    def horizon(self) -> int | None:
        """How far back from the watermark events must be kept for `replay` to build an equal run; None: all of them."""
        # By stream: how far back from its own watermark its events must be kept.
        reaches: dict[str, int] = {}
        longest = 0
        for run in self.runs:
            own, lag = run.runner.horizon, run.node.lag
            if own is None or lag is None:
                return None
            reach = own + max((reaches[name] for name in run.node.feeds_on), default=0)
            for name in run.node.query.makes:
                reaches[name] = max(reach, reaches.get(name, 0))
            longest = max(longest, reach + lag)
        return longest

    def waiting(self, watermark: int | None) -> pa.Table:
        """The events that the watermark has not passed; an event that several queries hold may appear several times."""
        time = self.graph.nodes[0].query.schema.time
        tables = []
        known: set[object] = set()
        for run in self.runs:
            rows, streams = run.runner.waiting, run.node.query.schema.streams
            if rows is None or streams in known:
                continue
            known.add(streams)
            if IDENTITY in rows.column_names:
                rows = rows.filter(pc.is_null(rows.column(IDENTITY)))
            if watermark is not None and run.node.lag != 0:
                rows = rows.filter(pc.greater_equal(as_integers(rows.column(time)), watermark))
            tables.append(rows)
        return pa.concat_tables(tables, promote_options="permissive") if tables else empty_table(self.graph.events)

    @property
    def deadline(self) -> int | None:
        """The first watermark at which an output could become certain without further events; None: there is none."""
        moments = [run.in_event_time(run.runner.deadline) for run in self.runs]
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def expiry(self) -> int | None:
        """The watermark from which on no event held is needed, if no more events come; None: there is none."""
        moments = [run.in_event_time(run.runner.expiry) for run in self.runs]
        return max((moment for moment in moments if moment is not None), default=None)

    @property
    def alive(self) -> Alive:
        """The events and runs held for open windows, and the waiting events."""
        each = [run.runner.alive for run in self.runs]
        return Alive(sum(one.events for one in each), sum(one.runs for one in each), sum(one.nbytes for one in each))

    @property
    def nbytes(self) -> int:
        """The bytes held in memory now."""
        return sum(run.runner.nbytes for run in self.runs)

    @property
    def dropped(self) -> dict[int, int]:
        """By query: the matches and partial matches over a budget that were dropped."""
        return {run.node.number: run.runner.dropped for run in self.runs}

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """The snapshots of all queries, from which another process can continue."""
        return ((run.node.number, run.runner.snapshot()) for run in self.runs)


def say_slow(node: QueryNode, reason: str) -> None:
    _LOG.warning("`%s` runs on the reference evaluator, which is slow: %s", node.query.name, reason)

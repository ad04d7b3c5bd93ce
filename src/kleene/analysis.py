"""Runs a query for its counts (`explain --analyze`): events by component, how far runs came, and the time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np
import pyarrow as pa

from kleene.algebra.detections import Detection, Iteration, NextDetection, Unless
from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.composition.graph_run import GraphRun, QueryRun
from kleene.composition.query_graph import QueryGraph
from kleene.engine.detections.counts import OperatorCounts
from kleene.engine.detections.engine import DetectionEngine
from kleene.engine.engine import Engine
from kleene.engine.readiness import run_when_ready
from kleene.engine.state.statistics import ComponentCounts
from kleene.frames.arrow import as_integers
from kleene.frames.numbers import to_numpy
from kleene.optimize.any_planner import plan_on_reference
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Measured
from kleene.plan.detections import DetectionPlan
from kleene.plan.explain_lines import Row
from kleene.plan.physical import Plan, SequencePlan
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.plan.streams import StreamPlan
from kleene.plan.trees import Alternative, TreePlan
from kleene.reference.evaluator import evaluate, events_of
from kleene.reference.limits import Limits
from kleene.reference.timeline import ReferenceTimeline, in_class


@dataclass(frozen=True)
class Analysis:
    """The last plan of a run, and the counts of that run."""

    plan: Plan
    events: int
    matches: int
    seconds: float
    # By alternative: what a tree measured, and rows of counts to show beside the plan.
    measured: Sequence[Measured | None] | None = None
    counted: Sequence[Sequence[Row]] = field(default=())
    # How often another executor took over.
    executor_changes: int = 0

    @property
    def lines(self) -> list[str]:
        """The number of matches and of events, and the time, as lines of text."""
        lines = _summary(self.matches, self.events, self.seconds)
        if self.executor_changes:
            times = "once" if self.executor_changes == 1 else f"{self.executor_changes:,} times"
            lines.append(
                f"Another executor took over {times}: the plan is the last, and counts of runs are since then."
            )
        return lines


def counting_run(query: BoundQuery, table: pa.Table, settings: Settings) -> Engine:
    """An engine that went through a whole table and counted; `NotCompilable` when no engine can run the query."""

    def whole(engine: Engine) -> Engine:
        engine.process(table)
        engine.finish()
        return engine

    return run_when_ready(lambda: Engine(query, settings), lambda engine: [engine.plan], whole, table.num_rows)


@dataclass(frozen=True)
class StreamCounts:
    """How far instances came in one automaton.

    states    at each state: how many came, were served by an event, and grew too old
    """

    plan: StreamPlan
    states: tuple[tuple[int, int, int], ...]
    results: int


def stream_counts(query: BoundStreamQuery, table: pa.Table, settings: Settings) -> list[StreamCounts]:
    """Run a query of streams for its counts: those of its parts, then its own.

    `NotCompilable` when the reference evaluator runs one of them.
    """

    def whole(run: GraphRun) -> list[StreamCounts]:
        for _ in run.finish(table):
            pass
        return [_counts(each) for each in run.runs]

    graph = QueryGraph.of([(0, query)], table.schema, streams=len(query.schema.streams))
    return run_when_ready(lambda: GraphRun(graph, settings), attrgetter("plans"), whole, table.num_rows)


def _counts(run: QueryRun) -> StreamCounts:
    counts, plan = run.runner.counts, run.runner.plan
    if counts is None or not isinstance(plan, StreamPlan):
        raise NotCompilable("the reference evaluator counts nothing")
    *states, results = counts.tolist()
    return StreamCounts(plan, tuple((came, served, expired) for came, served, expired in states), results[0])


# Queries in EQL are run in so many steps of time, after each of which what waits is counted.
_STEPS = 64
_ANY_STATE = 1 << 62


@dataclass(frozen=True)
class DetectionAnalysis:
    """A run of a query in EQL: what each operator counted."""

    plan: DetectionPlan
    counts: dict[Detection, OperatorCounts]
    events: int
    matches: int
    seconds: float

    @property
    def lines(self) -> list[str]:
        return _summary(self.matches, self.events, self.seconds)

    def text_of(self, node: Detection) -> str:
        """What one operator counted."""
        counts = self.counts[node]
        given = f"{counts.given:,} given"
        if isinstance(node, Unless):
            return f"{counts.came:,} came, {counts.ended:,} ended by an exception, {given}"
        if not isinstance(node, NextDetection | Iteration):
            return given
        facts = [
            f"{number:,} {what}"
            for number, what in (
                (counts.failed, "over, since what came next failed"),
                (counts.ended, "ended by ∅"),
                (counts.unkeyed, "without a key"),
                (counts.expired, "expired"),
            )
            if number
        ]
        waited = f"{counts.most:,} waited at most, {counts.left:,} at the end"
        return ", ".join([f"{counts.came:,} came", given, *facts, waited, _number(counts.looks, "look", "looks")])


def detection_run(query: BoundEqlQuery, table: pa.Table, settings: Settings, steps: int = 1) -> DetectionEngine:
    """An engine that went through a table in steps of time; `NotCompilable` when no engine can run the query."""
    # What waits may be unbounded: the table is not.
    enough = replace(settings, budget=replace(settings.budget, state_bytes=settings.budget.state_bytes or _ANY_STATE))

    def whole(engine: DetectionEngine) -> DetectionEngine:
        engine.process(table)
        for moment in _moments(table, query, steps):
            engine.process(table.slice(0, 0), watermark=moment)
        engine.finish()
        return engine

    return run_when_ready(lambda: DetectionEngine(query, enough), lambda engine: [engine.plan], whole, table.num_rows)


def _moments(table: pa.Table, query: BoundEqlQuery, steps: int) -> list[int]:
    """Moments between which there are about as many events."""
    times = np.sort(to_numpy(as_integers(table.column(query.schema.time).drop_null())))
    places = [len(times) * step // steps for step in range(1, steps)] if len(times) else []
    return sorted({int(times[place]) for place in places})


def analyzed_detections(query: BoundEqlQuery, table: pa.Table, settings: Settings) -> DetectionAnalysis:
    """Run a query in EQL over a table, on the engine or else on the reference evaluator."""
    began = time.perf_counter()
    try:
        engine = detection_run(query, table, settings, _STEPS)
    except NotCompilable as problem:
        events, bad = events_of(table, query.schema)
        matches = len(evaluate(query, events, Limits(), bad).matches)
        plan = plan_on_reference(query, str(problem))
        assert isinstance(plan, DetectionPlan), "the plan of a query in EQL"
        return DetectionAnalysis(plan, {}, len(events), matches, time.perf_counter() - began)
    seconds = time.perf_counter() - began
    network, statistics = engine.network, engine.statistics
    counts = {} if network is None else network.counts
    return DetectionAnalysis(engine.plan, counts, statistics.rows - statistics.bad, statistics.matches, seconds)


def analyzed(query: BoundQuery, settings: Settings, table: pa.Table) -> Analysis:
    """Run a query over a table, on the engine or else on the reference evaluator."""
    began = time.perf_counter()
    try:
        engine = counting_run(query, table, settings)
    except NotCompilable as problem:
        return _on_reference(query, table, str(problem))
    seconds = time.perf_counter() - began
    statistics, plan = engine.statistics, engine.plan
    # Without events there are no executors, and no counts.
    counts = statistics.components or ((),) * len(plan.alternatives)
    rows = [_rows(alternative, known) for alternative, known in zip(plan.alternatives, counts, strict=True)]
    of_trees = sum(measured.changes for measured in engine.measured if measured is not None)
    return Analysis(
        plan,
        statistics.rows - statistics.bad,
        statistics.matches,
        seconds,
        engine.measured,
        rows,
        statistics.plan_changes - of_trees,
    )


def _rows(alternative: Alternative, counts: Sequence[ComponentCounts]) -> list[Row]:
    """`counted   a: 6 events, 4 kept, 4 instances`: one row a component."""
    return [("" if place else "counted", _component(alternative, count)) for place, count in enumerate(counts)]


def _component(alternative: Alternative, count: ComponentCounts) -> str:
    facts = [_number(count.seen, "event", "events"), f"{count.passed:,} kept"]
    if isinstance(alternative, SequencePlan):
        facts.append(_number(count.reached, "instance on its stack", "instances on its stack"))
    elif not isinstance(alternative, TreePlan):
        facts.append(_number(count.reached, "run reached it", "runs reached it"))
    facts += [
        f"{number:,} {what}"
        for number, what in (
            (count.failed, "failed a condition with earlier events"),
            (count.negated, "stopped by a negated event"),
            (count.expired, "stood here when the window closed"),
            (count.broken, "broken off"),
        )
        if number
    ]
    return f"{count.variable}: {', '.join(facts)}"


def _on_reference(query: BoundQuery, table: pa.Table, reason: str) -> Analysis:
    """The analysis of a run on the reference evaluator: events by component, matches and time; it has no runs."""
    began = time.perf_counter()
    events, bad = events_of(table, query.schema)
    reference = evaluate(query, events, Limits(), bad)
    seconds = time.perf_counter() - began
    timeline = ReferenceTimeline.of(events, query.schema, (), query.partition)
    rows = []
    for place, component in enumerate(query.positives):
        seen = [event for event in events if in_class(timeline, component, event)]
        keyed = sum(timeline.key(event) is not None for event in seen)
        text = f"{component.variable}: {_number(len(seen), 'event', 'events')}, {keyed:,} kept"
        rows.append(("" if place else "counted", text))
    return Analysis(Plan.on_reference(query, reason), len(events), len(reference.matches), seconds, counted=[rows])


def _summary(matches: int, events: int, seconds: float) -> list[str]:
    return [
        f"It ran: {_number(matches, 'match', 'matches')} in {_number(events, 'event', 'events')}.",
        f"It took {seconds:.3f} s in this process, compiling included.",
    ]


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"

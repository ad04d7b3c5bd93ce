"""Runs a query for its counts (`explain --analyze`): events by component, how far runs came, and the time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import pyarrow as pa

from kleene.algebra.query import BoundStreamQuery
from kleene.composition.graph_run import GraphRun, QueryRun
from kleene.composition.query_graph import QueryGraph
from kleene.engine.engine import Engine
from kleene.engine.readiness import run_when_ready
from kleene.engine.state.statistics import ComponentCounts
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Measured
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

    @property
    def lines(self) -> list[str]:
        """The number of matches and of events, and the time, as lines of text."""
        matches, events = _number(self.matches, "match", "matches"), _number(self.events, "event", "events")
        return [f"It ran: {matches} in {events}.", f"It took {self.seconds:.3f} s in this process, compiling included."]


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
    return Analysis(plan, statistics.rows - statistics.bad, statistics.matches, seconds, engine.measured, rows)


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


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"

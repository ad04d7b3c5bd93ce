"""How a query of the stream algebra is understood and how it will run: the text and the picture."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kleene.algebra.cutting import cut
from kleene.algebra.explaining import stream_explanation
from kleene.algebra.printing import print_stream
from kleene.algebra.query import BoundStreamQuery, StreamQuery
from kleene.explanation import given_events, on_spark_lines, without_values
from kleene.optimize.streams.automaton import plan_stream
from kleene.optimize.streams.bounds import unbounded_state
from kleene.pattern.explaining import aligned
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.explain import REFERENCE
from kleene.plan.explain_streams import Row, source_text, stream_rows
from kleene.plan.mermaid_streams import streams_mermaid
from kleene.plan.settings import Settings
from kleene.plan.streams import StreamPlan

if TYPE_CHECKING:
    import pyarrow as pa


def explain_stream(
    query: StreamQuery, schema: Schema | None, events: Any, settings: Settings, *, analyze: bool
) -> tuple[str, str]:
    """The text, and a flowchart in Mermaid's notation."""
    columns: pa.Schema | None = None
    table: pa.Table | None = None
    if events is not None:
        columns, table, schema = given_events(query, events, schema or Schema())
    bound = query.bind(_closed(query, schema or Schema()), checking=not analyze)
    open_ones = sorted(name for name in query.parameters if name not in query.params)
    plans = [plan_stream(part) for part in cut(bound)]
    counted: list[list[Row]] = [[] for _ in plans]
    ran: list[str] = []
    if analyze:
        assert table is not None, "events that can be analysed are in this process"
        counted, ran = _analyzed(bound, table, settings)
    if columns is not None and not open_ones:
        plans = _on_columns(bound, plans, columns, settings)
    lines = [*stream_explanation(bound), "", "plan"]
    for number in range(len(plans)):
        lines += [f"  {line}" for line in _plan_lines(plans, number, counted[number])]
        lines += [""] if number + 1 < len(plans) else []
    lines += ["", *(f"  {line}" for line in aligned([("on a stream", _bounded(plans))]))]
    if columns is not None:
        lines += on_spark_lines(bound, columns, events, settings)
    lines += without_values(open_ones)
    lines += ["", *(f"  {line}" for line in ran)] if ran else []
    return "\n".join(line.rstrip() for line in lines), streams_mermaid(plans)


def _closed(query: StreamQuery, schema: Schema) -> Schema:
    """A schema in which events have the columns that a query names, where nothing is known of them."""
    known = schema.declaring(query.tree.declarations)
    if known.columns is not None or known.closed:
        return schema
    named = dict.fromkeys((*known.own_columns, *query.columns_named), ValueType.UNKNOWN)
    return schema.with_columns(named, known.clock)


def _plan_lines(plans: Sequence[StreamPlan], number: int, counted: Sequence[Row]) -> Iterator[str]:
    plan, names = plans[number], [each.query.name for each in plans[:-1]]
    if number < len(names):
        yield f"part {number + 1}: {print_stream(plan.query.root)}"
    elif names:
        yield "the query itself, which reads its parts"
    if plan.why_on_reference is not None:
        yield from aligned([("executor", f"{REFERENCE}: {plan.why_on_reference}")])
        return
    yield from aligned([*stream_rows(plan, names), *counted])


def _bounded(plans: Sequence[StreamPlan]) -> str:
    """Whether its state is bounded on a stream."""
    for plan in plans:
        state = unbounded_state(plan)
        if state is not None:
            source = source_text(plan.formulas[state.formula].source)
            return f"needs a state budget: what waits for {source} may wait for ever, unless DUR is bounded"
    return "bounded: what waits is served, or grows too old"


def _on_columns(
    query: BoundStreamQuery, plans: Sequence[StreamPlan], columns: pa.Schema, settings: Settings
) -> list[StreamPlan]:
    """The plans, or the reference evaluator where the engine cannot compile them for these columns."""
    from kleene.composition.query_graph import QueryGraph

    reasons = QueryGraph.of([(0, query)], columns).on_reference(settings)
    numbers = [*(-place - 1 for place in range(len(plans) - 1)), 0]
    return [replace(plan, why_on_reference=reasons.get(number)) for plan, number in zip(plans, numbers, strict=True)]


def _analyzed(query: BoundStreamQuery, table: pa.Table, settings: Settings) -> tuple[list[list[Row]], list[str]]:
    """The counts of each automaton on events, and how long it took."""
    from kleene.analysis import stream_counts

    began = time.perf_counter()
    counts = stream_counts(query, table, settings)
    seconds = time.perf_counter() - began
    rows = [
        [
            (f"  counted {place + 1}", f"{came:,} came, {served:,} were served, {expired:,} grew too old")
            for place, (came, served, expired) in enumerate(each.states)
        ]
        for each in counts
    ]
    results = counts[-1].results
    return rows, [
        f"It ran: {results:,} {'result' if results == 1 else 'results'} in {table.num_rows:,} events.",
        f"It took {seconds:.3f} s in this process, compiling included.",
    ]

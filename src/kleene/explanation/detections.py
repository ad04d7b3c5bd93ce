"""How a query in EQL is understood and how it will run: the text and the picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kleene.algebra.detections import (
    Detection,
    Iteration,
    NextDetection,
    Unless,
    aliases,
    last_aliases,
)
from kleene.algebra.eql_explaining import eql_explanation, print_detection
from kleene.algebra.eql_query import BoundEqlQuery, EqlQuery
from kleene.explanation import given_events, on_spark_lines, without_values
from kleene.optimize.any_planner import plan_on_reference
from kleene.optimize.detections.planning import plan_detections, unbounded_operators
from kleene.pattern.explaining import aligned
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.detections import DetectionPlan
from kleene.plan.explain import REFERENCE
from kleene.plan.explain_detections import Row, detection_rows
from kleene.plan.mermaid_detections import detections_mermaid
from kleene.plan.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from kleene.analysis import DetectionAnalysis


def explain_eql(
    query: EqlQuery, schema: Schema | None, events: Any, settings: Settings, *, analyze: bool
) -> tuple[str, str]:
    """The text, and a flowchart in Mermaid's notation."""
    columns: pa.Schema | None = None
    table: pa.Table | None = None
    if events is not None:
        columns, table, schema = given_events(query, events, schema or Schema())
    bound = query.bind(schema, checking=not analyze)
    open_ones = sorted(name for name in query.parameters if name not in query.params)
    ran: DetectionAnalysis | None = None
    if analyze:
        from kleene.analysis import analyzed_detections

        assert table is not None, "events that can be analysed are in this process"
        ran = analyzed_detections(bound, table, settings)
        plan = ran.plan
    else:
        plan = (
            plan_detections(bound, supposing=True)
            if columns is None or open_ones
            else _on_columns(bound, columns, settings)
        )
    lines = [*eql_explanation(bound), "", "plan", *(f"  {line}" for line in aligned(_plan_rows(plan, ran)))]
    lines += ["", *(f"  {line}" for line in aligned(_bounds(bound)))]
    if columns is not None:
        lines += on_spark_lines(bound, columns, events, settings)
    lines += without_values(open_ones)
    lines += [] if ran is None else ["", *(f"  {line}" for line in ran.lines)]
    return "\n".join(line.rstrip() for line in lines), detections_mermaid(plan)


def _plan_rows(plan: DetectionPlan, ran: DetectionAnalysis | None) -> Iterator[Row]:
    if plan.why_on_reference is not None:
        yield "executor", f"{REFERENCE}: {plan.why_on_reference}"
        return
    counted = None if ran is None else {node: ran.text_of(node) for node in ran.counts}
    yield from detection_rows(plan, counted)
    if any(part.left.type is ValueType.UNKNOWN for known in plan.nexts for part in known.keys):
        yield "keys", "if their columns hold integers, texts or truths: no types are known yet"


def _on_columns(query: BoundEqlQuery, columns: pa.Schema, settings: Settings) -> DetectionPlan:
    """The plan, or the reference evaluator where the engine cannot compile it for these columns."""
    from kleene.engine.compiling import why_not_compiled

    reason = why_not_compiled(query, columns, settings)
    plan = plan_detections(query) if reason is None else plan_on_reference(query, reason)
    assert isinstance(plan, DetectionPlan), "the plan of a query in EQL"
    return plan


# Bounds --------------------------------------------------------------------------------------------------------------


def _bounds(query: BoundEqlQuery) -> Iterator[Row]:
    """Whether its state is bounded on a stream, and how those operators are bounded where it is not."""
    unbounded = unbounded_operators(query)
    if not unbounded:
        yield "on a stream", "bounded: what waits is taken by what comes next, or expires"
    for number, node in enumerate(unbounded):
        yield ("" if number else "on a stream"), f"needs a state budget: {_remedy(node, query)}"


def _remedy(node: NextDetection | Iteration | Unless, query: BoundEqlQuery) -> str:
    shown = print_detection(node, query.schema.clock)
    if isinstance(node, Unless):
        first, last = aliases(node.operand)[0], next(iter(last_aliases(node.operand)))
        return (
            f"exceptions of `{shown}` are kept as long as what λ compares them with may last; bound it:"
            f" `({first}, {last}) OCCURS WITHIN …`"
        )
    first, last = _first_and_last(node)
    return f"what waits at `{shown}` may wait for ever; bound it: `({first}, {last}) OCCURS WITHIN …`"


def _first_and_last(node: NextDetection | Iteration) -> tuple[str, str]:
    """The aliases of a condition on time that would bound what waits at an operator."""
    begun: Detection = node.left if isinstance(node, NextDetection) else node.operand
    awaited: Detection = node.right if isinstance(node, NextDetection) else node.operand
    return aliases(begun)[0], next(iter(last_aliases(awaited)))

"""How a query is understood and how it will run: the text and the picture behind `kleene.explain`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from kleene.algebra.eql_query import EqlQuery
from kleene.algebra.query import StreamQuery
from kleene.optimize.idle_rules import idle_rules
from kleene.optimize.planner import plan_query
from kleene.optimize.rules import LINE_RULES, TREE_RULES
from kleene.pattern.explaining import explanation
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import Schema
from kleene.plan.explain import plan_text
from kleene.plan.mermaid import plan_mermaid
from kleene.plan.physical import Plan
from kleene.plan.settings import Settings
from kleene.plan.trees import TreePlan
from kleene.queries.any_query import AnyBoundQuery, AnyQuery

if TYPE_CHECKING:
    import pyarrow as pa

    from kleene.analysis import Analysis


@dataclass(frozen=True, repr=False)
class Explanation:
    """An explained query. It prints as its text, and a notebook shows the text and the picture."""

    text: str
    # A flowchart in Mermaid's notation.
    mermaid: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Text first; a page that has Mermaid draws the second block, any other shows it as it is."""
        return f'<pre>{escape(self.text)}</pre>\n<pre class="mermaid">{escape(self.mermaid)}</pre>'


def explain_query(
    query: AnyQuery,
    *,
    schema: Schema | None = None,
    events: Any = None,
    settings: Settings | None = None,
    analyze: bool = False,
) -> Explanation:
    """Explain a query; on events its columns are known, and whether the engine can compile its conditions.

    analyze   run it on the events, and show what it did beside what was expected
    """
    if analyze:
        _check_analyzable(events)
    if isinstance(query, StreamQuery):
        from kleene.explanation.streams import explain_stream

        return Explanation(*explain_stream(query, schema, events, settings or Settings(), analyze=analyze))
    if isinstance(query, EqlQuery):
        from kleene.explanation.detections import explain_eql

        return Explanation(*explain_eql(query, schema, events, settings or Settings(), analyze=analyze))
    columns: pa.Schema | None = None
    table: pa.Table | None = None
    if events is not None:
        columns, table, schema = given_events(query, events, schema or Schema())
    bound = query.bind(schema, checking=not analyze)
    open_ones = sorted(name for name in query.parameters if name not in query.params)
    used = settings or Settings()
    ran: Analysis | None = None
    if analyze:
        from kleene.analysis import analyzed

        assert table is not None, "events that can be analysed are in this process"
        ran = analyzed(bound, used, table)
        plan = ran.plan
    else:
        plan = _planned(bound, used, None if open_ones else table)
        if columns is not None and not open_ones and plan.why_on_reference is None:
            plan = _compiled(bound, plan, columns, used)
    lines = [*explanation(bound, query.tree.within), "", "plan"]
    seen = (None, ()) if ran is None else (ran.measured, ran.counted)
    lines += [f"  {line}".rstrip() for line in plan_text(plan, *_rules(bound, plan, used), *seen)]
    if table is not None and not open_ones and plan.why_on_reference is None:
        lines += _threads(bound, used, table)
    if columns is not None:
        lines += on_spark_lines(bound, columns, events, used)
    lines += without_values(open_ones)
    if ran is not None:
        lines += ["", *(f"  {line}" for line in ran.lines)]
    return Explanation("\n".join(lines), plan_mermaid(plan))


def without_values(names: Sequence[str]) -> list[str]:
    """What is said of parameters without values."""
    if not names:
        return []
    named = ", ".join(f":{name}" for name in names)
    return ["", f"  It cannot run yet: {named} {'has' if len(names) == 1 else 'have'} no value."]


def given_events(query: AnyQuery, events: Any, schema: Schema) -> tuple[pa.Schema, pa.Table | None, Schema]:
    """The columns of events, their table where they are in this process, and the schema of these columns."""
    from kleene.frames.arrow import schema_on
    from kleene.frames.kinds import on_spark
    from kleene.frames.streams import reads, to_table

    declared = schema.declaring(query.tree.declarations)
    wanted = reads([query], declared)
    if on_spark(events):
        from kleene.spark.streams import one_input

        numbered, known = one_input(events, declared, wanted)
        return numbered.columns, None, schema_on(numbered.columns, known)
    table, known = to_table(events, declared, wanted)
    return table.schema, table, schema_on(table.schema, known)


def _planned(query: BoundQuery, settings: Settings, table: pa.Table | None) -> Plan:
    """The plan that a run over these events begins with; a sample of them decides where it depends on data."""
    plan = plan_query(query, settings)
    if table is None or not table.num_rows or plan.why_on_reference is not None:
        return plan
    from kleene.engine.engine import Engine
    from kleene.engine.readiness import when_ready
    from kleene.plan.program import NotCompilable

    with suppress(NotCompilable):
        return when_ready(lambda: Engine(query, settings).planned_for(table), table.num_rows, plan)
    return plan


def _threads(query: BoundQuery, settings: Settings, table: pa.Table) -> list[str]:
    """On how many cores a run over these events works, where these are several."""
    from kleene.engine.engine import Engine
    from kleene.engine.slices import cores

    slices = Engine(query, settings).number_of_slices(table, cores(settings))
    if slices == 1:
        return []
    what = "the events of some keys" if query.window is None else "a slice of time and what windows reach back to"
    return ["", f"  threads    {slices}, each with {what}"]


def _rules(query: BoundQuery, plan: Plan, settings: Settings) -> tuple[Sequence[str], frozenset[str]]:
    """The optimiser rules for this kind of plan, and those that were switched on and changed nothing."""
    if not any(isinstance(alternative, TreePlan) for alternative in plan.alternatives):
        return tuple(name for name, _ in LINE_RULES), idle_rules(query, settings)
    return TREE_RULES, frozenset(name for name in TREE_RULES if settings.uses(name) and name not in plan.rules)


def _check_analyzable(events: Any) -> None:
    from kleene.errors import UnknownKind
    from kleene.frames.kinds import on_spark

    if events is None:
        raise UnknownKind("a query is analysed on events, and there are none", hint="pass some: events=…")
    if on_spark(events):
        raise UnknownKind(
            "analysing is done in this process, and these events are on Spark",
            hint="pass some of them: events.limit(100000).toArrow()",
        )


def on_spark_lines(query: AnyBoundQuery, columns: pa.Schema, events: Any, settings: Settings) -> list[str]:
    """How Spark would divide the events, where it is to run there."""
    from kleene.frames.kinds import on_spark

    if not on_spark(events):
        return []
    from kleene.spark.explaining import division_text

    return ["", "on Spark", *(f"  {line}" for line in division_text(query, columns, events, settings))]


def _compiled(query: BoundQuery, plan: Plan, columns: pa.Schema, settings: Settings) -> Plan:
    """The plan, or the reference evaluator where the engine cannot compile it for these columns."""
    from kleene.engine.compiling import why_not_compiled

    reason = why_not_compiled(query, columns, settings)
    return plan if reason is None else Plan.on_reference(query, reason)

"""What a query was understood as and how it will run: the text and the picture behind `kleene.explain`."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from kleene.optimize.idle_rules import idle_rules
from kleene.optimize.planner import RULES, plan_query
from kleene.pattern.explaining import explanation
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.plan.explain import plan_text
from kleene.plan.mermaid import plan_mermaid
from kleene.plan.physical import Plan, ReferencePlan
from kleene.plan.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

KNOWN_RULES = tuple(name for name, _ in RULES)


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
    query: Query, *, schema: Schema | None = None, events: Any = None, settings: Settings | None = None
) -> Explanation:
    """Explain a query; on events its columns are known, and whether the engine can compile its conditions."""
    columns: pa.Table | None = None
    if events is not None:
        columns, schema = _columns(query, events, schema or Schema())
    bound = query.bind(schema, checking=True)
    open_ones = sorted(name for name in query.parameters if name not in query.params)
    used = settings or Settings()
    plan = plan_query(bound, used)
    if columns is not None and not open_ones and plan.fallback is None:
        plan = _compiled(bound, plan, columns, used)
    lines = [*explanation(bound, query.tree.within), "", "plan"]
    lines += [f"  {line}".rstrip() for line in plan_text(plan, KNOWN_RULES, idle_rules(bound, used))]
    if columns is not None:
        lines += _on_spark(bound, columns.schema, events, used)
    if open_ones:
        named = ", ".join(f":{name}" for name in open_ones)
        lines += ["", f"  It cannot run yet: {named} {'has' if len(open_ones) == 1 else 'have'} no value."]
    return Explanation("\n".join(lines), plan_mermaid(plan))


def _columns(query: Query, events: Any, schema: Schema) -> tuple[pa.Table, Schema]:
    """No events, but their columns; and the schema of these."""
    from kleene.frames.arrow import schema_on
    from kleene.frames.kinds import on_spark
    from kleene.frames.streams import reads, to_table

    declared = schema.declaring(query.tree.declarations)
    wanted = reads([query], declared)
    if on_spark(events):
        from kleene.spark.streams import one_input

        numbered, given = one_input(events, declared, wanted)
        return numbered.columns.empty_table(), schema_on(numbered.columns, given)
    table, given = to_table(events, declared, wanted)
    return table.slice(0, 0), schema_on(table.schema, given)


def _on_spark(query: BoundQuery, columns: pa.Schema, events: Any, settings: Settings) -> list[str]:
    """How Spark would divide the events, where it is to run there."""
    from kleene.frames.kinds import on_spark

    if not on_spark(events):
        return []
    from kleene.spark.explaining import division_text

    return ["", "on Spark", *(f"  {line}" for line in division_text(query, columns, settings))]


def _compiled(query: BoundQuery, plan: Plan, columns: pa.Table, settings: Settings) -> Plan:
    """The plan, or the reference evaluator where the engine cannot compile it for these columns."""
    from kleene.engine.compiling import why_not_compiled

    reason = why_not_compiled(query, columns.schema, settings)
    return plan if reason is None else Plan(query, fallback=ReferencePlan(reason))

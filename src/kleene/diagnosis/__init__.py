"""Why a query has the matches that it has, or none: what the engine counted, in plain words."""

from __future__ import annotations

from typing import Any

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.analysis import counting_run
from kleene.diagnosis.automata import diagnose_stream
from kleene.diagnosis.detections import diagnose_detections
from kleene.diagnosis.stream import DiagnosedStream
from kleene.diagnosis.trees import TreeWording
from kleene.diagnosis.wording import Wording, counted, key_text
from kleene.errors import UnknownKind
from kleene.frames.arrow import schema_on
from kleene.frames.kinds import on_spark
from kleene.frames.streams import reads, to_table
from kleene.lang.format import format_duration
from kleene.optimize.rules import LOOK_UP_RUNS
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.plan.explain import pattern_text
from kleene.plan.physical import ReferencePlan
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Adapting, Settings
from kleene.plan.trees import TreePlan
from kleene.queries.any_query import AnyQuery


def diagnose(events: Any, query: AnyQuery, *, schema: Schema | None = None) -> str:
    """Run a query for its counts; how far events and runs came, and what stopped most of them."""
    if on_spark(events):
        raise UnknownKind(
            "counting is done in this process, and these events are on Spark",
            hint="pass some of them: events.limit(100000).toArrow()",
        )
    declared = (schema or Schema()).declaring(query.tree.declarations)
    table, known = to_table(events, declared, reads([query], declared))
    bound = query.bind(schema_on(table.schema, known))
    if isinstance(bound, BoundStreamQuery):
        return diagnose_stream(bound, table)
    if isinstance(bound, BoundEqlQuery):
        return diagnose_detections(bound, table)
    assert isinstance(query, Query), "only patterns are left"
    try:
        # What another plan counted would be lost, and runs that a look-up passes over would not be counted.
        settings = Settings(without=frozenset({LOOK_UP_RUNS}), adapting=Adapting(on=False))
        engine = counting_run(bound, table, settings)
    except NotCompilable as reason:
        return f"why is not available: `{bound.name}` runs on the reference evaluator, which counts nothing ({reason})"
    statistics, plan = engine.statistics, engine.plan
    stream = DiagnosedStream(bound, plan, table)
    lines = [
        f"`{bound.name}`: {counted(statistics.matches, 'match', 'matches') if statistics.matches else 'no match'}"
        f" in {counted(statistics.rows - statistics.bad, 'event')}"
    ]
    within = None if query.tree.within is None else format_duration(query.tree.within.duration)
    for number, alternative in enumerate(plan.alternatives):
        if len(plan.alternatives) > 1:
            lines.append(f"alternative {number + 1} of {len(plan.alternatives)}: {pattern_text(plan, number)}")
        counts = statistics.components[number]
        said: Wording | TreeWording
        if isinstance(alternative, TreePlan):
            said = TreeWording(bound, alternative, counts, engine.measured[number], stream, number, within)
        else:
            assert not isinstance(alternative, ReferencePlan), "an engine ran it"
            said = Wording(bound, alternative, counts, stream, number, within)
        lines += [f"  {line}" for line in said.lines(matched=statistics.matches > 0)]
    if stream.without_key:
        has = "has" if stream.without_key == 1 else "have"
        without = f"{counted(stream.without_key, 'event')} {has} no {key_text(bound)} (NULL or NaN)"
        lines.append(f"  {without} and can be in no match")
    return "\n".join(lines)

"""Every case file on the engine, whole and in pieces; what no executor can run goes the way of `evaluate`, counted.

So do queries that feed each other, whole: each of them must run on the engine there. Cases with queries of streams run
as graphs of queries, whole and in pieces, each piece on a run that goes on from the snapshots of the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.case_files import CASES
from tests.case_rows import numbered, observed, schema_of, warning_codes
from tests.engine.batches import in_time_order, settings_for_streams
from tests.engine.feeding import fallbacks
from tests.soaking import few_of

from kleene.composition.graph_run import GraphRun
from kleene.composition.query_graph import QueryGraph
from kleene.engine.engine import Engine
from kleene.engine.output.outputs import EngineOutputs
from kleene.evaluation import evaluate
from kleene.frames.arrow import schema_on
from kleene.frames.streams import reads, to_table
from kleene.pattern import Query
from kleene.plan.program import NotCompilable
from kleene.queries.feeding import bound_in_order, declared_together, in_dependency_order
from kleene.testing.case_check import Observed, check_case
from kleene.testing.cases import Case

NUMBERS = {case.place: number for number, case in enumerate(CASES)}

# Cases whose matches came from an engine, and why the others did not.
on_engine: set[str] = set()
feeding: set[str] = set()
streaming: set[str] = set()
elsewhere: Counter[str] = Counter()


@pytest.mark.parametrize("case", few_of(CASES, 4), ids=lambda case: f"{case.place} {case.name}")
def test_case(case: Case) -> None:
    number = NUMBERS[case.place]
    reason = "the query is wrong, and is refused" if case.error is not None else None
    if reason is None and (len(case.queries) > 1 or case.of_streams or case.of_detections):
        with fallbacks() as slow:
            check_case(case, on_evaluation)
            if (case.of_streams or case.of_detections) and not slow:
                # Warnings are given where a query is first evaluated, not by its runs.
                check_case(replace(case, warnings=frozenset()), lambda given: graph_in_pieces(given, 2 + number % 2))
        if not slow:
            (streaming if case.of_streams or case.of_detections else feeding).add(case.place)
            return
        reason = f"one of several queries: {slow[0]}"
    if reason is None:
        try:
            check_case(case, at_once)
        except NotCompilable as problem:
            reason = str(problem)
    if reason is None:
        check_case(case, lambda given: in_pieces(given, 2 + number % 2))
        on_engine.add(case.place)
        return
    elsewhere[reason] += 1
    check_case(case, on_evaluation)


def test_most_cases_ran_on_the_engine(record_property: Callable[[str, object], None]) -> None:
    """Runs after the cases and counts them; with only some of them it has nothing to say."""
    counted = "; ".join(f"{number} {reason}" for reason, number in elsewhere.most_common())
    compiled = f"{len(on_engine)} of {len(CASES)} cases on the engine, whole and in pieces"
    graphs = f"{len(feeding)} with several queries whole, {len(streaming)} with streams whole and in pieces"
    record_property("counted", f"{compiled}, {graphs}; {counted}")
    if len(on_engine) + len(feeding) + len(streaming) + sum(elsewhere.values()) == len(CASES):
        assert len(on_engine) >= 436
        # Two of 17 have a conjunction.
        assert len(feeding) >= 15


# Executors ---------------------------------------------------------------------------------------------------------


def on_evaluation(case: Case) -> Observed:
    queries = case.read_queries()
    with warning_codes() as warnings:
        # The result is that of the first query; those that feed it may follow.
        made = evaluate(rows_of(case), [queries[-1], *queries[:-1]], schema=schema_of(case))
    return observed(queries[-1], rows(made.matches), rows(made.timeouts), frozenset(warnings))


def at_once(case: Case) -> Observed:
    query, table, engine = begun(case)
    engine.process(table)
    made = engine.finish()
    return observed(query, rows(made.matches), rows(made.timeouts), codes(engine))


def in_pieces(case: Case, pieces: int) -> Observed:
    """In batches of about the same size, each with the watermark that the next one allows."""
    query, table, engine = begun(case)
    given = [engine.process(batch, watermark) for batch, watermark in in_time_order(table, engine.query.schema, pieces)]
    made = [*given, engine.finish()]
    assert engine.statistics.late == 0
    return observed(
        query,
        [row for batch in made for row in rows(batch.matches)],
        [row for batch in made for row in rows(batch.timeouts)],
        codes(engine),
    )


def graph_in_pieces(case: Case, pieces: int) -> Observed:
    """All queries of a case as a graph, in batches; each batch comes to a run restored from snapshots of the last."""
    queries = case.read_queries()
    declared = declared_together(schema_of(case), queries)
    table, given = to_table(rows_of(case), declared, reads(queries, declared))
    known = schema_on(table.schema, given)
    bound = bound_in_order(in_dependency_order(queries, known), known)
    graph = QueryGraph.of(bound, table.schema, streams=len(known.streams))
    run = GraphRun(graph, settings_for_streams())
    made: list[EngineOutputs] = []
    for batch, watermark in in_time_order(table, known, pieces):
        made += [outputs for node, outputs in run.process(batch, watermark) if node.number == len(queries) - 1]
        run = GraphRun(graph, settings_for_streams(), snapshots=dict(run.snapshots()))
    made += [outputs for node, outputs in run.finish() if node.number == len(queries) - 1]
    assert all(outputs.late is None or not outputs.late.num_rows for outputs in made)
    return observed(queries[-1], [row for outputs in made for row in rows(outputs.matches)], [], frozenset())


def begun(case: Case) -> tuple[Query, pa.Table, Engine]:
    query = Query(case.queries[0], params=case.params)
    declared = schema_of(case).declaring(query.tree.declarations)
    table, given = to_table(rows_of(case), declared, reads([query], declared))
    bound = query.bind(schema_on(table.schema, given))
    return query, table, Engine(bound, settings_for_streams())


def rows_of(case: Case) -> object:
    """The events as `match` takes them."""
    streams = numbered(case)
    return streams.get("", streams)


def rows(table: pa.Table | None) -> list[dict[str, object]]:
    return [] if table is None else table.to_pylist()


def codes(engine: Engine) -> frozenset[str]:
    return frozenset(warning.code for warning in engine.query.warnings)

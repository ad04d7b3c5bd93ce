"""Random expressions of streams, each over several random inputs: sets, Algorithm 1 and the engine give the same.

`python -m tests.streams.agreement '[["nested", 3]]'` compares some of them in a process of its own, up to the first
disagreement; the last line says what came of it.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
from tests.composition.piecewise import PiecewiseRun, graph_of
from tests.engine.agreement import content
from tests.engine.feeding import Listed

import kleene
from kleene.algebra.query import BoundStreamQuery, StreamQuery
from kleene.composition.graph_run import GraphRun
from kleene.composition.query_graph import QueryGraph
from kleene.evaluation import outputs_of
from kleene.frames.outputs import Outputs
from kleene.plan.settings import Settings
from kleene.reference.evaluator import events_of
from kleene.reference.stream_results import StreamResult, evaluate_stream
from kleene.reference.tables import any_table
from kleene.reference.timeline import ReferenceTimeline
from kleene.testing.generators.streams import COLUMNS, GeneratedStreamCase, random_rows, random_stream_case
from kleene.testing.reference_streams import stream_events

# Inputs of each expression, one of which is also given in pieces.
INPUTS = 10
KINDS = ("linear-plus", "nested")
_ARROW = {"type": pa.string(), "s": pa.string(), "y": pa.float64()}


def table_of(case: GeneratedStreamCase, rows: list[dict[str, Any]]) -> pa.Table:
    roles = [name for name in (case.start, case.tie_breaker) if name is not None]
    columns = [(name, _ARROW.get(name, pa.int64())) for name in ("type", "ts", *COLUMNS, *roles)]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


@dataclass(frozen=True)
class StreamPair:
    """An expression with one input, and what it means by definition."""

    case: GeneratedStreamCase
    query: StreamQuery
    bound: BoundStreamQuery
    table: pa.Table
    result: StreamResult

    @property
    def expected(self) -> pa.Table:
        return any_table(self.result, self.table)

    @property
    def timeline(self) -> ReferenceTimeline:
        events, _ = events_of(self.table, self.case.schema)
        return ReferenceTimeline.of(events, self.case.schema, self.table.column_names)

    @property
    def listed(self) -> Listed:
        schema = kleene.Schema(start=self.case.start, tie_breaker=self.case.tie_breaker)
        return Listed((self.query,), schema, self.table, False, Outputs(self.expected, None, None))


def pairs_of(kind: str, seed: int) -> Iterator[StreamPair]:
    """A random expression over some inputs."""
    draw = Random(f"{kind} {seed}")
    case = random_stream_case(draw, linear_plus=kind == "linear-plus")
    query = StreamQuery(case.text)
    bound = query.bind(case.schema)
    for number in range(INPUTS):
        rows = random_rows(draw, case.start, case.tie_breaker) if number else case.rows
        table = table_of(case, rows)
        events, bad = events_of(table, case.schema)
        yield StreamPair(case, query, bound, table, evaluate_stream(bound, events, bad))


def check_automaton(pair: StreamPair) -> None:
    """Algorithm 1 gives what the sets are; what is not linear-plus is cut, and resubscribed."""
    by_automaton = stream_events(pair.bound, pair.timeline, by_automaton=True)
    assert sorted(event.key for event in by_automaton) == sorted(event.key for event in pair.result.events), pair.case


def check_engine(pair: StreamPair, graph: QueryGraph) -> None:
    """The engine gives the same rows, ids included."""
    given = {node.number: outputs for node, outputs in GraphRun(graph).finish(pair.table)}
    found = outputs_of(graph, given, several=False).matches
    assert content(found) == content(pair.expected), pair.case


def check_pieces(pair: StreamPair, draw: Random) -> PiecewiseRun:
    """Events that come in pieces, a little out of order, with restarts from snapshots and by replay."""
    run = PiecewiseRun(pair.listed, Settings(), draw)
    assert sorted(content(run.outputs().matches)) == sorted(content(pair.expected)), pair.case
    return run


def check(kind: str, seed: int) -> Counter[str]:
    """Compare the pairs of one expression; what they were like."""
    counted: Counter[str] = Counter()
    graph: QueryGraph | None = None
    for number, pair in enumerate(pairs_of(kind, seed)):
        check_automaton(pair)
        graph = graph or graph_of(pair.listed)
        check_engine(pair, graph)
        if number == 0:
            run = check_pieces(pair, Random(f"pieces {kind} {seed}"))
            counted["from snapshots"] += run.by_snapshot
            counted["by replay"] += run.by_replay
        counted["pairs"] += 1
        counted["with results"] += bool(pair.result.events)
        counted["events"] += pair.table.num_rows
        points = Counter((row["ts"], row.get(pair.case.tie_breaker)) for row in pair.table.to_pylist())
        counted["simultaneous"] += sum(many for many in points.values() if many > 1)
    return counted


def run(places: Iterable[tuple[str, int]]) -> dict[str, object]:
    """How many expressions were compared, and where the first disagreement is."""
    compared = 0
    for kind, seed in places:
        try:
            check(kind, seed)
        except Exception:
            return {"compared": compared, "place": [kind, seed], "problem": traceback.format_exc()}
        compared += 1
    return {"compared": compared}


if __name__ == "__main__":
    # NumPy warns of overflow where compiled code does not.
    warnings.simplefilter("ignore")
    print(json.dumps({**run(json.loads(sys.argv[1])), "kleene": kleene.__file__}))

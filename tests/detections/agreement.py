"""Random queries in EQL, each over several random inputs: the definitions and the engine give the same.

`python -m tests.detections.agreement '[["chain", 3]]'` compares some of them in a process of its own, up to the first
disagreement; the last line says what came of it. `by hand` is the stratum of queries whose matches are written down.
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

import pyarrow as pa
from tests.composition.piecewise import PiecewiseRun, graph_of
from tests.detections.by_hand import check_by_hand
from tests.detections.traits import traits_of_pair, traits_of_query
from tests.engine.agreement import content
from tests.engine.feeding import Listed
from tests.soaking import SOAKING
from tests.streams.agreement import table_of

import kleene
from kleene.algebra.eql_query import BoundEqlQuery, EqlQuery
from kleene.composition.graph_run import GraphRun
from kleene.composition.query_graph import QueryGraph
from kleene.evaluation import outputs_of
from kleene.frames.outputs import Outputs
from kleene.plan.settings import Settings
from kleene.reference.evaluator import Result, evaluate, events_of
from kleene.reference.limits import Limits
from kleene.reference.tables import any_table
from kleene.testing.generators.detections import random_detection_case, random_detection_rows
from kleene.testing.generators.streams import GeneratedStreamCase

BY_HAND = "by hand"
# Inputs of each query, one of which is also given in pieces, in `make soak` each.
INPUTS = 5


@dataclass(frozen=True)
class DetectionPair:
    """A query with one input, and what it means by definition."""

    case: GeneratedStreamCase
    query: EqlQuery
    bound: BoundEqlQuery
    table: pa.Table
    result: Result

    @property
    def expected(self) -> pa.Table:
        return any_table(self.result, self.table)

    @property
    def listed(self) -> Listed:
        schema = kleene.Schema(start=self.case.start, tie_breaker=self.case.tie_breaker)
        return Listed((self.query,), schema, self.table, False, Outputs(self.expected, None, None))


def pairs_of(stratum: str, seed: int) -> Iterator[DetectionPair]:
    """A random query over some inputs."""
    draw = Random(f"{stratum} {seed}")
    case = random_detection_case(draw, stratum)
    query = EqlQuery(case.text, spelling="next")
    bound = query.bind(case.schema)
    for number in range(INPUTS):
        rows = random_detection_rows(draw, case.start, case.tie_breaker) if number else case.rows
        table = table_of(case, rows)
        events, bad = events_of(table, case.schema)
        yield DetectionPair(case, query, bound, table, evaluate(bound, events, Limits(), bad))


def check_engine(pair: DetectionPair, graph: QueryGraph) -> None:
    """The engine gives the same rows, ids included."""
    given = {node.number: outputs for node, outputs in GraphRun(graph).finish(pair.table)}
    found = outputs_of(graph, given, several=False).matches
    assert content(found) == content(pair.expected), (pair.case, found.to_pylist(), pair.expected.to_pylist())


def check_pieces(pair: DetectionPair, draw: Random) -> PiecewiseRun:
    """Events that come in pieces, a little out of order, with restarts from snapshots and by replay."""
    run = PiecewiseRun(pair.listed, Settings(), draw)
    assert sorted(content(run.outputs().matches)) == sorted(content(pair.expected)), pair.case
    return run


def check(stratum: str, seed: int, *, traits: bool = False) -> Counter[str]:
    """Compare the pairs of one query; what they were like."""
    counted: Counter[str] = Counter()
    if stratum == BY_HAND:
        check_by_hand(seed)
        return counted
    graph: QueryGraph | None = None
    of_query: set[str] | None = None
    for number, pair in enumerate(pairs_of(stratum, seed)):
        graph = graph or graph_of(pair.listed)
        check_engine(pair, graph)
        if number == 0 or SOAKING:
            run = check_pieces(pair, Random(f"pieces {stratum} {seed} {number}"))
            counted["from snapshots"] += run.by_snapshot
            counted["by replay"] += run.by_replay
        counted["pairs"] += 1
        counted["with matches"] += bool(pair.result.matches)
        counted["matches"] += len(pair.result.matches)
        counted["events"] += pair.table.num_rows
        if traits:
            of_query = traits_of_query(pair.bound) if of_query is None else of_query
            counted.update(of_query)
            counted.update(traits_of_pair(pair.bound, pair.table, len(pair.result.matches)))
    return counted


def run(places: Iterable[tuple[str, int]]) -> dict[str, object]:
    """How many queries were compared, and where the first disagreement is."""
    compared = 0
    for stratum, seed in places:
        try:
            check(stratum, seed)
        except Exception:
            return {"compared": compared, "place": [stratum, seed], "problem": traceback.format_exc()}
        compared += 1
    return {"compared": compared}


if __name__ == "__main__":
    # NumPy warns of overflow where compiled code does not.
    warnings.simplefilter("ignore")
    print(json.dumps({**run(json.loads(sys.argv[1])), "kleene": kleene.__file__}))

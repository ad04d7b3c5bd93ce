"""The two readings of the stream algebra agree on random linear-plus expressions: sets, and Algorithm 1."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.soaking import least, rounds

from kleene.algebra.linear_plus import is_linear_plus
from kleene.algebra.nodes import Fold, StreamUnion, walk
from kleene.algebra.query import BoundStreamQuery, StreamQuery
from kleene.reference.evaluator import events_of
from kleene.reference.timeline import ReferenceTimeline
from kleene.testing.generators.streams import COLUMNS, GeneratedStreamCase, random_stream_case
from kleene.testing.reference_streams import stream_events

ALL = 16_000
_ARROW = {"type": pa.string(), "s": pa.string(), "y": pa.float64()}


def drawn(case: GeneratedStreamCase) -> tuple[BoundStreamQuery, ReferenceTimeline]:
    roles = [name for name in (case.start, case.tie_breaker) if name is not None]
    columns = [(name, _ARROW.get(name, pa.int64())) for name in ("type", "ts", *COLUMNS, *roles)]
    events, _ = events_of(pa.Table.from_pylist(case.rows, schema=pa.schema(columns)), case.schema)
    return StreamQuery(case.text).bind(case.schema), ReferenceTimeline.of(
        events, case.schema, [name for name, _ in columns]
    )


@pytest.mark.slow
def test_sets_and_algorithm_1_agree(record_property: Any) -> None:
    results = folds = unions = ties = 0
    for seed in range(rounds(ALL)):
        case = random_stream_case(Random(seed), linear_plus=True)
        query, timeline = drawn(case)
        assert is_linear_plus(query.root), case.text
        by_sets = stream_events(query, timeline)
        by_automaton = stream_events(query, timeline, by_automaton=True)
        assert [event.key for event in by_sets] == [event.key for event in by_automaton], (seed, case.text)
        results += bool(by_sets)
        nodes = list(walk(query.root))
        folds += any(isinstance(node, Fold) for node in nodes)
        unions += any(isinstance(node, StreamUnion) for node in nodes)
        ties += len({row["ts"] for row in case.rows}) < len(case.rows)
    record_property(
        "counted",
        f"stream algebra, sets = Algorithm 1: {rounds(ALL):,} pairs, {results:,} with results, {folds:,} with a fold,"
        f" {unions:,} with a union, {ties:,} with simultaneous events",
    )
    assert results >= least(ALL // 4)


@pytest.mark.slow
def test_a_printed_expression_is_read_as_itself() -> None:
    for seed in range(rounds(ALL // 8)):
        query = StreamQuery(random_stream_case(Random(seed)).text)
        assert StreamQuery(query.format()).tree == query.tree

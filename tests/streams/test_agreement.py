"""Random expressions of streams mean one thing: sets, Algorithm 1, the engine, whole, in pieces, and cut anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from random import Random
from unittest import mock

import pytest
from tests.composition.piecewise import graph_of
from tests.soaking import SOAKING, TIMES, rounds
from tests.streams.agreement import INPUTS, KINDS, StreamPair, check, check_engine, pairs_of
from tests.streams.cutting import cut_anywhere

from kleene.algebra.nodes import Compute, Fold, StreamUnion, walk
from kleene.algebra.query import StreamQuery
from kleene.testing.generators.streams import random_stream_case

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]
# Of each kind, each over ten inputs.
EXPRESSIONS = 510 * TIMES if SOAKING else 16
CUT = rounds(6_000, share=150)
DRAWN = 500 if SOAKING else 80


@pytest.mark.parametrize("kind", KINDS)
def test_sets_algorithm_1_and_engine_agree(kind: str, record_property: Record) -> None:
    counted: Counter[str] = Counter()
    for seed in range(EXPRESSIONS):
        counted += check(kind, seed)
    record_property(
        "counted",
        f"streams, {kind}: sets = Algorithm 1 = engine: {counted['pairs']:,} pairs, {counted['with results']:,} with"
        f" results, {counted['simultaneous']:,} of {counted['events']:,} events simultaneous,"
        f" {counted['from snapshots']:,} restarts from snapshots, {counted['by replay']:,} by replay",
    )
    assert counted["pairs"] == EXPRESSIONS * INPUTS
    assert counted["with results"] >= counted["pairs"] / 4
    assert counted["simultaneous"] >= counted["events"] / 3
    assert counted["by replay"]


def test_expressions_are_of_every_kind(record_property: Record) -> None:
    counted: Counter[str] = Counter()
    for seed in range(DRAWN):
        pair = next(pairs_of("nested", seed))
        nodes = list(walk(pair.bound.root))
        folds = [node for node in nodes if isinstance(node, Fold)]
        counted["folds"] += bool(folds)
        counted["folds with α"] += any(isinstance(each, Compute) for fold in folds for each in walk(fold.step))
        counted["unions"] += any(isinstance(node, StreamUnion) for node in nodes)
        counted["durations"] += pair.case.start is not None
        counted["NULLs"] += any(column.null_count for column in pair.table.columns)
    record_property("counted", f"of {DRAWN} expressions of streams: {dict(counted)}")
    assert min(counted.values()) >= DRAWN // 10


def _pairs(number: int) -> Iterator[StreamPair]:
    """Pairs with results, two of each expression at most."""
    found = 0
    for seed in range(50 * number):
        for pair in islice((each for each in pairs_of("nested", 10_000 + seed) if each.result.events), 2):
            yield pair
            found += 1
            if found == number:
                return


def test_an_expression_is_itself_cut_anywhere_and_resubscribed(record_property: Record) -> None:
    streams = 0
    number = CUT
    for place, pair in enumerate(_pairs(number)):
        cut = partial(cut_anywhere, draw=Random(f"cut {place}"))
        with mock.patch("kleene.composition.query_graph.cut", cut):
            graph = graph_of(pair.listed)
        streams += len(graph.nodes) - 1
        check_engine(pair, graph)
    record_property("counted", f"streams cut anywhere = as they stand: {number} pairs with results, {streams} cuts")
    assert streams > number


def test_a_printed_expression_is_read_as_itself() -> None:
    for seed in range(rounds(2_000, share=40)):
        query = StreamQuery(random_stream_case(Random(seed)).text)
        assert StreamQuery(query.format()).tree == query.tree

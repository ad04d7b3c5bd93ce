"""Closures side by side, under `&` and at both ends, on Spark in a batch and on a stream: as the brute force finds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.agreement import content
from tests.soaking import TIMES
from tests.spark.comparing import run_together
from tests.spark.streaming.sharing import run_on_stream
from tests.spark.streaming.test_pairs_on_streams import on_stream
from tests.spark.test_random_pairs import EXCHANGES, Pair, on_spark
from tests.testing.test_reference_agrees import brute_arguments

from kleene.evaluation import evaluate
from kleene.frames.streams import to_table
from kleene.pattern import Query, Schema
from kleene.testing.brute import brute_force_match
from kleene.testing.generators import random_case, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.soak

PAIRS = 120 * max(TIMES, 1)
# Of these some cannot run on a stream: where positions of events that last are counted, only the end decides.
LEAST = 100 * max(TIMES, 1)


def drawn(name: str) -> list[Pair]:
    """Random pairs whose results in process have as many matches as the brute force finds."""
    pairs = []
    for number in range(PAIRS):
        case = random_case(random.Random(f"closures on Spark, {name} {number}"), "closures")
        query = Query(case.query_text, params=dict(case.params))
        table, schema = to_table(case.events, Schema(**schema_of(case)).declaring(query.tree.declarations))
        pair = Pair(query, table, schema, evaluate(table, [query], schema=schema))
        matches = brute_force_match(case.events, case.query_text, **brute_arguments(case))
        assert len(matches) == pair.expected.matches.num_rows, case.query_text
        pairs.append(pair)
    return pairs


def check(given: list[Pair], results: Mapping[tuple[int, str], Any]) -> str:
    matching = 0
    for number, pair in enumerate(given):
        rows = sorted(content(results.get((number, "matches"))))
        assert rows == sorted(content(pair.expected.matches)), pair.query.text
        matching += bool(rows)
    assert matching >= LEAST // 3
    return f"{len(given)} pairs, {matching} with a match"


def test_in_a_batch(spark: SparkSession, record_property: Callable[[str, object], None]) -> None:
    pairs = [
        (pair, prepared)
        for number, pair in enumerate(drawn("batch"))
        if (prepared := on_spark(spark, pair, EXCHANGES[number % len(EXCHANGES)])) is not None
    ]
    assert len(pairs) >= LEAST
    text = check([pair for pair, _ in pairs], run_together([prepared for _, prepared in pairs]))
    record_property("counted", f"closures in a batch of Spark: {text}")


def test_on_a_stream(spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    refused: Counter[str] = Counter()
    pairs = [(pair, prepared) for pair in drawn("stream") if (prepared := on_stream(spark, pair, refused)) is not None]
    assert len(pairs) >= LEAST
    text = check([pair for pair, _ in pairs], run_on_stream(spark, [made for _, made in pairs], tmp_path, seed=0))
    record_property("counted", f"closures on a stream of Spark: {text}; not run: {dict(refused)}")

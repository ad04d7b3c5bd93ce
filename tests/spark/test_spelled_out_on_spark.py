"""Brackets and the equalities that they stand for, on Spark: the same matches as on a table, in batches and streams."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.agreement import content
from tests.optimize.test_spelled_out_keys import draw, matched
from tests.soaking import SOAKING
from tests.spark.comparing import run_together
from tests.spark.streaming.sharing import run_on_stream
from tests.spark.streaming.test_pairs_on_streams import on_stream
from tests.spark.test_random_pairs import EXCHANGES, Pair, on_spark

from kleene.evaluation import evaluate
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

# Queries, each in brackets and spelled out.
QUERIES = 50 if SOAKING else 8


def both_forms() -> list[tuple[Pair, Pair]]:
    rng = Random("spelled out on Spark")
    found = []
    for _ in range(QUERIES):
        *texts, table = draw(rng)
        schema = schema_on(table.schema, Schema())
        brackets, spelled = (
            Pair(query, table, schema, evaluate(table, [query], schema=schema)) for query in map(Query, texts)
        )
        assert matched(brackets.expected.matches) == matched(spelled.expected.matches), texts
        found.append((brackets, spelled))
    return found


def _agree(pairs: list[Pair], found: dict[tuple[int, str], Any]) -> int:
    """How many have a match."""
    some = 0
    for number, pair in enumerate(pairs):
        rows = sorted(content(found.get((number, "matches"))))
        assert rows == sorted(content(pair.expected.matches)), pair.query.text
        some += bool(rows)
    return some


def test_in_batches(spark: SparkSession, record_property: Any) -> None:
    pairs = [pair for forms in both_forms() for pair in forms]
    prepared = [on_spark(spark, pair, EXCHANGES[0]) for pair in pairs]
    usable = [each for each in prepared if each is not None]
    assert len(usable) == len(pairs)
    some = _agree(pairs, run_together(usable))
    # Both forms are divided by the key.
    routes = [type(each.routes[0]).__name__ for each in usable]
    assert routes[::2] == routes[1::2]
    record_property("counted", f"spelled out on Spark: {len(pairs)} queries, {some} with a match, {Counter(routes)}")
    assert some >= len(pairs) // 3


@pytest.mark.soak
def test_on_a_stream(spark: SparkSession, tmp_path: Path, record_property: Any) -> None:
    pairs, prepared = [], []
    refused: Counter[str] = Counter()
    for pair in (pair for forms in both_forms() for pair in forms):
        made = on_stream(spark, pair, refused)
        if made is not None:
            pairs.append(pair)
            prepared.append(made)
    some = _agree(pairs, run_on_stream(spark, prepared, tmp_path, seed=18))
    record_property("counted", f"spelled out on a stream: {len(pairs)} queries, {some} with a match; {dict(refused)}")
    assert some >= len(pairs) // 3
    assert len(pairs) >= QUERIES

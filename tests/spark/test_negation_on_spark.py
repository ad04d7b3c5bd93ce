"""Negation in groups and negated pairs on Spark: random pairs as a batch, divided in two ways, and as one stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engine.agreement import content
from tests.soaking import SOAKING
from tests.spark.comparing import run_together
from tests.spark.streaming.sharing import run_on_stream
from tests.spark.streaming.test_pairs_on_streams import on_stream
from tests.spark.test_random_pairs import EXCHANGES, on_spark, pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

STRATA = ("negated_groups", "negated_pairs")
# Pairs of each stratum: on a stream some wait for the end of the input, and are not run.
BATCH = 60 if SOAKING else 6
STREAM = 80 if SOAKING else 6


def test_as_a_batch(spark: SparkSession, record_property: Callable[[str, object], None]) -> None:
    given = [pair for stratum in STRATA for pair in pairs(stratum, BATCH)]
    prepared = [on_spark(spark, pair, EXCHANGES[number % 2]) for number, pair in enumerate(given)]
    usable = [(pair, made) for pair, made in zip(given, prepared, strict=True) if made is not None]
    found = run_together([made for _, made in usable])
    matching = 0
    for number, (pair, _) in enumerate(usable):
        rows = sorted(content(found.get((number, "matches"))))
        assert rows == sorted(content(pair.expected.matches)), pair.query.text
        matching += bool(rows)
    record_property("counted", f"negation on Spark batch: {len(usable)} pairs, {matching} with a match")
    assert len(usable) >= 1.7 * BATCH
    assert matching >= BATCH // 2


@pytest.mark.soak
def test_as_a_stream(spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    given = [pair for stratum in STRATA for pair in pairs(stratum, STREAM)]
    refused: Counter[str] = Counter()
    prepared = [on_stream(spark, pair, refused) for pair in given]
    usable = [(pair, made) for pair, made in zip(given, prepared, strict=True) if made is not None]
    found = run_on_stream(spark, [made for _, made in usable], tmp_path, seed=31)
    matching = 0
    for number, (pair, _) in enumerate(usable):
        assert (number, "late") not in found
        rows = sorted(content(found.get((number, "matches"))))
        assert rows == sorted(content(pair.expected.matches)), pair.query.text
        matching += bool(rows)
    said = f"negation on a Spark stream: {len(usable)} pairs, {matching} with a match; not run: {dict(refused)}"
    record_property("counted", said)
    assert len(usable) >= 1.3 * STREAM
    assert matching >= STREAM // 3

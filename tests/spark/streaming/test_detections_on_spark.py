"""Queries in EQL on a slot of a stream, and on Spark: as by their definitions, whatever fails."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pyarrow as pa
import pytest
from tests.engine.agreement import content
from tests.soaking import SOAKING
from tests.spark.comparing import run_together, to_spark
from tests.spark.detection_pairs import pairs
from tests.spark.streaming.driving import Slot
from tests.spark.streaming.sharing import BOUNDED, run_on_stream
from tests.spark.streaming.test_slots_agree import IN_TIME, PACES, TOO_LATE, late_rows, micro_batches
from tests.spark.test_random_pairs import in_process

from kleene.engine.intake.timeline import integers
from kleene.evaluation import evaluate
from kleene.plan.settings import Exchange, Settings
from kleene.spark.streaming import live_slot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ON_SLOTS = 400 if SOAKING else 16
# A hundred and more in `make soak`.
ON_SPARK = 104 if SOAKING else 10


def test_pairs_on_a_slot_agree_with_a_batch(record_property: Callable[[str, object], None]) -> None:
    """Batch, and a stream whose workers fail, are made anew and catch up: the same results at any pace."""
    counted: Counter[str] = Counter()
    for number, pair in enumerate(pairs("slot", ON_SLOTS)):
        draw = random.Random(f"slot {number}")
        times = integers(pair.table.column("ts")).tolist()
        pace, (disorder, delay) = draw.choice(PACES), draw.choice([*IN_TIME, *TOO_LATE])
        batches = micro_batches(draw, times, pace, disorder=disorder, delay=delay)
        late = late_rows(batches, times, pace)
        in_time = pa.array(sorted(set(range(pair.table.num_rows)).difference(late)), pa.int64())
        expected = evaluate(pair.table.take(in_time), pair.queries, schema=pair.schema, several=True)
        failing = draw.choice([0, 0.25])
        slot = Slot(
            pair.queries,
            pair.schema,
            pair.table.schema,
            BOUNDED,
            pace,
            True,
            draw.randint(1, 3),
            failing,
            draw,
            counted,
        )
        with mock.patch.object(live_slot, "_LEAST_LOG", draw.choice([0, 1 << 18])):
            for batch in batches:
                slot.batch(pair.table.take(pa.array(batch.rows, pa.int64())), batch.milliseconds)
        assert slot.rows("matches") == sorted(content(expected.matches)), pair.text
        assert slot.number("late") == len(late)
        counted["with results"] += "reader" in expected.matches.column("query").to_pylist()
        counted["with late events"] += bool(late)
    names = ("with results", "with late events", "made anew", "as it stood", "caught up", "restart")
    text = ", ".join(f"{counted[name]} {name}" for name in names)
    record_property("counted", f"EQL, slot = batch: {ON_SLOTS}, {text}")
    assert counted["with results"] >= ON_SLOTS // 3


def test_pairs_on_spark(spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Batch by key, by time and in one task, and one Spark stream: what the definitions give."""
    from kleene.spark.batch import prepare
    from kleene.spark.streaming.preparing import prepare_stream

    drawn = pairs("spark", ON_SPARK)
    batch, stream, routes = [], [], Counter[str]()
    for number, pair in enumerate(drawn):
        frame = to_spark(spark, pair.table).coalesce(1)
        settings = Settings(exchange=Exchange(buckets=3, slice_width=1 + number % 6))
        with mock.patch.multiple("kleene.spark.slices", **in_process(pair.table, pair.schema)):
            made = prepare(frame, pair.queries, schema=pair.schema, several=False, settings=settings)
        routes[type(made.routes[0]).__name__] += 1
        batch.append(made)
        stream.append(prepare_stream(frame, pair.queries, schema=pair.schema, several=False, settings=BOUNDED))
    found = run_together(batch)
    results = 0
    for number, pair in enumerate(drawn):
        rows = sorted(content(found.get((number, "matches"))))
        assert rows == sorted(content(pair.expected.matches)), pair.text
        results += bool(rows)
    found = run_on_stream(spark, stream, tmp_path, seed=5)
    for number, pair in enumerate(drawn):
        assert (number, "late") not in found
        rows = sorted(content(found.get((number, "matches"))))
        assert rows == sorted(content(pair.expected.matches)), pair.text
    divided = ", ".join(f"{count} {name}" for name, count in routes.items())
    record_property(
        "counted", f"EQL on Spark: {len(drawn)} in a batch ({divided}) and on a stream, {results} with results"
    )
    assert 2 * results > len(drawn)
    assert set(routes) == {"ByKey", "ByTime", "OneTask"}

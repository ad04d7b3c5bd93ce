"""Queries of streams on a slot of a stream, and on Spark: as in a batch, whatever fails, and no slower with time."""

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
from tests.spark.stream_families import Family, bounded_stream, keyed_family, random_family
from tests.spark.streaming.driving import Slot
from tests.spark.streaming.sharing import BOUNDED, run_on_stream
from tests.spark.streaming.test_slots_agree import IN_TIME, PACES, TOO_LATE, late_rows, micro_batches
from tests.spark.test_random_pairs import in_process

from kleene.engine.intake.timeline import integers
from kleene.errors import LimitError, NotOnStreams
from kleene.evaluation import evaluate
from kleene.plan.settings import Exchange, Settings
from kleene.spark.streaming import live_slot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

# Families on slots, and on Spark.
ON_SLOTS = 600 if SOAKING else 18
ON_SPARK = 60 if SOAKING else 9


KINDS = (random_family, keyed_family, bounded_stream)


def families(name: str, number: int) -> list[Family]:
    """Random families of every kind, most of which give something."""
    drawn: list[Family] = []
    for seed in range(40 * number):
        family = KINDS[len(drawn) % len(KINDS)](random.Random(f"{name} {seed}"))
        if family is not None and (family.expected.matches.num_rows or seed % 12 == 0):
            drawn.append(family)
        if len(drawn) == number:
            return drawn
    raise AssertionError(f"only {len(drawn)} families of {number}")


def test_families_on_a_slot_agree_with_a_batch(record_property: Callable[[str, object], None]) -> None:
    """Batch, and a stream whose workers fail, are made anew and catch up: the same results at any pace."""
    counted: Counter[str] = Counter()
    for number, family in enumerate(families("slot", ON_SLOTS)):
        draw = random.Random(f"slot {number}")
        times = integers(family.table.column("ts")).tolist()
        pace, (disorder, delay) = draw.choice(PACES), draw.choice([*IN_TIME, *TOO_LATE])
        batches = micro_batches(draw, times, pace, disorder=disorder, delay=delay)
        late = late_rows(batches, times, pace)
        in_time = pa.array(sorted(set(range(family.table.num_rows)).difference(late)), pa.int64())
        expected = evaluate(family.table.take(in_time), family.queries, schema=family.schema, several=True)
        slot = Slot(
            family.queries,
            family.schema,
            family.table.schema,
            BOUNDED,
            pace,
            True,
            draw.randint(1, 3),
            draw.choice([0, 0.25]),
            draw,
            counted,
        )
        with mock.patch.object(live_slot, "_LEAST_LOG", draw.choice([0, 1 << 18])):
            for batch in batches:
                slot.batch(family.table.take(pa.array(batch.rows, pa.int64())), batch.milliseconds)
        assert slot.rows("matches") == sorted(content(expected.matches)), family.text
        assert slot.number("late") == len(late)
        counted["with results"] += "reader" in expected.matches.column("query").to_pylist()
        counted["with late events"] += bool(late)
    names = ("with results", "with late events", "made anew", "as it stood", "caught up", "restart")
    text = ", ".join(f"{counted[name]} {name}" for name in names)
    record_property("counted", f"families of patterns and streams, slot = batch: {ON_SLOTS}, {text}")
    assert counted["with results"] >= ON_SLOTS // 4


def test_families_on_spark(spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Batch by key, by time and in one task, and one Spark stream: what the reference gives."""
    from kleene.spark.batch import prepare
    from kleene.spark.streaming.preparing import prepare_stream

    drawn = families("spark", ON_SPARK)
    batch, stream, refused, routes = [], [], 0, Counter[str]()
    for number, family in enumerate(drawn):
        frame = to_spark(spark, family.table).coalesce(1)
        settings = Settings(exchange=Exchange(buckets=3, slice_width=1 + number % 6))
        with mock.patch.multiple("kleene.spark.slices", **in_process(family.table, family.schema)):
            made = prepare(frame, family.queries, schema=family.schema, several=False, settings=settings)
        routes[type(made.routes[0]).__name__] += 1
        batch.append(made)
        try:
            live = prepare_stream(frame, family.queries, schema=family.schema, several=False, settings=BOUNDED)
            stream.append((family, live))
        except (NotOnStreams, LimitError):
            refused += 1
    found = run_together(batch)
    for number, family in enumerate(drawn):
        rows = sorted(content(found.get((number, "matches"))))
        assert rows == sorted(content(family.expected.matches)), family.text
    found = run_on_stream(spark, [live for _, live in stream], tmp_path, seed=5)
    for number, (family, _) in enumerate(stream):
        assert (number, "late") not in found
        rows = sorted(content(found.get((number, "matches"))))
        assert rows == sorted(content(family.expected.matches)), family.text
    divided = ", ".join(f"{count} {name}" for name, count in routes.items())
    record_property(
        "counted", f"families on Spark: {len(drawn)} in a batch ({divided}), {len(stream)} on a stream, {refused} not"
    )
    assert len(stream) >= ON_SPARK // 2
    assert set(routes) == {"ByKey", "ByTime", "OneTask"}

"""Random queries and streams on Spark: the same answer with any number of buckets and any width of slices.

A job costs more than a hundred tiny streams, so many pairs share one: each has slots of its own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import case_of, content
from tests.soaking import SOAKING
from tests.spark.comparing import run_together, to_spark

from kleene.engine.intake.timeline import integers
from kleene.errors import KleeneError, UnusableColumn
from kleene.evaluation import evaluate
from kleene.frames.outputs import Outputs
from kleene.frames.streams import to_table
from kleene.pattern import Query, Schema
from kleene.plan.settings import Exchange, Settings
from kleene.testing.generators import STRATA, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.batch import Prepared

pytestmark = pytest.mark.slow

# Pairs of each stratum, and how they are divided.
PAIRS = 12 if SOAKING else 1
# Strata that share a job: some 24 pairs, or all.
AT_A_TIME = 2 if SOAKING else 64
EXCHANGES = (Exchange(buckets=3, slice_width=1), Exchange(buckets=16, slice_width=6))
EDGES = ("edge sequence", "edge kleene_any", "edge negation", "edge durations", "edge conjunction", "edge timeouts")
EVERY = [*STRATA, "timeouts", *EDGES]
counted: Counter[str] = Counter()


@dataclass(frozen=True)
class Pair:
    query: Query
    table: pa.Table
    schema: Schema
    expected: Outputs[pa.Table]


def pairs(stratum: str, number: int) -> list[Pair]:
    draw = random.Random(f"spark {stratum}")
    found: list[Pair] = []
    while len(found) < number:
        case = case_of(draw, stratum)
        schema = Schema(**schema_of(case))
        query = Query(case.query_text, params=dict(case.params or {}))
        try:
            table, given = to_table(case.events, schema.declaring(query.tree.declarations))
            found.append(Pair(query, table, given, evaluate(table, [query], schema=given)))
        except KleeneError:
            continue
    return found


@pytest.mark.parametrize("first", range(0, len(EVERY), AT_A_TIME))
def test_pairs(spark: SparkSession, first: int) -> None:
    usable = []
    for stratum in EVERY[first : first + AT_A_TIME]:
        # All of time would be too many slices of a few steps.
        exchanges = (Exchange(buckets=3), Exchange(slice_width=2**61)) if stratum in EDGES else EXCHANGES
        for number, pair in enumerate(pairs(stratum, PAIRS)):
            made = on_spark(spark, pair, exchanges[number % len(exchanges)])
            if made is not None:
                usable.append((pair, made))
    found = run_together([made for _, made in usable])
    for number, (pair, made) in enumerate(usable):
        rows = content(found.get((number, "matches")))
        assert sorted(rows) == sorted(content(pair.expected.matches)), pair.query.text
        late = content(found.get((number, "timeouts")))
        assert sorted(late) == sorted(content(pair.expected.timeouts)), pair.query.text
        counted[type(made.routes[0]).__name__] += 1
        counted["with a match"] += bool(rows)
        counted["pairs"] += 1


def test_enough_pairs_ran(spark: SparkSession, record_property: Callable[[str, object], None]) -> None:
    """Runs after the pairs; with only some of them it has nothing to say."""
    if counted["pairs"] < PAIRS * len(STRATA):
        pytest.skip("not all strata ran")
    record_property(
        "counted", "on Spark, divided in one of two ways: " + ", ".join(f"{n} {k}" for k, n in counted.items())
    )
    assert counted["pairs"] >= 25 * PAIRS
    assert counted["with a match"] >= counted["pairs"] // 3
    assert min(counted["ByKey"], counted["ByTime"]) >= 8 * PAIRS


def in_process(table: pa.Table, schema: Schema) -> dict[str, Any]:
    """What `slices` learns of the events by jobs of its own, which would take longer than everything else here."""
    column = table.column(schema.time).drop_null()

    def times_of(*_: object) -> tuple[int, Any]:
        ordered = np.sort(integers(column))
        places = np.linspace(0, max(len(ordered) - 1, 0), 1025).astype(np.int64)
        return len(ordered), ordered[places] if len(ordered) else ordered

    def numbers_of(_events: object, _time: object, cuts: list[int]) -> dict[int, int]:
        return dict(Counter(np.searchsorted(cuts, integers(column), side="right").tolist()))

    return {"times_of": times_of, "numbers_of": numbers_of}


def on_spark(spark: SparkSession, pair: Pair, exchange: Exchange) -> Prepared | None:
    from kleene.spark.batch import prepare

    try:
        events = to_spark(spark, pair.table).coalesce(1)
    except (TypeError, UnusableColumn):
        return None  # a type that Spark has not
    settings = Settings(exchange=exchange)
    with mock.patch.multiple("kleene.spark.slices", **in_process(pair.table, pair.schema)):
        return prepare(events, [pair.query], schema=pair.schema, several=False, settings=settings)

"""Queries over Spark data frames find what they find in process: partitions, buckets, errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.comparing import EVENTS, KEYED, check_same, event, random_events, to_spark

import kleene
from kleene.errors import (
    BadTimeColumn,
    KleeneError,
    MissingColumn,
    UnknownAttribute,
)
from kleene.plan.settings import Exchange, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sparks_own

# Partitions --------------------------------------------------------------------------------------------------------


def test_a_keyed_query(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kleene.spark"):
        found = check_same(spark, EVENTS, KEYED)
    assert [
        (row["key"]["id"], row["a"]["ts"], row["b"]["ts"]) for row in sorted(found, key=lambda row: row["end"])
    ] == [
        (1, 1, 3),
        (2, 2, 4),
        (1, 1, 7),
    ]
    assert "8 buckets by hash of id" in caplog.text


def test_a_query_with_neither_key_nor_window_runs_in_one_task_and_says_so(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    found = check_same(spark, EVENTS, kleene.query("PATTERN SEQ(A a, B b)", name="pairs"))
    assert len(found) == 9
    assert "one task handles all events: `pairs` has neither a partition key" in caplog.text


def test_a_query_without_a_key_is_cut_into_slices_of_time(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(exchange=Exchange(slice_width=2))
    with caplog.at_level(logging.INFO, "kleene.spark"):
        found = check_same(
            spark, EVENTS, kleene.query("PATTERN SEQ(A a, B b) WITHIN 3", name="pairs"), settings=settings
        )
    assert len(found) == 4
    assert "`pairs`: 4 slices of time, each with 4 after it" in caplog.text


def test_strict_contiguity_sees_events_of_other_keys(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    text = "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [id] }"
    events = pa.Table.from_pylist([event("A", 1, id=1), event("A", 2, id=2), event("B", 3, id=1), event("B", 4, id=1)])
    assert check_same(spark, events, text) == []
    assert "strict_contiguity" in caplog.text
    # Between a1 and b3 stands an event without a key; it counts for strict contiguity too.
    events = pa.Table.from_pylist([event("A", 1, id=1), event("C", 2, id=None), event("B", 3, id=1)])
    assert check_same(spark, events, text) == []


def test_partition_contiguity_sees_foreign_types_of_its_own_key_only(spark: SparkSession) -> None:
    events = pa.Table.from_pylist(
        [
            event("A", 1, id=1),
            event("A", 2, id=2),
            event("C", 3, id=1),
            event("C", 4, id=None),
            event("B", 5, id=1),
            event("B", 6, id=2),
        ]
    )
    found = check_same(spark, events, "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [id] }")
    assert [row["key"]["id"] for row in found] == [2]


def test_null_keys_match_nothing_even_alone(spark: SparkSession) -> None:
    found = check_same(spark, EVENTS, "PATTERN A a WHERE [id]")
    assert sorted(row["a"]["ts"] for row in found) == [1, 2]


def test_a_window_of_events_counts_those_of_the_partition(spark: SparkSession) -> None:
    events = pa.Table.from_pylist(
        [
            event("A", 1, id=1),
            event("C", 2, id=1),
            event("A", 3, id=2),
            event("C", 4, id=None),
            event("B", 5, id=1),
            event("B", 6, id=2),
        ]
    )
    found = check_same(spark, events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 EVENTS")
    assert [row["key"]["id"] for row in found] == [2]


def test_a_key_of_several_columns(spark: SparkSession) -> None:
    events = pa.Table.from_pylist(
        [event("A" if ts % 2 else "B", ts, id=ts % 3, city="xy"[ts % 5 > 2]) for ts in range(1, 30)]
    )
    found = check_same(spark, events, "PATTERN SEQ(A a, B b) WHERE [id, city] WITHIN 9")
    assert found
    assert {tuple(row["key"]) for row in found} == {("id", "city")}


def test_zeros_of_either_sign_are_one_key_and_nan_is_none(spark: SparkSession) -> None:
    nan = float("nan")
    events = pa.Table.from_pylist(
        [event("A", 1, id=0.0), event("B", 2, id=-0.0), event("A", 3, id=nan), event("B", 4, id=nan)]
    )
    for buckets in (1, 7, 64):
        with_key(spark, events, buckets)
    assert len(check_same(spark, events, KEYED)) == 1
    narrow = events.set_column(2, "id", events.column("id").cast(pa.float32()))
    assert len(check_same(spark, narrow, KEYED)) == 1


def with_key(spark: SparkSession, events: pa.Table, buckets: int) -> None:
    assert len(ids_with_buckets(spark, events, KEYED, buckets)) == 1


KEYS: list[tuple[pa.DataType, Any, Any]] = [
    (pa.decimal128(10, 2), Decimal("1.50"), Decimal("2.50")),
    (pa.string(), "é", "e\u0301"),
    (pa.bool_(), True, False),
    (pa.date32(), date(2024, 1, 1), date(2024, 1, 2)),
    (pa.timestamp("us", "UTC"), datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)),
    (pa.timestamp("us"), datetime(2024, 1, 1), datetime(2024, 1, 2)),
    (pa.int8(), -1, 1),
]


@pytest.mark.parametrize(
    ("kind", "one", "other"), KEYS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_keys_of_every_type(spark: SparkSession, kind: pa.DataType, one: Any, other: Any) -> None:
    keys = pa.array([one, other, one, other], kind)
    events = pa.table({"type": ["A", "A", "B", "B"], "ts": [1, 2, 3, 4], "id": keys})
    found = check_same(spark, events, KEYED)
    assert sorted((row["a"]["ts"], row["b"]["ts"]) for row in found) == [(1, 3), (2, 4)]


def test_names_with_blanks_and_dots_and_names_that_differ_in_case(spark: SparkSession) -> None:
    events = pa.table(
        {
            "the type": ["A", "B", "B"],
            "a.b": [1, 2, None],
            "tag id": [5, 5, 5],
            "Tag ID": [1, 2, 3],
            "bucket": [1, 2, 3],
        }
    )
    schema = kleene.Schema(type="the type", time="a.b")
    assert len(check_same(spark, events, "PATTERN SEQ(A a, B b) WHERE [`tag id`]", schema=schema)) == 1
    bad = kleene.outputs(to_spark(spark, events), "PATTERN A a", schema=schema).bad_rows
    assert [row.text for row in bad.collect()] == ['{"the type":"B","tag id":5,"Tag ID":3,"bucket":3}']


# Random events -----------------------------------------------------------------------------------------------------


def ids_with_buckets(spark: SparkSession, events: pa.Table, text: str, buckets: int) -> list[str]:
    from kleene.spark.batch import spark_outputs

    settings = Settings(exchange=Exchange(buckets))
    found = spark_outputs(to_spark(spark, events), [kleene.query(text)], schema=None, several=False, settings=settings)
    return sorted(row.match_id for row in found.matches.select("match_id").collect())


RANDOM_QUERIES = [
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 20",
    "PATTERN SEQ(A a, !(C c), B b) WHERE [id, city] and a.v <= b.v WITHIN 40",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [id] and b[i].v >= b[i-1].v } WITHIN 60",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [id] } OUTPUT NON_OVERLAP",
    "PATTERN A a & B b WHERE [id] WITHIN 5 RETURN a.v + b.v AS sum, a.ts AS at",
]


@pytest.mark.parametrize("text", RANDOM_QUERIES)
def test_the_number_of_buckets_changes_no_match(spark: SparkSession, text: str) -> None:
    events = random_events(seed=len(text))
    here = kleene.match(events, text)
    assert here.num_rows > 5
    wanted = sorted(here.column("match_id").to_pylist())
    for buckets in (1, 3, 16):
        assert ids_with_buckets(spark, events, text, buckets) == wanted


def test_random_events_give_the_same_rows(spark: SparkSession) -> None:
    for seed in range(3):
        check_same(spark, random_events(seed), "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 12 TIMEOUTS INTO late")


def test_there_is_at_least_one_bucket(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="`buckets` must be at least 1"):
        ids_with_buckets(spark, EVENTS, KEYED, 0)


# Errors ------------------------------------------------------------------------------------------------------------

WRONG: Sequence[tuple[str, kleene.Schema | None, type[KleeneError]]] = [
    ("PATTERN SEQ(A a, B b) WHERE a.nope = b.id", None, UnknownAttribute),
    ("PATTERN A a", kleene.Schema(time="when"), MissingColumn),
    ("PATTERN A a", kleene.Schema(type="kind"), MissingColumn),
    ("PATTERN A a", kleene.Schema(time="x"), BadTimeColumn),
]


@pytest.mark.parametrize(("text", "schema", "error"), WRONG)
def test_a_wrong_query_is_an_error_before_any_job(
    spark: SparkSession, text: str, schema: kleene.Schema | None, error: type[KleeneError]
) -> None:
    never = spark.sql("select 'A' type, 1L ts, cast(raise_error('a job ran') as bigint) id, 1.5D x")
    with pytest.raises(error):
        kleene.match(never, text, schema=schema)


def test_an_error_in_a_task_brings_its_message(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    many = pa.Table.from_pylist([event("A", ts, id=1) for ts in range(30)])
    matches = kleene.match(to_spark(spark, many), "PATTERN A+ a[] WHERE [id]")
    with pytest.raises(PySparkException) as caught:
        matches.collect()
    told = str(caught.value)
    assert re.search(r"error\[KL601\]: more than [\d,]+ matches end with one event", told)
    assert "= hint: narrow the window" in told
    # A few frames of Spark, the one that calls us, and the error.
    assert len(told.splitlines()) < 20


def test_settings_reach_the_tasks(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    few = pa.Table.from_pylist([event("A", ts, id=1) for ts in range(5)])
    settings = kleene.Settings(budget=kleene.Budget(matches_per_event=3))
    with pytest.raises(PySparkException, match="more than 3 matches end with one event"):
        kleene.match(to_spark(spark, few), "PATTERN A+ a[] WHERE [id]", settings=settings).collect()


def test_only_public_api_is_used() -> None:
    """What Spark Connect does not have must not be needed."""
    import kleene.spark

    for path in Path(str(kleene.spark.__path__[0])).glob("*.py"):
        found = re.findall(r"\._jdf|\._jvm|\._sc\b|\.rdd\b|\.sparkContext", path.read_text(encoding="utf-8"))
        assert not found, f"{path.name} uses {found}"

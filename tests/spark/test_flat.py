"""The flat form on Spark is the one in process, made by Spark itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.comparing import EVENTS, event, rows, to_spark

import kleene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "single": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10",
    "lists": "PATTERN SEQ(A a, C? c, B* b[]) WHERE [id] WITHIN 4",
    "declared": "DECLARE TYPE A (id int) DECLARE TYPE B (id int, x float) PATTERN SEQ(A a, B b) WITHIN 3",
    "values": "PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 10 RETURN a.id AS id, sum(b.x) AS total",
    "whole": "PATTERN SEQ(A a, C? c, B+ b[]) WHERE [id] WITHIN 10 RETURN b, c, count(b) AS position",
    "compressed": "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 10 OUTPUT COMPRESSED",
    "several": [kleene.query("PATTERN A a", name="one"), kleene.query("PATTERN SEQ(A a, B+ b[]) WITHIN 3", name="two")],
    "several return": [
        kleene.query("PATTERN SEQ(A a, B+ b[]) WITHIN 3 RETURN sum(b.x) AS what, a", name="one"),
        kleene.query("PATTERN C c RETURN 'c' AS what", name="two"),
        kleene.query("PATTERN C c", name="three"),
    ],
    "none": "PATTERN SEQ(C c, A a) WHERE [id] WITHIN 1",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_flat_is_the_same_on_spark(spark: SparkSession, query: Any) -> None:
    here = kleene.flat(kleene.match(EVENTS, query))
    there = kleene.flat(kleene.match(to_spark(spark, EVENTS), query))
    assert there.columns == here.column_names
    assert rows(there) == rows(here)


def test_timeouts_are_the_same_on_spark(spark: SparkSession) -> None:
    text = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 6 TIMEOUTS INTO late"
    here = kleene.outputs(EVENTS, text).timeouts
    there = kleene.outputs(to_spark(spark, EVENTS), text).timeouts
    assert rows(kleene.flat(there)) == rows(kleene.flat(here)) != []


def test_names_that_spark_stumbles_over(spark: SparkSession) -> None:
    rows_given = [
        event("A", 1, **{"a.b": 1, "X": 2, "variable": 3}),
        event("B", 2, **{"a.b": 4, "X": 5, "variable": 6}),
    ]
    found = pa.Table.from_pylist([{"match_id": "m", "key": {"a.b": 1}, "a": [rows_given[0]], "B": rows_given[1]}])
    there = kleene.flat(to_spark(spark, found))
    assert there.columns == [
        *("match_id", "key_a.b", "variable", "position"),
        *("type", "ts", "a.b", "X", "event_variable"),
    ]
    assert there.toArrow().to_pylist() == kleene.flat(found).to_pylist()

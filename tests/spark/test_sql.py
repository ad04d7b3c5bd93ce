"""Patterns inside SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.comparing import EVENTS, to_spark

import kleene
from kleene.errors import BadStatement, UnknownAttribute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def events(spark: SparkSession) -> None:
    to_spark(spark, EVENTS).createOrReplaceTempView("readings")


PATTERN = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT key.id, a.ts, b.ts FROM KLEENE(readings, '{PATTERN}') ORDER BY b.ts",
        f'select key.id, a.ts, b.ts from kleene ( (select * from readings where ts < 9), "{PATTERN}" ) order by b.ts',
        f"WITH m AS (SELECT * FROM KLEENE(readings, $${PATTERN}$$)) SELECT key.id, a.ts, b.ts FROM m ORDER BY b.ts",
        f"SELECT m.key.id, a.ts, b.ts FROM KLEENE(readings, '{PATTERN}') AS m -- not KLEENE(\nORDER BY b.ts",
    ],
)
def test_a_pattern_stands_where_a_table_can(spark: SparkSession, statement: str) -> None:
    assert [tuple(row) for row in kleene.sql(spark, statement).collect()] == [(1, 1, 3), (2, 2, 4), (1, 1, 7)]


@pytest.mark.usefixtures("events")
def test_two_patterns_joined_and_one_inside_another(spark: SparkSession) -> None:
    joined = """
        SELECT x.b.ts AS first, y.b.ts AS second
        FROM KLEENE(readings, 'PATTERN SEQ(A a, B b) WHERE [id] and a.type = ''A'' WITHIN 3') x
        JOIN KLEENE(readings, 'PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10') y
        ON x.key = y.key AND x.match_id < y.match_id OR x.key = y.key AND x.match_id > y.match_id
        ORDER BY 1, 2
    """
    assert [tuple(row) for row in kleene.sql(spark, joined).collect()] == [(3, 3), (3, 7), (4, 4)]
    nested = """
        SELECT count(*) AS n FROM KLEENE(
            (SELECT 'M' AS type, end AS ts FROM KLEENE(readings, 'PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10')),
            'PATTERN SEQ(M x, M y) WITHIN 2')
    """
    assert kleene.sql(spark, nested).first()["n"] == 1


@pytest.mark.usefixtures("events")
def test_what_is_wrong_is_said(spark: SparkSession) -> None:
    with pytest.raises(BadStatement, match="takes a table and a pattern"):
        kleene.sql(spark, "SELECT * FROM KLEENE(readings)")
    with pytest.raises(BadStatement, match="has no end"):
        kleene.sql(spark, "SELECT * FROM KLEENE(readings, 'PATTERN A a'")
    with pytest.raises(UnknownAttribute):
        kleene.sql(spark, "SELECT * FROM KLEENE(readings, 'PATTERN A a WHERE a.nope = 1')")
    assert kleene.sql(spark, "SELECT 'KLEENE(x)' AS x").first()["x"] == "KLEENE(x)"

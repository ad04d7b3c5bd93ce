"""Rows of Spark data frames: times, values of every type, and rows that are no events."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.comparing import EVENTS, KEYED, check_same, event, rows, setting, to_spark

import kleene
from kleene.errors import (
    BadTimeColumn,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_bad_rows_are_set_aside_with_a_reason(spark: SparkSession) -> None:
    schema = kleene.Schema(start="began", tie_breaker="seq")
    events = pa.Table.from_pylist(
        [
            event("A", 2, began=1, seq=1),
            event("A", None, began=1, seq=1),
            event("A", 2, began=None, seq=1),
            event("A", 2, began=3, seq=1),
            event("A", 2, began=1, seq=None),
        ]
    )
    assert len(check_same(spark, events, "PATTERN A a", schema=schema)) == 1
    bad = kleene.outputs(to_spark(spark, events), "PATTERN A a", schema=schema).bad_rows
    assert bad.columns == ["row", "line", "reason", "text"]
    assert sorted((row.reason, row.text) for row in bad.collect()) == [
        ("`began` is after `ts`", '{"type":"A","ts":2,"began":3,"seq":1}'),
        ("no start: `began` is NULL", '{"type":"A","ts":2,"seq":1}'),
        ("no tie-breaker: `seq` is NULL", '{"type":"A","ts":2,"began":1}'),
        ("no time: `ts` is NULL", '{"type":"A","began":1,"seq":1}'),
    ]


def test_start_and_time_must_be_of_one_type(spark: SparkSession) -> None:
    for began in ("date'2024-01-01'", "5L"):
        frame = spark.sql(f"select 'A' type, timestamp_ntz'2024-01-01 10:00:00' ts, {began} began")
        with pytest.raises(BadTimeColumn, match="began"):
            kleene.match(frame, "PATTERN A a", schema=kleene.Schema(start="began"))


def test_the_session_time_zone_does_not_matter(spark: SparkSession) -> None:
    moments = [datetime(2024, 3, 10, hour, tzinfo=UTC) for hour in (6, 7, 8)]  # the clocks change in New York
    events = pa.table(
        {
            "type": ["A", "B", "B"],
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
            "naive": pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us")),
            "nested": pa.array([[moment] for moment in moments], pa.list_(pa.timestamp("us", "UTC"))),
            "id": [1, 1, 1],
        }
    )
    text = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 hours RETURN a, b.ts AS at, b.naive AS n, b.ts - a.ts AS gap"
    frame = to_spark(spark, events)
    wanted = rows(kleene.match(events, text))
    assert len(wanted) == 1
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        with setting(spark, "spark.sql.session.timeZone", zone):
            matches = kleene.match(frame, text)
            assert rows(matches) == wanted
            assert matches.schema["at"].dataType.simpleString() == "timestamp"
            assert matches.schema["n"].dataType.simpleString() == "timestamp_ntz"


def test_dates_and_naive_timestamps_serve_as_time(spark: SparkSession) -> None:
    days = pa.array([date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 9)])
    for kind in (pa.date32(), pa.timestamp("us")):
        events = pa.table({"type": ["A", "B", "B"], "ts": days.cast(kind), "id": [1, 1, 1]})
        assert len(check_same(spark, events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3 days")) == 1


def test_values_of_every_type_pass_through(spark: SparkSession) -> None:
    frame = spark.sql(
        """
        select col1 type, col2 ts, 1 id, cast(1.5 as decimal(10, 2)) money, array('x', null) tags,
               named_struct('when', timestamp'2024-01-01 10:00:00', 'n', 5) inner, map('k', 1L) counts, X'00ff' bytes,
               cast(null as void) nothing, interval '5' second pause, true flag, cast(1 as tinyint) tiny,
               cast(0.1 as float) narrow, date'2024-01-01' day, 'ß' collate UTF8_LCASE word
        from values ('A', 1L), ('B', 2L)
        """
    )
    matches = kleene.match(frame, KEYED)
    assert matches.schema["a"].dataType.simpleString() == (
        "struct<type:string,ts:bigint,id:int,money:decimal(10,2),tags:array<string>,"
        "inner:struct<when:timestamp,n:int>,counts:map<string,bigint>,bytes:binary,nothing:void,"
        "pause:interval day to second,flag:boolean,tiny:tinyint,narrow:float,day:date,word:string>"
    )
    given, taken = frame.where("type = 'A'").toArrow().to_pylist(), matches.select("a.*").toArrow().to_pylist()
    assert taken == given
    assert rows(matches) == rows(kleene.match(frame.toArrow(), KEYED))


def test_large_strings(spark: SparkSession) -> None:
    with setting(spark, "spark.sql.execution.arrow.useLargeVarTypes", "true"):
        found = rows(kleene.match(to_spark(spark, EVENTS), KEYED))
    assert found == rows(kleene.match(EVENTS, KEYED))


@pytest.mark.parametrize("text", [KEYED, "PATTERN SEQ(A a, B b) WITHIN 10 TIMEOUTS INTO late"])
def test_no_events(spark: SparkSession, text: str) -> None:
    assert check_same(spark, EVENTS.slice(0, 0), text) == []

"""Queries over Spark data frames give what they give in process: the same columns, ids and contents."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kleene
from kleene.errors import (
    BadTimeColumn,
    KleeneError,
    MissingColumn,
    MissingStream,
    NotCompressed,
    UnknownAttribute,
    UnknownKind,
    UnusableColumn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

KEYED = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"


def event(kind: str | None, ts: int | None, **values: Any) -> dict[str, Any]:
    return {"type": kind, "ts": ts, **values}


EVENTS = pa.Table.from_pylist(
    [
        event("A", 1, id=1, x=1.5),
        event("A", 2, id=2, x=2.5),
        event("B", 3, id=1, x=3.5),
        event("B", 4, id=2, x=4.5),
        event("B", 5, id=None, x=5.5),
        event("A", 6, id=None, x=6.5),
        event("B", 7, id=1, x=7.5),
        event("C", 8, id=1, x=8.5),
    ]
)


def to_spark(spark: SparkSession, table: pa.Table) -> DataFrame:
    from kleene.spark.types import spark_schema

    return spark.createDataFrame(table, spark_schema(table.schema))


def rows(found: Any) -> list[dict[str, Any]]:
    """A result's rows in an order that does not depend on who made it."""
    table = found if isinstance(found, pa.Table) else found.toArrow()
    return sorted(table.to_pylist(), key=repr)


def check_same(spark: SparkSession, events: Any, query: Any, **options: Any) -> list[dict[str, Any]]:
    """All outputs are the same on Spark and in process; the matches."""
    given = {name: to_spark(spark, table) for name, table in events.items()} if isinstance(events, Mapping) else None
    here = kleene.outputs(events, query, **options)
    there = kleene.outputs(to_spark(spark, events) if given is None else given, query, **options)
    assert there.matches.columns == here.matches.column_names
    found = rows(there.matches)
    assert found == rows(here.matches)
    assert (there.timeouts is None) == (here.timeouts is None)
    if here.timeouts is not None:
        assert rows(there.timeouts) == rows(here.timeouts)
    assert sorted(row["reason"] for row in rows(there.bad_rows)) == sorted(here.bad_rows.column("reason").to_pylist())
    return found


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)


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
    assert "64 buckets by hash of id" in caplog.text


def test_a_query_without_a_key_runs_in_one_task_and_says_so(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    found = check_same(spark, EVENTS, kleene.query("PATTERN SEQ(A a, B b) WITHIN 3", name="pairs"))
    assert len(found) == 4
    assert "one task handles all events: `pairs` has no partition key" in caplog.text


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


def random_events(seed: int, count: int = 300) -> pa.Table:
    """Many simultaneous and some identical events, NULL keys and NULL values, and a few rows that are no events."""
    chance = random.Random(seed)
    made = [
        event(
            chance.choice(["A", "B", "C", None]),
            chance.choice([None, *[chance.randrange(count // 2)] * 40]),
            id=chance.choice([None, *range(9)]),
            city=chance.choice(["x", "y"]),
            v=chance.choice([None, 1, 2, 3]),
        )
        for _ in range(count)
    ]
    return pa.Table.from_pylist(made)


def ids_with_buckets(spark: SparkSession, events: pa.Table, text: str, buckets: int) -> list[str]:
    from kleene.spark.batch import spark_outputs

    matches, _, _ = spark_outputs(
        to_spark(spark, events), [kleene.query(text)], schema=None, several=False, buckets=buckets
    )
    return sorted(row.match_id for row in matches.select("match_id").collect())


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
    with pytest.raises(ValueError, match="at least one bucket"):
        ids_with_buckets(spark, EVENTS, KEYED, 0)


# Rows and values ---------------------------------------------------------------------------------------------------


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


# Outputs -----------------------------------------------------------------------------------------------------------


def test_returned_columns(spark: SparkSession) -> None:
    text = "PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 10 RETURN a.id AS id, sum(b.x) AS total, b, count(b) AS n"
    found = check_same(spark, EVENTS, text)
    assert sorted((row["id"], row["total"], row["n"]) for row in found) == [
        (1, 3.5, 1),
        (1, 7.5, 1),
        (1, 11.0, 2),
        (2, 4.5, 1),
    ]


def test_timeouts(spark: SparkSession) -> None:
    text = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 6 TIMEOUTS INTO late"
    check_same(spark, EVENTS, text)
    late = kleene.outputs(to_spark(spark, EVENTS), text).timeouts
    assert sorted((row.a.ts, row.reached) for row in late.collect()) == [(1, 2), (2, 2)]


def test_compressed_output(spark: SparkSession) -> None:
    events = pa.Table.from_pylist([event("A", ts, id=ts % 2) for ts in range(1, 9)] + [event("B", 9, id=1)])
    found = check_same(spark, events, "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 20 OUTPUT COMPRESSED")
    assert [row["count"] for row in found] == ["15"]


def test_compressed_output_is_decompressed_row_by_row(spark: SparkSession) -> None:
    pattern = "PATTERN SEQ(A+ a[], C? c, B b) WHERE [id] WITHIN 20"
    kinds = enumerate("AACABCB", 1)
    events = pa.Table.from_pylist([event(kind, ts, id=1, x=None if ts == 2 else ts / 2) for ts, kind in kinds])
    shared = kleene.match(to_spark(spark, events), f"{pattern} OUTPUT COMPRESSED")
    verbose = kleene.match(events, pattern).to_pylist()
    found = sorted(kleene.decompress(shared), key=lambda row: row["end"])
    assert len(found) == 27
    assert found == verbose
    assert list(kleene.decompress(shared.toArrow().sort_by("end"))) == verbose
    assert list(kleene.decompress(shared.toPandas().sort_values("end"))) == verbose
    with pytest.raises(NotCompressed):
        kleene.decompress(kleene.match(to_spark(spark, events), pattern))


def test_a_compressed_result_is_written_and_read(spark: SparkSession, tmp_path: Path) -> None:
    events = pa.Table.from_pylist([event("A", ts, id=1) for ts in range(1, 5)] + [event("B", 9, id=1)])
    shared = kleene.match(to_spark(spark, events), "PATTERN SEQ(A+ a[], B b) OUTPUT COMPRESSED")
    shared.write.parquet(str(tmp_path / "shared"))
    verbose = kleene.match(events, "PATTERN SEQ(A+ a[], B b)").to_pylist()
    assert list(kleene.decompress(spark.read.parquet(str(tmp_path / "shared")))) == verbose
    assert list(kleene.decompress(pq.read_table(tmp_path / "shared"))) == verbose


def test_absent_variables_are_null_and_absent_lists_empty(spark: SparkSession) -> None:
    found = check_same(spark, EVENTS, "PATTERN SEQ(A a, C? c, B* b[]) WHERE [id] WITHIN 3")
    assert {(row["c"] is None, row["b"] == []) for row in found} == {(True, True), (True, False)}


def test_declared_types_classes_and_parameters(spark: SparkSession) -> None:
    schema = kleene.Schema(
        types={"A": {"id": "int"}, "B": {"id": "int", "x": "float"}, "C": {"id": "int"}},
        classes={"Dear": "B WHERE x > 4", "Either": "ANY(A, C)"},
    )
    found = check_same(
        spark, EVENTS, "PATTERN SEQ(Either a, Dear b) WHERE [id] WITHIN :long", schema=schema, params={"long": 7}
    )
    assert [(row["a"], row["b"]["ts"]) for row in sorted(found, key=lambda row: row["end"])] == [
        ({"type": "A", "ts": 2, "id": 2}, 4),
        ({"type": "A", "ts": 1, "id": 1}, 7),
    ]


def test_several_queries_share_what_their_keys_have_in_common(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    events = random_events(seed=5)
    queries = [
        kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5", name="by id"),
        kleene.query("PATTERN SEQ(A a, C c) WHERE [id, city] WITHIN 5", name="by both"),
    ]
    with caplog.at_level(logging.INFO, "kleene.spark"):
        found = check_same(spark, events, queries)
    assert {row["query"] for row in found} == {"by id", "by both"}
    assert "by hash of id\n" in caplog.text
    check_same(spark, events, [*queries, "PATTERN SEQ(B b, C c) WHERE [city] WITHIN 3"])
    assert "no partition key in common" in caplog.text


def test_queries_that_feed_each_other_run_in_one_task(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    queries = [
        kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.id AS id, b.x AS x INTO Pair"),
        kleene.query("PATTERN SEQ(Pair p, C c) WHERE [id] WITHIN 10", name="after"),
    ]
    found = check_same(spark, EVENTS, queries)
    assert sorted(row["query"] for row in found) == ["Pair", "Pair", "after"]
    assert "`after` reads what `Pair` makes" in caplog.text


def test_streams_by_name(spark: SparkSession) -> None:
    streams = {
        "Shelf": pa.table({"ts": [1, 2], "tag": [7, 8], "weight": [1, 2]}),
        "Exit": pa.table({"tag": [7, 8], "ts": [5, 6], "weight": [0.5, 1.5]}),
        "Register": pa.table({"ts": [3], "tag": [8], "till": ["north"]}),
        "Unread": pa.table({"ts": [3], "tag": ["of another type"]}),
    }
    found = check_same(spark, streams, "PATTERN SEQ(Shelf s, !(Register r), Exit e) WHERE [tag] WITHIN 9")
    assert [row["s"] for row in found] == [{"ts": 1, "tag": 7, "weight": 1.0, "type": "Shelf"}]


def test_streams_of_which_some_say_their_types(spark: SparkSession) -> None:
    streams = {
        "mixed": pa.table({"type": ["A", "B"], "ts": [1, 2], "id": [1, 1]}),
        "C": pa.table({"ts": [3], "id": [1], "x": [0.5]}),
    }
    assert len(check_same(spark, streams, "PATTERN SEQ(A a, B b, C c) WHERE [id]")) == 1


def test_streams_whose_columns_disagree(spark: SparkSession) -> None:
    numbers, words = spark.sql("select 1 ts, 1 tag"), spark.sql("select 2 ts, '1' tag")
    with pytest.raises(UnusableColumn, match="column `tag` is of different types"):
        kleene.match({"A": numbers, "B": words}, "PATTERN SEQ(A a, B b)")
    with pytest.raises(BadTimeColumn, match="double"):
        kleene.match({"A": numbers, "B": spark.sql("select 2.5D ts")}, "PATTERN SEQ(A a, B b)")
    one, other = (spark.sql(f"select 1 ts, cast(1 as decimal(38, {scale})) tag") for scale in (0, 18))
    with pytest.raises(UnusableColumn, match="decimal256"):
        kleene.match({"A": one, "B": other}, "PATTERN SEQ(A a, B b)")
    with pytest.raises(UnknownKind, match="stands among Spark data frames"):
        kleene.match({"A": numbers, "B": [{"ts": 1}]}, "PATTERN SEQ(A a, B b)")
    with pytest.raises(MissingStream, match="no stream `X`"):
        kleene.match({"A": numbers}, "PATTERN X x")


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


def test_streaming_comes_later(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(UnknownKind, match="streams come later"):
        kleene.match(stream, "PATTERN A a", schema=kleene.Schema(constant_type="A", time="timestamp"))


def test_an_error_in_a_task_brings_its_message(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    many = pa.Table.from_pylist([event("A", ts, id=1) for ts in range(30)])
    matches = kleene.match(to_spark(spark, many), "PATTERN A+ a[] WHERE [id]")
    with pytest.raises(PySparkException) as caught:
        matches.collect()
    told = str(caught.value)
    assert re.search(r"error\[KL601\]: more than [\d,]+ matches end with one event", told)
    assert "= hint: narrow the window" in told
    assert len(told.splitlines()) < 15


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

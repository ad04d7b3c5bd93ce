"""What Spark data frames give: RETURN, timeouts, compressed results, several queries and streams."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.comparing import EVENTS, check_same, event, random_events, to_spark

import kleene
from kleene.errors import (
    BadTimeColumn,
    MissingStream,
    MixedZones,
    NotCompressed,
    UnknownKind,
    UnknownParameter,
    UnusableColumn,
)
from kleene.plan.settings import Budget, Policy, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sparks_own


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
    in_pandas: Any = shared.toPandas()
    assert list(kleene.decompress(in_pandas.sort_values("end"))) == verbose
    with pytest.raises(NotCompressed):
        kleene.decompress(kleene.match(to_spark(spark, events), pattern))


def test_a_compressed_result_is_written_and_read(spark: SparkSession, tmp_path: Path) -> None:
    events = pa.Table.from_pylist([event("A", ts, id=1) for ts in range(1, 5)] + [event("B", 9, id=1)])
    shared = kleene.match(to_spark(spark, events), "PATTERN SEQ(A+ a[], B b) OUTPUT COMPRESSED")
    shared.write.parquet(str(tmp_path / "shared"))
    verbose = kleene.match(events, "PATTERN SEQ(A+ a[], B b)").to_pylist()
    assert list(kleene.decompress(spark.read.parquet(str(tmp_path / "shared")))) == verbose
    assert list(kleene.decompress(pq.read_table(tmp_path / "shared"))) == verbose


def test_too_many_matches_are_emitted_compressed(spark: SparkSession) -> None:
    settings = Settings(budget=Budget(matches_per_event=3, policy=Policy.EMIT_COMPRESSED))
    events = random_events(seed=8)
    crowd = kleene.query("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [id] } WITHIN 30", name="crowd")
    check_same(spark, events, crowd, settings=settings)
    dense = kleene.outputs(to_spark(spark, events), crowd, settings=settings).compressed
    assert all(int(row["count"]) > 3 for row in dense.collect())
    assert dense.count() > 5
    # Those of several queries are one table, as their timeouts are.
    other = kleene.query("PATTERN SEQ(A+ a[], C c) WHERE [id, city] WITHIN 60 RETURN a[1].v AS v", name="other")
    third = kleene.query("PATTERN SEQ(A+ a[], C c) WHERE [id, city] WITHIN 60 OUTPUT COMPRESSED", name="third")
    found = kleene.outputs(to_spark(spark, events), [crowd, third], settings=settings).compressed
    check_same(spark, events, [crowd, third], settings=settings)
    assert {row.query for row in found.collect()} == {"crowd", "third"}
    # RETURN leaves nothing that a graph could hold.
    few = Settings(budget=Budget(policy=Policy.EMIT_COMPRESSED))
    assert kleene.outputs(to_spark(spark, events), other, settings=few).compressed is None
    assert kleene.outputs(to_spark(spark, events), crowd).compressed is None


def test_what_composite_events_complete_is_emitted_compressed(spark: SparkSession) -> None:
    settings = Settings(budget=Budget(matches_per_event=3, policy=Policy.EMIT_COMPRESSED))
    events = pa.Table.from_pylist([event("AB"[ts % 2], ts, id=1) for ts in range(12)] + [event("C", 20, id=1)])
    maker = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 RETURN a.id AS id, b.ts AS last_ts INTO Pair")
    reader = kleene.query("PATTERN SEQ(Pair+ p[], C c) WHERE [id] WITHIN 30", name="after")
    check_same(spark, events, [maker, reader], settings=settings)
    found = kleene.outputs(to_spark(spark, events), [maker, reader], settings=settings).compressed
    assert [(row.query, row["count"]) for row in found.collect()] == [("after", "63")]


def test_that_drops_are_not_counted_is_said(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(budget=Budget(matches_per_event=3, policy=Policy.DROP_OLDEST))
    text = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [id] } WITHIN 30"
    events = random_events(seed=8)
    assert len(check_same(spark, events, text, settings=settings)) < kleene.match(events, text).num_rows
    assert "a pipeline and `kleene.spark.batch_run` show it" in caplog.text


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
        check_same(spark, events, [*queries, kleene.query("PATTERN SEQ(B b, C c) WHERE [city] WITHIN 3", name="c")])
    assert "`c`: 8 buckets by hash of city" in caplog.text


def test_queries_that_feed_each_other_go_by_the_key_that_is_handed_on(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    maker = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.id {} AS id, b.x AS x INTO Pair"
    reader = kleene.query("PATTERN SEQ(Pair p, C c) WHERE [id] WITHIN 10", name="after")
    with caplog.at_level(logging.INFO, "kleene.spark"):
        found = check_same(spark, EVENTS, [kleene.query(maker.format("")), reader])
    assert sorted(row["query"] for row in found) == ["Pair", "Pair", "after"]
    assert "`Pair`, `after`: 8 buckets by hash of id" in caplog.text
    assert "one task" not in caplog.text
    # What is computed need not be the key.
    found = check_same(spark, EVENTS, [kleene.query(maker.format("+ 0")), reader])
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
    plain, zoned = (
        spark.sql(f"select cast('2024-01-01 08:00' as {kind}) ts") for kind in ("timestamp_ntz", "timestamp")
    )
    with pytest.raises(MixedZones, match="`ts` have no time zone in A and have one in B"):
        kleene.match({"A": plain, "B": zoned}, "PATTERN SEQ(A a, B b)")
    one, other = (spark.sql(f"select 1 ts, cast(1 as decimal(38, {scale})) tag") for scale in (0, 18))
    with pytest.raises(UnusableColumn, match="decimal256"):
        kleene.match({"A": one, "B": other}, "PATTERN SEQ(A a, B b)")
    with pytest.raises(UnknownKind, match="stands among Spark data frames"):
        kleene.match({"A": numbers, "B": [{"ts": 1}]}, "PATTERN SEQ(A a, B b)")
    with pytest.raises(MissingStream, match="no stream `X`"):
        kleene.match({"A": numbers}, "PATTERN X x")


def test_a_value_for_no_parameter(spark: SparkSession) -> None:
    with pytest.raises(UnknownParameter, match="no parameter `:limits`"):
        kleene.match(to_spark(spark, EVENTS), "PATTERN A a WHERE a.x < :limit", params={"limits": 9})


def test_types_that_no_event_has(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    """Events that a condition rules out are there all the same, and a stream that a query makes may be empty."""
    from kleene.spark.batch_run import together

    texts = {
        "misspelt": "PATTERN SEQ(A a, Bb b) WHERE [id] WITHIN 10",
        "negated": "PATTERN SEQ(A a, !(Register r), B b) WHERE [id] WITHIN 10",
        "ruled_out": "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 1000000 WITHIN 10 RETURN a.x AS x INTO S",
        "reader": "PATTERN S s WITHIN 10",
    }
    run = together(to_spark(spark, EVENTS), [kleene.query(text, name=name) for name, text in texts.items()])
    with caplog.at_level(logging.WARNING, logger="kleene"):
        run.run()
    run.close()
    told = [record.getMessage() for record in caplog.records if "KL906" in record.getMessage()]
    assert [text.splitlines()[0] for text in told] == [
        "warning[KL906]: no event is of type `Bb`",
        "warning[KL906]: no event is of type `Register`, so that nothing is excluded",
    ]
    assert "did you mean `B`?" in told[0] or "known here: `A`, `B`" in told[0]

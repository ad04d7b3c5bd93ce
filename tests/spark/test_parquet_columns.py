"""What the reading of Parquet files rests on, without Spark: types, folders, conditions over Arrow, buckets, shares."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as spark
from tests.spark.test_pruning import conditions, events

import kleene
from kleene.frames.arrow import schema_on
from kleene.pattern.schema import Schema
from kleene.spark.parquet.fitting import has_our_calendar, reads_alike
from kleene.spark.parquet.key_buckets import buckets_of
from kleene.spark.parquet.partition_folders import UnclearValue, folder_values, value_of
from kleene.spark.parquet.planning import RowGroup, in_shares
from kleene.spark.parquet.tested_by_arrow import expression, row_mask
from kleene.spark.pruning import useful

LONG, INT, MOMENT, LOCAL = spark.LongType(), spark.IntegerType(), spark.TimestampType(), spark.TimestampNTZType()


class Columns:
    """What pruning asks of a data frame."""

    def __init__(self, columns: pa.Schema) -> None:
        self.columns = columns

    def type(self, name: str) -> pa.DataType:
        return self.columns.field(name).type

    def is_plain_string(self, name: str) -> bool:
        return bool(pa.types.is_string(self.type(name)))


def test_arrow_keeps_all_that_we_keep() -> None:
    """Over arrays, over dictionaries of strings, and as an expression."""
    table = events()
    schema = schema_on(table.schema, Schema())
    coded = {name: table.column(name).combine_chunks() for name in table.column_names}
    coded["text"], coded["type"] = coded["text"].dictionary_encode(), coded["type"].dictionary_encode()
    dropping = 0
    for condition in conditions():
        query = kleene.query(f"PATTERN A a WHERE {condition} RETURN a.ts AS at")
        wanted = {row["at"] for row in kleene.match(table, query).to_pylist()}
        translated = useful(query.bind(schema), Columns(table.schema))  # type: ignore[arg-type]
        assert translated is not None
        mask = row_mask(translated, coded.__getitem__, table.num_rows)
        kept = set(table.filter(mask).column("ts").to_pylist())
        assert wanted <= kept, condition
        assert wanted <= set(table.filter(expression(translated)).column("ts").to_pylist()), condition
        dropping += len(kept) < table.num_rows
    assert dropping > 0.6 * len(conditions())


@pytest.mark.parametrize(
    ("kind", "stored", "alike"),
    [
        (LONG, pa.int64(), True),
        (LONG, pa.int8(), True),
        (INT, pa.int16(), True),
        (INT, pa.int64(), False),
        (LONG, pa.uint32(), False),
        (spark.ShortType(), pa.int32(), False),
        (spark.ByteType(), pa.int8(), True),
        (spark.DoubleType(), pa.float32(), True),
        (spark.FloatType(), pa.float64(), False),
        (spark.StringType(), pa.string(), True),
        (spark.StringType(), pa.binary(), False),
        (spark.StringType("UTF8_LCASE"), pa.string(), False),
        (spark.BinaryType(), pa.binary(), True),
        (spark.BinaryType(), pa.binary(3), False),
        (MOMENT, pa.timestamp("ms", "UTC"), True),
        (MOMENT, pa.timestamp("us"), False),
        (MOMENT, pa.timestamp("ns", "UTC"), False),
        (LOCAL, pa.timestamp("us"), True),
        (LOCAL, pa.timestamp("us", "UTC"), False),
        (spark.DateType(), pa.date32(), True),
        (spark.DecimalType(12, 2), pa.decimal128(12, 2), True),
        (spark.DecimalType(13, 2), pa.decimal128(12, 2), False),
        (spark.DecimalType(5, 0), pa.int32(), False),
        (LONG, pa.list_(pa.int64()), False),
        (LONG, pa.struct([("x", pa.int64())]), False),
    ],
)
def test_columns_that_arrow_reads_as_spark_does(tmp_path: Path, kind: Any, stored: pa.DataType, alike: bool) -> None:
    pq.write_table(pa.table({"x": pa.nulls(1, stored)}), tmp_path / "x.parquet", version="2.6")
    assert reads_alike(kind, pq.read_metadata(tmp_path / "x.parquet").schema.column(0)) is alike


def test_times_of_an_older_calendar() -> None:
    legacy = {b"org.apache.spark.version": b"3.5.0", b"org.apache.spark.legacyDateTime": b""}
    assert not has_our_calendar(MOMENT, legacy)
    assert not has_our_calendar(MOMENT, {b"org.apache.spark.version": b"3.0.1"})
    assert not has_our_calendar(spark.DateType(), {b"org.apache.spark.version": b"unknown"})
    assert has_our_calendar(MOMENT, {b"org.apache.spark.version": b"3.1.2"})
    assert has_our_calendar(MOMENT, None)
    assert has_our_calendar(LONG, legacy)


def test_values_in_the_names_of_folders() -> None:
    assert folder_values("/data=1/events/day=5/kind=a%3Ab/part-0.parquet") == {"day": "5", "kind": "a%3Ab"}
    assert value_of("a%3Ab", spark.StringType()) == "a:b"
    assert value_of("007", INT) == 7
    assert value_of("2024-02-29", spark.DateType()) == date(2024, 2, 29)
    assert value_of("__HIVE_DEFAULT_PARTITION__", INT) is None
    unsure = [("1.5", INT), ("%E9", spark.StringType()), ("2024-02-30", spark.DateType()), ("1.5", spark.DoubleType())]
    for text, kind in [*unsure, ("2024-1-1", spark.DateType()), ("2024-01-01", MOMENT)]:
        with pytest.raises(UnclearValue):
            value_of(text, kind)


KEYS: list[pa.Array] = [
    pa.array([0, 1, -1, 2**62, None]),
    pa.array([0.0, -0.0, 1.5, None]),
    pa.array(["", "a", "aa", "é", "one that is longer", None, "a"]),
    pa.array([b"", b"\x00", b"\x00\x00"]),
    pa.array([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(12, 2)),
    pa.array([True, False, None]),
    pa.array([date(2024, 1, 1), None]),
    pa.array([datetime(2024, 1, 1), datetime(1969, 1, 1)], pa.timestamp("us")),
]


@pytest.mark.parametrize("column", KEYS, ids=lambda column: str(column.type))
def test_equal_keys_share_a_bucket_wherever_they_stand(column: pa.Array) -> None:
    whole = buckets_of([column], 1_000_003)
    shifted = pa.concat_arrays([column.slice(1), column.slice(0, 1)]).slice(0)
    assert buckets_of([shifted], 1_000_003).tolist() == [*whole[1:].tolist(), int(whole[0])]
    assert buckets_of([column.slice(1)], 1_000_003).tolist() == whole[1:].tolist()
    values = pc.drop_null(column).to_pylist()
    distinct = {bucket for bucket, value in zip(whole.tolist(), column.to_pylist(), strict=True) if value is not None}
    assert len(distinct) == len(set(values))


def test_buckets_are_even_and_the_same_in_every_process() -> None:
    key = [pa.array(["x", "yy", "", "x"]), pa.array([1, 2, 3, 1])]
    assert buckets_of(key, 997).tolist() == [747, 154, 588, 747]
    for keys in (pa.array(np.arange(10_000)), pa.array([f"user-{n}" for n in range(10_000)])):
        sizes = np.bincount(buckets_of([keys], 16), minlength=16)
        assert sizes.min() > 500
        assert sizes.max() < 750


def test_shares_of_row_groups() -> None:
    groups = [RowGroup(file, number, 100) for file in range(3) for number in range(4)]
    shares = in_shares(groups, 4)
    assert [len(share) for share in shares] == [3, 3, 3, 3]
    assert [group for share in shares for group in share] == groups
    assert len(in_shares(groups, 100)) == len(groups)
    assert in_shares([], 4) == []
    uneven = in_shares([RowGroup(0, 0, 1_000), *groups], 2)
    assert [sum(group.rows for group in share) for share in uneven] == [1_100, 1_100]

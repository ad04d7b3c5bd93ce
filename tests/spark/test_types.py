"""Spark's types as Arrow's and back. No session is needed, only the package."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kleene.errors import UnusableColumn


@pytest.fixture(scope="module")
def types() -> Any:
    """`pyspark.sql.types`, imported when a test asks for it."""
    return pytest.importorskip("pyspark.sql.types")


def test_every_type_goes_there_and_back(types: Any) -> None:
    from kleene.spark.types import arrow_type, spark_type

    pairs = [
        (types.BooleanType(), pa.bool_()),
        (types.ByteType(), pa.int8()),
        (types.ShortType(), pa.int16()),
        (types.IntegerType(), pa.int32()),
        (types.LongType(), pa.int64()),
        (types.FloatType(), pa.float32()),
        (types.DoubleType(), pa.float64()),
        (types.StringType(), pa.string()),
        (types.BinaryType(), pa.binary()),
        (types.DateType(), pa.date32()),
        (types.TimestampType(), pa.timestamp("us", "UTC")),
        (types.TimestampNTZType(), pa.timestamp("us")),
        (types.DayTimeIntervalType(), pa.duration("us")),
        (types.NullType(), pa.null()),
        (types.DecimalType(10, 2), pa.decimal128(10, 2)),
        (types.ArrayType(types.TimestampType()), pa.list_(pa.timestamp("us", "UTC"))),
        (types.MapType(types.StringType(), types.LongType()), pa.map_(pa.string(), pa.int64())),
        (
            types.StructType([types.StructField("x", types.ArrayType(types.DateType()))]),
            pa.struct([("x", pa.list_(pa.date32()))]),
        ),
    ]
    for of_spark, of_arrow in pairs:
        assert arrow_type(of_spark) == of_arrow
        assert spark_type(of_arrow) == of_spark


def test_strings_of_limited_length_are_strings(types: Any) -> None:
    from kleene.spark.types import arrow_type

    assert arrow_type(types.VarcharType(5)) == arrow_type(types.CharType(5)) == pa.string()


def test_columns_that_must_not_be_null_may_be_null_in_a_result(types: Any) -> None:
    from kleene.spark.types import arrow_schema, spark_schema

    strict = types.ArrayType(types.LongType(), containsNull=False)
    given = types.StructType([types.StructField("x", strict, nullable=False)])
    loose = types.StructType([types.StructField("x", types.ArrayType(types.LongType()))])
    assert spark_schema(arrow_schema(given)) == loose


def test_a_column_that_python_cannot_take_is_named(types: Any) -> None:
    from kleene.spark.types import arrow_schema

    given = types.StructType([types.StructField("blob", types.ArrayType(types.VariantType()))])
    with pytest.raises(UnusableColumn, match="column `blob` holds variant") as caught:
        arrow_schema(given)
    assert caught.value.hint == 'drop or cast it: events.drop("blob")'


def test_two_columns_of_one_name_are_an_error(types: Any) -> None:
    from kleene.spark.types import arrow_schema

    twice = types.StructType([types.StructField("x", types.LongType()), types.StructField("x", types.LongType())])
    with pytest.raises(UnusableColumn, match="two columns are called `x`"):
        arrow_schema(twice)


def test_large_types_are_asked_for_at_every_depth(types: Any) -> None:
    from kleene.spark.types import as_spark_expects

    given = pa.schema([("a", pa.list_(pa.struct([("s", pa.string()), ("n", pa.int64())]))), ("b", pa.binary())])
    assert as_spark_expects(given, large=True) == pa.schema(
        [("a", pa.list_(pa.struct([("s", pa.large_string()), ("n", pa.int64())]))), ("b", pa.large_binary())]
    )
    assert as_spark_expects(given, large=False) == given

"""Spark's types as Arrow's and back, independent of the session's settings.

Timestamps are UTC here, whatever the session's time zone: Spark hands a task its timestamps in that zone, and neither
values nor match ids may depend on it. Everything is nullable, since a result's structs can be. A string's collation and
an interval's range do not come back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

from kleene.errors import UnusableColumn

# By name, since not every Spark that Kleene runs on has all of them.
_ARROW_TYPES: dict[str, pa.DataType] = {
    "BooleanType": pa.bool_(),
    "ByteType": pa.int8(),
    "ShortType": pa.int16(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "StringType": pa.string(),
    "BinaryType": pa.binary(),
    "DateType": pa.date32(),
    "TimestampType": pa.timestamp("us", "UTC"),
    "TimestampNTZType": pa.timestamp("us"),
    "DayTimeIntervalType": pa.duration("us"),
    "TimeType": pa.time64("ns"),
    "NullType": pa.null(),
}
_SPARK_TYPES = {kind: name for name, kind in _ARROW_TYPES.items()}
_STRINGS = ("CharType", "VarcharType")


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The columns of a data frame; one that cannot reach Python is an error that names it."""
    names = [field.name for field in schema]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnusableColumn(f"two columns are called `{twice}`", hint="rename one")
    fields = []
    for field in schema:
        try:
            fields.append(pa.field(field.name, arrow_type(field.dataType)))
        except TypeError as problem:
            raise UnusableColumn(
                f"column `{field.name}` holds {problem}, which cannot be handed to Python",
                hint=f'drop or cast it: events.drop("{field.name}")',
            ) from None
    return pa.schema(fields)


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The columns of a result."""
    return spark.StructType([spark.StructField(field.name, spark_type(field.type)) for field in schema])


def arrow_type(kind: spark.DataType) -> pa.DataType:
    """The Arrow type of a Spark type; TypeError, with the type's name, when there is none."""
    if isinstance(kind, spark.ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType)))
    if isinstance(kind, spark.MapType):
        return pa.map_(arrow_type(kind.keyType), arrow_type(kind.valueType))
    if isinstance(kind, spark.StructType):
        return pa.struct([pa.field(field.name, arrow_type(field.dataType)) for field in kind])
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.UserDefinedType):
        return arrow_type(kind.sqlType())
    name = type(kind).__name__
    equivalent = _ARROW_TYPES.get("StringType" if name in _STRINGS else name)
    if equivalent is None:
        raise TypeError(kind.simpleString())
    return equivalent


def spark_type(kind: pa.DataType) -> spark.DataType:
    """The Spark type of an Arrow type; TypeError, with the type's name, when there is none."""
    if pa.types.is_list(kind):
        return spark.ArrayType(spark_type(kind.value_type))
    if pa.types.is_map(kind):
        return spark.MapType(spark_type(kind.key_type), spark_type(kind.item_type))
    if pa.types.is_struct(kind):
        return spark.StructType([spark.StructField(field.name, spark_type(field.type)) for field in kind])
    if pa.types.is_decimal128(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    if kind not in _SPARK_TYPES:
        raise TypeError(str(kind))
    spark_class: Callable[[], Any] = getattr(spark, _SPARK_TYPES[kind])
    return spark_class()  # type: ignore[no-any-return]


def as_spark_expects(schema: pa.Schema, *, large: bool) -> pa.Schema:
    """A result's columns as a task must return them: Spark casts nothing.

    large   whether `spark.sql.execution.arrow.useLargeVarTypes` is on
    """
    return pa.schema([pa.field(field.name, _expected(field.type, large)) for field in schema])


def _expected(kind: pa.DataType, large: bool) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _expected(kind.value_type, large)))
    if pa.types.is_map(kind):
        return pa.map_(_expected(kind.key_type, large), _expected(kind.item_type, large))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _expected(field.type, large)) for field in kind])
    if large and kind == pa.string():
        return pa.large_string()
    return pa.large_binary() if large and kind == pa.binary() else kind

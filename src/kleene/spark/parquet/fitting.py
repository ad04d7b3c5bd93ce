"""Which columns of Parquet files Arrow reads exactly as Spark does.

    Spark                  in the file                                        read as
    boolean                BOOLEAN                                            itself
    byte, short            INT32 of 8, 16 bits, signed                        itself
    int                    INT32, signed, of 32 bits or fewer                 widened, as Spark does
    bigint                 INT64, or INT32, signed                            widened
    float; double          FLOAT; DOUBLE or FLOAT                             widened
    string                 BYTE_ARRAY that is annotated as a string           itself; not a collated column
    binary                 BYTE_ARRAY without annotation                      itself
    date                   INT32 DATE                                         days
    timestamp              INT64 in milli- or microseconds of UTC, or INT96   microseconds of UTC
    timestamp_ntz          INT64 in milli- or microseconds, local             microseconds
    decimal(p, s)          DECIMAL(p, s), however it is stored                itself
    any                    no such column                                     NULL

Everything else, what is nested and unsigned and narrower, Spark reads. So does it dates and timestamps of files that a
Spark before 3.1 wrote, or one that was told to count days as it did: these were counted by another calendar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_INTEGER_BITS = {"ByteType": 8, "ShortType": 16, "IntegerType": 32, "LongType": 64}
_PHYSICAL: Mapping[str, tuple[str, ...]] = {
    "BooleanType": ("BOOLEAN",),
    "FloatType": ("FLOAT",),
    "DoubleType": ("DOUBLE", "FLOAT"),
    "BinaryType": ("BYTE_ARRAY",),
}
_TEMPORAL = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)
_OTHER_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_WRITER = b"org.apache.spark.version"
_OUR_CALENDAR_SINCE = (3, 1)


def reads_alike(kind: spark.DataType, column: pq.ColumnSchema) -> bool:
    """Whether Arrow reads a column of a file as Spark does where the data frame has this type."""
    if column.max_repetition_level or column.max_definition_level > 1:
        return False
    name, physical, logical = type(kind).__name__, column.physical_type, column.logical_type
    annotation, said = logical.type, _said(logical)
    if name in _INTEGER_BITS:
        return _integers_alike(_INTEGER_BITS[name], physical, annotation, said)
    if name in _PHYSICAL:
        return physical in _PHYSICAL[name] and annotation == "NONE"
    if isinstance(kind, spark.StringType):
        return kind == spark.StringType() and (physical, annotation) == ("BYTE_ARRAY", "STRING")
    if isinstance(kind, spark.DecimalType):
        return annotation == "DECIMAL" and (said["precision"], said["scale"]) == (kind.precision, kind.scale)
    if name == "DateType":
        return (physical, annotation) == ("INT32", "DATE")
    if name in ("TimestampType", "TimestampNTZType"):
        return _moments_alike(name == "TimestampType", physical, annotation, said)
    return False


def _said(logical: Any) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(logical.to_json())
    return said


def _integers_alike(bits: int, physical: str, annotation: str, said: Mapping[str, Any]) -> bool:
    if annotation not in ("NONE", "INT"):
        return False
    stored = {"INT32": 32, "INT64": 64}.get(physical)
    if annotation == "INT":
        stored = said["bitWidth"] if said["isSigned"] else None
    if stored is None:
        return False
    # Bytes are cut out of what is wider, which Spark does in its own way.
    return stored == bits if bits < 32 else stored <= bits


def _moments_alike(zoned: bool, physical: str, annotation: str, said: Mapping[str, Any]) -> bool:
    if physical == "INT96":
        return zoned
    whole = said.get("timeUnit") in ("milliseconds", "microseconds")
    return (physical, annotation) == ("INT64", "TIMESTAMP") and whole and said["isAdjustedToUTC"] is zoned


def has_our_calendar(kind: spark.DataType, metadata: Mapping[bytes, bytes] | None) -> bool:
    """Whether the times of a file are counted as we count them."""
    if not isinstance(kind, _TEMPORAL):
        return True
    said = metadata or {}
    if any(key in said for key in _OTHER_CALENDAR):
        return False
    numbers = said.get(_WRITER, b"4.0").decode(errors="replace").split(".")[:2]
    return all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) >= _OUR_CALENDAR_SINCE


def is_temporal(kind: spark.DataType) -> bool:
    return isinstance(kind, _TEMPORAL)

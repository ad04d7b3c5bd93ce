"""Values in the names of folders: `day=2026-01-01/kind=a%3Ab/part-0.parquet` has the columns `day` and `kind`.

Spark decides which folders are columns, and of which type; here only the value of a file is read, for the types whose
spelling leaves no doubt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from pyspark.sql import types as spark

# The name that Hive gives to the folder of NULL.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_INTEGER, _DATE = re.compile("[+-]?[0-9]{1,19}"), re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Dates before are counted by another calendar in places.
_FIRST_DATE = date(1600, 1, 1)


class UnclearValue(ValueError):
    """A value that we might read otherwise than Spark."""


def folder_values(path: str) -> Mapping[str, str]:
    """What the folders around a file say, from the innermost outwards as long as they say something."""
    values: dict[str, str] = {}
    for folder in reversed(path.split("/")[:-1]):
        name, equals, value = folder.partition("=")
        if not equals or not name or not value:
            break
        values.setdefault(name, value)
    return values


def value_of(text: str, kind: spark.DataType) -> Any:
    """The value that a folder says, as the type that Spark found for the column; `UnclearValue` where it is unsure."""
    if text == _NULL:
        return None
    plain = _ESCAPED.sub(_unescaped, text)
    if kind == spark.StringType():
        return plain
    if isinstance(kind, spark.IntegerType | spark.LongType) and _INTEGER.fullmatch(plain):
        return int(plain)
    if isinstance(kind, spark.DateType) and _DATE.fullmatch(plain):
        try:
            day = date.fromisoformat(plain)
        except ValueError:
            raise UnclearValue(text) from None
        if day >= _FIRST_DATE:
            return day
    raise UnclearValue(text)


def _unescaped(escape: re.Match[str]) -> str:
    code = int(escape[1], 16)
    # Spark escapes only these; what it makes of others depends on what wrote them.
    if not 0 < code < 128:
        raise UnclearValue(escape.string)
    return chr(code)

"""Sources opened by Spark. A row that cannot be read goes to the bad rows with its reason and its text, never away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions
from pyspark.sql import types as spark

from kleene.errors import SourceColumn, SourceNotThere, did_you_mean
from kleene.spark.pipeline.failures import essence, is_sparks
from kleene.spark.pipeline.model import TEXT, Source
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.targets import placed
from kleene.spark.pipeline.values import for_spark, scrubbed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CORRUPT = "_kleene_corrupt_record"
_TYPES: Mapping[str, spark.DataType] = {
    "string": spark.StringType(),
    "boolean": spark.BooleanType(),
    "byte": spark.ByteType(),
    "tinyint": spark.ByteType(),
    "short": spark.ShortType(),
    "smallint": spark.ShortType(),
    "int": spark.IntegerType(),
    "integer": spark.IntegerType(),
    "long": spark.LongType(),
    "bigint": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "binary": spark.BinaryType(),
    "date": spark.DateType(),
    "timestamp": spark.TimestampType(),
    "timestamp_ntz": spark.TimestampNTZType(),
}


@dataclass(frozen=True)
class Opened:
    """A source: its events, and the rows that could not be read (None: all can)."""

    name: str
    frame: DataFrame
    rows: DataFrame
    bad: DataFrame | None
    is_bad: Column | None

    def counted(self) -> tuple[int, int]:
        """How many rows were read, and how many of them are bad. A pass over text, a glance at what counts itself."""
        if self.is_bad is None:
            return self.rows.count(), 0
        (row,) = self.rows.agg(
            functions.count(functions.lit(1)).alias("all"), functions.count_if(self.is_bad).alias("bad")
        ).collect()
        return row["all"], row["bad"]


def open_source(session: SparkSession, pipeline: Pipeline, number: int) -> Opened:
    """Open one source: Spark looks at its files' schema, and reads nothing else unless it must infer one."""
    source = pipeline.model.sources[number]
    try:
        raw = _text(session, pipeline, number) if source.kind in TEXT else _columnar(session, pipeline, source)
        return _mapped(raw, pipeline, number)
    except Exception as problem:
        if not is_sparks(problem):
            raise
        what = source.table if source.kind == "table" else ", ".join(source.paths)
        message = f"source `{source.name}`: `{scrubbed(what or '', pipeline.secrets)}` cannot be read: "
        message += essence(problem, pipeline.secrets)
        key = "table" if source.kind == "table" else "path"
        raise pipeline.sheet.error(SourceNotThere, message, ("sources", number, key), value=True) from problem


def _columnar(session: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    reader = session.read.options(**for_spark(source.options))
    if source.kind == "table":
        return reader.table(str(source.table))
    return reader.format(source.kind).load([placed(pipeline, path) for path in source.paths])


# Text ----------------------------------------------------------------------------------------------------------------


def _text(session: SparkSession, pipeline: Pipeline, number: int) -> DataFrame:
    """The rows of CSV or JSON files, with a column more: the text of those that do not fit the others."""
    source = pipeline.model.sources[number]
    paths = [placed(pipeline, path) for path in source.paths]
    # Headers are compared with the columns, for files of one source may differ.
    ours = {"header": "true", "enforceSchema": "false"} if source.kind == "csv" else {}
    options = {**ours, **for_spark(source.options)}
    columns = _declared(session, pipeline, number, paths, options)
    if columns is None:
        inferring = {"inferSchema": "true", **options} if source.kind == "csv" else options
        found = session.read.options(**inferring, columnNameOfCorruptRecord=_CORRUPT).format(source.kind).load(paths)
        columns = [field for field in found.schema if field.name != _CORRUPT]
    schema = spark.StructType([*columns, spark.StructField(_CORRUPT, spark.StringType())])
    reader = session.read.options(**options, mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT)
    return reader.schema(schema).format(source.kind).load(paths)


def _declared(
    session: SparkSession, pipeline: Pipeline, number: int, paths: list[str], options: Mapping[str, str]
) -> list[spark.StructField] | None:
    """The declared columns; where a CSV file has a header, in its order, and those not declared are strings."""
    source = pipeline.model.sources[number]
    if not source.declared:
        return None
    declared = {name: column_type(kind) for name, kind in source.declared.items()}
    if source.kind == "json" or options.get("header", "true") != "true":
        return [spark.StructField(name, kind) for name, kind in declared.items()]
    header = session.read.options(**options).csv(paths).columns
    for name in declared:
        _check_there(pipeline, number, name, header, ("schema", name))
    return [spark.StructField(name, declared.get(name, spark.StringType())) for name in header]


def column_type(name: str) -> spark.DataType:
    """The type that a pipeline file names; the model has checked the name."""
    word = name.casefold().strip()
    if word in _TYPES:
        return _TYPES[word]
    precision, scale = map(int, re.findall(r"\d+", word))
    return spark.DecimalType(precision, scale)


# Names and types -----------------------------------------------------------------------------------------------------


def _mapped(raw: DataFrame, pipeline: Pipeline, number: int) -> Opened:
    """The source under our names and types. Columns go by their places, for Spark stumbles over some names."""
    source = pipeline.model.sources[number]
    corrupt = functions.col(f"c{raw.columns.index(_CORRUPT)}") if _CORRUPT in raw.columns else None
    places = [place for place, name in enumerate(raw.columns) if name != _CORRUPT]
    names = _renamed(pipeline, number, [raw.columns[place] for place in places])
    rows = raw.toDF(*(f"c{place}" for place in range(len(raw.columns))))
    columns = {name: functions.col(f"c{place}") for name, place in zip(names, places, strict=True)}
    reasons = [] if corrupt is None else [(corrupt.isNotNull(), f"cannot be read as {source.kind.upper()}")]
    shown = functions.to_json(functions.struct(*(column.alias(name) for name, column in columns.items())))
    for name, kind in source.casts.items():
        _check_there(pipeline, number, name, names, ("casts", name))
        cast = columns[name].try_cast(column_type(kind))
        reasons.append((columns[name].isNotNull() & cast.isNull(), f"`{name}` is no {kind}"))
        columns[name] = cast
    chosen = [column.alias(name) for name, column in columns.items()]
    if not reasons:
        return Opened(source.name, rows.select(*chosen), rows, None, None)
    reason = functions.lit(None).cast("string")
    for wrong, words in reversed(reasons):
        reason = functions.when(wrong, words).otherwise(reason)
    is_bad = reason.isNotNull()
    if corrupt is not None:
        # Spark parses only the columns that are asked for, and finds nothing wrong with the others: a row would be bad
        # for one query and good for another. So all columns are asked for, in a condition that holds for every bad row.
        is_bad = functions.when(is_bad, functions.length(functions.coalesce(shown, corrupt)) >= 0).otherwise(False)
    bad = rows.where(is_bad).select(
        functions.lit(source.name).alias("source"),
        functions.lit(None).cast("bigint").alias("row"),
        functions.lit(None).cast("bigint").alias("line"),
        reason.alias("reason"),
        (shown if corrupt is None else functions.coalesce(corrupt, shown)).alias("text"),
    )
    return Opened(source.name, rows.where(~is_bad).select(*chosen), rows, bad, is_bad)


def _renamed(pipeline: Pipeline, number: int, names: list[str]) -> list[str]:
    source = pipeline.model.sources[number]
    for ours, theirs in source.columns.items():
        _check_there(pipeline, number, theirs, names, ("columns", ours))
    ours_of = {theirs: ours for ours, theirs in source.columns.items()}
    found = [ours_of.get(name, name) for name in names]
    twice = next((name for name in source.columns if found.count(name) > 1), None)
    if twice is not None:
        message = f"source `{source.name}` would have two columns called `{twice}`"
        path = ("sources", number, "columns", twice)
        raise pipeline.sheet.error(SourceColumn, message, path, "rename the other one, too")
    return found


def _check_there(pipeline: Pipeline, number: int, name: str, names: list[str], path: tuple[str, str]) -> None:
    if name not in names:
        source = pipeline.model.sources[number]
        message = f"source `{source.name}` has no column `{name}`"
        hint = did_you_mean(name, names)
        raise pipeline.sheet.error(SourceColumn, message, ("sources", number, *path), hint, value=path[0] == "columns")

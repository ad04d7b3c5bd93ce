"""Sources opened by Spark. A row that cannot be read goes to the bad rows with its reason and its text, never away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions
from pyspark.sql import types as spark

from kleene.errors import SourceColumn, SourceNotThere, did_you_mean
from kleene.spark.parquet.opening import remember
from kleene.spark.pipeline.failures import essence, is_sparks
from kleene.spark.pipeline.model import TEXT, Source, place_key
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.targets import placed
from kleene.spark.pipeline.values import for_spark, scrubbed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Columns beside a source's own: the text of a row that does not fit these, why it does not, and where it stood.
CORRUPT, REASON, PLACE = "_kleene_corrupt_record", "_kleene_reason", "_kleene_place"
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
    # What Spark reads the source with.
    columns: spark.StructType

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return self.frame.dtypes

    def counted(self) -> tuple[int, int]:
        """How many rows were read, and how many of them are bad; where all can be read, Spark only counts."""
        if self.is_bad is None:
            return self.rows.count(), 0
        (row,) = self.rows.agg(
            functions.count(functions.lit(1)).alias("all"), functions.count_if(self.is_bad).alias("bad")
        ).collect()
        return row["all"], row["bad"]


def open_source(session: SparkSession, pipeline: Pipeline, number: int) -> Opened:
    """Open one source: Spark looks at its files' schema, and reads nothing else unless it must infer one."""
    source = pipeline.model.sources[number]
    with opening(pipeline, number):
        raw = _text(session, pipeline, number) if source.kind in TEXT else _columnar(session, pipeline, source)
        opened = _opened(mapped(raw, pipeline, number), source.name, raw.schema)
        if source.kind == "parquet" and not source.casts:
            # Nothing but names has changed, so tasks may read the files themselves.
            paths = [placed(pipeline, path) for path in source.paths]
            remember(opened.frame, raw.columns, paths, for_spark(source.options))
        return opened


@contextmanager
def opening(pipeline: Pipeline, number: int) -> Iterator[None]:
    """Spark's complaint about a source becomes an error at its place."""
    source = pipeline.model.sources[number]
    try:
        yield
    except Exception as problem:
        if not is_sparks(problem):
            raise
        key = place_key(source.kind)
        what = ", ".join(source.paths) if key == "path" else getattr(source, key)
        message = f"source `{source.name}`: `{scrubbed(what or '', pipeline.secrets)}` cannot be read: "
        message += essence(problem, pipeline.secrets)
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
    options = text_options(source)
    columns = _declared(session, pipeline, number, paths, options)
    if columns is None:
        inferring = {"inferSchema": "true", **options} if source.kind == "csv" else options
        frame = session.read.options(**inferring, columnNameOfCorruptRecord=CORRUPT).format(source.kind).load(paths)
        columns = [field for field in frame.schema if field.name != CORRUPT]
    schema = spark.StructType([*columns, spark.StructField(CORRUPT, spark.StringType())])
    reader = session.read.options(**options, mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT)
    return reader.schema(schema).format(source.kind).load(paths)


def text_options(source: Source) -> dict[str, str]:
    """How Spark reads a source of text; headers are compared with the columns, for files of one source may differ."""
    ours = {"header": "true", "enforceSchema": "false"} if source.kind == "csv" else {}
    return {**ours, **for_spark(source.options)}


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


@dataclass(frozen=True)
class Mapped:
    """The rows of a source, and its columns under our names and types.

    reason    why a row cannot be read, NULL when it can be; None: all can be
    corrupt   its text where it did not even fit the columns; `shown` is what the columns hold
    place     where it stood, where that is known
    """

    rows: DataFrame
    columns: Mapping[str, Column]
    reason: Column | None
    corrupt: Column | None
    place: Column | None
    shown: Column

    @property
    def text(self) -> Column:
        return self.shown if self.corrupt is None else functions.coalesce(self.corrupt, self.shown)


def mapped(raw: DataFrame, pipeline: Pipeline, number: int) -> Mapped:
    """The source under our names and types. Columns go by their places, for Spark stumbles over some names."""
    source = pipeline.model.sources[number]
    beside = {name: functions.col(f"c{place}") for place, name in enumerate(raw.columns) if name in _BESIDE}
    places = [place for place, name in enumerate(raw.columns) if name not in _BESIDE]
    names = _renamed(pipeline, number, [raw.columns[place] for place in places])
    rows = raw.toDF(*(f"c{place}" for place in range(len(raw.columns))))
    columns = {name: functions.col(f"c{place}") for name, place in zip(names, places, strict=True)}
    shown = functions.to_json(functions.struct(*(column.alias(name) for name, column in columns.items())))
    corrupt, reason = beside.get(CORRUPT), beside.get(REASON)
    if corrupt is not None and reason is None:
        reason = functions.when(corrupt.isNotNull(), f"cannot be read as {source.kind.upper()}")
    for name, kind in source.casts.items():
        _check_there(pipeline, number, name, names, ("casts", name))
        cast = columns[name].try_cast(column_type(kind))
        failed = functions.when(columns[name].isNotNull() & cast.isNull(), f"`{name}` is no {kind}")
        reason = failed if reason is None else functions.coalesce(reason, failed)
        columns[name] = cast
    return Mapped(rows, columns, reason, corrupt, beside.get(PLACE), shown)


_BESIDE = (CORRUPT, REASON, PLACE)


def _opened(source: Mapped, name: str, columns: spark.StructType) -> Opened:
    """Good rows and bad ones apart."""
    chosen = [column.alias(ours) for ours, column in source.columns.items()]
    if source.reason is None:
        return Opened(name, source.rows.select(*chosen), source.rows, None, None, columns)
    is_bad = source.reason.isNotNull()
    if source.corrupt is not None:
        # Spark parses only the columns that are asked for, and finds nothing wrong with the others: a row would be bad
        # for one query and good for another. So all columns are asked for, in a condition that holds for every bad row.
        whole = functions.coalesce(source.shown, source.corrupt)
        is_bad = functions.when(is_bad, functions.length(whole) >= 0).otherwise(False)
    bad = source.rows.where(is_bad).select(
        functions.lit(name).alias("source"),
        functions.lit(None).cast("bigint").alias("row"),
        functions.lit(None).cast("bigint").alias("line"),
        source.reason.alias("reason"),
        source.text.alias("text"),
    )
    return Opened(name, source.rows.where(~is_bad).select(*chosen), source.rows, bad, is_bad, columns)


def _renamed(pipeline: Pipeline, number: int, names: list[str]) -> list[str]:
    source = pipeline.model.sources[number]
    for ours, theirs in source.columns.items():
        _check_there(pipeline, number, theirs, names, ("columns", ours))
    ours_of = {theirs: ours for ours, theirs in source.columns.items()}
    new_names = [ours_of.get(name, name) for name in names]
    twice = next((name for name in source.columns if new_names.count(name) > 1), None)
    if twice is not None:
        message = f"source `{source.name}` would have two columns called `{twice}`"
        path = ("sources", number, "columns", twice)
        raise pipeline.sheet.error(SourceColumn, message, path, "rename the other one, too")
    return new_names


def _check_there(pipeline: Pipeline, number: int, name: str, names: list[str], path: tuple[str, str]) -> None:
    if name not in names:
        source = pipeline.model.sources[number]
        message = f"source `{source.name}` has no column `{name}`"
        hint = did_you_mean(name, names)
        raise pipeline.sheet.error(SourceColumn, message, ("sources", number, *path), hint, value=path[0] == "columns")

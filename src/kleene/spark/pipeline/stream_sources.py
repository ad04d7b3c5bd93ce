"""Sources opened as streams. A row that cannot be read goes along with the events, and comes out as a bad row.

It cannot be read a second time, as bounded sources are: that would be another stream, with a progress of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions
from pyspark.sql import types as spark

from kleene.spark.numbered import ALONG
from kleene.spark.pipeline.kafka import brokers
from kleene.spark.pipeline.model import TEXT, Source
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.sources import CORRUPT, PLACE, REASON, Mapped, column_type, mapped, opening, text_options
from kleene.spark.pipeline.targets import placed
from kleene.spark.pipeline.values import for_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# The columns that Kafka gives a message, for `columns` to name.
_OF_MESSAGES = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True)
class LiveSource:
    """A source as a stream: its columns, and beside them what goes along."""

    name: str
    frame: DataFrame
    # What Spark reads the source with.
    columns: spark.StructType

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return [(name, kind) for name, kind in self.frame.dtypes if name not in ALONG]


def open_stream(session: SparkSession, pipeline: Pipeline, number: int) -> LiveSource:
    """Open one source; of Parquet and ORC the files that are there tell the columns, unless the pipeline does."""
    source = pipeline.model.sources[number]
    with opening(pipeline, number):
        raw = _messages(session, source) if source.kind == "kafka" else _files(session, pipeline, number)
        frame = _with_bad_rows(mapped(raw, pipeline, number), pipeline, source)
        return LiveSource(source.name, frame, raw.schema)


def _with_bad_rows(source: Mapped, pipeline: Pipeline, entry: Source) -> DataFrame:
    nothing = functions.lit(None).cast("string")
    reason = nothing if source.reason is None else source.reason
    text = nothing if source.reason is None else functions.when(source.reason.isNotNull(), source.text)
    place = nothing if source.place is None else source.place
    columns = dict(source.columns)
    time = pipeline.schema.time
    if source.reason is not None and time in columns:
        # What cannot be read must not move time on.
        columns[time] = functions.when(source.reason.isNull(), columns[time])
    chosen = [column.alias(ours) for ours, column in columns.items()]
    along = zip((functions.lit(entry.name), place, reason, text), ALONG, strict=True)
    return source.rows.select(*chosen, *(column.alias(name) for column, name in along))


# Files ---------------------------------------------------------------------------------------------------------------


def _files(session: SparkSession, pipeline: Pipeline, number: int) -> DataFrame:
    source = pipeline.model.sources[number]
    path = placed(pipeline, source.paths[0])
    options = for_spark(source.options)
    columns = [spark.StructField(name, column_type(kind)) for name, kind in source.declared.items()]
    if source.kind in TEXT:
        options = {**text_options(source), "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        columns.append(spark.StructField(CORRUPT, spark.StringType()))
    elif not columns:
        columns = list(session.read.format(source.kind).options(**options).load(path).schema)
    frame = session.readStream.format(source.kind).schema(spark.StructType(columns)).options(**options).load(path)
    if "_metadata" in frame.columns:
        return frame
    return frame.select("*", functions.col("_metadata.file_path").alias(PLACE))


# Kafka ---------------------------------------------------------------------------------------------------------------


def _messages(session: SparkSession, source: Source) -> DataFrame:
    """Messages as rows: the columns of their JSON, and those columns of Kafka's own that `columns` names."""
    messages = (
        session.readStream.format("kafka")
        .options(**for_spark(source.options))
        .option("kafka.bootstrap.servers", brokers(source))
        .option("subscribe", str(source.topic))
        .option("startingOffsets", source.starting_offsets)
        .option("failOnDataLoss", str(source.fail_on_data_loss).lower())
        .load()
    )
    declared = [spark.StructField(name, column_type(kind)) for name, kind in source.declared.items()]
    message_columns = [name for name in _OF_MESSAGES if name in source.columns.values() and name not in source.declared]
    value = functions.col("value").cast("string")
    parsed = messages.select(*_OF_MESSAGES, value.alias("text"), _parsed(value, declared).alias("json"))
    json = functions.col("json")
    text = functions.col("text")
    reason = (
        functions.when(text.isNull(), "the message has no value")
        .when(~functions.is_valid_utf8(text), "the message is no UTF-8")
        .when(json.isNull() | json["event"].isNull() | json[CORRUPT].isNotNull(), "cannot be read as JSON")
    )
    place = functions.format_string("topic %s, partition %d, offset %d", "topic", "partition", "offset")
    fields = [json["event"][f"f{number}"].alias(field.name) for number, field in enumerate(declared)]
    corrupt = functions.when(reason.isNotNull(), functions.coalesce(functions.make_valid_utf8(text), functions.lit("")))
    beside = [reason.alias(REASON), corrupt.alias(CORRUPT), place.alias(PLACE)]
    return parsed.select(*fields, *message_columns, *beside)


def _parsed(value: Column, columns: list[spark.StructField]) -> Column:
    """The message as a part of a larger object, for Spark reads one object and leaves what follows it unread."""
    inner = spark.StructType(columns)
    outer = spark.StructType([spark.StructField("event", inner), spark.StructField(CORRUPT, spark.StringType())])
    whole = functions.concat(functions.lit('{"event":'), value, functions.lit("}"))
    read = functions.from_json(whole, outer, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})
    return _by_place(read, inner)


def _by_place(read: Column, inner: spark.StructType) -> Column:
    """Columns are called f0, f1, …: Spark cannot tell names apart that differ only in case."""
    renamed = spark.StructType([spark.StructField(f"f{n}", field.dataType) for n, field in enumerate(inner)])
    outer = [spark.StructField("event", renamed), spark.StructField(CORRUPT, spark.StringType())]
    return read.cast(spark.StructType(outer))

"""One data frame from one stream or several, as `kleene.frames.streams` makes one table of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

from kleene.errors import UnknownKind, UnusableColumn
from kleene.frames.arrow import empty_table, schema_on
from kleene.frames.kinds import FrameKind, kind_of
from kleene.frames.streams import to_table
from kleene.pattern.schema import STREAM, Schema
from kleene.spark.numbered import Numbered
from kleene.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def one_input(events: Any, schema: Schema, wanted: tuple[str, ...]) -> tuple[Numbered, Schema]:
    """The events as one data frame, and the schema that describes it; a stream that no query wants is left out."""
    streams, known = inputs(events, schema, wanted)
    return united(streams), known


def inputs(events: Any, schema: Schema, wanted: tuple[str, ...]) -> tuple[tuple[Numbered, ...], Schema]:
    """The streams that some query wants, all with the same columns, and the schema that describes them together.

    Which columns there are, and what is wrong with them, is learned by putting tables of no rows together in process.
    """
    if not isinstance(events, Mapping):
        one = Numbered.of(_frame(events))
        schema_on(one.columns, schema)
        return (one,), schema
    streams = {name: Numbered.of(_frame(stream)) for name, stream in events.items()}
    if len({stream.frame.isStreaming for stream in streams.values()}) > 1:
        raise UnknownKind("some of these data frames are streams and some are not", hint="make all of them streams")
    table, known = to_table({name: empty_table(stream.columns) for name, stream in streams.items()}, schema, wanted)
    frames = []
    for name, stream in streams.items():
        typed = schema.constant_type is None and schema.type in stream.columns.names
        if typed or name in wanted:
            # The tables had no rows, and those may have any time column.
            schema_on(stream.columns, Schema(time=schema.time, constant_type=name))
            frames.append(_under(stream, table.schema, {} if typed else {schema.type: name, STREAM: name}))
    return tuple(map(Numbered.of, frames)), known


def united(streams: Sequence[Numbered]) -> Numbered:
    """Streams that have the same columns as one."""
    frames = [stream.frame for stream in streams]
    return Numbered(reduce(lambda left, right: left.unionByName(right), frames), streams[0].columns)


def _frame(events: Any) -> DataFrame:
    if kind_of(events) is not FrameKind.SPARK:
        raise UnknownKind(
            f"a {type(events).__module__}.{type(events).__name__} stands among Spark data frames",
            hint="make all streams Spark data frames, or none",
        )
    frame: DataFrame = events
    return frame


def _under(stream: Numbered, columns: pa.Schema, constants: Mapping[str, str]) -> DataFrame:
    """A stream with exactly these columns, in this order; those that it lacks are NULL.

    Cast here: a union in Spark widens numbers to strings, or casts strings to numbers, where types differ.
    """
    chosen = []
    for field in columns:
        if field.name in constants:
            column = functions.lit(constants[field.name])
        elif field.name in stream.columns.names:
            column = stream.column(field.name)
        else:
            column = functions.lit(None)
        if field.name in stream.columns.names and stream.columns.field(field.name).type == field.type:
            # A cast, even to the same type, would lose a watermark that the user gave the column.
            chosen.append(column.alias(field.name))
            continue
        try:
            chosen.append(column.cast(spark_type(field.type)).alias(field.name))
        except TypeError:
            raise UnusableColumn(
                f"column `{field.name}` would be {field.type} in all streams together, which Spark has not",
                hint="make it one type in all streams",
            ) from None
    return stream.frame.select(*chosen, *stream.along)

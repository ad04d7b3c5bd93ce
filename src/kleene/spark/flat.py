"""Flat results of Spark: the columns of `kleene.frames.flat`, made by Spark's own expressions when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from kleene.frames.flat import FlatLayout
from kleene.spark.numbered import Numbered
from kleene.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def flat_frame(result: DataFrame) -> DataFrame:
    """One row an event of a match; a match that shows no event keeps one row."""
    numbered = Numbered.of(result)
    layout = FlatLayout.of(numbered.columns)
    carried = [_part(numbered, name, path) for name, path, _ in layout.carried]
    if not layout.has_events:
        return numbered.frame.select(*carried).toDF(*layout.names)
    places = [f"v{place}" for place in range(len(carried))]
    columns = [column.alias(place) for column, place in zip(carried, places, strict=True)]
    exploded = numbered.frame.select(*columns, functions.explode_outer(_events(numbered, layout)).alias("e"))
    width = 2 + len(layout.event)
    return exploded.select(*places, *(functions.col("e").getField(f"e{place}") for place in range(width))).toDF(
        *layout.names
    )


def _part(numbered: Numbered, name: str, path: tuple[str, ...]) -> Column:
    column, kind = numbered.column(name), numbered.type(name)
    for part in path:
        place = kind.get_field_index(part)
        column, kind = _by_place(column, kind).getField(f"f{place}"), kind.field(place).type
    return column


def _by_place(column: Column, kind: pa.StructType) -> Column:
    """A struct whose fields are called f0, f1, …: Spark cannot tell names apart that differ only in case."""
    renamed = pa.struct([pa.field(f"f{place}", field.type) for place, field in enumerate(kind)])
    return column.cast(spark_type(renamed))


def _events(numbered: Numbered, layout: FlatLayout) -> Column:
    """All events of a match in one array of structs (variable, position, the event's columns)."""
    if layout.together is not None:
        kind = numbered.type(layout.together).value_type

        def member(one: Column) -> Column:
            parts = _by_place(one, kind)
            return _event(parts.getField("f0"), parts.getField("f1"), parts.getField("f2"), kind[2].type, layout)

        return functions.transform(numbered.column(layout.together), member)
    return functions.concat(*(_of_variable(numbered, name, layout) for name in layout.variables))


def _of_variable(numbered: Numbered, name: str, layout: FlatLayout) -> Column:
    column, kind, label = numbered.column(name), numbered.type(name), functions.lit(name)
    if pa.types.is_struct(kind):
        one = functions.array(_event(label, functions.lit(1), column, kind, layout))
        return functions.when(column.isNotNull(), one).otherwise(functions.slice(one, 1, 0))

    def at(event: Column, place: Column) -> Column:
        return _event(label, place + 1, event, kind.value_type, layout)

    listed = functions.transform(column, at)
    # An absent list is NULL where RETURN shows it, and one NULL would make all of `concat` NULL.
    nothing = functions.slice(functions.array(_event(label, functions.lit(1), None, kind.value_type, layout)), 1, 0)
    return functions.coalesce(listed, nothing)


def _event(variable: Column, position: Column, event: Column | None, kind: pa.DataType, layout: FlatLayout) -> Column:
    """A struct with the same fields whatever the variable; columns that its events lack are NULL."""
    parts = [variable.cast("string").alias("e0"), position.cast("bigint").alias("e1")]
    there = {} if event is None or not pa.types.is_struct(kind) else {f.name: at for at, f in enumerate(kind)}
    for place, (field, _) in enumerate(layout.event, 2):
        at = there.get(field.name)
        value = functions.lit(None) if at is None or event is None else _by_place(event, kind).getField(f"f{at}")
        parts.append(value.cast(spark_type(field.type)).alias(f"e{place}"))
    return functions.struct(*parts)

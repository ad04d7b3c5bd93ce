"""Results written by Spark: first all of them aside, then each put in its place; a killed run leaves no half."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql import types as spark

from kleene.durable import make_folder, sync
from kleene.errors import BadTarget
from kleene.spark.batch_run import BatchRun
from kleene.spark.flat import flat_frame
from kleene.spark.pipeline.failures import essence, is_sparks, room_hint
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.targets import Target, staging, swap_in
from kleene.spark.pipeline.values import for_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark would cut times at milliseconds.
_MOMENT = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]"
_TIMES = {"timestampFormat": f"{_MOMENT}[XXX]", "timestampNTZFormat": _MOMENT}
# NULLs are written, so that every line has every key.
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "csv": {"header": "true", **_TIMES},
    "json": {"ignoreNullFields": "false", **_TIMES},
}
_ID = "match_id"


@dataclass(frozen=True)
class Writing:
    """Writes the results of one run."""

    session: SparkSession
    pipeline: Pipeline

    def check(self, target: Target) -> None:
        """Check what only Spark knows: whether a table is there."""
        if target.sink.kind == "table" and target.sink.mode == "error" and self._has_table(target.place):
            message, hint = f"the table `{target.place}` is there already", 'mode = "overwrite" replaces it'
            raise self.pipeline.sheet.error(BadTarget, message, target.key, hint, value=True)

    def write(self, frame: DataFrame, target: Target) -> str:
        """Write a result; where it waits for `put_in_place`, "" when it is there already."""
        try:
            return self._written(shaped(frame, target), target)
        except Exception as problem:
            if not (is_sparks(problem) or isinstance(problem, OSError)):
                raise
            raise unwritten(self.pipeline, target, problem) from problem

    def put_in_place(self, target: Target, waiting: str) -> None:
        if target.local is not None:
            try:
                swap_in(target.local)
            except OSError as problem:
                raise unwritten(self.pipeline, target, problem) from problem
        else:
            # Both names are checked words joined by dots.
            self.session.sql(f"DROP TABLE IF EXISTS {_quoted(target.place)}")
            self.session.sql(f"ALTER TABLE {_quoted(waiting)} RENAME TO {_quoted(target.place)}")

    def _written(self, frame: DataFrame, target: Target) -> str:
        sink = target.sink
        options = {**DEFAULTS.get(sink.kind, {}), **for_spark(sink.options)}
        if sink.mode == "append" and self._there(target):
            new = frame.join(self._ids(target), [_ID], "left_anti")
            # In the order of the file's own columns, and of a table's: `saveAsTable` goes by name.
            writer = new.select(*frame.columns).write.mode("append").options(**options)
            writer.saveAsTable(target.place) if sink.kind == "table" else writer.parquet(target.place)
            if target.local is not None:
                sync(target.local)
            return ""
        writer = frame.write.mode("overwrite").options(**options)
        if sink.kind == "table":
            # A catalog of its own (Delta, Iceberg, …) replaces tables as one step; Spark's drops the old one first.
            replaces = target.place.count(".") == 2
            name = target.place if replaces else f"{target.place}_kleene_{uuid4().hex[:12]}"
            writer.saveAsTable(name, format=sink.format)
            return "" if replaces else name
        if target.local is None:
            writer.format(sink.kind).save(target.place)
            return ""
        aside = staging(target.local)
        make_folder(aside.parent)
        writer.format(sink.kind).save(f"file://{aside}")
        return str(aside)

    def _there(self, target: Target) -> bool:
        if target.sink.kind == "table":
            return self._has_table(target.place)
        if target.local is not None:
            return target.local.exists()
        try:
            return bool(self.session.read.parquet(target.place).columns)
        except Exception as problem:
            if is_sparks(problem) and "PATH_NOT_FOUND" in str(problem):
                return False
            raise

    def _has_table(self, name: str) -> bool:
        return self.session.catalog.tableExists(name)

    def _ids(self, target: Target) -> DataFrame:
        read = self.session.read
        known = read.table(target.place) if target.sink.kind == "table" else read.parquet(target.place)
        return known.select(_ID)


_CATALOG_HINT = (
    "without a metastore a table is forgotten and its files stay; remove them, or set "
    '`"spark.sql.catalogImplementation" = "hive"` under [spark.conf]'
)


def unwritten(pipeline: Pipeline, target: Target, problem: Exception) -> BadTarget:
    """The error that says that a result cannot be written, and why."""
    message = f"`{target.shown}` cannot be written: {essence(problem, pipeline.secrets)}"
    hint = _CATALOG_HINT if "location" in message and target.sink.kind == "table" else room_hint(problem)
    return pipeline.sheet.error(BadTarget, message, target.key, hint, value=True)


def shaped(frame: DataFrame, target: Target) -> DataFrame:
    """The result in the sink's form; what CSV cannot hold is JSON text."""
    frame = flat_frame(frame) if target.sink.flat else frame
    frame = frame if target.sink.files is None else frame.coalesce(target.sink.files)
    if target.sink.kind != "csv":
        return frame
    nested = (spark.ArrayType, spark.MapType, spark.StructType)
    numbered = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    columns = [
        functions.to_json(f"c{place}") if isinstance(field.dataType, nested) else functions.col(f"c{place}")
        for place, field in enumerate(frame.schema)
    ]
    return numbered.select(*columns).toDF(*frame.columns)


def output_of(run: BatchRun, query: str, output: str) -> DataFrame:
    """One output of a query, of a whole run or of a batch of a stream: `matches`, `timeouts` or `compressed`."""
    outputs = {"matches": run.matches, "timeouts": run.timeouts, "compressed": run.compressed}
    frame = outputs[output](query)
    assert frame is not None, "the reader has checked that there is such an output"
    return frame


def first_rows(frame: DataFrame, limit: int) -> pa.Table:
    """What the console shows of a result: the first matches by time."""
    order = [name for name in ("start", "end") if name in frame.columns]
    return (frame.orderBy(*order) if order else frame).limit(limit).toArrow()


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))

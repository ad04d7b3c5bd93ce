"""The outputs of each batch of a stream, written to their places. A failed batch comes again, with the same contents.

Folders hold each batch exactly once: under its number, moved there when it is whole. A table and a topic may hold the
rows of a batch that was given again twice; matches have ids to know them by.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from kleene.durable import commit, make_folder, sync_names
from kleene.errors import BadTarget
from kleene.spark.pipeline.failures import essence, is_ours, is_sparks, room_hint
from kleene.spark.pipeline.kafka import brokers
from kleene.spark.pipeline.planned_batches import PlannedBatches
from kleene.spark.pipeline.progress import Report
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.sinks import DEFAULTS, first_rows, output_of, shaped, unwritten
from kleene.spark.pipeline.targets import Target
from kleene.spark.pipeline.values import for_spark

if TYPE_CHECKING:
    from pathlib import Path as File

    from pyspark.sql import DataFrame, SparkSession

    from kleene.spark.streaming.live import MicroBatch

_MARKER = "_kleene.json"
_DRAFT = f".{_MARKER}"
_FOLDERS = ("parquet", "json", "csv", "orc")
_ID = "match_id"


@dataclass(frozen=True)
class StreamSinks:
    """Writes the outputs of a stream to their targets."""

    session: SparkSession
    pipeline: Pipeline
    targets: Sequence[Target]
    report: Report
    planned: PlannedBatches = field(default_factory=lambda: PlannedBatches(None))
    # What the memory sinks hold, by view and batch.
    _tables: dict[str, dict[int, pa.Table]] = field(default_factory=dict)

    def claim(self, life: str) -> None:
        """Mark folders as this checkpoint's; one of another is refused, for numbers of batches begin anew there."""
        for target in self.targets:
            if target.sink.kind in _FOLDERS:
                try:
                    _Folder(self, target, life).claim()
                except OSError as problem:
                    raise unwritten(self.pipeline, target, problem) from problem

    def write(self, micro_batch: MicroBatch, batch: int) -> None:
        """Write all outputs of a batch; the target of an empty one is not touched."""
        try:
            self.planned.sync()
        except OSError as problem:
            message = f"the checkpoint cannot be written: {essence(problem)}"
            key = ("stream", "checkpoint")
            raise self.pipeline.sheet.error(BadTarget, message, key, room_hint(problem), value=True) from problem
        for target in self.targets:
            number = rows_in(micro_batch, target)
            if number:
                self.write_one(micro_batch, batch, target, number)

    def write_one(self, micro_batch: MicroBatch, batch: int, target: Target, number: int) -> None:
        """Write one output, of so many rows."""
        try:
            self._write(micro_batch, batch, target, number)
        except Exception as problem:
            if not (is_sparks(problem) or isinstance(problem, OSError)) or is_ours(problem):
                raise
            raise unwritten(self.pipeline, target, problem) from problem

    def _write(self, micro_batch: MicroBatch, batch: int, target: Target, number: int) -> None:
        sink = target.sink
        if sink.kind in _FOLDERS:
            self._to_folder(micro_batch, batch, target)
        elif sink.kind == "table":
            writer = _frame(micro_batch, target).write.mode("append").options(**for_spark(sink.options))
            writer.saveAsTable(target.place, format=sink.format)
        elif sink.kind == "kafka":
            self._to_topic(_frame(micro_batch, target), target)
        elif sink.kind == "memory":
            self._to_memory(_frame(micro_batch, target), batch, target)
        else:
            frame = _frame(micro_batch, target)
            self.report.show(target, first_rows(frame, sink.limit), number)

    def _to_folder(self, micro_batch: MicroBatch, batch: int, target: Target) -> None:
        name = f"batch={batch}"
        if target.local is not None and (target.local / name).exists():
            # The batch was given before, and this output was written; perhaps by a run that was killed before the name
            # was on the disk.
            sync_names(target.local)
            return
        sink = target.sink
        options = {**DEFAULTS.get(sink.kind, {}), **for_spark(sink.options)}
        writer = _frame(micro_batch, target).write.mode("overwrite").options(**options).format(sink.kind)
        if target.local is None:
            writer.save(f"{target.place.rstrip('/')}/{name}")
            return
        aside = target.local / f".{name}"
        writer.save(f"file://{aside}")
        commit(aside, target.local / name)

    def _to_topic(self, frame: DataFrame, target: Target) -> None:
        names = frame.columns
        numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
        row = functions.struct(*(functions.col(f"c{place}").alias(name) for place, name in enumerate(names)))
        value = functions.to_json(row, {**DEFAULTS["json"], "timeZone": "UTC"})
        key = functions.col(f"c{names.index(_ID)}") if _ID in names else functions.lit(None)
        messages = numbered.select(key.cast("string").alias("key"), value.alias("value"))
        writer = messages.write.format("kafka").options(**for_spark(target.sink.options))
        writer.option("kafka.bootstrap.servers", brokers(target.sink)).option("topic", target.place).save()

    def _to_memory(self, frame: DataFrame, batch: int, target: Target) -> None:
        tables = self._tables.setdefault(target.place, {})
        tables[batch] = frame.toArrow()
        # In one chunk: Spark loses the rows behind an empty one.
        together = self.session.createDataFrame(pa.concat_tables(tables.values()).combine_chunks())
        together.createOrReplaceTempView(target.place)


def rows_in(micro_batch: MicroBatch, target: Target) -> int:
    """How many rows of a batch go to a target; of a flat one how many matches."""
    kind = "bad" if target.sink.output == "bad_rows" else target.sink.output
    return micro_batch.number(kind, target.query)


def _frame(micro_batch: MicroBatch, target: Target) -> DataFrame:
    output = target.sink.output
    if target.query is not None:
        return shaped(output_of(micro_batch, target.query, output), target)
    return shaped(micro_batch.bad_rows if output == "bad_rows" else micro_batch.late, target)


# Owners of folders ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Folder:
    """A folder of results, and the mark in it that says of which checkpoint they are."""

    sinks: StreamSinks
    target: Target
    life: str

    def claim(self) -> None:
        stream = self.sinks.pipeline.model.stream
        mark = {
            "checkpoint": "" if stream is None else stream.checkpoint,
            "life": self.life,
            "holds": f"{self.target.what} as {self.target.sink.kind}",
        }
        known = self._read()
        if known is None:
            self._write(json.dumps(mark))
        elif known.get("life") != self.life:
            message = f"`{self.target.shown}` holds results of another checkpoint, begun in `{known.get('checkpoint')}`"
            raise self._refused(message, "go on with that checkpoint, name another folder, or remove this one")
        elif known.get("holds") != mark["holds"]:
            message = f"`{self.target.shown}` holds {known.get('holds')}, not {mark['holds']}"
            raise self._refused(message, "name another folder")

    def _read(self) -> dict[str, str] | None:
        """The mark; None where nothing is there yet."""
        folder = self.target.local
        if folder is None:
            text = self._read_by_spark()
        elif not folder.exists() or (folder.is_dir() and all(file.name == _DRAFT for file in folder.iterdir())):
            # A run that was killed here left an empty folder, or a mark that was not in its place yet.
            text = None
        elif not (folder / _MARKER).is_file():
            message = f"`{self.target.shown}` holds what no stream wrote"
            raise self._refused(message, "name another folder, or remove this one")
        else:
            text = (folder / _MARKER).read_text()
        return None if text is None else dict(json.loads(text))

    def _write(self, text: str) -> None:
        folder: File | None = self.target.local
        if folder is None:
            rows = self.sinks.session.createDataFrame([(text,)], "value string")
            rows.coalesce(1).write.mode("overwrite").text(self._place)
            return
        make_folder(folder)
        (folder / _DRAFT).write_text(text)
        commit(folder / _DRAFT, folder / _MARKER)

    def _read_by_spark(self) -> str | None:
        from pyspark.errors import AnalysisException

        try:
            rows = self.sinks.session.read.text(self._place, wholetext=True).collect()
        except AnalysisException:
            return None
        return str(rows[0]["value"]) if rows else None

    @property
    def _place(self) -> str:
        """The folder that is the mark, where only Spark can write files."""
        return f"{self.target.place.rstrip('/')}/{_MARKER}"

    def _refused(self, message: str, hint: str) -> BadTarget:
        return self.sinks.pipeline.sheet.error(BadTarget, message, self.target.key, hint, value=True)

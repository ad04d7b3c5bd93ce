"""The run of a pipeline on a stream: open, bind, start; each batch is written and watched until a signal stops it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

from kleene.errors import BadTarget, KleeneError, NoDelay, QueryError
from kleene.spark.pipeline.binding import OnData, bound_to, opened
from kleene.spark.pipeline.failures import spark_failures
from kleene.spark.pipeline.file_checks import FileChecks
from kleene.spark.pipeline.measures import BatchMeasures, Counted, Totals
from kleene.spark.pipeline.planned_batches import PlannedBatches
from kleene.spark.pipeline.progress import Report
from kleene.spark.pipeline.prometheus import exposition, served
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.slot_record import SlotRecord
from kleene.spark.pipeline.stopping import stop_on_signal
from kleene.spark.pipeline.stream_checks import milliseconds
from kleene.spark.pipeline.stream_places import (
    add_measures,
    check_places,
    checkpoint_of,
    checkpoint_place,
    entry_of,
    metrics_file,
    slots_file,
)
from kleene.spark.pipeline.stream_sinks import StreamSinks
from kleene.spark.pipeline.stream_sources import LiveSource, open_stream
from kleene.spark.pipeline.targets import Target, folders_of, local_file, targets_of
from kleene.spark.run_lock import one_run
from kleene.spark.streaming.live import Live, live

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kleene.spark.streaming.live import MicroBatch

_POLL_SECONDS = 0.2
# So many batches or rows come before a warning of types that no event has; the end of the stream does not wait.
_PATIENT_BATCHES, _PATIENT_ROWS = 20, 100_000
_UNTIL = {
    True: "the stream runs until all that is there is done",
    False: "the stream runs; Ctrl-C stops it when its batch is finished",
}


class StreamReport(Report, Protocol):
    """Receives the progress of a stream."""

    def say(self, text: str) -> None:
        """Report a message once."""

    def batch(self, batch: BatchMeasures, totals: Totals) -> None:
        """Report a batch that is done."""


@dataclass(frozen=True)
class BoundStream(OnData[LiveSource, Live]):
    """A pipeline on its streams, before it is started."""

    files: FileChecks

    def check_files(self) -> None:
        """Whether the files that have come since the last time fit their sources."""
        self.files.check_columns({source.name: source.columns for source in self.sources}, self.run.keys)


@dataclass(frozen=True)
class StreamSummary:
    """The counts of a stream until it stopped."""

    totals: Totals
    targets: tuple[Target, ...]
    seconds: float
    # Whether a signal stopped it; otherwise everything that was there is done.
    stopped: bool


def bound_stream(pipeline: Pipeline, report: Report, session: SparkSession | None = None) -> BoundStream:
    """The pipeline on its streams: sources opened, queries bound; nothing has been read but schemas."""
    targets = targets_of(pipeline)
    check_places(pipeline, targets)
    files = FileChecks(pipeline)
    files.check_whole()
    with spark_failures(pipeline.secrets):
        session, sources = opened(pipeline, report, session, open_stream)
        with report.stage("binding the queries"):
            on_data = BoundStream(pipeline, session, sources, targets, _bind(pipeline, sources), files)
            on_data.check_files()
            return on_data


def run_stream(pipeline: Pipeline, report: StreamReport, session: SparkSession | None = None) -> StreamSummary:
    """Run a pipeline until everything there is done, or until a signal stops it; its batch is finished first."""
    began = time.perf_counter()
    entry, checkpoint = entry_of(pipeline), checkpoint_of(pipeline)
    with ExitStack() as stack:
        stack.enter_context(one_run([checkpoint_place(pipeline), *folders_of(targets_of(pipeline))]))
        on_data = bound_stream(pipeline, report, session)
        stack.enter_context(spark_failures(pipeline.secrets))
        planned = PlannedBatches(local_file(checkpoint))
        sinks = StreamSinks(on_data.session, pipeline, on_data.targets, report, planned)
        life = on_data.run.life(checkpoint)
        sinks.claim(life)
        stop = stack.enter_context(stop_on_signal())
        run = _Run(on_data, sinks, report, stop, SlotRecord(slots_file(pipeline), life), began)
        if entry.prometheus is not None:
            report.say(f"metrics at {_serve(stack, pipeline, entry.prometheus, run)}")
        trigger = None if entry.trigger is None else f"{milliseconds(entry.trigger)} milliseconds"
        run.say_first("planning")
        query = on_data.run.start(
            run.on_batch, checkpoint=checkpoint, trigger=trigger, available_now=entry.available_now
        )
        report.say(_UNTIL[entry.available_now])
        run.watch(query)
        run.warn_of_unseen_types()
    return StreamSummary(run.totals, on_data.targets, time.perf_counter() - began, stop.is_set())


# One run -------------------------------------------------------------------------------------------------------------


class _Stopped(Exception):
    """Ends a stream before it begins another batch."""


class _Run:
    """Writes batches in Spark's thread, and watches them in this one."""

    def __init__(
        self,
        on_data: BoundStream,
        sinks: StreamSinks,
        report: StreamReport,
        stop: Event,
        slots: SlotRecord,
        began: float,
    ) -> None:
        self.totals = Totals(slots=slots.read())
        self._slots, self._began, self._first = slots, began, True
        self.text = exposition(self.totals, None)
        self._sinks, self._report, self._stop = sinks, report, stop
        self._clock = on_data.queries[0].schema.clock
        self._pipeline = on_data.pipeline
        self._metrics = metrics_file(on_data.pipeline)
        # Batches that are written, but whose progress Spark has not reported, by number.
        self._unreported: dict[int, Counted] = {}
        self._problem: BaseException | None = None
        self._live = on_data.run
        self._check_files = on_data.check_files
        self._warned: set[str] = set()

    def on_batch(self, micro_batch: MicroBatch, number: int) -> None:
        try:
            if self._stop.is_set():
                raise _Stopped
            # Nothing of the batch has been read: Spark does it when its rows are asked for.
            self._check_files()
            first, self._first = self._first, False
            if first:
                self.say_first("starting Python workers, opening the state, matching")
            counted = Counted.of(micro_batch, number)
            if first:
                self.say_first("writing what it made")
            self._sinks.write(micro_batch, number)
            self._unreported[number] = counted
        except BaseException as problem:
            # Spark would pass on its text only.
            self._problem = problem
            raise

    def say_first(self, doing: str) -> None:
        """Report a step of the first batch, which takes long."""
        self._report.say(f"after {time.perf_counter() - self._began:.1f} s: the first batch: {doing}")

    def watch(self, query: StreamingQuery) -> None:
        """Report batches until the stream ends; the error that ended it is raised."""
        try:
            while query.isActive:
                time.sleep(_POLL_SECONDS)
                self._report_batches(query)
                # While a batch is made, stopping would interrupt it; `on_batch` begins no other.
                if self._stop.is_set() and not query.status["isTriggerActive"]:
                    query.stop()
        finally:
            if query.isActive:
                query.stop()
            self._report_batches(query)
        problem = self._problem or query.exception()
        if problem is not None and not isinstance(problem, _Stopped):
            raise problem

    def _report_batches(self, query: StreamingQuery) -> None:
        """Report the batches that are done."""
        if not self._unreported:
            return
        for progress in map(_plain, query.recentProgress):
            # While there is nothing to do, Spark reports that under the number of the batch to come.
            if "addBatch" in progress.get("durationMs", {}) and progress["batchId"] in self._unreported:
                batch = BatchMeasures(self._unreported.pop(progress["batchId"]), progress, self._clock)
                self.totals.add(batch)
                self._slots.write(self.totals.slots)
                self.text = exposition(self.totals, batch)
                if self._metrics is not None:
                    add_measures(self._pipeline, self._metrics, batch.plain(self.totals))
                self._report.batch(batch, self.totals)
        if self.totals.batches >= _PATIENT_BATCHES or self.totals.rows >= _PATIENT_ROWS:
            self.warn_of_unseen_types()

    def warn_of_unseen_types(self) -> None:
        """Warn once of each type that a query names and no event has, when there have been events at all."""
        for warning in self._live.unseen(self.totals.types) if self.totals.rows else ():
            text = warning.render()
            if text not in self._warned:
                self._warned.add(text)
                self._report.say(text)


def _plain(progress: Any) -> dict[str, Any]:
    return dict(json.loads(progress.json))


def _serve(stack: ExitStack, pipeline: Pipeline, port: int, run: _Run) -> str:
    try:
        return stack.enter_context(served(port, lambda: run.text))
    except OSError as problem:
        message = f"port {port} cannot be served: {problem.strerror or problem}"
        raise pipeline.sheet.error(BadTarget, message, ("stream", "prometheus"), value=True) from None


# Queries on the streams ----------------------------------------------------------------------------------------------


def _bind(pipeline: Pipeline, sources: Sequence[LiveSource]) -> Live:
    try:
        return bound_to(pipeline, sources, live)
    except QueryError as error:
        if error.text is None:  # of no query: of a length of time, for the columns' kind of time
            raise _at(pipeline, "delay", error) from None
        raise
    except NoDelay as error:
        # Both are of the clock of the machine, and say themselves which one cannot be.
        key = "ahead" if "`ahead`" in f"{error.message} {error.hint}" else "idle"
        raise _at(pipeline, key, error) from None


def _at(pipeline: Pipeline, key: str, error: KleeneError) -> KleeneError:
    return pipeline.sheet.error(type(error), error.message, ("stream", key), error.hint, value=True)

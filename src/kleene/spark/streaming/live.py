"""Queries on a stream: one operator gives all outputs, in envelopes, which are taken apart batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

from kleene.errors import NoSuchEvents
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyQuery
from kleene.queries.unseen import unseen_types
from kleene.spark.batch import OnEvents, is_large
from kleene.spark.batch_run import BatchRun
from kleene.spark.interpreter import fit_interpreter, in_tasks
from kleene.spark.packing import from_bytes
from kleene.spark.sending import Sent
from kleene.spark.slot import TYPE_SEEN
from kleene.spark.streaming.ended_streams import listen, meeting_place, watch
from kleene.spark.streaming.interruption import failure_for_spark
from kleene.spark.streaming.preparing import PreparedStream, prepare_stream
from kleene.spark.streaming.record import Record, read_record, write_record
from kleene.spark.streaming.stateful import SlotProcessor
from kleene.spark.types import as_spark_expects, spark_schema
from kleene.spark.unseen import known_streams
from kleene.spark.worker import ENVELOPE_DDL, opener, plain_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    Events = DataFrame | Mapping[str, DataFrame]

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def live(
    events: Events, queries: Sequence[AnyQuery], *, schema: Schema | None = None, settings: Settings | None = None
) -> Live:
    """Bind queries to a stream; a wrong query or one that cannot run on a stream is raised here."""
    return Live(events, queries, schema, settings or Settings())


class Live(OnEvents):
    """Queries on a stream that has not been started."""

    _prepared: PreparedStream

    def __init__(
        self,
        events: Events,
        queries: Sequence[AnyQuery],
        schema: Schema | None,
        settings: Settings,
        *,
        several: bool = False,
    ) -> None:
        self._events, self._queries, self._schema, self._settings = events, queries, schema, settings
        self._several = several
        self._prepared = self._prepare(settings)

    def _prepare(self, settings: Settings) -> PreparedStream:
        return prepare_stream(
            self._events, self._queries, schema=self._schema, several=self._several, settings=settings
        )

    # As streams, one run of the queries each

    @cached_property
    def envelopes(self) -> DataFrame:
        """All outputs of the queries, as one stream with a fixed schema."""
        listen(self._prepared.packed.sparkSession)
        return _operator(self._prepared)

    def matches(self) -> DataFrame:
        """The matches of the first query, or of all in one table."""
        return self._output("matches", self._prepared.nothing.matches.schema)

    def timeouts(self) -> DataFrame | None:
        nothing = self._prepared.nothing.timeouts
        return None if nothing is None else self._output("timeouts", nothing.schema)

    def compressed(self) -> DataFrame | None:
        columns = self._prepared.compressed_columns()
        return None if columns is None else self._output("compressed", columns)

    def late(self) -> DataFrame:
        return _opened(self.envelopes, functions.col("kind") == "late", self._prepared.columns)

    def bad_rows(self) -> DataFrame:
        return _opened(self.envelopes, functions.col("kind") == "bad", self._prepared.bad_schema)

    def _output(self, kind: str, columns: pa.Schema) -> DataFrame:
        return _opened(self.envelopes, (functions.col("kind") == kind) & (functions.col("query") == 0), columns)

    # As one run, batch by batch

    def life(self, checkpoint: str) -> str:
        """The name that marks results of this checkpoint; another checkpoint has another one."""
        return self._recorded(checkpoint).life

    def start(
        self,
        on_batch: Callable[[MicroBatch, int], None],
        *,
        checkpoint: str,
        trigger: str | None = None,
        available_now: bool = False,
        name: str | None = None,
    ) -> StreamingQuery:
        """Run the queries; `on_batch` is given the outputs of each batch, and the batch's number.

        After a failure a batch may be given again, with the same number and the same contents: whatever is written
        under its number, replacing what stands there, is written exactly once.

        checkpoint      a folder in which Spark keeps how far it is; starting with it again goes on from there
        trigger         how often there is a batch at most: `10 seconds`; None: as soon as the last one is done
        available_now   whether to stop when everything is done that is there by now
        """
        record = self._recorded(checkpoint)
        prepared = self._prepared

        def taken_apart(batch: DataFrame, number: int) -> None:
            batch.persist()
            try:
                micro_batch = MicroBatch(prepared, batch, record.life)
                on_batch(micro_batch, number)
                micro_batch.complete()
            except Exception as problem:
                failure = failure_for_spark(problem)
                if failure is problem:
                    raise
                raise failure from None
            finally:
                batch.unpersist()

        writer = _operator(prepared).writeStream.foreachBatch(taken_apart).option("checkpointLocation", checkpoint)
        if name is not None:
            writer = writer.queryName(name)
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        running = writer.start()
        watch(running, meeting_place(prepared.packed.sparkSession))
        return running

    def unseen(self, types: Mapping[str, Collection[str]]) -> list[NoSuchEvents]:
        """Warnings of types that a query names and of which no event has come, given those that came.

        Events that a query's conditions rule out do not come so far, and are not known here.
        """
        prepared, streams = self._prepared, known_streams(self._prepared)
        if prepared.schema.constant_type is not None:
            return []
        return [
            warning
            for query, bound in zip(prepared.queries, prepared.bound, strict=True)
            for warning in unseen_types(query, prepared.schema, types.get(bound.name, ()), streams, so_far=True)
        ]

    def _recorded(self, checkpoint: str) -> Record:
        """The record that the checkpoint was begun with, which this run must fit; it fixes the number of buckets."""
        session = self._prepared.packed.sparkSession
        known = read_record(session, checkpoint)
        if known is None:
            known = Record.of(self._prepared)
            write_record(session, checkpoint, known)
            return known
        exchange = self._settings.exchange
        if exchange.buckets is None and known.buckets is not None:
            fixed = replace(self._settings, exchange=replace(exchange, buckets=known.buckets))
            self._prepared = self._prepare(fixed)
        known.check(Record.of(self._prepared))
        return known


def _operator(prepared: PreparedStream) -> DataFrame:
    packed = prepared.packed
    # The only kind of store that keeps several things of a slot, and timers; platforms have classes of their own.
    if "RocksDB" not in str(packed.sparkSession.conf.get(STATE_STORE)):
        packed.sparkSession.conf.set(STATE_STORE, ROCKSDB)
    # What Spark pickles; on a worker it is the processor.
    meeting = meeting_place(packed.sparkSession)
    processor: Any = Sent(SlotProcessor, {**prepared.task_spec(), "slots_folder": meeting})
    grouped = packed.groupBy("place")
    with fit_interpreter(packed.sparkSession):
        return grouped.transformWithStateInPandas(processor, ENVELOPE_DDL, "Append", "EventTime")


def _opened(envelopes: DataFrame, wanted: object, columns: pa.Schema) -> DataFrame:
    returned = as_spark_expects(columns, large=is_large(envelopes))
    return in_tasks(envelopes.where(wanted), Sent(opener, plain_schema(returned)), spark_schema(columns))  # type: ignore[arg-type]


@dataclass(frozen=True)
class SlotMetrics:
    """The counts of a slot in a batch, and of what it holds after it: the columns of `METRICS`."""

    slot: int
    values: Mapping[str, int]


class MicroBatch(BatchRun):
    """The outputs of one batch; `matches`, `timeouts` and `compressed` give them by query, as data frames."""

    _prepared: PreparedStream

    def __init__(self, prepared: PreparedStream, envelopes: DataFrame, life: str) -> None:
        super().__init__(prepared, envelopes)
        self.life = life

    @cached_property
    def _headers(self) -> list[tuple[int, str, int, bytes | None]]:
        """Every envelope without its rows; only metrics keep theirs."""
        inside = functions.when(functions.col("kind") == "metrics", functions.col("rows")).alias("rows")
        rows = self._envelopes.select("query", "kind", "number", inside).collect()
        return [(row["query"], row["kind"], row["number"], row["rows"]) for row in rows]

    def complete(self) -> None:
        """Have Spark compute all of the batch, even where no output was read: its state is kept only then."""
        self._headers  # noqa: B018

    def number(self, kind: str, query: str | None = None) -> int:
        """How many rows an output has: `matches`, `timeouts`, `compressed`, `late` or `bad`."""
        place = None if query is None else self._place(query)
        return sum(n for of, what, n, _ in self._headers if what == kind and place in (None, of))

    @property
    def types(self) -> dict[str, set[str]]:
        """By query, the types that it names of which events came: each at least in the first batch that has some."""
        types: dict[str, set[str]] = {query.name: set() for query in self.queries}
        for place, kind, _, _ in self._headers:
            if kind.startswith(TYPE_SEEN):
                types[self.queries[place].name].add(kind.removeprefix(TYPE_SEEN))
        return types

    @cached_property
    def measured(self) -> tuple[SlotMetrics, ...]:
        """The metrics of each slot that did something."""
        metrics = []
        for _, kind, slot, rows in self._headers:
            if kind == "metrics" and rows is not None:
                metrics += [SlotMetrics(slot, row) for row in from_bytes(pa.py_buffer(bytes(rows))).to_pylist()]
        return tuple(metrics)

    @property
    def late(self) -> DataFrame:
        """Events that came after the watermark had passed them, with the columns that queries keep."""
        return _opened(self._envelopes, functions.col("kind") == "late", self._prepared.columns)

    @property
    def bad_rows(self) -> DataFrame:
        """Rows that are no events: why, and what they hold."""
        return _opened(self._envelopes, functions.col("kind") == "bad", self._prepared.bad_schema)

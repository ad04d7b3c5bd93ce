"""Time while nothing comes: a source beside those of a stream that lets the machine's clock speak when all is read.

Spark asks every source what there is when it plans a batch, and tells listeners what it planned. A batch that takes
nothing from the sources of a stream shows that all they had at its beginning was read before. Only that moment may move
time on: a row in a later batch says it. Rows of events could not show this, for an empty file that stands before a
hundred others has none.

The moment is part of the offset, which Spark writes down before the batch runs: a batch that is given again says the
same. A stream that stood still for a day first reads what has come meanwhile, and is given no time until then.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.listener import StreamingQueryListener

from kleene.errors import NoDelay
from kleene.pattern.clock import duration_in_steps
from kleene.pattern.schema import Schema
from kleene.spark.interpreter import fit_interpreter
from kleene.spark.numbered import Numbered
from kleene.spark.streaming.event_time import has_watermark

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2: a stream that ends when all is read is given no time there

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The column that tells heartbeats from events.
HEARTBEAT = "kleene_heartbeat"
_SOURCE = "kleene_heartbeats"
_EPOCH = "timestamp_ntz'1970-01-01'"

# An offset: the number of the beat, the reader that made it, and when all had been read, in milliseconds.
_BEAT, _READER, _READ_BY = "kleene_beat", "reader", "read_by"
_NEVER = -1
_SECONDS_APART = 1.0
# How long a stream that ends waits for the note of a batch that is done.
_PATIENCE_SECONDS = 30.0


def with_heartbeats(events: Numbered, schema: Schema, idle: str) -> Numbered:
    """Events, and rows that are none and say how late it is, so much earlier; they end the sources of this stream."""
    kind = events.type(schema.time)
    if not pa.types.is_timestamp(kind):
        raise NoDelay(
            f"`{schema.time}` is no timestamp, so the clock of the machine cannot move it on",
            hint="leave `idle` out; time then stands still while no event comes",
        )
    if has_watermark(events.frame, events.name(schema.time)):
        raise NoDelay(
            f"`idle` cannot move the watermark that the stream has already on `{schema.time}`",
            hint="leave withWatermark out, and set Settings(stream=Stream(delay='10 seconds', idle='30 seconds'))",
        )
    behind = ceil(duration_in_steps(idle, schema.clock) / 1000)
    beats = _beats(events.frame.sparkSession).load()
    now = functions.timestamp_millis(functions.col("read_by") - functions.lit(behind))
    if kind.tz is None:
        now = functions.timestamp_add("MICROSECOND", functions.unix_micros(now), functions.expr(_EPOCH))
    columns = [
        (now if name == schema.time else functions.lit(None))
        .cast(events.frame.schema[place].dataType)
        .alias(f"c{place}")
        for place, name in enumerate(events.columns.names)
    ]
    marked = events.frame.withColumn(HEARTBEAT, functions.lit(False))
    beating = beats.select(*columns, functions.lit(True).alias(HEARTBEAT))
    # What comes along with events does not come with heartbeats.
    return Numbered(marked.unionByName(beating, allowMissingColumns=True), events.columns)


def is_heartbeats(source: Mapping[str, Any]) -> bool:
    """Whether a source of Spark's progress is one of these, and no source of events."""
    end = source.get("endOffset")
    return isinstance(end, Mapping) and _BEAT in end


def _beats(session: SparkSession) -> Any:
    if getattr(session, "sparkContext", None) is None:
        raise NoDelay(
            "`idle` needs Spark's driver in this process, and this session is one of Spark Connect",
            hint="leave `idle` out; time then stands still while no event comes",
        )
    if session not in _LISTENED:
        session.streams.addListener(_Listener())
        with fit_interpreter(session):
            session.dataSource.register(_Heartbeats)
        _LISTENED.add(session)
    return session.readStream.format(_SOURCE).option("notes", str(_notes()))


_LISTENED: WeakSet[SparkSession] = WeakSet()


# What the sources have left ------------------------------------------------------------------------------------------


class _Note(NamedTuple):
    """The note of a batch for the reader whose beat was in it: when all had been read, or _NEVER."""

    beat: int
    read_by: int


@cache
def _notes() -> Path:
    """The folder in which the listener, here, leaves notes to readers, which Spark runs in processes of their own."""
    folder = tempfile.mkdtemp(prefix="kleene-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


class _Listener(StreamingQueryListener):
    """Hears of every batch of the session, in a thread of Spark's."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        for reader, note in notes_of(json.loads(event.progress.json)).items():
            draft = _notes() / f".{reader}"
            draft.write_text(json.dumps(note))
            os.replace(draft, _notes() / reader)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


def notes_of(progress: Mapping[str, Any]) -> dict[str, _Note]:
    """By reader, what a batch showed of the sources of its stream: those that Spark lists since the reader before.

    A stream all of whose sources another one has, too, stands there without any: then all sources count.
    """
    began = round(datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000)
    all_read, readers = True, []
    own: list[bool] = []
    for source in progress.get("sources", ()):
        if is_heartbeats(source):
            readers.append((source["endOffset"], own))
            own = []
        else:
            own.append(_had_nothing(source))
            all_read = all_read and own[-1]
    return {
        end[_READER]: _Note(end[_BEAT], began if (all(of_stream) if of_stream else all_read) else _NEVER)
        for end, of_stream in readers
    }


def _had_nothing(source: Mapping[str, Any]) -> bool:
    """Whether a batch took nothing from a source, and the source says of no more that it only held back."""
    end, latest = source.get("endOffset"), source.get("latestOffset")
    return bool(source.get("startOffset") == end and latest in (None, end))


# The source ----------------------------------------------------------------------------------------------------------


class _Heartbeats(DataSource):
    @classmethod
    def name(cls) -> str:
        return _SOURCE

    def schema(self) -> str:
        return "read_by bigint"

    def streamReader(self, schema: Any) -> HeartbeatReader:  # noqa: N802
        return HeartbeatReader(Path(self.options["notes"]))


def _offset(offset: Any) -> Mapping[str, Any] | None:
    """An offset of ours; a checkpoint may have been begun when heartbeats were rows of Spark's `rate`."""
    return offset if isinstance(offset, Mapping) and _BEAT in offset else None


class HeartbeatReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says once a second, in a batch, what the listener has learned; a new one for each start of a stream.

    A stream that ends when all is read must be given the time at that point: it beats in each batch, until one had
    nothing to read, then says the moment at which this run began, for what came later is the next one's.
    """

    def __init__(self, notes: Path) -> None:
        self._name = uuid4().hex
        self._note = notes / self._name
        self._last: Mapping[str, Any] | None = None
        self._last_at = float("-inf")
        self._began = int(time.time() * 1000)
        self._ends = self._done = False

    # Names that Spark calls; before Spark 4.2 without arguments.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {_BEAT: 0, _READER: "", _READ_BY: _NEVER}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._ends = True

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        before = dict(_offset(start) or self._last or self.initialOffset())
        if self._ends:
            return self._before_the_end(before)
        if time.monotonic() - self._last_at < _SECONDS_APART:
            return before
        note = self._read_note()
        return self._beat(before, _NEVER if note is None else note.read_by)

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        read_by = (_offset(end) or self.initialOffset())[_READ_BY]
        return [InputPartition(read_by)] if start != end and read_by != _NEVER else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (partition.value,)

    def stop(self) -> None:
        """The process ends here; what its connection to Spark prints about that is of no interest."""
        self._note.unlink(missing_ok=True)
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

    # Beats

    def _beat(self, before: Mapping[str, Any], read_by: int) -> dict[str, Any]:
        self._last = {_BEAT: before[_BEAT] + 1, _READER: self._name, _READ_BY: read_by}
        self._last_at = time.monotonic()
        return dict(self._last)

    def _before_the_end(self, before: dict[str, Any]) -> dict[str, Any]:
        if self._done:
            return before
        if self._last is None:
            return self._beat(before, _NEVER)
        note = self._await_note(self._last[_BEAT])
        if note is not None and note.read_by == _NEVER:
            return self._beat(before, _NEVER)
        # Where there is no note of batches, the stream ends without.
        self._done = True
        return before if note is None else self._beat(before, min(note.read_by, self._began))

    def _await_note(self, beat: int) -> _Note | None:
        """The note of the batch with this beat, which is done, but may not be in the file yet."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            note = self._read_note()
            if note is not None and note.beat == beat:
                return note
            time.sleep(0.01)
        return None

    def _read_note(self) -> _Note | None:
        try:
            return _Note(*json.loads(self._note.read_text()))
        except (FileNotFoundError, ValueError):
            return None

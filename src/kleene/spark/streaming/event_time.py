"""The time column as Spark's event time, which counts milliseconds, and Spark's watermark in steps of the column.

Spark lets time pass by the largest event time of earlier batches, less the delay. A filter that does not mention the
event time is pushed below the watermark, and then time stands still for events that it drops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from kleene.errors import NoDelay
from kleene.pattern.clock import Clock, ClockKind, duration_in_steps
from kleene.pattern.schema import Schema
from kleene.spark.numbered import Numbered

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVENT_TIME = "kleene_event_time"
# How Spark marks the column that has a watermark.
_MARK = "spark.watermarkDelayMs"
_NANOSECONDS = 1_000_000
# Milliseconds that are no timestamp any more; a time beyond them is no event's.
_FURTHEST = 1 << 47
_EPOCH = "timestamp_ntz'1970-01-01'"
_NEVER = "timestamp'0001-01-01 00:00:00+00:00'"


@dataclass(frozen=True)
class Pace:
    """So many steps of the time column are a millisecond of Spark's, or so many milliseconds are a step."""

    steps: int = 1
    milliseconds: int = 1

    @staticmethod
    def of(clock: Clock) -> Pace:
        """Ticks of unknown or odd length pass as if each were a millisecond."""
        length = Fraction(clock.nanoseconds or _NANOSECONDS, _NANOSECONDS)
        if length.denominator == 1:
            return Pace(milliseconds=length.numerator)
        return Pace(steps=length.denominator) if length.numerator == 1 else Pace()

    def watermark(self, milliseconds: int) -> int | None:
        """No event before it is still to come; None while nothing is known: Spark begins with 0."""
        if milliseconds <= 0:
            return None
        return -(-milliseconds * self.steps // self.milliseconds)

    def timer(self, watermark: int) -> int:
        """The first of Spark's watermarks at which ours is there; not 0, at which a timer would fire and be gone."""
        return min(max(1, (watermark - 1) * self.milliseconds // self.steps + 1), (1 << 63) - 1)

    @property
    def length(self) -> Fraction:
        """The length of a step in nanoseconds, as far as Spark can hold it."""
        return Fraction(self.milliseconds * _NANOSECONDS, self.steps)

    @property
    def furthest(self) -> int:
        """No time beyond it can be given to Spark, or counted in 64 bits once it is rounded to milliseconds."""
        return min(_FURTHEST * self.steps // self.milliseconds, (1 << 63) - 1 - self.steps)


def has_watermark(frame: DataFrame, time: str) -> bool:
    """Whether the user gave the time column a watermark."""
    return any(field.name == time and _MARK in (field.metadata or {}) for field in frame.schema)


def with_event_time(
    events: Numbered, schema: Schema, delay: str | int | None, too_far: Column | None = None
) -> Numbered:
    """Events with a watermark: the user's on the time column, or one of ours with this delay.

    too_far   whether a row is none that may move time
    """
    if has_watermark(events.frame, events.name(schema.time)):
        return events
    counts = events.column(schema.time).isNotNull()
    if too_far is not None:
        counts &= ~too_far
    there = functions.when(counts, _moment(events, schema.time, Pace.of(schema.clock)))
    known = functions.coalesce(there, functions.expr(_NEVER))
    late = f"{waited(schema, delay)} milliseconds"
    return Numbered(events.frame.withColumn(EVENT_TIME, known).withWatermark(EVENT_TIME, late), events.columns)


def with_one_event_time(streams: Sequence[Numbered], schema: Schema) -> list[Numbered]:
    """Streams of which some have the user's watermark and others one of ours, with the same columns."""
    if len({EVENT_TIME in stream.frame.columns for stream in streams}) < 2:
        return list(streams)
    return [
        stream
        if EVENT_TIME in stream.frame.columns
        else Numbered(stream.frame.withColumn(EVENT_TIME, stream.column(schema.time)), stream.columns)
        for stream in streams
    ]


def waited(schema: Schema, delay: str | int | None) -> int:
    """How long events are waited for, in Spark's milliseconds; never shorter than what was asked for."""
    if delay is None:
        raise NoDelay(
            "how long must events of a stream be waited for?",
            hint=f"give the stream a watermark, such as events.withWatermark('{schema.time}', '10 seconds'), "
            "or set Settings(stream=Stream(delay='10 seconds'))",
        )
    pace = Pace.of(schema.clock)
    steps = duration_in_steps(delay, schema.clock) if isinstance(delay, str) else Fraction(delay)
    return ceil(steps * pace.milliseconds / pace.steps)


def above_watermark(events: Numbered, schema: Schema, condition: Column) -> Column:
    """The same condition, but Spark tests it after it has looked at the time."""
    name = EVENT_TIME if EVENT_TIME in events.frame.columns else events.name(schema.time)
    return condition | (functions.col(name) < functions.expr(_NEVER))


def beyond(events: Numbered, schema: Schema) -> Column:
    """Whether a time is too far from 1970 to be an event time."""
    if not pa.types.is_integer(events.type(schema.time)):
        return functions.lit(False)
    most = Pace.of(schema.clock).furthest
    time = events.column(schema.time)
    return (time > most) | (time < -most)


def too_far_ahead(events: Numbered, schema: Schema, ahead: str) -> Column:
    """Whether an event is further ahead of the clock of the machine than that; NULL when it has no time.

    The clock is Spark's `current_timestamp`, which on a stream is the time that it wrote down for the batch: a batch
    that is given again makes the same rows bad.
    """
    if has_watermark(events.frame, events.name(schema.time)):
        raise NoDelay(
            f"`ahead` cannot keep events from moving the watermark that the stream has already on `{schema.time}`",
            hint="leave withWatermark out, and set Settings(stream=Stream(delay='10 seconds', ahead='1 hour'))",
        )
    pace = Pace.of(schema.clock)
    if schema.clock.nanoseconds is None or pace.length != schema.clock.nanoseconds:
        raise NoDelay(
            f"`{schema.time}` counts ticks, and it is not known how long one is in milliseconds, so `ahead` cannot "
            "compare them with the clock of the machine",
            hint="the schema's `tick` says how long a tick is, since 1970; or leave `ahead` out",
        )
    most = floor(duration_in_steps(ahead, Clock(ClockKind.TIMESTAMP)) / _NANOSECONDS)
    now = functions.unix_millis(functions.current_timestamp())
    return _moment(events, schema.time, pace) > functions.timestamp_millis(now + functions.lit(min(most, _FURTHEST)))


def _moment(events: Numbered, name: str, pace: Pace) -> Column:
    time, kind = events.column(name), events.type(name)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return time
    if pa.types.is_timestamp(kind):
        # Not by a cast, which would go through the session's time zone.
        return functions.timestamp_micros(functions.timestamp_diff("MICROSECOND", functions.expr(_EPOCH), time))
    count = functions.unix_date(time) if pa.types.is_date(kind) else time
    most = functions.lit(pace.furthest)
    ticks = functions.greatest(functions.least(count.cast("bigint"), most), -most)
    if pace.steps > 1:
        whole = ticks - functions.pmod(ticks, functions.lit(pace.steps))
        ticks = functions.call_function("div", whole, functions.lit(pace.steps))
    return functions.timestamp_millis(ticks * functions.lit(pace.milliseconds))

"""Spark's milliseconds and the steps of a time column. No Spark is needed."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kleene.pattern.clock import Clock, ClockKind, tick_length
from kleene.spark.streaming.event_time import Pace

PACES = st.one_of(
    st.integers(1, 10**6).map(lambda steps: Pace(steps=steps)),
    st.integers(1, 10**9).map(lambda length: Pace(milliseconds=length)),
)
MILLISECONDS = st.integers(1, 1 << 47)


def of_spark(pace: Pace, time: int) -> int:
    """The event time of a step, as it is told to Spark."""
    return time // pace.steps * pace.milliseconds


@pytest.mark.parametrize(
    ("length", "pace"),
    [
        (None, Pace()),
        ("1 millisecond", Pace()),
        ("1 second", Pace(milliseconds=1000)),
        ("1 day", Pace(milliseconds=86_400_000)),
        ("1 microsecond", Pace(steps=1000)),
        ("1 nanosecond", Pace(steps=1_000_000)),
        ("250 microseconds", Pace(steps=4)),
        # Neither is a whole number of the other.
        ("1500 microseconds", Pace()),
        ("3 microseconds", Pace()),
    ],
)
def test_how_long_a_step_is(length: str | None, pace: Pace) -> None:
    clock = Clock(ClockKind.TICKS, None if length is None else tick_length(length))
    assert Pace.of(clock) == pace


def test_timestamps_count_by_their_resolution() -> None:
    assert Pace.of(Clock(ClockKind.TIMESTAMP, Fraction(1000))) == Pace(steps=1000)
    assert Pace.of(Clock(ClockKind.TIMESTAMP, Fraction(1_000_000_000))) == Pace(milliseconds=1000)


@pytest.mark.parametrize("pace", [Pace(), Pace(steps=1000), Pace(milliseconds=1000)], ids=str)
def test_spark_begins_with_0_at_which_nothing_is_known(pace: Pace) -> None:
    assert pace.watermark(0) is None
    assert pace.watermark(-5) is None
    assert pace.watermark(1) is not None


@pytest.mark.parametrize(
    ("pace", "milliseconds", "watermark"),
    [
        (Pace(), 1500, 1500),
        (Pace(steps=1000), 1500, 1_500_000),
        # What began in a second may still end in it; the second before is over.
        (Pace(milliseconds=1000), 1000, 1),
        (Pace(milliseconds=1000), 1001, 2),
        (Pace(milliseconds=1000), 2000, 2),
    ],
)
def test_watermarks_in_steps(pace: Pace, milliseconds: int, watermark: int) -> None:
    assert pace.watermark(milliseconds) == watermark


@given(PACES, MILLISECONDS, st.integers(-(1 << 60), 1 << 60))
def test_no_event_before_the_watermark_is_still_to_come(pace: Pace, milliseconds: int, time: int) -> None:
    """Of those that Spark has not said to be late; and those that it has are late."""
    watermark = pace.watermark(milliseconds)
    assert watermark is not None
    assert (of_spark(pace, time) >= milliseconds) == (time >= watermark)


@given(PACES, MILLISECONDS, MILLISECONDS)
def test_watermarks_do_not_fall(pace: Pace, one: int, other: int) -> None:
    first, second = pace.watermark(min(one, other)), pace.watermark(max(one, other))
    assert first is not None
    assert second is not None
    assert first <= second


@given(PACES, MILLISECONDS)
def test_a_timer_is_due_when_the_watermark_is_there_and_no_earlier(pace: Pace, watermark: int) -> None:
    assume(watermark <= pace.furthest)  # nothing can be told to Spark of a time beyond
    due = pace.timer(watermark)
    reached = pace.watermark(due)
    assert reached is not None
    assert reached >= watermark
    before = pace.watermark(due - 1)
    assert before is None or before < watermark


@given(PACES, MILLISECONDS, st.integers(1, 1 << 40))
def test_a_timer_for_later_is_not_due_now(pace: Pace, milliseconds: int, steps: int) -> None:
    """Spark drops a timer that has fired, so that one set for the same moment would be lost."""
    watermark = pace.watermark(milliseconds)
    assert watermark is not None
    assert pace.timer(watermark + steps) > milliseconds


@given(PACES)
def test_the_furthest_time_can_be_told(pace: Pace) -> None:
    assert 0 < of_spark(pace, pace.furthest) <= 1 << 47


@given(st.integers(1, 1000).map(lambda steps: Pace(steps=steps)))
def test_nothing_much_further_can(pace: Pace) -> None:
    assert of_spark(pace, pace.furthest + pace.steps) > 1 << 47


@pytest.mark.parametrize("steps", [1 << 16, 10**6])
def test_the_furthest_time_is_a_number_of_64_bits(steps: int) -> None:
    """And so is the beginning of its millisecond, on either side of 1970."""
    assert Pace(steps=steps).furthest + steps < 1 << 63

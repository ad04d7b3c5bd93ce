"""Windows in exact units, whatever the time column counts in."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import kleene
from kleene.errors import BadDuration, BadTimeColumn, WindowMismatch
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema
from kleene.pattern.clock import Window


def window(text: str, time: pa.DataType, **params: object) -> Window | None:
    schema = schema_on(pa.schema([("type", pa.string()), ("ts", time)]), Schema())
    return Query(f"PATTERN SEQ(A a, B b) WITHIN {text}", params=params).bind(schema).window


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_twelve_hours_in_every_unit(unit: str, zone: str | None) -> None:
    steps = {"s": 43_200, "ms": 43_200_000, "us": 43_200_000_000, "ns": 43_200_000_000_000}[unit]
    assert window("12 hours", pa.timestamp(unit, zone)) == Window(steps, inclusive=False, events=False)


def test_terms_add_up() -> None:
    assert window("1 hour 30 minutes", pa.timestamp("s")) == Window(5_400, False, False)
    assert window("1.5 hours", pa.timestamp("s")) == Window(5_400, False, False)
    assert window("2 weeks", pa.date32()) == Window(14, False, False)


def test_a_window_between_two_steps_is_rounded_so_that_no_comparison_changes() -> None:
    """On whole seconds, `< 1.5 s` is `< 2` and `<= 1.5 s` is `<= 1`."""
    assert window("1500 msec", pa.timestamp("s")) == Window(2, False, False)
    assert window("1500 msec INCLUSIVE", pa.timestamp("s")) == Window(1, True, False)


def test_events_and_ticks() -> None:
    assert window("500 EVENTS", pa.timestamp("ns")) == Window(500, False, True)
    assert window("200", pa.int32()) == window("200 units", pa.int64()) == Window(200, False, False)


def test_ticks_on_timestamps_and_hours_on_ticks_are_refused() -> None:
    with pytest.raises(WindowMismatch, match="ticks mean nothing"):
        window("200", pa.timestamp("us"))
    with pytest.raises(WindowMismatch, match="unknown length"):
        window("12 hours", pa.int64())


def test_a_declared_tick_gives_hours_a_length() -> None:
    schema = Schema(tick="5 minutes", columns={"ts": "int"})
    assert Query("PATTERN SEQ(A a, B b) WITHIN 12 hours").bind(schema).window == Window(144, False, False)
    difference = Query("PATTERN SEQ(A a, B b) WHERE b.ts - a.ts < 10 minutes").bind(schema)
    assert "value=2," in repr(difference.conditions.positive[0])


@pytest.mark.parametrize("given", [timedelta(minutes=1), "1 minute", "60 s"])
def test_parameters_hold_durations(given: object) -> None:
    assert window(":w", pa.timestamp("s"), w=given) == Window(60, False, False)


def test_parameters_hold_amounts() -> None:
    assert window(":w minutes", pa.timestamp("s"), w=2) == Window(120, False, False)
    assert window(":w", pa.int64(), w=7) == Window(7, False, False)


@pytest.mark.parametrize("text", ["0", "0 seconds", "1 hour 5 EVENTS", "1.5 EVENTS"])
def test_windows_that_mean_nothing(text: str) -> None:
    with pytest.raises(BadDuration):
        window(text, pa.timestamp("s"))


def test_a_column_of_strings_is_no_time() -> None:
    with pytest.raises(BadTimeColumn, match="string"):
        kleene.match(pa.table({"type": ["A"], "ts": ["noon"]}), "PATTERN A a")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_matches_do_not_depend_on_the_unit(unit: str) -> None:
    seconds = pa.array([0, 10, 19, 20], pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
    table = pa.table({"type": ["A", "B", "B", "B"], "ts": seconds})
    found = kleene.match(table, "PATTERN SEQ(A a, B b) WITHIN 20 seconds")
    assert found.num_rows == 2
    in_seconds = kleene.match(
        table.set_column(1, "ts", seconds.cast(pa.timestamp("s"))), "PATTERN SEQ(A a, B b) WITHIN 20 seconds"
    )
    assert found["match_id"].to_pylist() == in_seconds["match_id"].to_pylist()

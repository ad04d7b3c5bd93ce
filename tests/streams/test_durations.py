"""DUR in conditions: ticks and lengths of time mean the same, on integer times and on timestamps."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

import kleene
from kleene.errors import QueryError

MINUTES = (0, 29, 30, 60)
BEGAN = datetime(2026, 1, 1)
TICKS = [{"type": "A", "ts": minute} for minute in MINUTES]
MOMENTS = [{"type": "A", "ts": BEGAN + timedelta(minutes=minute)} for minute in MINUTES]
# A a ; A b: 0–29, 29–30, 30–60 last 30, 2 and 31 ticks.
LASTING = {30: (0, 29), 2: (29, 30), 31: (30, 60)}


def lasting(rows: list[dict[str, Any]], condition: str, **options: Any) -> list[int]:
    """How many ticks the pairs last that satisfy a condition."""
    found = kleene.match(rows, f"DECLARE STREAM (tick 1 minute) σ{{{condition}}}(A a ; A b)", **options)
    times = {ends: ticks for ticks, ends in LASTING.items()}
    return sorted(times[_minute(match["start"]), _minute(match["end"])] for match in found)


def _minute(time: int | datetime) -> int:
    return time if isinstance(time, int) else (time - BEGAN) // timedelta(minutes=1)


@pytest.mark.parametrize("rows", [TICKS, MOMENTS], ids=["ticks", "timestamps"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("DUR >= 30", [30, 31]),
        ("DUR >= 30 min", [30, 31]),
        ("DUR >= 30 ticks", [30, 31]),
        ("DUR > 1800 sec", [31]),
        ("30 min < DUR", [31]),
        ("NOT DUR >= 30 min", [2]),
        ("DUR = 31 min", [31]),
        ("DUR BETWEEN 1 AND 30 min", [2, 30]),
        ("DUR IN (2, 31 min)", [2, 31]),
        ("DUR >= 30.5", [31]),
        ("DUR < 0.5 hours", [2]),
        ("DUR - 1 min >= 30 min", [31]),
    ],
)
def test_ticks_and_lengths_of_time(rows: list[dict[str, Any]], condition: str, expected: list[int]) -> None:
    assert lasting(rows, condition) == expected


@pytest.mark.parametrize("rows", [TICKS, MOMENTS], ids=["ticks", "timestamps"])
@pytest.mark.parametrize("bound", [30, "30", "30 min", "0.5 hours", timedelta(minutes=30)])
def test_a_parameter_is_either(rows: list[dict[str, Any]], bound: object) -> None:
    assert lasting(rows, "DUR >= :bound", params={"bound": bound}) == [30, 31]


def test_on_timestamps_a_length_need_not_be_whole_ticks() -> None:
    assert lasting(MOMENTS, "DUR > 90 sec") == [2, 30, 31]


@pytest.mark.parametrize(
    ("text", "code", "caret", "hint"),
    [
        ("DECLARE STREAM (tick 1 minute) σ{DUR > 90 sec}(A)", "KL102", "DUR > 90 sec", "a tick is 1 minute"),
        ("σ{DUR > 90 sec}(A)", "KL304", "DUR > 90 sec", "write ticks (`DUR <= 200`), or declare how long one is"),
        ("σ{DUR > '5 min'}(A)", "KL301", "'5 min'", "it has no quotes: `DUR <= 5 min`"),
        ("σ{DUR > :name}(A)", "KL206", ":name", "a number of ticks, or `30 min`"),
    ],
)
def test_what_is_no_length(text: str, code: str, caret: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        kleene.match(TICKS, text, params={"name": "IBM"} if ":name" in text else None)
    error = caught.value
    assert error.code == code, error.render()
    assert error.span is not None
    assert text[error.span.start : error.span.end] == caret
    assert hint in str(error.hint)


def test_an_attribute_may_be_called_dur() -> None:
    rows = [{"type": "A", "ts": 1, "dur": 7}, {"type": "A", "ts": 2, "dur": 1}]
    assert [match["end"] for match in kleene.match(rows, "σ{dur > 5}(A)")] == [1]

"""`a[n]` on the engine: values of every kind, with the reference evaluator's matches and without its help."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

import kleene
from kleene.testing import reference_match

_BEGAN = datetime(2024, 1, 1)
_ROWS = [
    {
        "type": kind,
        "ts": ts,
        "whole": None if ts == 2 else ts % 3,
        "real": None if ts == 3 else ts / 4,
        "text": "uvw"[ts % 3],
        "flag": ts % 2 == 0,
        "moment": _BEGAN + timedelta(minutes=ts),
        "exact": Decimal(ts),
    }
    for ts, kind in enumerate("AAABAABAB")
]


@pytest.mark.parametrize(
    "condition",
    [
        "a[2].whole = b.whole",
        "a[2].real < b.real AND a[3].real > 0.5",
        "a[2].text = b.text OR a[3].text >= 'v'",
        "a[2].flag",
        "a[3].moment - a[2].moment > 1 minute",
        "a[2].whole IS NULL",
        "a[2].real + a[3].whole > 2",
    ],
)
@pytest.mark.parametrize(
    ("pattern", "strategy"),
    [
        ("A+ a[] ; B b", "skip_till_next_match"),
        ("A+ a[] ; B b", "skip_till_any_match"),
        ("A* a[] ; B b", "skip_till_next_match"),
        ("A* a[] ; B b", "strict_contiguity"),
        ("A{1,3} a[] & B b", "skip_till_any_match"),
    ],
)
def test_every_kind_of_value(condition: str, strategy: str, pattern: str, caplog: pytest.LogCaptureFixture) -> None:
    query = f"PATTERN {pattern} WHERE {strategy} {{ {condition} }} WITHIN 7"
    with caplog.at_level(logging.WARNING, "kleene"):
        found = kleene.match(_ROWS, query)
    assert "reference evaluator" not in caplog.text
    assert sorted(match["match_id"] for match in found) == sorted(reference_match(_ROWS, query).ids)


def test_a_value_that_no_condition_can_hold_is_returned(caplog: pytest.LogCaptureFixture) -> None:
    query = "PATTERN A+ a[] ; B b WHERE strict_contiguity { } RETURN a.LEN AS n, a[2].exact, a[3].moment"
    with caplog.at_level(logging.WARNING, "kleene"):
        found: list[dict[str, Any]] = kleene.match(_ROWS, query)
    assert "reference evaluator" not in caplog.text
    shown = {(row["start"], row["n"], row["a_2_exact"], row["a_3_moment"]) for row in found}
    assert shown == {
        (0, 3, Decimal(1), _BEGAN + timedelta(minutes=2)),
        (1, 2, Decimal(2), None),
        (2, 1, None, None),
        (4, 2, Decimal(5), None),
        (5, 1, None, None),
        (7, 1, None, None),
    }

"""A stream on Spark whose driver, JVM and workers are killed: every output holds each of its rows exactly once."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.chaos.real_run import RealRun
from tests.soaking import SOAKING

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_each_row_exactly_once(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """One of a few streams of `make chaos`, shorter: a driver alone and a JVM alone are killed in `make soak`."""
    ends = ("between two writes", "driver", "jvm") if SOAKING else ("between two writes",)
    tally = RealRun(tmp_path, random.Random(20261116), ends, workers=2 if SOAKING else 1).go()
    assert tally.is_right, f"{tally.report()}\n{(tmp_path / 'stderr').read_text()[-3000:]}"
    assert tally.failures["driver and jvm"] == 1
    assert tally.failures["driver"] == tally.failures["jvm"] == SOAKING
    assert tally.failures["worker"] >= 2
    assert tally.outputs["pairs"].wanted > 500
    assert min(rows.wanted for rows in tally.outputs.values()) > (5 if SOAKING else 2)
    record_property("counted", f"killed on Spark: {tally.line()}")

"""A stream on Spark whose driver, JVM and workers are killed: every output holds each of its rows exactly once.

In `make soak`, as in `make chaos`; what `make test` kills is in `tests/spark/streaming/test_interruption.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.chaos.real_run import RealRun

pytestmark = [pytest.mark.spark, pytest.mark.soak]


def test_each_row_exactly_once(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """One of a few streams of `make chaos`, shorter."""
    ends = ("between two writes", "driver", "jvm")
    tally = RealRun(tmp_path, random.Random(20261116), ends, workers=2).go()
    assert tally.is_right, f"{tally.report()}\n{(tmp_path / 'stderr').read_text()[-3000:]}"
    assert tally.failures["driver and jvm"] == 1
    assert tally.failures["driver"] == tally.failures["jvm"] == 1
    assert tally.failures["worker"] >= 2
    assert tally.outputs["pairs"].wanted > 500
    assert min(rows.wanted for rows in tally.outputs.values()) > 5
    record_property("counted", f"killed on Spark: {tally.line()}")

"""What a stream tells to others: its measures to Prometheus, and what it is told: to stop; folders it may write to."""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlparse
from urllib.request import urlopen

import pytest
from tests.spark.stream_pipelines import STREAM, Watched, batch

from kleene.errors import BadTarget
from kleene.pattern.clock import Clock, ClockKind
from kleene.spark.pipeline.measures import Totals
from kleene.spark.pipeline.prometheus import exposition, served
from kleene.spark.pipeline.reading import read_pipeline
from kleene.spark.pipeline.slot_record import SlotRecord
from kleene.spark.pipeline.stopping import stop_on_signal
from kleene.spark.pipeline.targets import targets_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def test_measures_in_the_format_of_prometheus() -> None:
    one, totals = batch(Clock(ClockKind.TICKS))
    totals.outputs["matches"]['odd"\\name'] = 3
    lines = exposition(totals, one).splitlines()
    assert 'kleene_matches_total{query="pairs"} 2' in lines
    assert 'kleene_matches_total{query="odd\\"\\\\name"} 3' in lines
    # Of ticks one can only say how many passed: Spark counts them as milliseconds.
    assert "kleene_watermark_ticks 1772452805250" in lines
    assert not any("lag" in line or "watermark_seconds" in line for line in lines)
    assert [lines[place - 1] for place, line in enumerate(lines) if line == "kleene_runs 3"] == [
        "# TYPE kleene_runs gauge"
    ]
    assert "kleene_batches_total 0" in exposition(Totals(), None).splitlines()


def test_a_run_that_goes_on_knows_what_slots_held(tmp_path: Path) -> None:
    """Slots to which nothing came since count with what they said before; those of another checkpoint do not."""
    before = {3: {"held": 5, "runs": 3, "state_bytes": 900, "kept_bytes": 70}}
    file = tmp_path / "state" / "kleene-slots.json"
    assert SlotRecord(file, "one").read() == {}
    SlotRecord(file, "one").write(before)
    _, totals = batch(Clock(ClockKind.TICKS))
    totals.slots = {**SlotRecord(file, "one").read(), **totals.slots}
    assert totals.held == {"held": 10, "runs": 6, "state_bytes": 2_500_900, "kept_bytes": 79}
    assert SlotRecord(file, "other").read() == {}
    file.write_text("{")
    assert SlotRecord(file, "one").read() == {}
    SlotRecord(None, "one").write(before)
    assert SlotRecord(None, "one").read() == {}


def test_measures_are_served_on_loopback_only() -> None:
    with served(0, lambda: "kleene_runs 1\n") as address:
        assert urlopen(address).read() == b"kleene_runs 1\n"
        assert urlparse(address).hostname == "127.0.0.1"
        with pytest.raises(HTTPError, match="404"):
            urlopen(address.replace("metrics", "etc/passwd"))
        port = urlparse(address).port
        others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
        for other in others - {"127.0.0.1"}:
            with socket.socket() as probe:
                assert probe.connect_ex((str(other), port)) != 0
    with pytest.raises(OSError, match="refused"):
        urlopen(address)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_interrupts(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signal() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(5)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_folders_that_only_spark_can_write_to(spark: SparkSession, tmp_path: Path) -> None:
    """A batch replaces itself, and a mark says whose the folder is, without a file being renamed."""
    from kleene.spark.pipeline.stream_sinks import StreamSinks

    (tmp_path / "pipeline.toml").write_text(STREAM)
    pipeline = read_pipeline(tmp_path / "pipeline.toml")
    targets = [replace(target, local=None) for target in targets_of(pipeline)]
    sinks = StreamSinks(spark, pipeline, targets, Watched())
    sinks.claim("one")
    sinks.claim("one")
    with pytest.raises(BadTarget, match="holds results of another checkpoint"):
        sinks.claim("other")
    rows = spark.createDataFrame([(1,), (2,)], "start int")
    batch: Any = SimpleNamespace(
        matches=lambda name: rows, timeouts=lambda name: None, compressed=lambda name: None, number=lambda kind, name: 2
    )
    for number in (3, 3, 4):
        sinks.write(batch, number)
    written = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row["batch"], row["start"]) for row in written) == [(3, 1), (3, 2), (4, 1), (4, 2)]

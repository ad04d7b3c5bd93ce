"""Settings as plain values: all of them reach tasks, and all can be said in a pipeline file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from kleene.plan.settings import (
    Adapting,
    Budget,
    Exchange,
    ExecutorKind,
    Policy,
    Settings,
    Stream,
    from_plain,
    to_plain,
)

# Nothing as it usually is.
CHANGED = Settings(
    without=frozenset({"push_window", "flatten"}),
    budget=Budget(1, 2, 3, Policy.DROP_OLDEST),
    graphs=False,
    exchange=Exchange(buckets=4, slice_width=5),
    stream=Stream(delay="1 second", idle="2 seconds", drop_duplicates=True, cache_bytes=6, ahead="3 hours"),
    executor=ExecutorKind.TREES,
    adapting=Adapting(on=False, change=2.0, gain=0.5, round=7),
    threads=8,
)
# Pipelines run on Spark, which says how many tasks run at once; each has one thread.
NOT_OF_PIPELINES = {"threads"}

PIPELINE = """
[[sources]]
name = "readings"
kind = "json"
path = "in"
schema = { type = "string", ts = "timestamp", x = "long" }

[[queries]]
name = "pairs"
text = "PATTERN SEQ(A a, B b) WITHIN 10 seconds"

[schema]
tie_breaker = "x"

[[sinks]]
kind = "parquet"
path = "out"

[settings]
without = ["push_window", "flatten"]
graphs = false
executor = "trees"
buckets = 4
slice_width = 5
adapting = { on = false, change = 2.0, gain = 0.5, round = 7 }

[budget]
matches_per_event = 1
runs_per_partition = 2
state_bytes = 3
policy = "drop_oldest"
"""
STREAM = """
[stream]
checkpoint = "state"
delay = "1 second"
idle = "2 seconds"
ahead = "3 hours"
drop_duplicates = true
cache_bytes = 6
"""


def leaves(settings: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for field in fields(settings):
        value, here = getattr(settings, field.name), f"{path}{field.name}"
        if is_dataclass(value):
            yield from leaves(value, f"{here}.")
        else:
            yield here, value


def test_the_changed_settings_are_all_changed() -> None:
    usual, changed = dict(leaves(Settings())), dict(leaves(CHANGED))
    assert [name for name, value in usual.items() if changed[name] == value] == []


@pytest.mark.parametrize("settings", [Settings(), CHANGED], ids=["usual", "changed"])
def test_they_are_the_same_after_a_way_as_json(settings: Settings) -> None:
    assert from_plain(json.loads(json.dumps(to_plain(settings)))) == settings


def test_tasks_have_them_all() -> None:
    pa = pytest.importorskip("pyarrow")
    from kleene.pattern import Query, Schema
    from kleene.spark.slot import SlotGroup
    from kleene.spark.worker import task_spec, work_from

    columns = pa.schema({"type": pa.string(), "ts": pa.int64()})
    query = Query("PATTERN SEQ(A a, B b) WITHIN 10", name="pairs")
    spec = task_spec([query], Schema(), columns, [SlotGroup((0,), ("type", "ts"), 0, 1)], settings=CHANGED)
    assert work_from(spec).settings == CHANGED


def test_a_pipeline_file_can_say_all_that_concern_it(tmp_path: Path) -> None:
    from kleene.spark.pipeline.reading import read_pipeline

    (tmp_path / "batch.toml").write_text(PIPELINE)
    (tmp_path / "stream.toml").write_text(PIPELINE.replace("slice_width = 5\n", "") + STREAM)
    batch = dict(leaves(read_pipeline(tmp_path / "batch.toml").settings))
    stream = dict(leaves(read_pipeline(tmp_path / "stream.toml").settings))
    for name, value in leaves(CHANGED):
        if name in NOT_OF_PIPELINES:
            continue
        assert value == (stream if name.startswith("stream.") else batch)[name], name

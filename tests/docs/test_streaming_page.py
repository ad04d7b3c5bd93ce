"""docs/streaming.md: its pipelines and metrics. Its examples run in `tests/users`, on a session with nothing set."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from tests.spark.stream_pipelines import batch

from kleene.pattern.clock import Clock, ClockKind
from kleene.spark.pipeline.prometheus import exposition
from kleene.spark.pipeline.reading import read_pipeline
from kleene.spark.pipeline.stream_places import check_places
from kleene.spark.pipeline.targets import targets_of

PAGE = (Path(__file__).parents[2] / "docs" / "streaming.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


@pytest.fixture
def readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter22")
    return tmp_path


def test_the_pipeline_of_kafka(readings: Path) -> None:
    (readings / "pipeline.toml").write_text(blocks("toml")[1])
    pipeline = read_pipeline("pipeline.toml")
    check_places(pipeline, targets_of(pipeline))
    assert "hunter22" in pipeline.secrets


def test_the_page_names_every_metric() -> None:
    one, totals = batch(Clock(ClockKind.TIMESTAMP, Fraction(1000)))
    names = re.findall(r"^# TYPE (\w+)", exposition(totals, one), re.MULTILINE)
    assert set(re.findall(r"kleene_\w+", blocks("text")[-1])) == set(names)

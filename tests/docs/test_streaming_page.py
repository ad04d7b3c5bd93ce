"""docs/streaming.md: its examples run. What its pipeline prints is tested with the command."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.spark.stream_pipelines import batch

from kleene.pattern.clock import Clock, ClockKind
from kleene.spark.pipeline.prometheus import exposition
from kleene.spark.pipeline.reading import read_pipeline
from kleene.spark.pipeline.stream_places import check_places
from kleene.spark.pipeline.targets import targets_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "streaming.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


@pytest.fixture
def readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter22")
    (tmp_path / "readings").mkdir()
    (tmp_path / "readings" / "first.json").write_text(blocks("json")[0] + "\n")
    return tmp_path


def rows(folder: Path, kind: str) -> int:
    files = [file for file in folder.rglob("part-*") if file.suffix == f".{kind}"]
    if kind == "json":
        return sum(len(file.read_text().splitlines()) for file in files)
    return sum(pq.read_metadata(file).num_rows for file in files)


def test_python(spark: SparkSession, readings: Path) -> None:
    """Paths are those of this machine's folder, whatever Spark's own is."""
    known: dict[str, Any] = {"spark": spark}
    for example in blocks("python"):
        here = re.sub(r'json\("readings"\)', f"json({str(readings / 'readings')!r})", example)
        here = re.sub(r'("path"|"checkpointLocation"), "(\w+)"', rf'\1, "{readings}/\2"', here)
        here = re.sub(r'"(live/[^"]+)"', rf'"{readings}/\1"', here)
        exec(compile(here, "docs/streaming.md", "exec"), known)
        known["stream"].awaitTermination()
    assert rows(readings / "thefts", "parquet") == 1
    assert rows(readings / "live" / "thefts", "parquet") == 1
    assert rows(readings / "live" / "bad", "json") == 1
    assert rows(readings / "live" / "late", "json") == 0


def test_the_pipeline_of_kafka(readings: Path) -> None:
    (readings / "pipeline.toml").write_text(blocks("toml")[1])
    pipeline = read_pipeline("pipeline.toml")
    check_places(pipeline, targets_of(pipeline))
    assert "hunter22" in pipeline.secrets


def test_the_page_names_every_metric() -> None:
    one, totals = batch(Clock(ClockKind.TIMESTAMP, Fraction(1000)))
    names = re.findall(r"^# TYPE (\w+)", exposition(totals, one), re.MULTILINE)
    assert set(re.findall(r"kleene_\w+", blocks("text")[-1])) == set(names)

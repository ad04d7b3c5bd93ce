"""The local session: on the loopback only, and its tasks run this interpreter; that of a cluster runs what is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.pipelines import changed, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_it_listens_on_the_loopback_only(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.ui.enabled") == "false"


def test_tasks_run_this_interpreter(spark: SparkSession) -> None:
    def which(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    found = spark.range(1).mapInArrow(which, "python string").collect()
    assert {row.python for row in found} == {sys.executable}


def test_a_given_setting_goes_before_ours(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_cluster_runs_the_python_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kleene.spark.pipeline.binding import session_for

    def options(builder: Any) -> dict[str, str]:
        return dict(builder._options)

    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", options)
    monkeypatch.setattr("kleene.spark.session.start_jvm", lambda conf: None)
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python/bin/python3")
    spark = '[spark]\nmaster = "spark://host:7077"\nconf = { "spark.executor.memory" = "4g" }\n'
    made: Any = session_for(read(tmp_path, changed(added=spark)))
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python/bin/python3"
    assert (made["spark.master"], made["spark.executor.memory"]) == ("spark://host:7077", "4g")
    assert made["spark.sql.session.timeZone"] == "UTC"
    # Kleene is installed there: nothing is sent.
    assert "spark.archives" not in made
    archived: Any = session_for(read(tmp_path, changed(added=spark + 'archive = "kleene.tar.gz"\n')))
    assert str(tmp_path / "kleene.tar.gz") in archived["spark.archives"]

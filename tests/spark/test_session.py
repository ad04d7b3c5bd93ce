"""The local session: on the loopback only, and its tasks run this interpreter."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

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

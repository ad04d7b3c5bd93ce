"""Buckets are spread evenly over tasks, by the hash that Spark has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kleene.spark.streaming.spreading import murmur3, places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("tasks", [1, 2, 3, 4, 8, 12, 16, 64, 200])
def test_every_task_has_as_many_slots(tasks: int) -> None:
    hashes = murmur3(np.array(places(4 * tasks), np.int32)).astype(np.int64)
    assert set(Counter((hashes % tasks).tolist()).values()) == {4}


def test_slots_have_places_of_their_own_whatever_their_number() -> None:
    many = places(20_000)
    assert len(set(many)) == 20_000
    assert many[:7] == places(7)


def test_the_hash_is_sparks(spark: SparkSession) -> None:
    from pyspark.sql import functions

    values = [0, 1, 2, 42, 9_600, 399_999, 2**31 - 1, -1, -(2**31)]
    rows = spark.createDataFrame([(value,) for value in values], "value int").select(functions.hash("value"))
    assert [row[0] for row in rows.collect()] == murmur3(np.array(values, np.int32)).tolist()

"""Timers of EQL on a Spark stream: they go off by event time, in buckets to which no event comes any more, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.streaming.test_streams import Folder, Gathered

import kleene
from kleene.algebra.eql_query import EqlQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.sparks_own]

LATER = EqlQuery(
    "SELECT * FROM (A a ; B b) @ 5 WHERE FILTER(a.id = b.id), (a, b) OCCURS WITHIN 10", "later", spelling="next"
)
# An A that no B of its own follows within three steps: what is reported three steps after it is cancelled by a B.
MISSED = EqlQuery(r"SELECT * FROM (A a @ 3) \ B b WHERE a.id = b.id", "missed", spelling="next")


def test_a_timer_goes_off_in_a_silent_bucket(spark: SparkSession, tmp_path: Path) -> None:
    folder, found = Folder(spark, tmp_path), Gathered()
    budget = kleene.Budget(state_bytes=1 << 24)
    settings = kleene.Settings(stream=kleene.Stream(delay=0), exchange=kleene.Exchange(buckets=4), budget=budget)

    def run() -> None:
        live = kleene.live(folder.events, [LATER, MISSED], settings=settings)
        assert any("buckets by hash of" in route for route in live.routes), live.routes
        live.start(found, checkpoint=str(tmp_path / "state"), available_now=True).awaitTermination()

    folder.put(("A", 1, 1), ("B", 2, 1), ("A", 4, 2))
    run()
    assert found.of("later") == found.of("missed") == []
    # Only events that no query reads come now. Strictly: what ends at 7 is certain at 8.
    folder.put(("Z", 7, None))
    run()
    assert found.of("later") == []
    folder.put(("Z", 8, None))
    run()
    assert found.of("later") == [(1, 7)]
    assert found.of("missed") == [(4, 7)]

"""Tree plans on a stream: a plan is left for a better one at a micro-batch, and a restart goes on with either."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.streaming.test_streams import Folder

import kleene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.streaming.live import MicroBatch

pytestmark = pytest.mark.slow

EACH, FILES = 5000, 4
QUERY = kleene.query("PATTERN A a ; (B b & C c) ; D d WHERE a.id < d.id AND b.id < c.id WITHIN 30", name="tree")


def phases() -> list[list[tuple[str, int, int]]]:
    """First there are few A, then few D.

    From the middle of a file on: the next file may go to another worker, whose engine begins with a plan of its own.
    """
    draw = random.Random(7)
    made = []
    for number in range(FILES):
        early, late = (1, 20, 20, 20), (20, 20, 20, 1)
        kinds = draw.choices("ABCD", early if number < 2 else late, k=EACH // 2)
        kinds += draw.choices("ABCD", early if number < 1 else late, k=EACH // 2)
        made.append([(kind, number * EACH + place, draw.randrange(8)) for place, kind in enumerate(kinds)])
    return made


def test_a_plan_changes_at_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder, files = Folder(spark, tmp_path), phases()
    settings = kleene.Settings(
        stream=kleene.Stream(delay=0), exchange=kleene.Exchange(buckets=1), adapting=kleene.Adapting(round=256)
    )
    found: dict[int, list[str]] = {}
    changes: dict[int, int] = {}

    def gather(made: MicroBatch, batch: int) -> None:
        found[batch] = [row["match_id"] for row in made.matches("tree").toArrow().to_pylist()]
        changes[batch] = sum(slot.values["plan_changes"] for slot in made.measured)

    def run() -> None:
        live = kleene.live(folder.events, QUERY, settings=settings)
        live.start(gather, checkpoint=str(tmp_path / "state"), available_now=True).awaitTermination()

    for rows in files[:-1]:
        folder.put(*rows)
    run()
    folder.put(*files[-1])
    folder.put(("Z", FILES * EACH + 1000, 0))
    folder.put(("Z", FILES * EACH + 1001, 0))
    run()
    events = [dict(zip(folder.columns.names, row, strict=True)) for rows in files for row in rows]
    expected = [row["match_id"] for row in kleene.match(events, QUERY)]
    assert len(expected) > 1000
    assert sorted(identity for batch in found.values() for identity in batch) == sorted(expected)
    assert sum(changes.values()) > 0
    assert len([batch for batch, ids in found.items() if ids]) >= FILES

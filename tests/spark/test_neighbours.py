"""Lists of queries over several streams on Spark: each query answers as it does alone, in batches and on a stream."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.engine.neighbours import Neighbours, neighbours
from tests.soaking import SOAKING
from tests.spark.comparing import run_together, to_spark
from tests.spark.streaming.sharing import BOUNDED, run_on_stream, waits_for_the_end
from tests.spark.streaming.test_streams import Folder, Gathered

import kleene
from kleene.errors import LimitError, NotOnStreams
from kleene.frames.outputs import Outputs
from kleene.plan.settings import Exchange, Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LISTS = 52 if SOAKING else 3
EXCHANGES = (Exchange(buckets=3, slice_width=4), Exchange(buckets=5, slice_width=9))
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def lists() -> Iterator[list[Neighbours]]:
    """More of them than are needed: some cannot run on a stream. In two of three a neighbour could change something."""
    logging.getLogger("kleene").setLevel(logging.ERROR)
    drawn = (made for seed in range(2000) if (made := neighbours(random.Random(f"spark {seed}"))) is not None)
    chosen: list[Neighbours] = []
    for made in drawn:
        if len(chosen) == 2 * LISTS:
            break
        if len(chosen) % 3 == 2 or made.could_change:
            chosen.append(made)
    yield chosen
    logging.getLogger("kleene").setLevel(logging.NOTSET)


def frames_of(spark: SparkSession, lists: Sequence[Neighbours]) -> list[Mapping[str, DataFrame]]:
    """The streams of all lists, as parts of one data frame for each set of columns: making one takes Spark a while."""
    labelled = [
        _labelled(table, f"{number} {name}") for number, one in enumerate(lists) for name, table in one.streams.items()
    ]
    every = to_spark(spark, pa.concat_tables(labelled, promote_options="default").combine_chunks()).coalesce(1)
    return [
        {
            name: every.where(every["label"] == f"{number} {name}").select(*table.column_names)
            for name, table in one.streams.items()
        }
        for number, one in enumerate(lists)
    ]


def _labelled(table: pa.Table, label: str) -> pa.Table:
    return table.append_column("label", pa.array([label] * table.num_rows, pa.string()))


def _check(lists: Sequence[Neighbours], found: Mapping[tuple[int, str], pa.Table], record: Record, where: str) -> None:
    for number, made in enumerate(lists):
        empty = made.run(*made.queries).matches.slice(0, 0)
        made.check(Outputs(found.get((number, "matches"), empty), found.get((number, "timeouts")), empty))
    changeable = sum(made.could_change for made in lists)
    record("counted", f"{where}: {len(lists)} lists, {changeable} with matches that a neighbour could have changed")
    assert len(lists) >= LISTS - 2
    assert changeable > len(lists) / 2


def test_lists_on_spark(spark: SparkSession, lists: list[Neighbours], record_property: Record) -> None:
    from kleene.spark.batch import prepare

    given = lists[:LISTS]
    prepared = [
        prepare(
            frames, made.queries, schema=made.schema, several=True, settings=Settings(exchange=EXCHANGES[number % 2])
        )
        for number, (made, frames) in enumerate(zip(given, frames_of(spark, given), strict=True))
    ]
    _check(given, run_together(prepared), record_property, "lists of queries over several streams on Spark")


def test_lists_on_a_stream(
    spark: SparkSession, lists: list[Neighbours], tmp_path: Path, record_property: Record
) -> None:
    from kleene.spark.streaming.preparing import PreparedStream, prepare_stream

    usable: list[tuple[Neighbours, PreparedStream]] = []
    for made, frames in zip(lists, frames_of(spark, lists), strict=True):
        if len(usable) == LISTS:
            break
        try:
            one = prepare_stream(frames, made.queries, schema=made.schema, several=True, settings=BOUNDED)
        except (NotOnStreams, LimitError):
            continue
        if not any(map(waits_for_the_end, one.bound)):
            usable.append((made, one))
    found = run_on_stream(spark, [one for _, one in usable], tmp_path, seed=7)
    assert not any(kind == "late" for _, kind in found)
    _check([made for made, _ in usable], found, record_property, "lists of queries over several streams on a stream")


def test_a_fast_stream_makes_no_event_of_a_slow_one_late(spark: SparkSession, tmp_path: Path) -> None:
    """T is read by one query and F by another; F is far ahead of T from the first batch on."""
    columns = pa.schema([("ts", pa.int64()), ("id", pa.int64())])
    (tmp_path / "t").mkdir()
    (tmp_path / "f").mkdir()
    slow, fast = Folder(spark, tmp_path / "t", columns), Folder(spark, tmp_path / "f", columns)
    for moment in (1, 5, 9, 2000):
        slow.put((moment, 1))
        fast.put((1000 + moment, 1))
    queries = [
        kleene.query("PATTERN T a ; T b WITHIN 10", name="slow"),
        kleene.query("PATTERN F a ; F b WITHIN 10", name="fast"),
    ]
    settings = kleene.Settings(stream=kleene.Stream(delay=0))
    found = Gathered()
    running = kleene.live({"T": slow.events, "F": fast.events}, queries, settings=settings).start(
        found, checkpoint=str(tmp_path / "state"), available_now=True
    )
    running.awaitTermination()
    assert found.of("late") == []
    assert found.of("slow") == [(1, 5), (1, 9), (5, 9)]
    assert found.of("fast") == [(1001, 1005), (1001, 1009), (1005, 1009)]

"""A query on Spark beside the same query in process."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import kleene

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kleene.spark.batch import Prepared

KEYED = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"


def event(kind: str | None, ts: int | None, **values: Any) -> dict[str, Any]:
    return {"type": kind, "ts": ts, **values}


EVENTS = pa.Table.from_pylist(
    [
        event("A", 1, id=1, x=1.5),
        event("A", 2, id=2, x=2.5),
        event("B", 3, id=1, x=3.5),
        event("B", 4, id=2, x=4.5),
        event("B", 5, id=None, x=5.5),
        event("A", 6, id=None, x=6.5),
        event("B", 7, id=1, x=7.5),
        event("C", 8, id=1, x=8.5),
    ]
)


def to_spark(spark: SparkSession, table: pa.Table) -> DataFrame:
    from kleene.spark.types import spark_schema

    return spark.createDataFrame(table, spark_schema(table.schema))


def rows(found: Any) -> list[dict[str, Any]]:
    """A result's rows in an order that does not depend on who made it."""
    table = found if isinstance(found, pa.Table) else found.toArrow()
    listed = table.to_pylist()
    if "graph" in table.column_names and "last" in table.column_names:
        # Which rows share a graph depends on who made them; what they unfold to does not.
        listed = [{**row, "graph": list(kleene.decompress([row], within=listed))} for row in listed]
    return sorted(listed, key=repr)


def check_same(spark: SparkSession, events: Any, query: Any, **options: Any) -> list[dict[str, Any]]:
    """All outputs are the same on Spark and in process; the matches."""
    given = {name: to_spark(spark, table) for name, table in events.items()} if isinstance(events, Mapping) else None
    here = kleene.outputs(events, query, **options)
    there = kleene.outputs(to_spark(spark, events) if given is None else given, query, **options)
    assert there.matches.columns == here.matches.column_names
    found = rows(there.matches)
    assert found == rows(here.matches)
    assert (there.timeouts is None) == (here.timeouts is None)
    if here.timeouts is not None:
        assert rows(there.timeouts) == rows(here.timeouts)
    # On Spark it is not known before the run that there is nothing.
    assert there.compressed is not None or here.compressed is None
    if there.compressed is not None:
        assert rows(there.compressed) == ([] if here.compressed is None else rows(here.compressed))
    assert sorted(row["reason"] for row in rows(there.bad_rows)) == sorted(here.bad_rows.column("reason").to_pylist())
    return found


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)


def random_events(seed: int, count: int = 300) -> pa.Table:
    """Many simultaneous and some identical events, NULL keys and NULL values, and a few rows that are no events."""
    chance = random.Random(seed)
    made = [
        event(
            chance.choice(["A", "B", "C", None]),
            chance.choice([None, *[chance.randrange(count // 2)] * 40]),
            id=chance.choice([None, *range(9)]),
            city=chance.choice(["x", "y"]),
            v=chance.choice([None, 1, 2, 3]),
        )
        for _ in range(count)
    ]
    return pa.Table.from_pylist(made)


# Many small runs in one job ----------------------------------------------------------------------------------------

# Slots of a run; none has as many.
ROOM = 1 << 16


def run_together(prepared: Sequence[Prepared]) -> dict[tuple[int, str], pa.Table]:
    """What the first query of each run gives, by number and kind, from one job: each run has slots of its own."""
    from pyspark.sql import functions

    from kleene.frames.arrow import fitted
    from kleene.spark.division import exchanged
    from kleene.spark.packing import from_bytes

    task_specs = [made.task_spec() for made in prepared]
    frames = [
        made.packed.select((functions.col("slot") + number * ROOM).alias("slot"), "begin", "events")
        for number, made in enumerate(prepared)
    ]

    def on_packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kleene.spark.packing import to_bytes, unpack
        from kleene.spark.slot import slot_outputs
        from kleene.spark.worker import work_from

        works = {}
        for slot, pieces in unpack(batches):
            number, own = divmod(slot, ROOM)
            if number not in works:
                works[number] = work_from(task_specs[number])
            for chunk in slot_outputs(works[number], own, pieces):
                if chunk.rows is not None and chunk.query == 0:
                    rows = pa.array([to_bytes(chunk.rows)], pa.binary())
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([number]), pa.array([chunk.kind]), rows], ["n", "k", "r"]
                    )

    packed: DataFrame = reduce(lambda left, right: left.union(right), frames)
    found: dict[tuple[int, str], list[pa.Table]] = {}
    for row in exchanged(packed).mapInArrow(on_packed, "n bigint, k string, r binary").toArrow().to_pylist():
        table = from_bytes(row["r"])
        if row["k"] == "matches" and prepared[row["n"]].several:
            # As a task hands them to Spark: those of one slot lack what queries of others return.
            table = fitted(table, prepared[row["n"]].nothing.matches.schema)
        found.setdefault((row["n"], row["k"]), []).append(table)
    return {key: selected(pa.concat_tables(tables)) for key, tables in found.items()}


def selected(table: pa.Table) -> pa.Table:
    """What the task that sees the matches of all slices leaves of them, where there is one."""
    from kleene.spark.slot import RANK
    from kleene.spark.worker import chosen

    if RANK not in table.column_names:
        return table
    ordered = table.sort_by([("end", "ascending"), ("start", "descending"), (RANK, "ascending")])
    names = table.column_names
    batches = chosen(iter(ordered.to_batches()), names.index("start"), names.index("end"))
    return pa.Table.from_batches(list(batches), pa.schema([field for field in table.schema if field.name != RANK]))

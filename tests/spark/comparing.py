"""A query on Spark beside the same query in process."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import kleene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

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
    return sorted(table.to_pylist(), key=repr)


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

"""Several queries in one pass over the data, each with outputs of its own."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.spark.comparing import random_events, rows, to_spark

import kleene
from kleene.errors import UnknownAttribute, UnknownKind
from kleene.plan.settings import Budget, Exchange, Policy, Settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sparks_own

QUERIES = [
    kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 20 TIMEOUTS INTO Late", name="by id"),
    kleene.query(
        "PATTERN SEQ(A a, C c) WHERE [id, city] and a.v > 1 WITHIN 30 RETURN a.v AS v, c.ts AS at", name="both"
    ),
    kleene.query("PATTERN SEQ(B b, C c) WHERE [city] WITHIN 5", name="by city"),
    kleene.query("PATTERN SEQ(A a, B b) WITHIN 4 OUTPUT NON_OVERLAP", name="sliced"),
    kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9 RETURN a.id AS id INTO Pair"),
    kleene.query("PATTERN SEQ(Pair p, C c) WHERE [id] WITHIN 20", name="after"),
]


def test_every_query_gives_what_it_gives_alone(spark: SparkSession) -> None:
    from kleene.spark.batch_run import together

    events = random_events(seed=8)
    run = together(to_spark(spark, events), QUERIES, settings=Settings(exchange=Exchange(buckets=5, slice_width=30)))
    counts = run.run()
    for query in QUERIES[:5]:
        here = kleene.outputs(events, query)
        name = run.queries[QUERIES.index(query)].name
        assert rows(run.matches(name)) == rows(here.matches)
        if isinstance(query, kleene.Query) and query.tree.output is None:
            assert counts.matches[name] == here.matches.num_rows
        assert here.matches.num_rows
    late = run.timeouts("by id")
    assert late is not None
    assert rows(late) == rows(kleene.outputs(events, QUERIES[0]).timeouts)
    assert run.timeouts("both") is None
    assert run.matches("after").count() == counts.matches["after"] > 0
    assert run.bad_rows.count() == kleene.outputs(events, QUERIES[0]).bad_rows.num_rows
    assert counts.dropped == 0
    assert counts.kept > events.num_rows  # several groups need the same events
    run.close()


@pytest.mark.parametrize("before", [None, "false", "true"])
def test_few_events_are_few_tasks_on_200_partitions(spark: SparkSession, before: str | None) -> None:
    """What is kept for the outputs has no 200 partitions, each of which would be a task in Python for each of them."""
    from kleene.spark.batch_run import together

    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set("spark.sql.shuffle.partitions", "200")
    name = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
    if before is not None:
        session.conf.set(name, before)
    settings = {row["key"]: row["value"] for row in session.sql("SET").collect()}
    run = together(to_spark(session, random_events(seed=8)), QUERIES[:2])
    assert run.run().matches["by id"] > 0
    assert run._envelopes.rdd.getNumPartitions() < 10
    run.close()
    left = {row["key"]: row["value"] for row in session.sql("SET").collect()}
    # Spark has no way to say whether a setting that has its usual value was set.
    assert {**settings, name: session.conf.get(name)} == {**left, name: before or "false"}


def test_the_data_are_read_once(spark: SparkSession, tmp_path: Path) -> None:
    from kleene.spark.batch_run import together

    pq.write_table(random_events(seed=8), tmp_path / "events.parquet")
    run = together(spark.read.parquet(str(tmp_path)), QUERIES[:3])
    shown = io.StringIO()
    with redirect_stdout(shown):
        run.matches("by id").explain()
    assert shown.getvalue().count("FileScan parquet") == 1
    assert shown.getvalue().count("Exchange hashpartitioning(slot") == 1
    run.close()


def test_what_is_dropped_over_a_budget_is_counted(spark: SparkSession) -> None:
    from kleene.spark.batch_run import together

    settings = Settings(budget=Budget(matches_per_event=2, policy=Policy.DROP_OLDEST))
    query = kleene.query("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [id] } WITHIN 30", name="crowd")
    run = together(to_spark(spark, random_events(seed=8)), [query], settings=settings)
    counts = run.run()
    assert counts.dropped > 0
    assert counts.matches["crowd"] == run.matches("crowd").count() > 0
    run.close()


def test_what_is_wrong_is_said_before_anything_runs(spark: SparkSession) -> None:
    from kleene.spark.batch_run import together

    events = to_spark(spark, random_events(seed=8))
    with pytest.raises(UnknownAttribute):
        together(events, [*QUERIES, kleene.query("PATTERN A a WHERE a.nope = 1")])
    with pytest.raises(UnknownKind, match="two queries are called `by id`"):
        together(events, [QUERIES[0], QUERIES[0]])
    run = together(events, QUERIES[:2])
    with pytest.raises(UnknownKind, match="no query is called `by-id`"):
        run.matches("by-id")
    run.close()

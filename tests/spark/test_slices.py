"""Time cut into slices: where, and that no match is lost or doubled at an edge."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from tests.soaking import some_of
from tests.spark.comparing import check_same, event, to_spark

import kleene
from kleene.errors import BadDivision
from kleene.plan.settings import Budget, Exchange, Policy, Settings
from kleene.spark.packing import Slices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Which slices an event goes to -------------------------------------------------------------------------------------


def spread(slices: Slices, *events: tuple[int, int]) -> list[list[int]]:
    start, end = (np.array(times, np.int64) for times in zip(*events, strict=True))
    rows, numbers = slices.spread(start, end)
    return [numbers[rows == row].tolist() for row in range(len(events))]


def test_an_event_goes_to_its_slice_and_to_those_that_it_is_near() -> None:
    slices = Slices((10, 20, 30), before=0, after=5)
    assert spread(slices, (3, 3), (12, 12), (16, 16), (25, 25), (99, 99)) == [[0], [0, 1], [1], [1, 2], [3]]
    slices = Slices((10, 20, 30), before=5, after=5)
    assert spread(slices, (3, 3), (7, 7), (12, 12), (18, 18)) == [[0], [0, 1], [0, 1], [1, 2]]


def test_one_that_lasts_must_lie_within() -> None:
    slices = Slices((10, 20, 30), before=0, after=5)
    assert spread(slices, (8, 12), (8, 28), (0, 99)) == [[0], [], []]
    # Nothing is around, so nothing can be missed.
    assert spread(Slices((10, 20, 30), before=0, after=0), (8, 12), (8, 28), (0, 99)) == [[1], [2], [3]]


def test_the_ends_of_time_are_no_obstacle() -> None:
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    slices = Slices((0,), before=2**62, after=2**62)
    assert spread(slices, (least, least), (-1, -1), (most, most)) == [[0], [0, 1], [1]]


def test_neighbours_go_by_number() -> None:
    slices = Slices((10, 20), before=1, after=1, neighbours=True)
    assert spread(slices, (0, 0), (10, 10), (25, 25)) == [[0, 1], [0, 1, 2], [1, 2]]


# On Spark ----------------------------------------------------------------------------------------------------------


def stream(count: int, seed: int, *, span: int) -> pa.Table:
    """Events in bursts, many of them simultaneous, in no order."""
    chance = random.Random(seed)
    bursts = [chance.randrange(span) for _ in range(12)]
    rows = [
        event(
            chance.choice("ABCX"),
            chance.choice([chance.randrange(span), chance.choice(bursts) + chance.randrange(5)]),
            id=chance.randrange(4),
            v=chance.choice([None, 1, 2, 3]),
        )
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows)


QUERIES = [
    "PATTERN SEQ(A a, !(C c), B b) WHERE a.v < b.v WITHIN 6",
    "PATTERN !(C c) ; A a ; B b WITHIN 6",
    "PATTERN A a ; B b ; !(C c) WITHIN 6 INCLUSIVE",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [id] } WITHIN 9",
    "PATTERN SEQ(A+ a[], C c) WHERE partition_contiguity { a[i].v >= a[i-1].v } WITHIN 9",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { b[i].v >= b[i-1].v } WITHIN 9",
    "PATTERN SEQ(A a, B b) WITHIN 6 OUTPUT NON_OVERLAP",
    "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { } WITHIN 6 OUTPUT COMPRESSED",
    "PATTERN SEQ(A+ a[], C c) WITHIN 6 OUTPUT COMPRESSED TIMEOUTS INTO Late",
    "PATTERN SEQ(A+ a[], C c) WITHIN 4 EVENTS OUTPUT COMPRESSED TIMEOUTS INTO Late",
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 4 TIMEOUTS INTO Late",
    "PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 4 OUTPUT NON_OVERLAP TIMEOUTS INTO Late",
    "PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 7 EVENTS",
    "PATTERN !(C c) ; A a ; B b WITHIN 5 EVENTS",
    "PATTERN SEQ(A a, B b) WITHIN 5 EVENTS OUTPUT NON_OVERLAP",
    "PATTERN A a & B b WHERE a.v = b.v WITHIN 3",
    "PATTERN A a WHERE a.v > 2",
    "PATTERN SEQ(A a, B b) WHERE a.v = b.v WITHIN 5 RETURN a.ts AS at, b.v * 2 AS twice",
]


@pytest.mark.parametrize("text", some_of(QUERIES, 3))
@pytest.mark.parametrize("width", [1, pytest.param(11, marks=pytest.mark.soak)])
def test_edges(spark: SparkSession, text: str, width: int) -> None:
    settings = Settings(exchange=Exchange(slice_width=width))
    if " EVENTS" in text:
        settings = Settings(exchange=Exchange(slice_width=10 * width))
    assert check_same(spark, stream(250, len(text), span=150), text, settings=settings)


COUNTED = [
    "PATTERN SEQ(A+ a[], C c) WHERE a[i].v >= a[i-1].v WITHIN 9",
    "PATTERN !(B b) ; A+ a[] ; C c WITHIN 9 TIMEOUTS INTO Late",
    "PATTERN SEQ(A a, B b, C c) WITHIN 12 EVENTS",
]


POLICIES = [Policy.DROP_OLDEST, Policy.EMIT_COMPRESSED]


@pytest.mark.parametrize(
    "counted",
    some_of([(text, POLICIES[(place + other) % 2]) for place, text in enumerate(COUNTED) for other in (0, 1)], 3),
)
def test_matches_of_an_event_are_counted_in_one_slice(spark: SparkSession, counted: tuple[str, Policy]) -> None:
    """What a budget leaves out depends on all matches that end with an event, wherever they begin."""
    text, policy = counted
    width = 20 if " EVENTS" in text else 3
    settings = Settings(budget=Budget(matches_per_event=3, policy=policy), exchange=Exchange(slice_width=width))
    table = stream(250, len(text), span=150)
    found = check_same(spark, table, text, settings=settings)
    assert 0 < len(found) < kleene.match(table, text).num_rows


def test_what_is_selected_is_selected_among_what_the_budget_leaves(spark: SparkSession) -> None:
    budget = Budget(matches_per_event=3, policy=Policy.DROP_OLDEST)
    settings = Settings(budget=budget, exchange=Exchange(slice_width=3))
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 9 OUTPUT NON_OVERLAP"
    assert check_same(spark, stream(100, 4, span=90), text, settings=settings)


def test_slices_of_events_that_last(spark: SparkSession) -> None:
    table = stream(200, 3, span=120)
    starts = [max(0, ts - number % 7) for number, ts in enumerate(table.column("ts").to_pylist())]
    table = table.append_column("began", pa.array(starts))
    settings = Settings(exchange=Exchange(slice_width=10))
    schema = kleene.Schema(start="began")
    for text in ("SEQ(A a, B b) WITHIN 9", "SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 12", "A a WHERE a.v > 2"):
        assert check_same(spark, table, f"PATTERN {text}", schema=schema, settings=settings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 9", "4 slices of time, each with 10 after it"),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE a.v = 3 and b.v = 2 WITHIN 5 EVENTS",
            "slices of positions",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_slices_are_chosen_from_the_data(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, text: str, said: str
) -> None:
    rng = np.random.default_rng(5)
    size = 300_000
    table = pa.table(
        {
            "type": pa.array(np.array(["A", "B", "X", "X"])[rng.integers(0, 4, size)]),
            "ts": np.sort(rng.integers(0, 2_000_000, size)),
            "v": rng.integers(0, 10, size),
        }
    )
    with caplog.at_level(logging.INFO, "kleene.spark"):
        found = kleene.match(to_spark(spark, table), text)
    ids = sorted(found.select("match_id").toArrow().column(0).to_pylist())
    assert said in caplog.text
    assert " 1 slices" not in caplog.text
    assert ids == sorted(kleene.match(table, text).column("match_id").to_pylist())
    assert len(ids) > 50


def test_too_many_slices_are_a_mistake(spark: SparkSession) -> None:
    table = pa.table({"type": ["A", "B"], "ts": [0, 10**12]})
    with pytest.raises(BadDivision, match="more than 100,000"):
        kleene.match(
            to_spark(spark, table),
            "PATTERN SEQ(A a, B b) WITHIN 5",
            settings=Settings(exchange=Exchange(slice_width=10)),
        )

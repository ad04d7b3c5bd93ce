"""Queries, bound queries and plans are shared by threads; an engine has one owner."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.batches import bound, in_time_order
from tests.soaking import some_of

import kleene
from kleene.engine.engine import Engine

T = TypeVar("T")
THREADS = 8
TEXTS = [
    "PATTERN SEQ(A a, !(C c), B b) WHERE [id] AND b.x > a.x WITHIN 30",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [id] AND a[i].x > avg(a[..i-1].x) } WITHIN 40",
    "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 40 OUTPUT COMPRESSED",
    "PATTERN SEQ(A a, B* b[], C c) WHERE a.name = c.name WITHIN 30 RETURN a.name AS name, count(b) AS number",
]


@pytest.fixture(autouse=True)
def _hurried() -> Iterator[None]:
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    draw, size = np.random.default_rng(5), 3_000
    return pa.table(
        {
            "type": pa.array(np.array(["A", "B", "C"])[draw.integers(0, 3, size)]),
            "ts": pa.array(np.arange(size)),
            "id": pa.array(draw.integers(0, 5, size)),
            "x": pa.array(draw.random(size)),
            "name": pa.array([f"name {number}" for number in draw.integers(0, 40, size)]),
        }
    )


def at_once(work: Callable[[], T]) -> list[T]:
    """What each of the threads made, which began together."""
    together = Barrier(THREADS)

    def begin() -> T:
        together.wait()
        return work()

    with ThreadPoolExecutor(THREADS) as pool:
        return [begun.result() for begun in [pool.submit(begin) for _ in range(THREADS)]]


@pytest.mark.slow
@pytest.mark.parametrize("text", some_of(TEXTS, 2))
def test_threads_that_match_one_query_at_once_find_the_same(text: str, table: pa.Table) -> None:
    expected = kleene.match(table, text)
    assert expected.num_rows > 100
    for _ in range(3):
        # Nothing of the query is made before the threads ask for it.
        query = kleene.Query(text)
        assert all(found.equals(expected) for found in at_once(partial[Any](kleene.match, table, query)))


@pytest.mark.slow
@pytest.mark.parametrize("text", some_of(TEXTS, 2))
def test_engines_of_one_bound_query_do_not_disturb_each_other(text: str, table: pa.Table) -> None:
    query = bound(text, table)

    def streamed() -> list[str]:
        engine = Engine(query)
        batches = [engine.process(batch, mark) for batch, mark in in_time_order(table, query.schema, 6)]
        tables = [batch.matches for batch in [*batches, engine.finish()] if batch.matches is not None]
        return [row for found in tables for row in found.column(found.column_names[0]).to_pylist()]

    expected = streamed()
    assert len(expected) > 100
    assert all(found == expected for found in at_once(streamed))


@pytest.mark.slow
def test_different_queries_at_once(table: pa.Table) -> None:
    expected = [kleene.match(table, text) for text in TEXTS]

    def every() -> list[pa.Table]:
        return [kleene.match(table, text) for text in TEXTS]

    for found in at_once(every):
        assert all(one.equals(other) for one, other in zip(found, expected, strict=True))

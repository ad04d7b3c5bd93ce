"""Columns of results that stand in memory once: keys and times; and arrays that several executors have together."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import kleene
from kleene.engine.state.memory import are_shared_zeros, shared_zeros
from kleene.testing import reference_match

LINE = "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 30"


def _address(column: pa.ChunkedArray, name: str) -> int:
    return int(column.chunk(0).field(name).buffers()[1].address)


def _dense(size: int = 30) -> pa.Table:
    return pa.table(
        {
            "type": ["ABC"[number % 3] for number in range(size)],
            "ts": list(range(size)),
            "k": [number % 2 for number in range(size)],
        }
    )


def test_a_key_and_the_times_of_a_match_are_those_of_its_events() -> None:
    found = kleene.match(_dense(), LINE)
    assert found.num_rows > 30
    keys = {_address(found[name], "k") for name in ("key", "a", "b", "c")}
    assert len(keys) == 1
    assert found["start"].chunk(0).buffers()[1].address == _address(found["a"], "ts")
    assert found["end"].chunk(0).buffers()[1].address == _address(found["c"], "ts")


@pytest.mark.parametrize("size", [6, 30, 90])
def test_ids_are_the_same_with_fewer_matches_than_events_and_with_more(size: int) -> None:
    """Where matches are more than events, the first event of a match is folded once for all of them."""
    found = kleene.match(_dense(size), LINE)
    assert (found.num_rows > size) is (size > 6)
    assert found["match_id"].to_pylist() == reference_match(_dense(size), kleene.query(LINE)).ids


def test_a_key_of_reals_is_not_shared_since_zeros_differ() -> None:
    events = pa.table({"type": ["A", "B"], "ts": [1, 2], "k": [-0.0, 0.0]})
    (found,) = kleene.match(events, "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10").to_pylist()
    assert [math.copysign(1.0, found[name]["k"]) for name in "ab"] == [-1.0, 1.0]


def test_matches_that_end_together_are_put_in_order() -> None:
    """The last events are simultaneous: the one with the later start comes first, whichever is numbered first."""
    events = pa.table({"type": ["A", "A", "B", "B"], "ts": [1, 2, 5, 5], "k": [7, 8, 7, 8], "x": ["b", "a", "p", "q"]})
    query = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"
    found = kleene.match(events, query)
    assert found["start"].to_pylist() == [2, 1]
    assert found["match_id"].to_pylist() == reference_match(events, kleene.query(query)).ids


def test_what_is_said_of_a_column_is_that_of_the_table_that_came() -> None:
    """Graphs of queries are remembered by columns, which Arrow calls equal whatever is said of them."""
    query = kleene.query("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10")
    for said in (b"first", b"second"):
        schema = pa.schema(
            [("type", pa.string()), ("ts", pa.int64()), pa.field("k", pa.int64(), metadata={b"is": said})]
        )
        found = kleene.match(pa.table({"type": ["A", "B"], "ts": [1, 2], "k": [3, 3]}, schema=schema), query)
        assert found.schema.field("a").type.field("k").metadata == {b"is": said}


def test_nobody_writes_to_shared_zeros() -> None:
    zeros = shared_zeros(1000)
    kleene.match(_dense(900), LINE)
    kleene.match(_dense(900), "PATTERN SEQ(A a, B+ b[], C c) WHERE [k] WITHIN 10")
    kleene.match(_dense(900), "PATTERN (A a & B b) WITHIN 5")
    assert are_shared_zeros(shared_zeros(900))
    assert not zeros.any()
    assert not shared_zeros(1000).any()

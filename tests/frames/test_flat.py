"""Flat results: one row an event, in every kind of table, with the columns that a reader of CSV can hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.errors import UnusableColumn

EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "C", "B"],
        "ts": [1, 2, 3, 4, 5],
        "id": [7, 7, 7, 8, 8],
        "start": [0.5, 1.5, None, 3.5, 4.5],
    }
)
RUNS = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { [id] } WITHIN 10"


def flat(query: Any, events: Any = EVENTS) -> Any:
    return kleene.flat(kleene.match(events, query))


def test_one_row_an_event_in_the_order_of_the_pattern() -> None:
    made = flat(kleene.query(RUNS, name="runs"))
    assert made.column_names == [
        *("match_id", "query", "start", "end", "key_id", "variable", "position"),
        *("type", "ts", "id", "event_start"),
    ]
    rows = [(row["start"], row["end"], row["variable"], row["position"], row["ts"]) for row in made.to_pylist()]
    assert sorted(rows) == [
        (1, 3, "a", 1, 1),
        (1, 3, "a", 2, 2),
        (1, 3, "b", 1, 3),
        (2, 3, "a", 1, 2),
        (2, 3, "b", 1, 3),
    ]
    assert {row["query"] for row in made.to_pylist()} == {"runs"}
    assert {row["key_id"] for row in made.to_pylist()} == {7}
    assert [row["event_start"] for row in made.to_pylist() if row["ts"] == 3] == [None, None]
    # Events of one match stand together.
    ids = made.column("match_id").to_pylist()
    assert ids == sorted(ids, key=ids.index)


def test_columns_that_a_variables_type_lacks_are_null() -> None:
    declared = "DECLARE TYPE A (id int) DECLARE TYPE B (start float) "
    made = flat(declared + "PATTERN SEQ(A a, B b) WITHIN 2").to_pylist()
    assert [(row["variable"], row["id"], row["event_start"]) for row in made] == [("a", 7, None), ("b", None, None)]


def test_absent_variables_have_no_rows() -> None:
    made = flat("PATTERN SEQ(C c, A? a, B* b[]) WITHIN 10").to_pylist()
    assert sorted((row["end"], row["variable"]) for row in made) == [(4, "c"), (5, "b"), (5, "c")]


def test_returned_values_are_flat_already() -> None:
    made = flat("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 RETURN a.ts AS first, b.start AS began")
    assert made.column_names == ["match_id", "query", "start", "end", "key_id", "first", "began"]
    assert [row["first"] for row in made.to_pylist()] == [2]


def test_returned_events_repeat_the_returned_values() -> None:
    made = flat("PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { [id] } RETURN a, count(a) AS position")
    assert made.column_names[4:8] == ["key_id", "match_position", "variable", "position"]
    rows = sorted((row["start"], row["match_position"], row["position"], row["ts"]) for row in made.to_pylist())
    assert rows == [(1, 2, 1, 1), (1, 2, 2, 2), (2, 1, 1, 2)]


def test_a_match_that_shows_no_event_keeps_a_row() -> None:
    made = flat("PATTERN SEQ(C c, A? a, B b) RETURN a, c.ts AS first").to_pylist()
    assert [(row["first"], row["variable"], row["position"], row["ts"]) for row in made] == [(4, None, None, None)]


def test_several_queries_in_one_table() -> None:
    both = [kleene.query(RUNS, name="runs"), kleene.query("PATTERN C c", name="ends")]
    rows = [(row["query"], row["start"], row["variable"], row["position"], row["ts"]) for row in flat(both).to_pylist()]
    assert sorted(rows) == [
        ("ends", 4, "c", 1, 4),
        *[("runs", 1, "a", 1, 1), ("runs", 1, "a", 2, 2), ("runs", 1, "b", 1, 3)],
        *[("runs", 2, "a", 1, 2), ("runs", 2, "b", 1, 3)],
    ]


def test_a_compressed_result_keeps_its_counts() -> None:
    (row,) = flat("PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 3 OUTPUT COMPRESSED").to_pylist()
    assert (row["count"], row["variable"], row["ts"]) == ("3", "last", 3)
    assert "graph" not in row


def test_timeouts() -> None:
    late = kleene.outputs(EVENTS, "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 2 TIMEOUTS INTO late").timeouts
    made = kleene.flat(late)
    assert made.column_names[:7] == ["stream", "query", "start", "end", "closed", "key_id", "reached"]
    assert sorted((row["reached"], row["variable"], row["ts"]) for row in made.to_pylist()) == [
        (1, "a", 1),
        (1, "a", 2),
    ]


def test_every_kind_comes_back_as_it_was() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = flat(RUNS).to_pylist()
    assert flat(RUNS, EVENTS.to_pylist()) == expected
    assert flat(RUNS, polars.from_arrow(EVENTS)).to_dicts() == expected
    frame = flat(RUNS, EVENTS.to_pandas())
    assert isinstance(frame, pandas.DataFrame)
    assert frame[["variable", "position", "ts"]].to_dict("records") == [
        {name: row[name] for name in ("variable", "position", "ts")} for row in expected
    ]


@pytest.mark.parametrize("kind", ["arrow", "rows", "polars"])
def test_no_match_gives_no_row(kind: str) -> None:
    polars = pytest.importorskip("polars")
    events = {"arrow": EVENTS, "rows": EVENTS.to_pylist(), "polars": polars.from_arrow(EVENTS)}[kind]
    made = flat("PATTERN SEQ(C c, A a) WHERE [id] WITHIN 1", events)
    assert len(made) == 0


def test_one_name_of_two_types_is_an_error() -> None:
    table = pa.table({"match_id": ["m"], "a": [{"x": 1}], "b": [{"x": "1"}]})
    with pytest.raises(UnusableColumn, match="`x` is int64 in one variable and string in another"):
        kleene.flat(table)


def test_what_several_queries_return_but_for_whole_events() -> None:
    gaps = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 RETURN b.ts - a.ts AS gap, a", name="gaps")
    made = flat([gaps, kleene.query("PATTERN C c RETURN c.id AS gap", name="c"), kleene.query("PATTERN C c", name="x")])
    assert [name for name in made.column_names if "gap" in name] == ["gaps_gap", "c_gap"]
    shown = [(row["query"], row["gaps_gap"], row["c_gap"], row["variable"]) for row in made.to_pylist()]
    assert shown == [
        ("gaps", 1, None, "a"),
        ("gaps", 1, None, "b"),
        ("gaps", 2, None, "a"),
        ("gaps", 2, None, "b"),
        ("c", None, 8, "c"),
        ("x", None, None, "c"),
    ]

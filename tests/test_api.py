"""The public face: kinds in and out, streams, parameters, and what bad input gets."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kleene
from kleene.errors import (
    BadDeclaration,
    BadParameter,
    BadTimeColumn,
    BudgetExceeded,
    KleeneError,
    MissingColumn,
    MissingStream,
    ReservedName,
    TypeMismatch,
    UnknownKind,
    UnknownSpelling,
    UnusableColumn,
)

ROWS = [
    {"type": "A", "ts": 1, "id": 7, "x": 1.5},
    {"type": "B", "ts": 2, "id": 7, "x": 2.5},
    {"type": "B", "ts": 3, "id": 8, "x": 3.5},
]
QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"


@pytest.mark.parametrize(
    "events",
    [ROWS, pa.Table.from_pylist(ROWS), pa.RecordBatch.from_pylist(ROWS), pd.DataFrame(ROWS), pl.DataFrame(ROWS)],
    ids=["rows", "table", "batch", "pandas", "polars"],
)
def test_the_same_kind_comes_out(events: Any) -> None:
    found = kleene.match(events, QUERY)
    # Of a list it is one that a notebook can show.
    assert isinstance(found, pa.Table if isinstance(events, pa.RecordBatch) else type(events))
    listed = (
        found
        if isinstance(found, list)
        else pa.table(found).to_pylist()
        if not hasattr(found, "to_dicts")
        else found.to_dicts()
    )
    if isinstance(found, pd.DataFrame):
        listed = found.to_dict("records")
    assert len(listed) == 1
    assert listed[0]["key"] == {"id": 7}
    assert listed[0]["b"]["x"] == 2.5
    assert listed[0]["match_id"] == kleene.match(ROWS, QUERY)[0]["match_id"]


def test_a_lazy_frame_is_collected() -> None:
    assert kleene.match(pl.DataFrame(ROWS).lazy(), QUERY).height == 1


def test_order_of_rows_and_columns_does_not_matter() -> None:
    turned = [dict(reversed(row.items())) for row in reversed(ROWS)]
    assert [row["match_id"] for row in kleene.match(turned, QUERY)] == [
        row["match_id"] for row in kleene.match(ROWS, QUERY)
    ]


def test_integers_that_became_floats_keep_their_ids() -> None:
    frame = pd.DataFrame(ROWS).astype({"id": "float64"})
    assert kleene.match(frame, QUERY)["match_id"].tolist() == [kleene.match(ROWS, QUERY)[0]["match_id"]]


@pytest.mark.parametrize(
    "events",
    [
        [],
        pd.DataFrame({"type": [], "ts": [], "id": []}),
        pl.DataFrame(schema={"type": pl.String, "ts": pl.Int64, "id": pl.Int64}),
        pa.table({"type": pa.array([], pa.string()), "ts": pa.array([], pa.int64()), "id": pa.array([], pa.int64())}),
    ],
    ids=["rows", "pandas", "polars", "arrow"],
)
def test_no_events_give_no_matches_in_the_right_columns(events: Any) -> None:
    query = "DECLARE TYPE A (id int) DECLARE TYPE B (id int) " + QUERY
    found = kleene.match(events, query)
    assert len(found) == 0
    if not isinstance(found, list):
        names = found.column_names if isinstance(found, pa.Table) else list(found.columns)
        assert names == ["match_id", "query", "start", "end", "key", "a", "b"]


def test_streams_by_name() -> None:
    shelf, till = [{"ts": 1, "tag": 7}, {"ts": 2, "tag": 8}], [{"ts": 5, "tag": 7, "lane": 3}]
    found = kleene.match({"Shelf": shelf, "Exit": till}, "PATTERN SEQ(Shelf a, Exit b) WHERE [tag]")
    assert [(row["a"]["tag"], row["b"]["lane"]) for row in found] == [(7, 3)]
    assert "lane" not in found[0]["a"], "a stream's columns are its type's attributes"


def test_streams_that_the_query_does_not_name_break_no_contiguity() -> None:
    streams = {"A": [{"ts": 1}], "Noise": [{"ts": 2}], "B": [{"ts": 3}]}
    text = "PATTERN SEQ(A a, B b) WHERE strict_contiguity { }"
    assert len(kleene.match(streams, text)) == 1
    together = [{"type": name, **row} for name, rows in streams.items() for row in rows]
    assert kleene.match(together, text) == []


def test_a_typed_stream_beside_an_untyped_one() -> None:
    streams = {"S": [{"type": "A", "ts": 1}], "B": [{"ts": 2}]}
    assert len(kleene.match(streams, "PATTERN SEQ(A a, B b)")) == 1


def test_classes_of_the_schema_name_streams() -> None:
    schema = kleene.Schema(classes={"Big": "A WHERE x > :low"})
    found = kleene.match(
        {"A": [{"ts": 1, "x": 5}, {"ts": 2, "x": 1}]}, "PATTERN Big b", schema=schema, params={"low": 3}
    )
    assert [row["b"]["x"] for row in found] == [5]


def test_what_streams_can_get_wrong() -> None:
    with pytest.raises(MissingStream, match="no stream `B`"):
        kleene.match({"A": [{"ts": 1}]}, "PATTERN SEQ(A a, B b)")
    with pytest.raises(MissingColumn, match="stream B has no time column"):
        kleene.match({"A": [{"ts": 1}], "B": [{"x": 1}]}, "PATTERN SEQ(A a, B b)")
    with pytest.raises(UnusableColumn, match="int64 in A, string in B"):
        kleene.match({"A": [{"ts": 1, "x": 1}], "B": [{"ts": 2, "x": "s"}]}, "PATTERN SEQ(A a, B b)")


def test_rows_without_a_time_are_set_aside() -> None:
    made = kleene.outputs([*ROWS, {"type": "A"}], QUERY)
    assert len(made.matches) == 1
    assert [(row["row"], row["reason"]) for row in made.bad_rows] == [(3, "no time: `ts` is NULL")]


def test_timeouts_say_how_far_a_run_came() -> None:
    made = kleene.outputs(ROWS, "PATTERN SEQ(A a, B b, C c) WITHIN 10 TIMEOUTS INTO Late")
    assert [(row["stream"], row["reached"], row["b"]["ts"], row["c"]) for row in made.timeouts] == [
        ("Late", 2, 2, None)
    ]
    assert kleene.outputs(ROWS, QUERY).timeouts is None


def test_several_queries_in_one_table() -> None:
    named = kleene.query("PATTERN B b", name="every b")
    found = kleene.match(ROWS, [QUERY, named])
    assert [row["query"] for row in found].count("every b") == 2
    assert found[0]["events"][1]["variable"] == "b"
    with pytest.raises(UnknownKind, match="no query"):
        kleene.match(ROWS, [])


def test_one_query_feeds_another() -> None:
    maker = "PATTERN SEQ(A a, B b) RETURN a.id AS who, b.x - a.x AS gain INTO Pair"
    reader = kleene.query("PATTERN SEQ(Pair p, B c) WHERE p.gain < c.x", name="after")
    rows = [row for row in kleene.match(ROWS, [maker, reader]) if row["query"] == "after"]
    assert [(row["start"], row["end"]) for row in rows] == [(1, 3)]
    assert rows[0]["events"][0]["event"]["gain"] == 1.0


def test_returned_times_keep_their_type() -> None:
    at = [datetime(2024, 1, 1, 8), datetime(2024, 1, 1, 9)]
    table = pa.table({"type": ["A", "B"], "ts": pa.array(at, pa.timestamp("ns"))})
    where = "b.ts - a.ts = 1 hour AND a.ts > TIMESTAMP '2024-01-01'"
    text = f"PATTERN SEQ(A a, B b) WHERE {where} RETURN a.ts, b.ts - a.ts AS gap, a"
    found = kleene.match(table, text)
    assert found["a_ts"].type == pa.timestamp("ns")
    assert found["gap"].to_pylist()[0].total_seconds() == 3600
    assert kleene.match(table.to_pandas(), text)["a"][0]["ts"] == pd.Timestamp(at[0])


@pytest.mark.parametrize("value", [2, np.int64(2), np.float32(2.0)])
def test_parameters_may_come_from_numpy(value: object) -> None:
    assert len(kleene.match(ROWS, "PATTERN B b WHERE b.x > :x", params={"x": value})) == 2


def test_parameters_may_be_lists_and_dates() -> None:
    assert len(kleene.match(ROWS, "PATTERN B b WHERE b.id IN :ids", params={"ids": [7, 9]})) == 1
    assert len(kleene.match(ROWS, "PATTERN B b WHERE b.id NOT IN (:ids)", params={"ids": (7, 9)})) == 1
    dated = [{"type": "A", "ts": 1, "day": datetime(2024, 5, 1)}]
    assert len(kleene.match(dated, "PATTERN A a WHERE a.day = :day", params={"day": date(2024, 5, 1)})) == 1


def test_parameters_that_the_text_does_not_use_change_no_id() -> None:
    first, second = "PATTERN B b WHERE b.x > :x", "PATTERN A a WHERE a.x > :y"
    alone = kleene.match(ROWS, [first], params={"x": 3})[0]["match_id"]
    assert alone in {row["match_id"] for row in kleene.match(ROWS, [first, second], params={"x": 3, "y": 1})}


@pytest.mark.parametrize(
    ("params", "error"), [({}, BadParameter), ({"w": float("nan")}, BadParameter), ({"w": "soon"}, BadParameter)]
)
def test_windows_from_unusable_parameters(params: dict[str, object], error: type[KleeneError]) -> None:
    with pytest.raises(error):
        kleene.match(ROWS, "PATTERN SEQ(A a, B b) WITHIN :w", params=params)


def test_what_was_declared_must_be_what_is_there() -> None:
    at = pa.array([0, 60_000_000], pa.timestamp("us"))
    table = pa.table({"type": ["A", "B"], "ts": at, "x": [1, 2]})
    five = "PATTERN SEQ(A a, B b) WITHIN 5 seconds"
    assert kleene.match(table, f"DECLARE STREAM (time ts timestamp) {five}").num_rows == 0
    # Of timestamps a tick is what DUR counts; it changes no window.
    assert kleene.match(table, f"DECLARE STREAM (tick 1 second) {five}").num_rows == 0
    with pytest.raises(BadTimeColumn, match="declared to hold integer ticks"):
        kleene.match(table, f"DECLARE STREAM (time ts int) {five}")
    with pytest.raises(BadTimeColumn, match="declared to hold timestamps"):
        kleene.match(ROWS, "DECLARE STREAM (time ts timestamp) PATTERN A a")
    with pytest.raises(BadDeclaration, match="declares `x` as string, but the column holds int"):
        kleene.match(table, "DECLARE TYPE A (x string) PATTERN A a WHERE a.x = '5'")
    with pytest.raises(MissingColumn, match="declares `z`"):
        kleene.match(table, "DECLARE TYPE A (z int) PATTERN A a")


def test_rows_may_leave_out_declared_attributes() -> None:
    assert len(kleene.match(ROWS, "DECLARE TYPE A (z int) PATTERN A a WHERE a.z IS NULL")) == 1


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (pa.table({"type": ["A"], "at": [1]}), MissingColumn),
        (pa.table({"kind": ["A"], "ts": [1]}), MissingColumn),
        (pa.table({"type": ["A"], "ts": [1.5]}), BadTimeColumn),
        (pa.table({"type": ["A"], "ts": pa.array([2**63], pa.uint64())}), BadTimeColumn),
        (pa.table([["A"], [1], [2]], names=["type", "ts", "ts"]), UnusableColumn),
    ],
)
def test_columns_that_cannot_serve(table: pa.Table, error: type[KleeneError]) -> None:
    with pytest.raises(error):
        kleene.match(table, "PATTERN A a")


def test_names_that_results_need() -> None:
    with pytest.raises(ReservedName):
        kleene.match(ROWS, "PATTERN A a RETURN a.ts AS ts INTO S")
    with pytest.raises(ReservedName):
        kleene.match(ROWS, "PATTERN A reached WITHIN 5 TIMEOUTS INTO L")


def test_equivalence_tests_are_typed() -> None:
    with pytest.raises(TypeMismatch):
        kleene.query("DECLARE TYPE A (x int) DECLARE TYPE B (x string) PATTERN SEQ(A a, B b) WHERE [x]").bind()


def test_what_is_no_query_and_what_are_no_events() -> None:
    with pytest.raises(UnknownSpelling):
        kleene.query(5)  # type: ignore[arg-type]
    with pytest.raises(UnknownKind):
        kleene.match("events.csv", QUERY)


def test_a_pattern_that_explodes_ends_in_a_budget_error() -> None:
    rows = [{"type": "A", "ts": n} for n in range(40)] + [{"type": "B", "ts": 99}]
    with pytest.raises(BudgetExceeded, match="matches end with one event"):
        kleene.match(rows, "PATTERN SEQ(A+ a[], B b)")


def test_events_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    secret = [{"type": "A", "ts": None, "card": "4111-1111"}, {"type": "A", "ts": 1, "card": "4111-1111"}]
    with caplog.at_level("DEBUG", logger="kleene"):
        kleene.match(secret, "PATTERN ANY(A, B) a WHERE a.card = 'x'")
    assert "set aside" in caplog.text
    assert "4111" not in caplog.text


def test_a_slow_run_is_announced(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", logger="kleene"):
        wide = " & ".join(f"A a{number}" for number in range(61))
        kleene.match(ROWS, kleene.query(f"PATTERN {wide}", name="both"))
    (said,) = [record for record in caplog.records if "reference evaluator" in record.message]
    assert (said.levelname, said.message.split(":")[0]) == (
        "WARNING",
        "`both` runs on the reference evaluator, which is slow",
    )


def test_queries_of_either_class_are_queries() -> None:
    from kleene.pattern import Query

    plain = Query(QUERY)
    assert kleene.match(ROWS, plain) == kleene.match(ROWS, kleene.query(QUERY)) == kleene.match(ROWS, QUERY)
    assert kleene.explain(plain).text == kleene.query(QUERY).explain().text
    assert kleene.match(ROWS, plain, params={}) == kleene.match(ROWS, QUERY)


def test_a_schema_can_be_inferred() -> None:
    table = pa.table({"kind": ["A"], "at": pa.array([0], pa.timestamp("ms", "UTC")), "x": [1.5]})
    for given in (table, table.schema, pd.DataFrame({"kind": ["A"], "at": pd.to_datetime([0], utc=True), "x": [1.5]})):
        schema = kleene.infer_schema(given, type="kind", time="at")
        assert schema.columns is not None
        assert schema.columns["x"].name == "FLOAT"
        assert schema.clock.zoned

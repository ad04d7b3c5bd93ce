"""What Spark drops before a row reaches Python, no query could use: every operator with every type, at the edges."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.soaking import SOAKING
from tests.spark.comparing import setting, to_spark

import kleene
from kleene.frames.arrow import schema_on
from kleene.pattern.schema import Schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOMENT = datetime(2024, 3, 31, 1, 30, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [0, 1, -1, 127, -128]),
    "int": (pa.int32(), [0, 7, -7, 2**31 - 1, -(2**31)]),
    "long": (pa.int64(), [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "real": (pa.float32(), [0.0, -0.0, 1.5, 0.1, float("nan"), float("inf")]),
    "double": (pa.float64(), [0.0, -0.0, 1.5, 0.1, float(2**53), float("nan"), float("inf"), float("-inf")]),
    "text": (pa.string(), ["", "a", "A", "ab", "é", "e\u0301", "\uffff", "\U0001f600"]),
    "flag": (pa.bool_(), [True, False]),
    "moment": (
        pa.timestamp("us", "UTC"),
        [MOMENT, MOMENT + timedelta(microseconds=1), datetime(1900, 1, 1, tzinfo=UTC)],
    ),
    "local": (pa.timestamp("us"), [MOMENT.replace(tzinfo=None), datetime(1900, 1, 1)]),
    "day": (pa.date32(), [date(2024, 3, 31), date(1900, 1, 1)]),
    "money": (pa.decimal128(12, 2), [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00")]),
}
# What each column is compared with; and whether Spark must be given the comparison, lest nothing be pruned.
NUMBERS = ["0", "1", "-1", "1.5", "7", "9007199254740992", "9007199254740993", "9223372036854775807"]
OPERANDS: dict[str, list[str]] = {
    "tiny": [*NUMBERS, "a.int", "a.long", "a.double", "a.tiny + a.tiny", "a.tiny * 2"],
    "int": [*NUMBERS, "a.tiny", "a.double", "a.int + 1", "-a.int", "a.int % 7"],
    "long": [*NUMBERS, "a.int", "a.double", "a.long + 1", "-a.long", "a.long * 2", "a.long - 1.0", "a.long / 2"],
    "real": [*NUMBERS, "0.1", "a.double", "a.int", "a.real * 2"],
    "double": [*NUMBERS, "0.1", "a.real", "a.long", "-a.double", "a.double / a.int", "a.double % 2"],
    "text": ["'a'", "''", "'é'", "'\U0001f600'", "a.text"],
    "flag": ["true", "false"],
    "moment": ["TIMESTAMP '2024-03-31T01:30:00Z'", "TIMESTAMP '2024-03-31T03:30:00+02:00'", "a.moment"],
    "local": ["TIMESTAMP '2024-03-31T01:30:00'", "a.local"],
    "day": ["TIMESTAMP '2024-03-31T00:00:00'", "a.day"],
    "money": ["0", "1.5", "a.int"],
}
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]
OTHERS = [
    "a.text CONTAINS 'a'",
    "NOT a.text CONTAINS 'a'",
    "a.long IS NULL",
    "a.long IS NOT NULL",
    "a.double IS NULL",
    "a.text IN ('a', 'é')",
    "a.int BETWEEN -7 AND 7",
    "NOT (a.int > 0 AND a.double < 1)",
    "a.int > 0 OR a.text = 'a'",
    "a.int > 0 OR a.money > 0",
    "a.int + a.long > 0 AND a.int * a.int > 5",
]


def conditions() -> list[str]:
    made = list(OTHERS)
    for column, operands in OPERANDS.items():
        equal_only = column == "flag"
        made += [f"a.{column} {op} {x}" for x in operands for op in (OPERATORS[:2] if equal_only else OPERATORS)]
    # Of every column and of every operator some: five operands go round six operators.
    return made if SOAKING else made[::5]


def events() -> pa.Table:
    """Every value of every column beside NULLs and beside values of the others."""
    most = max(len(values) for _, values in COLUMNS.values())
    rows: list[dict[str, Any]] = [dict.fromkeys(COLUMNS)]
    for shift in range(3):
        for place in range(most):
            rows.append({name: values[(place * (shift + 1)) % len(values)] for name, (_, values) in COLUMNS.items()})
    for name, (_, values) in COLUMNS.items():
        rows += [{**dict.fromkeys(COLUMNS), name: value} for value in values]
    columns = {name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in COLUMNS.items()}
    return pa.table({"type": ["A"] * len(rows), "ts": list(range(len(rows))), **columns})


@pytest.mark.parametrize("zone", ["America/New_York", pytest.param("UTC", marks=pytest.mark.soak)])
def test_spark_keeps_all_that_we_keep(spark: SparkSession, zone: str) -> None:
    from pyspark.sql import functions

    from kleene.spark.numbered import Numbered
    from kleene.spark.pruning import useful
    from kleene.spark.tested_by_spark import spark_column

    with setting(spark, "spark.sql.session.timeZone", zone):
        table = events()
        frame = Numbered.of(to_spark(spark, table))
        schema = schema_on(table.schema, Schema())
        kept, wanted, given = {}, {}, 0
        for place, condition in enumerate(conditions()):
            query = kleene.query(f"PATTERN A a WHERE {condition} RETURN a.ts AS at")
            wanted[place] = {row["at"] for row in kleene.match(table, query).to_pylist()}
            translated = useful(query.bind(schema), frame)
            assert translated is not None
            kept[f"k{place}"] = functions.coalesce(spark_column(translated, frame), functions.lit(False))
            given += translated[0] == "all"
        names = list(kept)
        rows = (
            frame.frame.select(frame.column("ts").alias("at"), *(kept[n].alias(n) for n in names)).toArrow().to_pylist()
        )
    for place, condition in enumerate(conditions()):
        found = {row["at"] for row in rows if row[f"k{place}"]}
        assert wanted[place] <= found, condition
    # Most conditions do go to Spark, and there they do drop rows.
    assert given > len(names) * 0.6
    dropped = [name for name in names if not all(row[name] for row in rows)]
    assert len(dropped) > len(names) * 0.6


def test_a_missing_attribute_is_no_reason_to_drop(spark: SparkSession) -> None:
    """A comparison with an attribute that the event's type lacks is true (semantics §2)."""
    schema = kleene.Schema(types={"A": {"x": "int"}, "B": {"y": "int"}})
    table = pa.table({"type": ["A", "B", "B"], "ts": [1, 2, 3], "x": [5, None, 9], "y": [None, 1, 2]})
    query = "PATTERN SEQ(ANY(A, B) a, B b) WHERE a.x > 3 and b.y < 3 WITHIN 10"
    here = kleene.match(table, query, schema=schema)
    there = kleene.match(to_spark(spark, table), query, schema=schema)
    assert there.count() == here.num_rows == 3


def test_row_groups_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    """The conditions reach the Parquet reader, with the columns that the query needs."""
    table = pa.table(
        {"type": ["A", "B"] * 50, "ts": list(range(100)), "id": [1] * 100, "x": [1.5] * 100, "y": ["z"] * 100}
    )
    pq.write_table(table, tmp_path / "events.parquet")
    query = "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 1 AND b.ts < 50 WITHIN 10 RETURN a.ts AS at"
    found = kleene.match(spark.read.parquet(str(tmp_path)), query)
    shown = io.StringIO()
    with redirect_stdout(shown):
        found.explain()
    plan = shown.getvalue()
    assert "EqualTo(type,A)" in plan
    assert "GreaterThan(x,1.0)" in plan
    assert "LessThan(ts,50)" in plan
    assert "y:string" not in plan.split("ReadSchema")[1].splitlines()[0]
    assert found.count() == kleene.match(table, query).num_rows

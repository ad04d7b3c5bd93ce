"""What travels to a task is plain data, and says everything. No Spark is needed."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import kleene
from kleene.spark.packing import PackedGroup, pack
from kleene.spark.slot import SlotGroup
from kleene.spark.worker import describe_schema, run, schema_from, task_spec

EVENTS = pa.table({"kind": ["A", "B", "B"], "at": [1, 2, 3], "id": [7, 7, 8]})
SCHEMAS = [
    kleene.Schema(),
    kleene.Schema(type="kind", time="at", tie_breaker="seq", start="began", tick="1 second"),
    kleene.Schema(constant_type="Stock", classes={"Google": "Stock WHERE name = 'It''s' and price > 1.5"}),
    kleene.Schema(
        types={"SHELF-READING": {"tag": "string", "at": "timestamptz"}, "B": ["untyped"]},
        classes={"Any-thing": "ANY(`SHELF-READING`, B)"},
    ),
    kleene.Schema(streams=((None, ("type", "ts")), ("T", ("ts", "k")))),
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_survives_its_description(schema: kleene.Schema) -> None:
    assert schema_from(json.loads(json.dumps(describe_schema(schema)))) == schema


def test_a_task_gives_what_the_query_gives_here() -> None:
    query = kleene.query("PATTERN SEQ(A a, B b) WHERE [id] and b.at < :late", name="pairs", params={"late": 9})
    schema = kleene.Schema(type="kind", time="at")
    here = kleene.match(EVENTS, query, schema=schema)
    part = SlotGroup((0,), tuple(EVENTS.column_names), base=5, slots=3)
    told = task_spec([query], schema, EVENTS.schema, [part], output="matches", returned=here.schema)
    # Numbered columns of other widths, as Spark's settings may have them.
    handed = pa.table(
        {
            "c0": EVENTS.column(0).cast(pa.large_string()),
            "c1": EVENTS.column(1),
            "c2": EVENTS.column(2),
            "g0": pa.array([2, 2, None], pa.int32()),
        }
    )
    packed = list(pack(iter(handed.to_batches()), [PackedGroup(base=5, places=(0, 1, 2), routed=3, time=1)]))
    assert [row["slot"] for batch in packed for row in batch.to_pylist()] == [7]
    assert pa.Table.from_batches(run(told, iter(packed))).equals(here)
    assert here.num_rows == 1

"""What was worked out for a query last is used again, for that query and nothing else."""

from __future__ import annotations

import pyarrow as pa

from kleene.frames.arrow import schema_on
from kleene.frames.results import result_schema
from kleene.optimize.planner import plan_query
from kleene.pattern import Query, Schema
from kleene.pattern.recent import Recent
from kleene.plan.settings import Settings


def test_a_result_is_made_once_for_the_same_query_and_equal_arguments() -> None:
    recent: Recent[int] = Recent(most=2)
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    one, equal, other = [1], [1], [2]
    assert [recent.get(one, (5,), make), recent.get(one, (5,), make)] == [0, 0]
    assert recent.get(equal, (5,), make) == 1, "an equal object is another one"
    assert recent.get(one, (6,), make) == 2, "the last arguments count"
    assert recent.get(other, (5,), make) == 3
    assert recent.get(equal, (5,), make) == 4, "the oldest was forgotten"


def test_plans_and_schemas_follow_what_they_depend_on() -> None:
    columns = pa.schema({"type": pa.string(), "ts": pa.int64(), "k": pa.int64()})
    query = Query("PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 9").bind(schema_on(columns, Schema()))
    plan = plan_query(query)
    assert plan_query(query) is plan
    assert plan_query(query, Settings(without=frozenset({"push_equivalence"}))) != plan
    assert plan_query(query) == plan
    named = columns.set(2, pa.field("k", pa.int64(), metadata={"unit": "m"}))
    narrow = columns.set(2, pa.field("k", pa.int32()))
    assert result_schema(query, columns).field("key").type.field("k").type == pa.int64()
    assert result_schema(query, named).field("key").type.field("k").metadata == {b"unit": b"m"}
    assert result_schema(query, columns).field("key").type.field("k").metadata is None
    assert result_schema(query, narrow).field("key").type.field("k").type == pa.int32()

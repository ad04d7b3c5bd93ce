"""A value for a parameter that nobody has: in lists of queries, in classes of the schema, through the API."""

from __future__ import annotations

import pytest

import kleene
from kleene.errors import UnknownParameter

ROWS = [{"type": "A", "ts": 1, "x": 5}]


def test_a_value_for_no_parameter_is_refused_with_the_near_name() -> None:
    with pytest.raises(UnknownParameter, match=r"no parameter `:limits`") as told:
        kleene.match(ROWS, "PATTERN A a WHERE a.x < :limit", params={"limits": 9})
    assert told.value.hint == "did you mean `limit`?"


@pytest.mark.parametrize(
    "ask", [kleene.explain, lambda query: kleene.match(ROWS, query), lambda q: kleene.why(ROWS, q)]
)
def test_a_query_object_is_refused_wherever_it_is_used(ask: object) -> None:
    query = kleene.query("PATTERN A a", params={"limit": 9})
    with pytest.raises(UnknownParameter, match="the query has no parameter `:limit`"):
        ask(query)  # type: ignore[operator]


def test_a_list_of_queries_shares_its_parameters() -> None:
    queries = ["PATTERN A a WHERE a.x < :low", "PATTERN A a WHERE a.x < :high"]
    assert len(kleene.match(ROWS, queries, params={"low": 5, "high": 6})) == 1
    with pytest.raises(UnknownParameter, match="none of the queries has a parameter `:hihg`"):
        kleene.match(ROWS, queries, params={"low": 5, "high": 6, "hihg": 7})


def test_a_class_of_the_schema_may_have_the_parameter() -> None:
    schema = kleene.Schema(classes={"Small": "A WHERE x < :low"})
    assert len(kleene.match(ROWS, "PATTERN Small s", schema=schema, params={"low": 6})) == 1
    assert kleene.match(ROWS, "PATTERN Small s", schema=schema, params={"low": 5}) == []

"""Queries that run together: what they declare."""

from __future__ import annotations

import pytest

import kleene
from kleene.errors import BadDeclaration
from kleene.pattern.schema import Schema
from kleene.queries.feeding import declared_together

STREAM = "DECLARE STREAM (time at int) DECLARE TYPE A (x int) "


def test_queries_may_declare_the_same() -> None:
    queries = [kleene.query(f"{STREAM} PATTERN A a"), kleene.query(f"{STREAM} DECLARE TYPE B (y int) PATTERN B b")]
    schema = declared_together(Schema(), queries)
    assert schema.time == "at"
    assert set(schema.types) == {"A", "B"}
    rows = [{"type": "A", "at": 1, "x": 5, "y": None}, {"type": "B", "at": 2, "x": None, "y": 5}]
    assert len(kleene.match(rows, queries)) == 2


def test_what_contradicts_is_shown_in_the_later_query() -> None:
    queries = [kleene.query(f"{STREAM} PATTERN A a"), kleene.query("DECLARE TYPE A (x float) PATTERN A a")]
    with pytest.raises(BadDeclaration, match="`A` is declared twice") as raised:
        kleene.match([{"type": "A", "at": 1, "x": 5}], queries)
    assert "A (x float)" in raised.value.render()

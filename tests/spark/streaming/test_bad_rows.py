"""Rows that are no events, as one line of JSON each, and back as columns."""

from __future__ import annotations

import json

import pyarrow as pa

from kleene.spark.packing import from_bytes
from kleene.spark.streaming.bad_rows import packed_aside


def test_lines_become_the_rows_that_they_tell() -> None:
    rows = [
        {"reason": "`ts` is NULL", "text": '{"a":"x\\ny","b":"\\u001f"}'},
        {"reason": "", "text": "two\nlines \u2028 \u00e9 \U0001f600"},
        {"reason": "no text"},
        {"reason": "large", "text": "x" * 3_000_000},
    ]
    lines = pa.chunked_array([[json.dumps(row, ensure_ascii=number % 2 == 0)] for number, row in enumerate(rows)])
    packed = packed_aside(lines, ("reason", "text"), 7)
    assert packed.column("slot").to_pylist() == [7]
    told = from_bytes(packed.column("events")[0].as_buffer())
    assert told.to_pylist() == [{"reason": row["reason"], "text": row.get("text")} for row in rows]

"""Results in a notebook: sizes, the first rows, and every value escaped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kleene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = [{"type": "A", "ts": 1, "x": "<script>"}, {"type": "B", "ts": 2, "x": "&"}, {"type": "A", "ts": 9, "x": "z"}]
_QUERY = "PATTERN A a ; B b WITHIN 5 TIMEOUTS INTO Late"


@pytest.mark.parametrize("events", [_ROWS, pd.DataFrame(_ROWS), pl.DataFrame(_ROWS), pa.Table.from_pylist(_ROWS)])
def test_outputs_show_their_sizes_and_their_first_rows(events: Any) -> None:
    made = kleene.outputs(events, _QUERY)
    assert repr(made) == "Outputs(matches=1, timeouts=1, bad_rows=0)"
    html = made._repr_html_()
    assert "<b>matches</b>: 1" in html
    assert "<b>timeouts</b>: 1" in html
    assert "<b>bad rows</b>: 0" in html
    assert "type=A, ts=1, x=&lt;script&gt;" in html
    assert "<script>" not in html


def test_names_of_columns_are_escaped() -> None:
    rows = [{"type": "A", "ts": 1}]
    html = kleene.match(rows, "PATTERN A a RETURN a.ts AS `<i>`")._repr_html_()
    assert "<th>&lt;i&gt;</th>" in html


def test_a_list_of_matches_is_a_list() -> None:
    found = kleene.match(_ROWS, "PATTERN A a")
    assert isinstance(found, list)
    assert found == list(found)
    assert repr(found) == repr(list(found))
    assert kleene.match(_ROWS, "PATTERN Z z") == []
    assert json.loads(json.dumps(found)) == found


def test_only_the_first_rows_are_shown_and_long_values_cut() -> None:
    rows = [{"type": "A", "ts": ts, "x": "y" * 500} for ts in range(20)]
    html = kleene.match(rows, "PATTERN A a RETURN a.x")._repr_html_()
    assert "20, of which these are the first 5" in html
    assert html.count("<tr>") == 6
    assert "y" * 81 not in html


def test_a_closure_shows_the_first_of_its_events() -> None:
    rows = [{"type": "A", "ts": ts} for ts in range(5)]
    html = kleene.match(rows, "PATTERN A{5} a[] WHERE strict_contiguity { }")._repr_html_()
    assert "[type=A, ts=0 | type=A, ts=1 | type=A, ts=2 | …]" in html


def test_a_frame_on_spark_is_not_computed(spark: SparkSession) -> None:
    made = kleene.outputs(spark.createDataFrame(_ROWS), "PATTERN A a ; B b WITHIN 5 RETURN a.x AS `<i>`")
    assert repr(made) == "Outputs(matches=…, bad_rows=…)"
    html = made._repr_html_()
    assert "<b>matches</b>: a data frame on Spark, with the columns match_id, query, start, end, &lt;i&gt;" in html
    assert "<script>" not in html

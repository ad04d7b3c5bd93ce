"""What `kleene` offers by name: kinds of events that only export an Arrow stream, an engine, results of known types."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import assert_type

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import kleene
from kleene.errors import UnknownKind
from kleene.frames.notebook import Rows

ROOT = Path(__file__).parents[1]
ROWS = [{"type": "A", "ts": 1, "x": 5}, {"type": "B", "ts": 2, "x": 5}, {"type": "B", "ts": 3, "x": 6}]
QUERY = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"
# What a page may import: all of `kleene` and `kleene.testing`.
PUBLIC = {"kleene", "kleene.testing"}


class Exporter:
    """Has rows, and no more than the protocol; they can be read once."""

    def __init__(self, table: pa.Table) -> None:
        self._reader: pa.RecordBatchReader | None = table.to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        assert self._reader is not None, "read twice"
        reader, self._reader = self._reader, None
        return reader.__arrow_c_stream__(requested_schema)


def table() -> pa.Table:
    return pa.Table.from_pylist(ROWS)


def exported() -> list[object]:
    rows = table()
    return [duckdb.arrow(rows), rows.to_reader(), Exporter(rows)]


@pytest.mark.parametrize("place", range(3), ids=["DuckDB's relation", "reader", "exporter"])
def test_whatever_exports_an_arrow_stream_is_taken(place: int) -> None:
    expected = kleene.match(table(), QUERY)
    assert expected.num_rows == 1
    assert kleene.match(exported()[place], QUERY).equals(expected)
    assert kleene.match({"S": exported()[place], "R": table()}, QUERY).num_rows > 0
    assert kleene.outputs(exported()[place], f"{QUERY} TIMEOUTS INTO Late").timeouts.num_rows == 0
    assert kleene.infer_schema(exported()[place]).columns == kleene.infer_schema(table()).columns
    assert kleene.why(exported()[place], QUERY) == kleene.why(table(), QUERY)
    explained = kleene.explain(QUERY, events=exported()[place], analyze=True).text.splitlines()
    assert explained[:-1] == kleene.explain(QUERY, events=table(), analyze=True).text.splitlines()[:-1]


def test_a_stream_that_is_no_table_is_refused() -> None:
    with pytest.raises(UnknownKind, match="is no table"):
        kleene.match(pa.chunked_array([[1, 2]]), QUERY)


def test_results_have_the_type_of_the_events() -> None:
    """`assert_type` is for mypy, which `make lint` runs; what it says is what is there."""
    rows = kleene.match(ROWS, QUERY)
    assert_type(rows, Rows)
    frame = kleene.match(pl.DataFrame(ROWS), QUERY)
    assert_type(frame, pl.DataFrame)
    lazy = kleene.match(pl.LazyFrame(ROWS), QUERY)
    assert_type(lazy, pl.DataFrame)
    streams = kleene.match({"A": pl.DataFrame(ROWS)}, QUERY)
    assert_type(streams, pl.DataFrame)
    assert isinstance(rows, Rows)
    assert all(isinstance(found, pl.DataFrame) for found in (frame, lazy, streams))


def test_an_engine_on_the_columns_of_a_table() -> None:
    asked = kleene.Query(QUERY)
    for events in (table(), table().schema, ROWS, pl.DataFrame(ROWS), Exporter(table())):
        engine = kleene.Engine(asked.on(events))
        engine.process(table())
        matches = engine.finish().matches
        assert matches is not None
        assert matches.column("end").to_pylist() == [2]
    renamed = table().rename_columns(["type", "at", "x"])
    assert asked.on(renamed, kleene.Schema(time="at")).schema.time == "at"


def test_kleene_is_imported_without_the_compiler() -> None:
    script = "import sys, kleene; print('numba' in sys.modules); kleene.Engine; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="no attribute 'Motor'"):
        kleene.Motor  # noqa: B018


def test_pages_import_nothing_internal() -> None:
    """docs/errors.md shows what internals say, and must call them."""
    wrong = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        found = re.findall(r"^(?:>>> )?from (kleene[\w.]*) import", page.read_text(encoding="utf-8"), re.MULTILINE)
        wrong += [f"{page.name}: {name}" for name in found if name not in PUBLIC and page.name != "errors.md"]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    ["PATTERN SEQ(A a, B b) WITHIN 9", "PATTERN SEQ(A+ a[], B b) WITHIN 9 TIMEOUTS INTO L", "A a ; B b"],
)
def test_a_match_of_an_arrow_table_does_not_import_pandas(query: str, tmp_path: Path) -> None:
    """It takes a third of a second, more than everything else before a first answer."""
    table = pa.table({"type": ["A", "B"] * 4, "ts": range(8)})
    with pa.ipc.new_file(tmp_path / "events.arrow", table.schema) as file:
        file.write_table(table)
    script = f"""
import sys, kleene, pyarrow as pa
table = pa.ipc.open_file("events.arrow").read_all()
print(kleene.match(table, {query!r}).num_rows, "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    matches, imported = done.stdout.split()
    assert int(matches) > 0
    assert imported == "False"

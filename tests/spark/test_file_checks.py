"""Parquet and ORC files that do not fit their source: one error that names the file, and nothing is read of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from tests.spark.stream_pipelines import Watched
from tests.spark.test_stream_pipeline import found

from kleene.errors import KleeneError, SourceColumn, SourceNotThere
from kleene.spark.batch import KeyColumn
from kleene.spark.pipeline.file_checks import FileChecks
from kleene.spark.pipeline.reading import read_pipeline
from kleene.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """\
[[sources]]
name = "readings"
kind = "parquet"
path = "in"
options = { maxFilesPerTrigger = 1 }

[[queries]]
name = "pairs"
text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"

[[sinks]]
kind = "parquet"
path = "out"
"""
STREAM = '\n[stream]\ncheckpoint = "state"\ndelay = 5\navailable_now = true\n'
COLUMNS = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("x", pa.int64())])
KEYS = [KeyColumn("x", frozenset({"A", "B"}), "pairs")]
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def rows(kind: str = "A", **columns: Any) -> pa.Table:
    return pa.table({"type": [kind], "ts": [1], "x": [5], **columns})


def put(folder: Path, number: int, table: pa.Table | bytes) -> Path:
    place = folder / "in"
    place.mkdir(exist_ok=True)
    draft = place / f".{number}"
    if isinstance(table, bytes):
        draft.write_bytes(table)
    else:
        pq.write_table(table, draft)
    os.utime(draft, (1_700_000_000 + number, 1_700_000_000 + number))
    return draft.rename(place / f"{number}.parquet")


def cut(table: pa.Table, share: float = 0.7) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    return bytes(data[: int(len(data) * share)])


def checks(folder: Path, *changes: tuple[str, str]) -> FileChecks:
    text = PIPELINE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "pipeline.toml").write_text(text)
    return FileChecks(read_pipeline(folder / "pipeline.toml"))


def check(files: FileChecks, columns: pa.Schema = COLUMNS) -> None:
    files.check_columns({"readings": spark_schema(columns)}, KEYS)


# By the footer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damaged", [cut(rows()), cut(rows(), 0.01), b"", b"PAR1 this is none PAR1"], ids=len)
def test_a_damaged_file_is_named(tmp_path: Path, damaged: bytes) -> None:
    put(tmp_path, 1, rows())
    file = put(tmp_path, 2, damaged)
    files = checks(tmp_path)
    for _ in range(2):
        with pytest.raises(SourceNotThere, match=r"source `readings`: `.*2\.parquet` cannot be read: ") as caught:
            check(files)
        assert "put a whole file in its place, under its name" in str(caught.value.hint)
    pq.write_table(rows(), file)
    check(files)


def test_a_file_without_the_key_is_named_where_its_events_are_read(tmp_path: Path) -> None:
    put(tmp_path, 1, rows())
    put(tmp_path, 2, rows("Door").drop_columns("x"))
    put(tmp_path, 3, pa.table({"TYPE": ["A"], "ts": [1], "X": [2]}))
    files = checks(tmp_path)
    check(files)
    put(tmp_path, 4, rows("B").drop_columns("x"))
    with pytest.raises(SourceColumn, match=r"4\.parquet` has no column `x`, the key of query `pairs`"):
        check(files)
    (tmp_path / "in" / "4.parquet").unlink()
    put(tmp_path, 5, rows().drop_columns("type"))
    with pytest.raises(SourceColumn, match=r"5\.parquet` has no column `type`, which says of what type"):
        check(files)
    (tmp_path / "in" / "5.parquet").unlink()
    check(files)


def test_a_key_may_be_renamed_or_stand_in_the_name_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in" / "x=5").mkdir(parents=True)
    pq.write_table(rows().drop_columns("x"), tmp_path / "in" / "x=5" / "1.parquet")
    (tmp_path / "in" / "_temporary").mkdir()
    (tmp_path / "in" / "_temporary" / "2.parquet").write_bytes(b"half")
    check(checks(tmp_path))
    put(tmp_path, 3, rows().rename_columns(["type", "ts", "tag"]))
    renamed = ('path = "in"', 'path = "in/*.parquet"\ncolumns = { x = "tag" }')
    check(checks(tmp_path, renamed))
    with pytest.raises(SourceColumn, match="has no column `x`"):
        check(checks(tmp_path, ('path = "in"', 'path = "in/*.parquet"')))


@pytest.mark.parametrize("chosen", ['"pathGlobFilter" = "1*"', "ignoreCorruptFiles = true"])
def test_files_that_the_user_has_left_out_are_not_looked_at(tmp_path: Path, chosen: str) -> None:
    put(tmp_path, 1, rows())
    put(tmp_path, 2, b"none")
    check(checks(tmp_path, ("maxFilesPerTrigger = 1", chosen)))


def test_orc_files_are_looked_at_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    orc.write_table(rows(), tmp_path / "in" / "1.orc")
    files = checks(tmp_path, ('kind = "parquet"\npath = "in"', 'kind = "orc"\npath = "in"'))
    check(files)
    orc.write_table(rows("B").drop_columns("x"), tmp_path / "in" / "2.orc")
    with pytest.raises(SourceColumn, match=r"2\.orc` has no column `x`"):
        check(files)
    (tmp_path / "in" / "2.orc").write_bytes((tmp_path / "in" / "1.orc").read_bytes()[:50])
    with pytest.raises(SourceNotThere, match=r"2\.orc` cannot be read"):
        check(files)


@pytest.mark.parametrize(
    ("values", "declared", "differs"),
    [
        (pa.array([NOON], pa.timestamp("us", "UTC")), pa.int64(), True),
        (pa.array([5]), pa.timestamp("us", "UTC"), True),
        (pa.array([date(2026, 3, 2)]), pa.int32(), True),
        (pa.array(["5"]), pa.int64(), True),
        (pa.array([5]), pa.string(), True),
        (pa.array([5], pa.int32()), pa.int64(), False),
        (pa.array([NOON], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC"), False),
        (pa.array(["a"]).dictionary_encode(), pa.string(), False),
    ],
)
def test_a_column_of_another_kind_is_named(
    tmp_path: Path, values: pa.Array, declared: pa.DataType, differs: bool
) -> None:
    put(tmp_path, 1, rows(ts=values))
    columns = pa.schema([("type", pa.string()), ("ts", declared), ("x", pa.int64())])
    if not differs:
        check(checks(tmp_path), columns)
        return
    with pytest.raises(SourceColumn, match=r"1\.parquet` holds .* in column `ts`, and the source has "):
        check(checks(tmp_path), columns)


# On Spark ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (cut(rows("B", ts=[2])), "cannot be read"),
        pytest.param(rows("B", ts=[2]).drop_columns("x"), "has no column `x`", marks=pytest.mark.soak),
        pytest.param(
            rows("B", ts=pa.array([NOON], pa.timestamp("us", "UTC"))), "holds timestamp", marks=pytest.mark.soak
        ),
    ],
    ids=["cut off", "no key", "another type"],
)
def test_a_stream_goes_on_when_the_file_was_replaced(
    spark: SparkSession, tmp_path: Path, bad: pa.Table | bytes, message: str
) -> None:
    """It comes while the stream runs; nothing is lost, and nothing of the batch is written before."""
    from kleene.spark.pipeline.stream_running import run_stream

    def run(told: Watched) -> None:
        (tmp_path / "pipeline.toml").write_text(PIPELINE + STREAM)
        run_stream(read_pipeline(tmp_path / "pipeline.toml"), told, spark)

    put(tmp_path, 1, rows("A"))
    put(tmp_path, 2, rows("Z", ts=[3]))
    for told in (_Arriving(lambda: put(tmp_path, 3, bad)), Watched()):
        with pytest.raises(KleeneError, match=message):
            run(told)
        assert not list((tmp_path / "out").glob("batch=*"))
        # The first time it was found in a batch, which is given again.
        assert (tmp_path / "state" / "offsets" / "0").exists()
        assert not (tmp_path / "state" / "commits" / "0").exists()
    put(tmp_path, 3, rows("B", ts=[2]))
    put(tmp_path, 4, rows("Z", ts=[100]))
    run(Watched())
    assert found(tmp_path / "out") == [(1, 2)]


class _Arriving(Watched):
    """Something comes after the sources were opened, and before the first batch."""

    def __init__(self, arrive: Callable[[], object]) -> None:
        super().__init__()
        self._arrive = arrive

    def say(self, text: str) -> None:
        super().say(text)
        if text.endswith("planning"):
            self._arrive()


def test_a_bounded_run_names_the_file(spark: SparkSession, tmp_path: Path) -> None:
    from tests.spark.pipelines import Told

    from kleene.spark.pipeline.running import run_pipeline

    put(tmp_path, 1, rows("A"))
    put(tmp_path, 2, rows("B", ts=[2]).drop_columns("x"))
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    with pytest.raises(SourceColumn, match=r"2\.parquet` has no column `x`, the key of query `pairs`"):
        run_pipeline(read_pipeline(tmp_path / "pipeline.toml"), Told(), spark)
    assert not (tmp_path / "out").exists()
    put(tmp_path, 2, rows("B", ts=[2]))
    summary = run_pipeline(read_pipeline(tmp_path / "pipeline.toml"), Told(), spark)
    assert summary.counts.matches == {"pairs": 1}

"""Pipelines run on streams: what is found, set aside and written, once, however often a batch is given."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.spark.stream_pipelines import STREAM, Watched, changed, event, lines, put

import kleene
from kleene.cli.running import LIMIT, _report
from kleene.errors import BadTarget, KleeneError
from kleene.spark.pipeline.reading import read_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.pipeline.stream_running import StreamSummary

pytestmark = [pytest.mark.slow, pytest.mark.sparks_own]

EVERYTHING = changed(
    ('path = "out"', 'path = "out/{query}"'),
    ('x = "long" }', 'x = "long" }\noptions = { maxFilesPerTrigger = 1 }'),
    added="""
[[queries]]
name = "lonely"
text = "PATTERN SEQ(A a, C c) WHERE [x] WITHIN 10 TIMEOUTS INTO lonely"

[[sinks]]
kind = "json"
output = "timeouts"
path = "timeouts"

[[sinks]]
kind = "json"
output = "late"
path = "late"

[[sinks]]
kind = "csv"
query = "pairs"
path = "flat"

[[sinks]]
kind = "memory"
query = "pairs"
table = "kleene_stream_pairs"

[[sinks]]
kind = "console"
query = "pairs"

[bad_rows]
path = "bad"
""",
)


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Any:
    def runs(text: str, told: Watched | None = None) -> StreamSummary:
        from kleene.spark.pipeline.stream_running import run_stream

        (tmp_path / "pipeline.toml").write_text(text)
        return run_stream(read_pipeline(tmp_path / "pipeline.toml"), told or Watched(), spark)

    return runs


def found(folder: Path) -> list[tuple[int, int]]:
    """Start and end of each match of a Parquet sink."""
    files = [str(file) for file in folder.glob("batch=*/*.parquet")]
    return sorted((row["start"], row["end"]) for row in ds.dataset(files).to_table().to_pylist()) if files else []


def test_two_runs_are_one(run: Any, spark: SparkSession, tmp_path: Path) -> None:
    scraped: list[str] = []
    told = Watched(lambda: scraped.append(urlopen(told.said[0].split()[-1]).read().decode()))
    soon = '{"type": "B", "ts": "soon", "x": 5}'
    put(tmp_path / "in", 1, event("A", 1, 5), event("B", 2, 5), soon, '{"type": "A", "ts": 3')
    put(tmp_path / "in", 2, event("A", 100, 7))
    put(tmp_path / "in", 3, event("B", 4, 5), event("B", None, 8))
    first = run(EVERYTHING + 'metrics = "measures/m.jsonl"\nprometheus = 0\n', told)
    assert found(tmp_path / "out" / "pairs") == [(1, 2)]
    assert (first.totals.rows, first.totals.bad_rows, first.totals.late, first.stopped) == (7, 3, 1, False)
    warned = [text for text in told.said if "KL906" in text]
    assert [re.findall("type `(.)`", text) for text in warned] == [["C"]], "of A and B events came"

    put(tmp_path / "in", 4, event("B", 101, 7))
    put(tmp_path / "in", 5, event("Z", 300, 0))
    put(tmp_path / "in", 6, event("Z", 300, 0))
    assert (first.totals.held["held"], first.totals.held["kept_bytes"] > 0) == (2, True)
    second = run(EVERYTHING)
    # Every window has closed, also those of slots to which nothing came in this run.
    assert set(second.totals.held.values()) == {0}
    assert (second.totals.rows, second.totals.of("matches")) == (3, {"pairs": 1, "lonely": 0})
    good = [("A", 1, 5), ("B", 2, 5), ("A", 100, 7), ("B", 101, 7)]
    alone = kleene.match(
        [{"type": kind, "ts": ts, "x": x} for kind, ts, x in good], "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"
    )
    ids = ds.dataset(tmp_path / "out" / "pairs", partitioning="hive").to_table().column("match_id").to_pylist()
    assert (found(tmp_path / "out" / "pairs"), sorted(ids)) == (
        [(1, 2), (100, 101)],
        sorted(row["match_id"] for row in alone),
    )
    assert sorted(row["a"]["ts"] for row in lines(tmp_path / "timeouts")) == [1, 100]
    assert lines(tmp_path / "late") == [{"type": "B", "ts": 4, "x": 5}]
    assert sorted(
        (row["source"], row["reason"], row["text"], Path(row["place"]).name) for row in lines(tmp_path / "bad")
    ) == [
        ("readings", "cannot be read as JSON", '{"type": "A", "ts": 3', "1.json"),
        ("readings", "cannot be read as JSON", soon, "1.json"),
        ("readings", "no time: `ts` is NULL", '{"type":"B","x":8}', "3.json"),
    ]
    flat = [row for part in (tmp_path / "flat").glob("batch=*/part-*") for row in csv.DictReader(part.open())]
    assert sorted((row["variable"], row["ts"]) for row in flat) == [("a", "1"), ("a", "100"), ("b", "101"), ("b", "2")]
    assert [(row["start"], row["end"]) for row in spark.table("kleene_stream_pairs").collect()] == [(100, 101)]
    assert [(what, [row["start"] for row in rows], total) for what, rows, total in told.shown] == [
        ("matches of pairs", [1], 1)
    ]
    _check_measures(told, scraped[-1], tmp_path / "measures" / "m.jsonl")

    # What belongs to another checkpoint, or is of another kind.
    with pytest.raises(BadTarget, match=r"`.*out/pairs` holds results of another checkpoint, begun in `state`"):
        run(EVERYTHING.replace('checkpoint = "state"', 'checkpoint = "state2"'))
    with pytest.raises(BadTarget, match=r"`.*late` holds late events as json, not late events as csv"):
        run(EVERYTHING.replace('kind = "json"\noutput = "late"', 'kind = "csv"\noutput = "late"'))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(BadTarget, match=r"`.*mine` holds what no stream wrote"):
        run(EVERYTHING.replace('path = "late"', 'path = "mine"'))
    with pytest.raises(KleeneError, match="query `pairs` has changed since this checkpoint was begun"):
        run(EVERYTHING.replace("SEQ(A a, B b)", "SEQ(B b, A a)"))


def _check_measures(told: Watched, scraped: str, file: Path) -> None:
    measures = [json.loads(line) for line in file.read_text().splitlines()]
    assert measures == told.batches
    assert [line["batch"] for line in measures] == list(range(len(measures)))
    assert sum(line["rows"] for line in measures) == 7
    assert sum(line["matches"]["pairs"] for line in measures) == 1
    assert (measures[-1]["watermark"], measures[-1]["lag_seconds"]) == (95, None)
    assert measures[0]["spark"]["durationMs"]["addBatch"] > 0
    assert measures[0]["spark"]["stateOperators"][0]["numRowsUpdated"] > 0
    values = dict(re.findall(r"^(kleene_\S+) (\S+)$", scraped, re.MULTILINE))
    assert values['kleene_matches_total{query="pairs"}'] == "1"
    assert values['kleene_timeouts_total{query="lonely"}'] == "1"
    assert (values["kleene_rows_total"], values["kleene_late_total"], values["kleene_bad_rows_total"]) == (
        "7",
        "1",
        "3",
    )
    assert (values["kleene_watermark_ticks"], values["kleene_batches_total"]) == ("95", str(len(measures)))
    assert int(values["kleene_state_bytes"]) > 0


def test_a_batch_that_fails_between_two_outputs_is_finished_by_the_next_run(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kleene.spark.pipeline.stream_sinks import StreamSinks

    write = StreamSinks.write_one

    def fails(self: Any, found: Any, batch: int, target: Any, number: int) -> None:
        if target.sink.kind == "json":
            raise OSError("the disk is full")
        write(self, found, batch, target, number)

    put(tmp_path / "in", 1, event("A", 1, 5), event("B", 2, 5), event("Z", 100, 0))
    put(tmp_path / "in", 2, event("Z", 100, 0))
    text = changed(
        ('x = "long" }', 'x = "long" }\noptions = { maxFilesPerTrigger = 1 }'),
        added='[[sinks]]\nkind = "json"\npath = "lines"\n[[sinks]]\nkind = "table"\ntable = "kleene_stream_table"\n',
    )
    monkeypatch.setattr(StreamSinks, "write_one", fails)
    with pytest.raises(OSError, match="the disk is full"):
        run(text)
    before = sorted((tmp_path / "out").rglob("*"))
    assert found(tmp_path / "out") == [(1, 2)]
    assert not list((tmp_path / "lines").glob("batch=*"))
    monkeypatch.undo()
    try:
        summary = run(text)
        assert summary.totals.of("matches") == {"pairs": 1}
        assert sorted((tmp_path / "out").rglob("*")) == before
        assert [(row["start"], row["end"]) for row in lines(tmp_path / "lines")] == [(1, 2)]
    finally:
        _drop("kleene_stream_table")


def _drop(table: str) -> None:
    import shutil

    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    assert session.table(table).count() == 1
    session.sql(f"DROP TABLE {table}")
    shutil.rmtree("spark-warehouse", ignore_errors=True)


def test_streams_by_name_with_timestamps_casts_and_duplicates(run: Any, tmp_path: Path) -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def moments(*seconds: int) -> pa.Array:
        return pa.array([noon + timedelta(seconds=second) for second in seconds], pa.timestamp("us", "UTC"))

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    pq.write_table(
        pa.table({"at": moments(0, 0, 50, 3570), "seq": [1, 1, 2, 3], "x": ["5", "5", "five", "6"]}),
        tmp_path / "a" / "1.parquet",
    )
    (tmp_path / "b" / "1.csv").write_text("ts,seq,x\n2026-03-02T12:00:01Z,7,5\nsoon,8,5\n2026-03-02T13:00:00Z,9,5\n")
    text = """
[[sources]]
name = "A"
kind = "parquet"
path = "a"
columns = { ts = "at" }
casts = { x = "long" }
[[sources]]
name = "B"
kind = "csv"
path = "b"
schema = { ts = "timestamp", seq = "long", x = "long" }
[schema]
tie_breaker = "seq"
[[queries]]
name = "pairs"
text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10 seconds"
[[sinks]]
kind = "json"
path = "out"
[bad_rows]
path = "bad"
[stream]
checkpoint = "state"
delay = "5 seconds"
drop_duplicates = true
available_now = true
"""
    told = Watched()
    summary = run(text, told)
    assert [(row["start"], row["a"]["seq"], row["b"]["seq"]) for row in lines(tmp_path / "out")] == [
        ("2026-03-02T12:00:00.000000Z", 1, 7)
    ]
    assert sorted((row["source"], row["reason"], row["text"]) for row in lines(tmp_path / "bad")) == [
        ("A", "`x` is no long", '{"ts":"2026-03-02T12:00:50.000Z","seq":2,"x":"five"}'),
        ("B", "cannot be read as CSV", "soon,8,5"),
    ]
    assert summary.totals.done["duplicates"] == 1
    # That of the stream which is furthest behind.
    assert told.batches[-1]["watermark"] == "2026-03-02T12:59:25.000Z"
    assert told.batches[-1]["lag_seconds"] > 0
    # Time that the clock of the machine moves on: rows have room for what goes along.
    from kleene.spark.pipeline.stream_running import bound_stream

    (tmp_path / "pipeline.toml").write_text(text + 'idle = "30 seconds"\n')
    bound_stream(read_pipeline(tmp_path / "pipeline.toml"), told)


# When something goes wrong -------------------------------------------------------------------------------------------


def test_an_error_in_a_task_is_the_one_that_is_shown(run: Any, tmp_path: Path, capsys: Any) -> None:
    put(tmp_path / "in", 1, *(event("A", ts, 5) for ts in range(8)), event("B", 9, 5), event("Z", 100, 0))
    put(tmp_path / "in", 2, event("Z", 101, 0))
    text = changed(
        ('x = "long" }', 'x = "long" }\noptions = { maxFilesPerTrigger = 1 }'),
        added="[budget]\nmatches_per_event = 3\n",
    )
    with pytest.raises(Exception, match="KL601") as caught:
        run(text)
    assert _report(caught.value) == LIMIT
    assert capsys.readouterr().err.startswith("error[KL601]: ")
    assert not list((tmp_path / "out").glob("batch=*"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("delay = 5", 'delay = "5 seconds"'), "the time column counts ticks of unknown length"),
        (("delay = 5", 'delay = 5\nidle = "5 seconds"'), "`ts` is no timestamp, so the clock"),
        (("delay = 5", 'delay = 5\nahead = "1 hour"'), "`ts` counts ticks, and it is not known how long one is"),
        (("[x] WITHIN", "[y] WITHIN"), "KL203"),
        (
            ('x = "long" }', 'x = "long" }\ncolumns = { at = "ts" }'),
            "source `readings` has no column `ts` for the time",
        ),
        (
            (
                'kind = "json"\npath = "in"\nschema = { type = "string", ts = "long", x = "long" }',
                'kind = "orc"\npath = "in"',
            ),
            "/in/1.json` cannot be read: ",
        ),
    ],
)
def test_what_is_wrong_with_columns(spark: SparkSession, tmp_path: Path, change: tuple[str, str], message: str) -> None:
    from kleene.spark.pipeline.stream_running import bound_stream

    put(tmp_path / "in", 1, event("A", 1, 5))
    (tmp_path / "pipeline.toml").write_text(STREAM.replace(*change))
    pipeline = read_pipeline(tmp_path / "pipeline.toml")
    with pytest.raises(KleeneError) as caught:
        bound_stream(pipeline, Watched(), spark)
    assert message in str(caught.value)
    assert "pipeline.toml:" in str(caught.value)

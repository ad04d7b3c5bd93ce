"""Pipelines run on Spark: what is read, set aside, found and written; again; and when something goes wrong."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.pipelines import Told, changed, read

import kleene
from kleene.errors import BadRowLimit, KleeneError, SparkFailed
from kleene.spark.pipeline.reading import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.pipeline.running import Summary

pytestmark = pytest.mark.sparks_own

BROKEN = "type,ts,x\nA,1,5\nB,2,5\nA,soon,6\nB,4\nB,5,6,7\nB,,5\n"


@pytest.fixture
def run(spark: SparkSession) -> Any:
    def runs(pipeline: Pipeline, told: Told | None = None) -> Summary:
        from kleene.spark.pipeline.running import run_pipeline

        return run_pipeline(pipeline, told or Told(), spark)

    return runs


def matches(folder: Path) -> list[tuple[int, int]]:
    return sorted((row["start"], row["end"]) for row in pq.read_table(folder).to_pylist())


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for part in sorted(folder.glob("part-*")) for line in part.read_text().splitlines()]


def test_a_run_counts_and_writes(run: Any, tmp_path: Path) -> None:
    told = Told()
    summary = run(read(tmp_path), told)
    assert matches(tmp_path / "out") == [(1, 2), (3, 4)]
    assert [(source.name, source.rows) for source in summary.sources] == [("readings", 5)]
    assert (summary.bad_rows, summary.counts.kept, summary.counts.matches) == (0, 5, {"pairs": 2})
    assert told.stages == [
        *("opening the sources", "binding the queries", "counting the rows", "finding matches"),
        "writing matches of pairs",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["day.csv", "out", "pipeline.toml"]


def test_the_ids_are_those_of_match(run: Any, tmp_path: Path) -> None:
    run(read(tmp_path))
    rows = [{"type": kind, "ts": ts, "x": x} for kind, ts, x in [("A", 1, 5), ("B", 2, 5), ("A", 3, 6), ("B", 4, 6)]]
    alone = kleene.match(rows, "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10")
    found = pq.read_table(tmp_path / "out").column("match_id").to_pylist()
    assert sorted(found) == sorted(row["match_id"] for row in alone)


def test_a_second_run_replaces_and_does_not_double(run: Any, tmp_path: Path) -> None:
    added = '[[sinks]]\nkind = "json"\npath = "lines"\n[[sinks]]\nkind = "csv"\npath = "flat"\n'
    pipeline = read(tmp_path, changed(added=added))
    run(pipeline)
    before = sorted(row["match_id"] for row in lines(tmp_path / "lines"))
    run(pipeline)
    assert matches(tmp_path / "out") == [(1, 2), (3, 4)]
    assert sorted(row["match_id"] for row in lines(tmp_path / "lines")) == before
    flat = [row for part in (tmp_path / "flat").glob("part-*") for row in csv.DictReader(part.open())]
    assert sorted((row["match_id"], row["variable"], row["ts"]) for row in flat) == sorted(
        (row["match_id"], name, str(row[name]["ts"])) for row in lines(tmp_path / "lines") for name in ("a", "b")
    )


def test_append_adds_what_is_new(run: Any, tmp_path: Path) -> None:
    text = changed(added='mode = "append"\n')
    run(read(tmp_path, text))
    run(read(tmp_path, text))
    assert matches(tmp_path / "out") == [(1, 2), (3, 4)]
    run(read(tmp_path, text, day="type,ts,x\nA,3,6\nB,4,6\nA,30,7\nB,31,7\n"))
    assert matches(tmp_path / "out") == [(1, 2), (3, 4), (30, 31)]


def test_tables(run: Any, spark: SparkSession, tmp_path: Path) -> None:
    text = changed(('"parquet"\npath = "out"', '"table"\ntable = "kleene_pipeline_pairs"'))
    added = '[[sinks]]\nkind = "table"\ntable = "kleene_pipeline_more"\nmode = "append"\n'
    names = ["kleene_pipeline_pairs", "kleene_pipeline_more"]
    try:
        for _ in range(2):
            run(read(tmp_path, text + added))
        assert [spark.table(name).count() for name in names] == [2, 2]
        with pytest.raises(KleeneError, match="the table `kleene_pipeline_pairs` is there already"):
            run(read(tmp_path, text + 'mode = "error"\n'))
        again = read(
            tmp_path,
            changed(
                (
                    'kind = "csv"\npath = "day.csv"\nschema = { ts = "long", x = "long" }',
                    'kind = "table"\ntable = "kleene_pipeline_pairs"\ncolumns = { ts = "end", type = "query" }',
                ),
                ("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10", "PATTERN pairs p"),
            ),
        )
        assert run(again).counts.matches == {"pairs": 2}
    finally:
        for name in names:
            spark.sql(f"DROP TABLE IF EXISTS {name}")
        shutil.rmtree("spark-warehouse", ignore_errors=True)


# When something goes wrong -------------------------------------------------------------------------------------------


def test_a_run_that_is_killed_while_writing_leaves_the_old_results(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kleene.spark.pipeline.sinks import Writing

    pipeline = read(tmp_path, changed(added='[[sinks]]\nkind = "json"\npath = "lines"\n'))
    run(pipeline)
    before = sorted(path.name for path in (tmp_path / "out").iterdir())
    write = Writing.write

    def killed(self: Any, frame: Any, target: Any) -> str:
        if target.sink.kind == "json":
            raise KeyboardInterrupt
        return write(self, frame, target)

    monkeypatch.setattr(Writing, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        run(pipeline)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == before
    monkeypatch.undo()
    run(pipeline)
    assert matches(tmp_path / "out") == [(1, 2), (3, 4)]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("reader", ["Spark", "tasks"])
def test_a_file_that_cannot_be_read_is_one_error_and_leaves_nothing(
    run: Any, tmp_path: Path, reader: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from kleene.cli.running import DATA, _report

    (tmp_path / "events").mkdir()
    whole = tmp_path / "events" / "a.parquet"
    pq.write_table(pa.table({"type": ["A"], "ts": [1], "x": [5]}), whole)
    # Columns that are cast are Spark's.
    casts = '\ncasts = { x = "long" }' if reader == "Spark" else ""
    source = 'kind = "csv"\npath = "day.csv"\nschema = { ts = "long", x = "long" }'
    pipeline = read(tmp_path, changed((source, f'kind = "parquet"\npath = "events"{casts}')))
    # The footer is as it was, and the rows are not.
    data = whole.read_bytes()
    (tmp_path / "events" / "b.parquet").write_bytes(data[:4] + b"\xff" * 60 + data[64:])
    with pytest.raises(SparkFailed if reader == "Spark" else Exception, match=r"b\.parquet") as caught:
        run(pipeline)
    assert _report(caught.value) == DATA
    told = capsys.readouterr().err
    assert ("error[KL709]" if reader == "Spark" else "error[KL714]") in told
    assert "b.parquet" in told
    assert not (tmp_path / "out").exists()


def test_a_budget_that_is_exceeded_ends_the_run(run: Any, tmp_path: Path) -> None:
    from kleene.cli.running import LIMIT, _report

    day = "type,ts,x\n" + "".join(f"A,{ts},5\n" for ts in range(8)) + "B,9,5\n"
    text = changed(added="[budget]\nmatches_per_event = 3\n")
    with pytest.raises(Exception, match="KL601") as caught:
        run(read(tmp_path, text, day=day))
    assert _report(caught.value) == LIMIT
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[x] WITHIN", "[y] WITHIN"), "KL203"),
        (('x = "long" }', 'y = "long" }'), "source `readings` has no column `y`"),
        (('x = "long" }', 'x = "long" }\ncolumns = { y = "z" }'), "source `readings` has no column `z`"),
        (('x = "long" }', 'x = "long" }\ncolumns = { x = "type" }'), "would have two columns called `x`"),
        (('x = "long" }', 'x = "long" }\ncasts = { z = "int" }'), "source `readings` has no column `z`"),
        (
            ('x = "long" }', 'x = "long" }\ncolumns = { at = "ts" }'),
            "source `readings` has no column `ts` for the time",
        ),
        (
            ('kind = "csv"\npath = "day.csv"\nschema = { ts = "long", x = "long" }', 'kind = "orc"\npath = "day.csv"'),
            "cannot be read",
        ),
        (
            (
                'kind = "csv"\npath = "day.csv"\nschema = { ts = "long", x = "long" }',
                'kind = "table"\ntable = "nowhere.t"',
            ),
            "cannot be found",
        ),
    ],
)
def test_wrong_columns_and_sources(run: Any, tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(KleeneError) as caught:
        run(read(tmp_path, changed(change)))
    assert message in str(caught.value)
    assert f"{tmp_path}/pipeline.toml:" in str(caught.value)
    assert not (tmp_path / "out").exists()


# Bad rows ------------------------------------------------------------------------------------------------------------


def test_rows_that_cannot_be_read_are_kept_with_their_reason(run: Any, tmp_path: Path) -> None:
    summary = run(read(tmp_path, changed(added='[bad_rows]\npath = "bad"\n'), day=BROKEN))
    assert (summary.sources[0].rows, summary.bad_rows) == (6, 4)
    assert summary.reasons == (("cannot be read as CSV", 3), ("no time: `ts` is NULL", 1))
    assert matches(tmp_path / "out") == [(1, 2)]
    kept = lines(tmp_path / "bad")
    assert sorted((row["source"], row["reason"], row["text"]) for row in kept) == [
        *(("readings", "cannot be read as CSV", text) for text in ("A,soon,6", "B,4", "B,5,6,7")),
        ("readings", "no time: `ts` is NULL", '{"type":"B","x":5}'),
    ]


def test_a_row_is_bad_whatever_columns_the_queries_need(run: Any, tmp_path: Path) -> None:
    """Spark parses only the columns that are asked for, and would find the others right."""
    text = changed(("WHERE [x] WITHIN 10", "WITHIN 10 RETURN a.ts AS first"))
    day = "type,ts,x\nA,1,5\nB,2,five\nB,3,6\n"
    summary = run(read(tmp_path, text, day=day))
    assert (summary.bad_rows, matches(tmp_path / "out")) == (1, [(1, 3)])


def test_broken_json(run: Any, tmp_path: Path) -> None:
    text = changed(
        ('kind = "csv"\npath = "day.csv"', 'kind = "json"\npath = "day.jsonl"'),
        ('x = "long"', 'x = "long", type = "string"'),
    )
    rows = [
        '{"type": "A", "ts": 1, "x": 5}',
        '{"type": "B", "ts": 2',
        '{"type": "B", "ts": "late", "x": 5}',
        '{"type": "B", "ts": 3, "x": 5}',
    ]
    added = '[[sinks]]\nkind = "json"\noutput = "bad_rows"\npath = "bad"\n'
    summary = run(read(tmp_path, text + added, day_jsonl="\n".join(rows) + "\n"))
    assert (summary.bad_rows, matches(tmp_path / "out")) == (2, [(1, 3)])
    assert sorted(row["text"] for row in lines(tmp_path / "bad")) == sorted(rows[1:3])


def test_casts_that_fail(run: Any, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"kind": ["A", "B", "B"], "at": ["1", "2", "soon"], "x": [5, 5, 5]}), tmp_path / "e.parquet"
    )
    source = 'kind = "parquet"\npath = "*.parquet"\ncolumns = { type = "kind", ts = "at" }\ncasts = { ts = "long" }'
    text = changed(
        ('kind = "csv"\npath = "day.csv"\nschema = { ts = "long", x = "long" }', source),
        added='[bad_rows]\npath = "bad"\n',
    )
    summary = run(read(tmp_path, text))
    assert (summary.sources[0].rows, summary.bad_rows, matches(tmp_path / "out")) == (3, 1, [(1, 2)])
    (kept,) = lines(tmp_path / "bad")
    assert (kept["reason"], kept["text"]) == ("`ts` is no long", '{"type":"B","ts":"soon","x":5}')


def test_too_many_bad_rows_stop_the_run_and_are_there_to_look_at(run: Any, tmp_path: Path) -> None:
    text = changed(added='[bad_rows]\npolicy = "fail"\nlimit = 3\npath = "bad"\n')
    with pytest.raises(BadRowLimit, match="4 of 6 rows are bad, and at most 3 may be"):
        run(read(tmp_path, text, day=BROKEN))
    assert len(lines(tmp_path / "bad")) == 4
    assert not (tmp_path / "out").exists()
    assert run(read(tmp_path, text.replace("limit = 3", "limit = 4"), day=BROKEN)).bad_rows == 4


def test_text_keeps_times_to_the_microsecond(run: Any, tmp_path: Path) -> None:
    day = "type,ts,x\nA,2026-03-02T10:00:00.123456,5\nB,2026-03-02T10:00:01,5\n"
    both = '[[sinks]]\nkind = "json"\npath = "lines"\n[[sinks]]\nkind = "csv"\npath = "flat"\nfiles = 1\n'
    for kind, zone in (("timestamp_ntz", ""), ("timestamp", "Z")):
        text = changed(('ts = "long"', f'ts = "{kind}"'), ("WITHIN 10", "WITHIN 10 seconds"), added=both)
        run(read(tmp_path, text, day=day))
        (row,) = lines(tmp_path / "lines")
        assert (row["start"], row["b"]["ts"]) == (
            f"2026-03-02T10:00:00.123456{zone}",
            f"2026-03-02T10:00:01.000000{zone}",
        )
        (part,) = (tmp_path / "flat").glob("part-*")
        first, _ = csv.DictReader(part.open())
        assert first["ts"] == f"2026-03-02T10:00:00.123456{zone}"


# Sources and queries -------------------------------------------------------------------------------------------------


def test_streams_by_name_columns_inferred_and_one_that_nothing_reads(run: Any, tmp_path: Path) -> None:
    text = """
[[sources]]
name = "A"
kind = "csv"
path = "a.csv"
columns = { ts = "at" }
[[sources]]
name = "B"
kind = "json"
path = "b.jsonl"
[[sources]]
name = "C"
kind = "csv"
path = "day.csv"
columns = { kind = "type" }
[[queries]]
name = "pairs"
text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN :within"
params = { within = 10 }
[[sinks]]
kind = "console"
limit = 1
"""
    told = Told()
    summary = run(
        read(tmp_path, text, a_csv="at,x\n1,5\n3,6\n", b_jsonl='{"ts": 2, "x": 5}\n{"ts": 4, "x": 6}\n'), told
    )
    assert [(source.name, source.rows) for source in summary.sources] == [("A", 2), ("B", 2), ("C", 5)]
    ((what, rows, total),) = told.shown
    assert (what, [(row["start"], row["end"]) for row in rows], total) == ("matches of pairs", [(1, 2)], 2)


def test_timeouts_and_several_queries(run: Any, tmp_path: Path) -> None:
    more = """
output = "matches"
[[queries]]
name = "late"
text = "PATTERN SEQ(A a, C c) WHERE [x] WITHIN 3 TIMEOUTS INTO late"
[[sinks]]
kind = "json"
output = "timeouts"
path = "timeouts"
"""
    summary = run(read(tmp_path, changed(('path = "out"', 'path = "out/{query}"'), added=more)))
    assert summary.counts.timeouts["late"] == 2
    assert sorted(row["a"]["ts"] for row in lines(tmp_path / "timeouts")) == [1, 3]
    assert matches(tmp_path / "out" / "pairs") == [(1, 2), (3, 4)]
    assert matches(tmp_path / "out" / "late") == []


def test_an_error_of_a_query_shows_where_it_was_written(run: Any, tmp_path: Path) -> None:
    query = "'''\nDECLARE TYPE A (x int)\nDECLARE TYPE B (x int)\nPATTERN SEQ(A a, B b)\nWHERE a.x = b.yy'''"
    text = changed(('"PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"', query))
    with pytest.raises(KleeneError) as caught:
        run(read(tmp_path, text))
    assert str(caught.value).startswith(
        f"error[KL203]: B has no attribute `yy`\n   --> {tmp_path}/pipeline.toml:13:15\n"
    )
    other = changed(('text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"', 'file = "q.kleene"'))
    with pytest.raises(KleeneError) as caught:
        run(read(tmp_path, other, q_kleene=query.strip("'\n")))
    assert f"--> {tmp_path}/q.kleene:4:15\n" in str(caught.value)
    assert " 4 | WHERE a.x = b.yy\n" in str(caught.value)


def test_a_failing_spark_does_not_tell_a_secret(run: Any, tmp_path: Path) -> None:
    source = 'kind = "parquet"\npath = "s3a://bucket/x?sig=hunter22"\noptions = { "fs.s3a.secret.key" = "hunter22" }'
    text = changed(('kind = "csv"\npath = "day.csv"\nschema = { ts = "long", x = "long" }', source))
    with pytest.raises(KleeneError) as caught:
        run(read(tmp_path, text))
    assert caught.value.code == "KL706"
    assert "hunter22" not in str(caught.value)

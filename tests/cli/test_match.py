"""`kleene match`: files in, matches out, and a word about what was set aside."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Kleene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = """type,ts,tag
Shelf,1,7
Shelf,2,8
Register,3,8
Exit,9,8
Exit,5,7
"""
QUERY = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 10"


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return path


def test_a_pipe_gets_json_lines_and_a_summary_on_stderr(kleene: Kleene, events: Path) -> None:
    ended = kleene("match", "-q", QUERY, "-i", events)
    assert ended.code == 0
    (found,) = rows(ended.out)
    assert found["key"] == {"tag": 7}
    assert (found["start"], found["end"]) == (1, 5)
    assert found["a"] == {"type": "Shelf", "ts": 1, "tag": 7}
    assert ended.err.startswith("5 events, 0 bad rows, 1 match in ")


def test_a_table_shows_events_in_short(kleene: Kleene, events: Path) -> None:
    ended = kleene("match", "-q", QUERY, "-i", events, "--format", "table")
    header, _, row = [line for line in ended.out.splitlines() if line.strip()]
    assert header.split() == ["tag", "start", "end", "a", "c"]
    assert row.split() == ["7", "1", "5", "Shelf@1", "Exit@5"]


def test_a_table_shows_moments_in_short_and_closures_as_lists(kleene: Kleene, tmp_path: Path) -> None:
    lines = ["type,ts,x"] + [f"A,2024-01-01T08:{minute:02}:00,{minute}" for minute in range(7)]
    (tmp_path / "e.csv").write_text("\n".join([*lines, "B,2024-01-01T09:00:00,"]))
    query = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { a[1].x = 0 } WITHIN 2 hours"
    out = kleene("match", "-q", query, "-i", "e.csv", "-f", "table").out
    assert "on 2024-01-01" in out
    for phrase in ("A@08:00 x=0", "A@08:02 x=2", "… 3 more", "A@08:06 x=6", "B@09:00"):
        assert phrase in out
    assert "A@08:03" not in out


def test_a_table_leaves_graphs_out(kleene: Kleene, events: Path) -> None:
    query = "PATTERN SEQ(Shelf+ a[], Exit b) OUTPUT COMPRESSED"
    header, _, *found = [
        line for line in kleene("match", "-q", query, "-i", events, "-f", "table").out.splitlines() if line.strip()
    ]
    assert header.split() == ["start", "end", "count", "last"]
    assert [row.split()[2] for row in found] == ["3", "3"]
    assert "graph" in rows(kleene("match", "-q", query, "-i", events).out)[0]
    named = kleene("match", "-q", "PATTERN Shelf graph", "-i", events, "-f", "table").out
    assert "Shelf@1" in named, "a variable may be called so"


def test_no_match_is_said(kleene: Kleene, events: Path) -> None:
    ended = kleene("match", "-q", "PATTERN SEQ(Exit a, Shelf b)", "-i", events, "--format", "table")
    assert (ended.code, ended.out) == (0, "no match\n")


def test_the_limit(kleene: Kleene, events: Path) -> None:
    query = "PATTERN ANY(Shelf, Exit) a"
    assert len(rows(kleene("match", "-q", query, "-i", events, "--limit", "3").out)) == 3
    table = kleene("match", "-q", query, "-i", events, "--limit", "3", "-f", "table").out
    assert table.count("@") == 3
    assert "… and 1 more" in table


@pytest.mark.parametrize(
    ("name", "arguments"), [("m.parquet", []), ("m.jsonl", []), ("m.csv", []), ("m", ["--format", "parquet"])]
)
def test_matches_are_written_to_a_file(
    kleene: Kleene, events: Path, tmp_path: Path, name: str, arguments: list[str]
) -> None:
    ended = kleene("match", "-q", QUERY, "-i", events, "-o", name, *arguments)
    assert (ended.code, ended.out) == (0, "")
    path = tmp_path / name
    if name.endswith("csv"):
        (found,) = csv.DictReader(io.StringIO(path.read_text()))
        assert json.loads(found["a"])["tag"] == 7
    elif name.endswith("jsonl"):
        assert rows(path.read_text())[0]["a"]["tag"] == 7
    else:
        assert pq.read_table(path).column("a").to_pylist()[0]["tag"] == 7


def test_formats_on_a_pipe(kleene: Kleene, events: Path) -> None:
    (found,) = csv.DictReader(io.StringIO(kleene("match", "-q", QUERY, "-i", events, "-f", "csv").out))
    assert found["key"] == '{"tag": 7}'


def test_a_query_file_names_its_matches(kleene: Kleene, events: Path, tmp_path: Path) -> None:
    (tmp_path / "theft.kleene").write_text(QUERY)
    assert rows(kleene("match", "-q", "theft.kleene", "-i", events).out)[0]["query"] == "theft"


def test_several_queries_feed_each_other(kleene: Kleene, events: Path) -> None:
    first = "PATTERN SEQ(Shelf a, Exit b) WHERE [tag] WITHIN 10 RETURN a.tag AS tag INTO Trip"
    ended = kleene("match", "-q", first, "-q", "PATTERN SEQ(Trip s, Trip t) WHERE s.tag != t.tag", "-i", events)
    assert ended.code == 0, ended.err
    assert {row["query"] for row in rows(ended.out)} >= {"Trip"}


def test_several_queries_show_what_they_return(kleene: Kleene, events: Path) -> None:
    queries = ("-q", "PATTERN SEQ(Shelf a, Exit b) WHERE [tag] RETURN b.ts - a.ts AS gap", "-q", "PATTERN Exit e")
    found = rows(kleene("match", *queries, "-i", events).out)
    returned = [row["returned"][row["query"]] for row in found if row["returned"] is not None]
    assert returned
    assert all(one.keys() == {"gap"} for one in returned)
    assert len(returned) < len(found)
    assert "gap=" in kleene("match", *queries, "-i", events, "-f", "table").out


def test_streams_by_name(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("ts,tag\n1,7\n2,8\n")
    (tmp_path / "e.jsonl").write_text('{"ts": 5, "tag": 7, "gate": "north"}\n')
    query = "PATTERN Shelf s ; Exit e WHERE [tag] AND e.gate = 'north' WITHIN 10"
    ended = kleene("match", "-q", query, "-i", "Shelf=s.csv", "-i", "Exit=e.jsonl")
    (found,) = rows(ended.out)
    assert found["e"] == {"type": "Exit", "ts": 5, "tag": 7, "gate": "north"}
    assert kleene("match", "-q", query, "-i", "Shelf=s.csv", "-i", "e.jsonl").code == 2


def test_several_files_without_a_name_are_one_stream(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("type,ts,tag\nShelf,1,7\n")
    (tmp_path / "2.csv").write_text("type,ts,tag\nExit,5,7\nExit\n")
    ended = kleene("match", "-q", QUERY, "-i", "1.csv", "-i", "2.csv")
    assert len(rows(ended.out)) == 1
    assert "2.csv: line 3: 1 column, expected 3" in ended.err


def test_events_from_stdin(kleene: Kleene) -> None:
    data = b'{"type": "Shelf", "ts": 1, "tag": 7}\n{"type": "Exit", "ts": 5, "tag": 7}\n'
    assert len(rows(kleene("match", "-q", QUERY, "-i", "-", stdin=data).out)) == 1
    ended = kleene("match", "-q", QUERY, "-i", "-", "--input-format", "csv", stdin=EVENTS.encode())
    assert len(rows(ended.out)) == 1


def test_parameters(kleene: Kleene, events: Path) -> None:
    query = "PATTERN SEQ(Shelf a, Exit c) WHERE a.tag = c.tag AND a.tag = :tag WITHIN :window"
    ended = kleene("match", "-q", query, "-i", events, "--param", "tag=8", "-p", "window=10")
    assert [row["a"]["tag"] for row in rows(ended.out)] == [8]
    missing = kleene("match", "-q", query, "-i", events, "--param", "tag=8")
    assert missing.code == 1
    assert "KL206" in missing.err
    assert kleene("match", "-q", query, "-i", events, "--param", "tag").code == 2


def test_the_schema_file_says_what_columns_mean(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("kind,at,tag\nShelf,1,007\nExit,5,007\nExit,6,7\n")
    (tmp_path / "store.kleene").write_text(
        "DECLARE STREAM (type kind, time at, tick 1 hour)\n"
        "DECLARE TYPE Shelf (tag string)\nDECLARE TYPE Register (tag string)\nDECLARE TYPE Exit (tag string)\n"
    )
    query = QUERY.replace("10", "12 hours")
    ended = kleene("match", "-q", query, "-i", "e.csv", "--schema", "store.kleene")
    assert [row["key"] for row in rows(ended.out)] == [{"tag": "007"}]
    without = kleene("match", "-q", query, "-i", "e.csv")
    assert without.code == 1
    assert "KL503" in without.err


def test_timeouts_and_bad_rows_go_to_files(kleene: Kleene, events: Path, tmp_path: Path) -> None:
    events.write_text(EVENTS + "Shelf\n")
    query = QUERY + " TIMEOUTS INTO Late"
    ended = kleene("match", "-q", query, "-i", events, "--timeouts", "late.jsonl", "--bad-rows", "bad.jsonl")
    assert ended.code == 0, ended.err
    assert [row["a"]["tag"] for row in rows((tmp_path / "late.jsonl").read_text())] == [8]
    assert rows((tmp_path / "bad.jsonl").read_text()) == [
        {"file": str(events), "row": 5, "line": 7, "reason": "1 column, expected 3", "text": "Shelf"}
    ]
    assert kleene("match", "-q", QUERY, "-i", events, "--timeouts", "late.jsonl").code == 2


def test_names_that_nothing_has(kleene: Kleene, events: Path) -> None:
    ended = kleene("match", "-q", QUERY.replace("Register", "Registr"), "-i", events)
    assert ended.code == 0
    assert "warning[KL906]: no event is of type `Registr`, so that nothing is excluded" in ended.err
    assert "did you mean `Register`?" in ended.err
    for command in (["match", "-i", str(events), "-q"], ["explain"]):
        ended = kleene(*command, "PATTERN Shelf a WHERE a.tag < :limit", "-p", "limit=5", "-p", "limits=6")
        assert (ended.code, "error[KL211]: the query has no parameter `:limits`" in ended.err) == (1, True)


def test_a_warning_of_the_query_is_shown(kleene: Kleene, events: Path) -> None:
    ended = kleene("match", "-q", "PATTERN SEQ(Shelf a, Exit c) WHERE a.tag = NULL", "-i", events)
    assert ended.code == 0
    assert "warning[KL901]" in ended.err


# Why ---------------------------------------------------------------------------------------------------------------


def test_why_goes_to_stderr(kleene: Kleene, events: Path) -> None:
    query = "PATTERN SEQ(Shelf a, Exit c) WHERE [tag] AND a.tag > 9 WITHIN 10"
    ended = kleene("match", "-q", query, "-i", events, "--why")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.splitlines()[2:] == [
        "  a  2 events of Shelf, none with `a.tag > 9`",
        "  c  2 events of Exit; none came after a in time",
        "  nothing reached a: no event of Shelf has `a.tag > 9`",
    ]
    found = kleene("match", "-q", QUERY, "-i", events, "--why")
    assert len(rows(found.out)) == 1
    assert "1 sequence stopped by a negated b" in found.err


# More than the engine can run.
WIDE = " & ".join(f"Shelf s{number}" for number in range(61))


def test_why_is_not_available_everywhere(kleene: Kleene, events: Path) -> None:
    ended = kleene("match", "-q", f"PATTERN {WIDE}", "-i", events, "--why")
    assert ended.code == 0
    assert "why is not available" in ended.err.splitlines()[-1]
    several = kleene("match", "-q", "PATTERN Shelf", "-q", "PATTERN Exit", "-i", events, "--why")
    assert "why is not available: several queries" in several.err
    assert kleene("match", "-q", QUERY, "-i", events, "--why", "--on", "spark").code == 2


def test_a_slow_run_is_announced_once(kleene: Kleene, events: Path, tmp_path: Path) -> None:
    (tmp_path / "both.kleene").write_text(f"PATTERN {WIDE}")
    slow = "`both` runs on the reference evaluator, which is slow: a pattern of more than 60"
    ended = kleene("match", "-q", "both.kleene", "-i", events)
    assert ended.err.splitlines()[0] == f"{slow} components"
    assert ended.err.count("reference evaluator") == 1
    several = kleene("match", "-q", "PATTERN Shelf", "-q", "both.kleene", "-i", events)
    assert several.err.count("reference evaluator") == 1
    assert "reference" not in kleene("match", "-q", QUERY, "-i", events).err


def test_the_verbose_switch_shows_logging_on_either_side(kleene: Kleene, events: Path) -> None:
    import logging

    for arguments in (["-v", "match"], ["match", "-v"]):
        assert kleene(*arguments, "-q", QUERY, "-i", events).code == 0
        assert logging.getLogger("kleene").level == logging.DEBUG
    kleene("match", "-q", QUERY, "-i", events)
    assert logging.getLogger("kleene").level == logging.WARNING


def test_spark_finds_the_same(spark: object, kleene: Kleene, tmp_path: Path) -> None:
    """The session of the tests is the one that `--on spark` gets."""
    kleene("generate", "supermarket", "-n", "250", "-o", "day.csv")
    query = Path(__file__).parents[2] / "examples" / "retail" / "misplaced.kleene"
    here = kleene("match", "-q", query, "-i", "day.csv")
    there = kleene("match", "-q", query, "-i", "day.csv", "--on", "spark")
    assert there.code == 0, there.err
    assert rows(here.out)
    assert sorted(here.out.splitlines()) == sorted(there.out.splitlines())


def test_spark_reads_parquet_itself_and_finds_the_same(
    spark: SparkSession, kleene: Kleene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a table that was put into a file for it, and a name that Spark would take for a pattern; bad rows stay."""
    from kleene.cli import on_spark

    query = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10 seconds"
    times = pa.array([1, 2, None, 30], pa.timestamp("us", "UTC"))
    table = pa.table({"type": ["A", "B", "B", "A"], "ts": times, "x": [5, 5, 5, 5]})
    pq.write_table(table, tmp_path / "day.parquet")
    pq.write_table(table, tmp_path / "day[1].parquet")
    pa.csv.write_csv(table.drop_null(), tmp_path / "day.csv")
    handed: list[pa.Table] = []
    create = type(spark).createDataFrame

    def counted(self: SparkSession, data: Any, *given: Any, **named: Any) -> Any:
        handed.append(data)
        return create(self, data, *given, **named)

    monkeypatch.setattr(type(spark), "createDataFrame", counted)
    monkeypatch.setattr(on_spark, "_WORTH_A_FILE", 1)
    for file, tables in (("day.parquet", 0), ("day[1].parquet", 1), ("day.csv", 0)):
        handed.clear()
        here = kleene("match", "-q", query, "-i", tmp_path / file)
        there = kleene("match", "-q", query, "-i", tmp_path / file, "--on", "spark")
        assert there.code == 0, there.err
        assert (there.out, len(handed)) == (here.out, tables)
        assert len(rows(there.out)) == 1
        bad = "0 bad rows" if file == "day.csv" else "1 bad row"
        assert f"3 events, {bad}, 1 match in" in there.err

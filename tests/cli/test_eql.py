"""The command on queries in EQL: `check`, `format`, `explain` and `match`, as on patterns."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Kleene

TRANSFERS = """type,ts,acc,amount
t,1,7,10
t,2,8,20
t,3,7,300
t,4,8,5
t,5,7,400
"""
RISES = "SELECT * FROM t S1 ; t L WHERE FILTER(S1.acc = L.acc), L.amount > S1.amount"
SCHEMA = "DECLARE TYPE t (acc int, amount float)\n"


@pytest.fixture
def transfers(tmp_path: Path) -> Path:
    path = tmp_path / "transfers.csv"
    path.write_text(TRANSFERS)
    return path


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.kleene").write_text(text, encoding="utf-8")


# check ---------------------------------------------------------------------------------------------------------------


def test_a_right_file(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, rises=f"-- two transfers\n{SCHEMA}\n{RISES}\n", plain="select * from t")
    ended = kleene("check", "rises.kleene", "plain.kleene")
    assert (ended.code, ended.out, ended.err) == (0, "ok: rises.kleene\nok: plain.kleene\n", "")
    assert kleene("check", "-", stdin=RISES.encode()).out == "ok: stdin\n"


def test_an_error_shows_file_line_and_caret(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, bad=f"{SCHEMA}SELECT *\nFROM t S1 ; t L\nWHERE L.amont > S1.amount\n")
    ended = kleene("check", "bad.kleene")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        "error[KL203]: t has no attribute `amont`",
        "  --> bad.kleene:4:9",
        "   |",
        " 4 | WHERE L.amont > S1.amount",
        "   |         ^^^^^",
        "  = hint: did you mean `amount`?",
    ]


def test_a_syntax_error_shows_the_place_below_declarations(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, bad=f"-- a comment\n{SCHEMA}\nSELECT * FROM A ; B \\ C\n", good="SELECT * FROM A")
    ended = kleene("check", "bad.kleene", "good.kleene")
    assert (ended.code, ended.out) == (1, "ok: good.kleene\n")
    assert ended.err.splitlines() == [
        r"error[KL426]: `\` beside `;` needs parentheses",
        "  --> bad.kleene:4:21",
        "   |",
        r" 4 | SELECT * FROM A ; B \ C",
        "   |                     ^",
        r"  = hint: write `A ; (B \ C)` or `(A ; B) \ C`",
    ]


def test_the_time_operator_is_named_where_it_can_be_written(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, later="SELECT * FROM A @ 5 min")
    ended = kleene("check", "later.kleene")
    assert (ended.code, "a query that is built in Python has `.after('5 min')`" in ended.err) == (1, True)


def test_parameters_may_stay_open_but_given_ones_are_typed(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, dear=f"{SCHEMA}SELECT * FROM t A ; t B WHERE A.amount > :low, (A, B) OCCURS WITHIN :t")
    assert kleene("check", "dear.kleene").code == 0
    assert kleene("check", "dear.kleene", "-p", "low=5", "-p", "t=10").code == 0
    ended = kleene("check", "dear.kleene", "-p", "low='five'")
    assert (ended.code, "KL301" in ended.err) == (1, True)
    ended = kleene("check", "dear.kleene", "-p", "lows=5")
    assert (ended.code, "did you mean `low`?" in ended.err) == (1, True)


def test_warnings_are_shown(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, either=f"{SCHEMA}SELECT * FROM (t A | t B) ; t C WHERE C.amount > A.amount")
    ended = kleene("check", "either.kleene")
    assert (ended.code, ended.out) == (0, "ok: either.kleene\n")
    assert "only one branch of `|` binds `A`" in ended.err


def test_the_schema_and_the_events_decide_about_names(kleene: Kleene, tmp_path: Path, transfers: Path) -> None:
    write(tmp_path, rises=RISES, schema="DECLARE TYPE t (acc int, cost float)\n")
    assert kleene("check", "rises.kleene", "-i", transfers).code == 0
    ended = kleene("check", "rises.kleene", "--schema", "schema.kleene")
    assert (ended.code, "KL203" in ended.err) == (1, True)
    transfers.write_text(TRANSFERS.replace("amount", "cost"))
    ended = kleene("check", "rises.kleene", "-i", transfers)
    assert (ended.code, "KL203" in ended.err) == (1, True)


def test_files_that_feed_each_other(kleene: Kleene, tmp_path: Path) -> None:
    """A pattern reads what EQL makes, and EQL what a stream makes; makers are checked first."""
    write(
        tmp_path,
        last="PATTERN Rise r ; Rise s WHERE s.gain > r.gain WITHIN 10",
        middle="SELECT L.amount - S.amount AS gain FROM Small S ; t L INTO Rise",
        first=f"{SCHEMA}σ{{amount < 100}}(t) publish Small",
    )
    ended = kleene("check", "last.kleene", "middle.kleene", "first.kleene")
    assert ended.err == ""
    assert ended.out.splitlines() == ["ok: first.kleene", "ok: middle.kleene", "ok: last.kleene"]
    write(tmp_path, last="PATTERN Rise r WHERE r.loss > 5")
    ended = kleene("check", "last.kleene", "middle.kleene", "first.kleene")
    assert (ended.code, "--> last.kleene:1:" in ended.err) == (1, True)


def test_a_cycle_is_shown_where_it_closes(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, one="SELECT B.x FROM B INTO C", two="PATTERN C c\nRETURN c.x AS x INTO B")
    ended = kleene("check", "one.kleene", "two.kleene")
    assert (ended.code, "error[KL420]: queries feed each other in a cycle: C → B → C" in ended.err) == (1, True)


# format --------------------------------------------------------------------------------------------------------------


def test_format_writes_a_clause_a_line(kleene: Kleene, tmp_path: Path) -> None:
    written = (
        "-- two transfers\nselect s1.acc as acc,l from (t s1;(t s2));t l where filter(s1.acc==s2.acc and s2.acc=l.acc)"
        " and s1.amount<100 , (s1,l) occurs within 12 hrs into Large"
    )
    write(tmp_path, rises=written)
    assert kleene("format", "--write", "rises.kleene").out == "formatted: rises.kleene\n"
    assert (tmp_path / "rises.kleene").read_text(encoding="utf-8") == (
        "-- two transfers\n"
        "SELECT s1.acc AS acc, l FROM t s1 ; t s2 ; t l\n"
        "WHERE FILTER(s1.acc = s2.acc), FILTER(s2.acc = l.acc), s1.amount < 100,\n"
        "      (s1, l) OCCURS WITHIN 12 hours\n"
        "INTO Large\n"
    )
    assert kleene("format", "--write", "rises.kleene").out == ""


def test_format_loses_no_comment_and_shows_errors(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, inner="SELECT * FROM t /* all of them */", bad="SELECT * FROM (t S1 ; t S2")
    ended = kleene("format", "--write", "inner.kleene")
    assert (ended.code, "inner.kleene:1: this comment would be lost" in ended.err) == (1, True)
    ended = kleene("format", "bad.kleene")
    assert (ended.code, "--> bad.kleene:1:15" in ended.err) == (1, True)


# explain -------------------------------------------------------------------------------------------------------------


def test_explain(kleene: Kleene, tmp_path: Path, transfers: Path) -> None:
    write(tmp_path, rises=RISES)
    out = kleene("explain", "rises.kleene").out
    assert out.splitlines()[0].split() == ["query", "rises"]
    assert "a queue for each S1.acc (= L.acc)" in out
    assert "needs a state budget: what waits at `t S1 ; t L` may wait for ever" in out
    assert kleene("explain", "rises.kleene", "--mermaid").out.startswith("flowchart LR\n")
    counted = kleene("explain", "rises.kleene", "-i", transfers, "--analyze").out
    assert "5 came, 2 given, 1 over, since what came next failed" in counted
    assert "It ran: 2 matches in 5 events." in counted
    ended = kleene("explain", "SELECT * FROM t S1 WHERE S3.acc > 1")
    assert (ended.code, "KL202" in ended.err) == (1, True)


# match ---------------------------------------------------------------------------------------------------------------


def test_match_gives_the_events_by_alias(kleene: Kleene, transfers: Path) -> None:
    ended = kleene("match", "-q", RISES, "-i", transfers)
    assert ended.code == 0, ended.err
    found = [(row["start"], row["end"], row["S1"]["amount"], row["L"]["amount"]) for row in rows(ended.out)]
    assert found == [(1, 3, 10, 300), (3, 5, 300, 400)]
    assert ended.err.startswith("5 events, 0 bad rows, 2 matches in ")


def test_match_as_a_table_and_in_files(kleene: Kleene, transfers: Path, tmp_path: Path) -> None:
    query = "SELECT S1.acc AS account, L FROM t S1 ; t L WHERE FILTER(S1.acc = L.acc), L.amount > S1.amount"
    out = kleene("match", "-q", query, "-i", transfers, "-f", "table").out
    header, _, first, *_ = [line for line in out.splitlines() if line.strip()]
    assert header.split() == ["start", "end", "account", "L"]
    assert first.split()[:3] == ["1", "3", "7"]
    (found, *_) = csv.DictReader(io.StringIO(kleene("match", "-q", query, "-i", transfers, "-f", "csv").out))
    assert json.loads(found["L"])["amount"] == 300
    kleene("match", "-q", query, "-i", transfers, "-o", "found.parquet")
    assert pq.read_table(tmp_path / "found.parquet").column("account").to_pylist() == [7, 7]


def test_match_with_parameters_and_a_schema_file(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, large="SELECT * FROM t WHERE t.amount > :low", schema="DECLARE STREAM (type 't', time at)\n")
    (tmp_path / "transfers.csv").write_text("at,acc,amount\n1,7,10\n2,8,22\n")
    request = ("match", "-q", "large.kleene", "-i", "transfers.csv", "--schema", "schema.kleene")
    (found,) = rows(kleene(*request, "-p", "low=15").out)
    assert (found["query"], found["t"]["acc"]) == ("large", 8)
    ended = kleene(*request)
    assert (ended.code, "KL206" in ended.err) == (1, True)


def test_files_that_feed_each_other_run_together(kleene: Kleene, tmp_path: Path, transfers: Path) -> None:
    write(
        tmp_path,
        rise="SELECT S1.acc AS acc, L.amount AS amount FROM t S1 ; t L"
        " WHERE FILTER(S1.acc = L.acc), L.amount > S1.amount INTO Rise",
        later="SELECT * FROM Rise r WHERE r.amount > 350",
        stream="σ{s.amount < 350}(Rise s)",
    )
    queries = [part for name in ("later", "stream", "rise") for part in ("-q", f"{name}.kleene")]
    ended = kleene("match", *queries, "-i", transfers)
    assert ended.code == 0, ended.err
    found = sorted((row["query"], row["start"], row["end"]) for row in rows(ended.out))
    assert found == [("later", 3, 5), ("rise", 1, 3), ("rise", 3, 5), ("stream", 1, 3)]


def test_why(kleene: Kleene, transfers: Path) -> None:
    ended = kleene("match", "-q", f"{RISES}, L.amount > 1000", "-i", transfers, "--why")
    assert ended.code == 0
    assert "5 came: none was served by what came next, 3 over: what came next failed, 2 still waited" in ended.err
    assert "nothing came of t S1 ; t L: 3 failed `L.amount > 1000`, 1 failed `L.amount > S1.amount`" in ended.err


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("SELECT * FROM t WHERE t.amont > 1", 1, "error[KL203]"),
        ("SELECT * FROM t WHERE t.amount >", 1, "error[KL101]"),
        ("SELECT * FROM t ; tt", 0, "warning"),
        ("SELECT A.x FROM A INTO A", 1, "error[KL420]"),
        ("SELECT *", 1, "error[KL101]"),
    ],
)
def test_exit_codes_are_those_of_patterns(kleene: Kleene, transfers: Path, query: str, code: int, said: str) -> None:
    ended = kleene("match", "-q", query, "-i", transfers)
    assert (ended.code, said in ended.err) == (code, True), ended.err


def test_timeouts_belong_to_patterns(kleene: Kleene, transfers: Path) -> None:
    ended = kleene("match", "-q", RISES, "-i", transfers, "--timeouts", "late.parquet")
    assert (ended.code, "the query has no TIMEOUTS INTO" in ended.err) == (2, True)

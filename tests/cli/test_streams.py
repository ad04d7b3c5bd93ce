"""The command on expressions of streams: `check`, `format`, `explain` and `match`, as on patterns."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Kleene

QUOTES = """type,ts,name,price
Stock,1,IBM,10
Stock,2,Dell,22
Stock,3,IBM,19
Stock,4,Dell,24
Stock,5,IBM,22
Stock,6,Dell,22
"""
RISES = "σ{b.price > a.price}(Stock a ;{a.name = b.name} Stock b)"
SCHEMA = "DECLARE TYPE Stock (name string, price float)\n"


@pytest.fixture
def quotes(tmp_path: Path) -> Path:
    path = tmp_path / "quotes.csv"
    path.write_text(QUOTES)
    return path


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.kleene").write_text(text, encoding="utf-8")


# check ---------------------------------------------------------------------------------------------------------------


def test_a_right_file(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, rises=f"-- two quotes\n{SCHEMA}\n{RISES}\n", plain="select{price>5}(Stock)")
    ended = kleene("check", "rises.kleene", "plain.kleene")
    assert (ended.code, ended.out, ended.err) == (0, "ok: rises.kleene\nok: plain.kleene\n", "")
    assert kleene("check", "-", stdin=RISES.encode()).out == "ok: stdin\n"


def test_an_error_shows_file_line_and_caret(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, bad=f"{SCHEMA}σ{{b.prize > a.price}}(\n  Stock a ; Stock b\n)\n")
    ended = kleene("check", "bad.kleene")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        "error[KL203]: `b` has no attribute `prize` here",
        "  --> bad.kleene:2:5",
        "   |",
        " 2 | σ{b.prize > a.price}(",
        "   |     ^^^^^",
        "  = hint: did you mean `price`?",
    ]


def test_a_syntax_error_shows_the_place_below_declarations(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, bad=f"-- a comment\n{SCHEMA}\nσ(price > 5)(Stock)\n", good="σ{x > 1}(A)")
    ended = kleene("check", "bad.kleene", "good.kleene")
    assert (ended.code, ended.out) == (1, "ok: good.kleene\n")
    assert ended.err.splitlines() == [
        "error[KL101]: unexpected `(`",
        "  --> bad.kleene:4:2",
        "   |",
        " 4 | σ(price > 5)(Stock)",
        "   |  ^",
        "  = hint: what σ tests stands in braces: `σ{price > 5}(Stock)`",
    ]


def test_parameters_may_stay_open_but_given_ones_are_typed(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, dear=f"{SCHEMA}σ{{price > :low AND DUR <= :t}}(Stock)")
    assert kleene("check", "dear.kleene").code == 0
    assert kleene("check", "dear.kleene", "-p", "low=5", "-p", "t=10").code == 0
    ended = kleene("check", "dear.kleene", "-p", "low='five'")
    assert (ended.code, "KL301" in ended.err) == (1, True)
    ended = kleene("check", "dear.kleene", "-p", "lows=5")
    assert (ended.code, "did you mean `low`?" in ended.err) == (1, True)


def test_the_schema_and_the_events_decide_about_names(kleene: Kleene, tmp_path: Path, quotes: Path) -> None:
    write(tmp_path, rises=RISES, schema="DECLARE TYPE Stock (name string, cost float)\n")
    assert kleene("check", "rises.kleene", "-i", quotes).code == 0
    ended = kleene("check", "rises.kleene", "--schema", "schema.kleene")
    assert (ended.code, "`b` has no attribute `price` here" in ended.err) == (1, True)
    quotes.write_text(QUOTES.replace("price", "cost"))
    ended = kleene("check", "rises.kleene", "-i", quotes)
    assert (ended.code, "KL203" in ended.err) == (1, True)


def test_dur_needs_a_tick_where_times_are_timestamps(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, long="σ{DUR > 5 min}(Stock)", schema="DECLARE STREAM (time ts timestamp)")
    ended = kleene("check", "long.kleene", "--schema", "schema.kleene")
    assert (ended.code, "KL425" in ended.err) == (1, True)
    write(tmp_path, schema="DECLARE STREAM (time ts timestamp, tick 1 second)")
    assert kleene("check", "long.kleene", "--schema", "schema.kleene").code == 0


def test_files_that_feed_each_other(kleene: Kleene, tmp_path: Path) -> None:
    """A pattern reads a stream, and a stream reads what a pattern makes; makers are checked first."""
    write(
        tmp_path,
        last="σ{r.gain > 5}(Pair r)",
        pattern=f"{SCHEMA}PATTERN Rise r ; Rise s WITHIN 10 RETURN s.price - r.price AS gain INTO Pair",
        first=f"{SCHEMA}π{{b.name, b.price}}({RISES}) publish Rise",
    )
    ended = kleene("check", "last.kleene", "pattern.kleene", "first.kleene")
    assert ended.err == ""
    assert ended.out.splitlines() == ["ok: first.kleene", "ok: pattern.kleene", "ok: last.kleene"]
    write(tmp_path, last="σ{r.loss > 5}(Pair r)")
    ended = kleene("check", "last.kleene", "pattern.kleene", "first.kleene")
    assert (ended.code, "--> last.kleene:1:5" in ended.err) == (1, True)


def test_a_cycle_is_shown_where_it_closes(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, one="σ{x > 1}(B) publish C", two="PATTERN C c\nRETURN c.x AS x INTO B")
    ended = kleene("check", "one.kleene", "two.kleene")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines()[:4] == [
        "error[KL420]: queries feed each other in a cycle: C → B → C",
        "  --> two.kleene:1:9",
        "   |",
        " 1 | PATTERN C c",
    ]


# format --------------------------------------------------------------------------------------------------------------


def test_format_lays_long_expressions_out(kleene: Kleene, tmp_path: Path) -> None:
    written = (
        "-- rises of two quotes\nselect {b.price>a.price and b.vol>1000 and b.price<500}"
        " (((Stock a) next{a.name==b.name and b.vol>0}Stock b)) publish Rise"
    )
    write(tmp_path, rises=written)
    assert kleene("format", "--write", "rises.kleene").out == "formatted: rises.kleene\n"
    assert (tmp_path / "rises.kleene").read_text(encoding="utf-8") == (
        "-- rises of two quotes\n"
        "σ{b.price > a.price AND b.vol > 1000 AND b.price < 500}(\n"
        "  Stock a ;{a.name = b.name AND b.vol > 0} Stock b\n"
        ")\n"
        "publish Rise\n"
    )
    assert kleene("format", "--write", "rises.kleene").out == ""


def test_format_loses_no_comment_and_shows_errors(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, inner="σ{price > 5 /* dollars */}(Stock)", bad="σ{price > 5(Stock)")
    ended = kleene("format", "--write", "inner.kleene")
    assert (ended.code, "inner.kleene:1: this comment would be lost" in ended.err) == (1, True)
    ended = kleene("format", "bad.kleene")
    assert (ended.code, "--> bad.kleene:1:12" in ended.err) == (1, True)


# explain -------------------------------------------------------------------------------------------------------------


def test_explain(kleene: Kleene, tmp_path: Path, quotes: Path) -> None:
    write(tmp_path, rises=RISES)
    out = kleene("explain", "rises.kleene").out
    assert out.splitlines()[0].split() == ["query", "rises"]
    assert "linear-plus: one automaton" in out
    assert "needs a state budget" in out
    assert kleene("explain", "rises.kleene", "--mermaid").out.startswith("flowchart LR\n")
    counted = kleene("explain", "rises.kleene", "-i", quotes, "--analyze").out
    assert "It ran: 3 results in 6 events." in counted
    ended = kleene("explain", "σ{b.price > 5}(Stock a)")
    assert (ended.code, "KL202" in ended.err) == (1, True)


# match ---------------------------------------------------------------------------------------------------------------


def test_match_gives_a_struct_for_each_stream(kleene: Kleene, quotes: Path) -> None:
    ended = kleene("match", "-q", RISES, "-i", quotes)
    assert ended.code == 0, ended.err
    assert [(row["start"], row["end"], row["a"]["price"], row["b"]["price"]) for row in rows(ended.out)] == [
        (1, 3, 10, 19),
        (2, 4, 22, 24),
        (3, 5, 19, 22),
    ]
    assert ended.err.startswith("6 events, 0 bad rows, 3 matches in ")


def test_an_expression_without_a_blank_is_no_file(kleene: Kleene, quotes: Path) -> None:
    assert [row["end"] for row in rows(kleene("match", "-q", "σ{price>22}(Stock)", "-i", quotes).out)] == [4]


def test_match_as_a_table_and_in_files(kleene: Kleene, quotes: Path, tmp_path: Path) -> None:
    out = kleene("match", "-q", RISES, "-i", quotes, "-f", "table").out
    header, _, first, *_ = [line for line in out.splitlines() if line.strip()]
    assert header.split() == ["start", "end", "a", "b"]
    assert first.split() == ["1", "3", "name=IBM", "price=10", "name=IBM", "price=19"]
    (found, *_) = csv.DictReader(io.StringIO(kleene("match", "-q", RISES, "-i", quotes, "-f", "csv").out))
    assert json.loads(found["b"]) == {"name": "IBM", "price": 19}
    kleene("match", "-q", RISES, "-i", quotes, "-o", "found.parquet")
    assert pq.read_table(tmp_path / "found.parquet").column("a").to_pylist()[0] == {"name": "IBM", "price": 10}


def test_match_with_parameters_and_a_schema_file(kleene: Kleene, tmp_path: Path) -> None:
    write(tmp_path, dear="σ{price > :low}(Stock)", schema="DECLARE STREAM (type 'Stock', time at)\n")
    (tmp_path / "quotes.csv").write_text("at,name,price\n1,IBM,10\n2,Dell,22\n")
    request = ("match", "-q", "dear.kleene", "-i", "quotes.csv", "--schema", "schema.kleene")
    (found,) = rows(kleene(*request, "-p", "low=15").out)
    assert (found["query"], found["Stock"]) == ("dear", {"name": "Dell", "price": 22})
    ended = kleene(*request)
    assert (ended.code, "KL206" in ended.err) == (1, True)


def test_files_that_feed_each_other_run_together(kleene: Kleene, tmp_path: Path, quotes: Path) -> None:
    write(
        tmp_path,
        rise=f"π{{b.name, b.price}}({RISES}) publish Rise",
        twice="PATTERN Rise r ; Rise s WHERE [name] RETURN s.price AS price",
        later="σ{s.price > 20}(Rise s)",
    )
    queries = [part for name in ("later", "twice", "rise") for part in ("-q", f"{name}.kleene")]
    ended = kleene("match", *queries, "-i", quotes)
    assert ended.code == 0, ended.err
    found: dict[str, list[Any]] = {}
    for row in rows(ended.out):
        found.setdefault(row["query"], []).append((row["start"], row["end"], row["returned"][row["query"]]))
    # (1,3) and (3,5) share the quote at 3, so that neither is before the other.
    assert sorted(found) == ["later", "rise"]
    assert found["later"] == [(2, 4, {"s": {"name": "Dell", "price": 24}}), (3, 5, {"s": {"name": "IBM", "price": 22}})]
    assert [span[:2] for span in found["rise"]] == [(1, 3), (2, 4), (3, 5)]
    table = kleene("match", *queries, "-i", quotes, "-f", "table").out
    assert "s=(name=Dell price=24)" in table


def test_why(kleene: Kleene, quotes: Path) -> None:
    ended = kleene("match", "-q", "σ{b.price > 100}(Stock a ;{a.name = b.name} Stock b)", "-i", quotes, "--why")
    assert ended.code == 0
    assert "6 events waited for Stock b: 4 were served by an event, 2 still waited at the end" in ended.err
    assert "0 results passed the last conditions" in ended.err


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("σ{prize > 1}(Stock)", 1, "error[KL203]"),
        ("σ(price > 1)(Stock)", 1, "error[KL101]"),
        ("Stock ; Stok", 0, "did you mean `Stock`?"),
        ("nowhere.kleene", 1, "error[KL501]"),
        ("A publish A", 1, "error[KL420]"),
    ],
)
def test_exit_codes_are_those_of_patterns(kleene: Kleene, quotes: Path, query: str, code: int, said: str) -> None:
    ended = kleene("match", "-q", query, "-i", quotes)
    assert (ended.code, said in ended.err) == (code, True), ended.err


def test_timeouts_belong_to_patterns(kleene: Kleene, quotes: Path) -> None:
    ended = kleene("match", "-q", RISES, "-i", quotes, "--timeouts", "late.parquet")
    assert (ended.code, "the query has no TIMEOUTS INTO" in ended.err) == (2, True)

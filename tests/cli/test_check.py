"""`kleene check`, `format` and `explain`: what is said of a query, as a rule without running it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Kleene

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.kleene"))


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.kleene"
    path.write_text("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10\n")
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.kleene"
    path.write_text("PATTERN SEQ(A a, B b)\nWHERE a.x = c.x\n")
    return path


def test_every_example_is_right(kleene: Kleene) -> None:
    ended = kleene("check", *EXAMPLES)
    assert ended.code == 0, ended.err
    # What makes a stream is checked before what reads it.
    assert sorted(ended.out.splitlines()) == [f"ok: {path}" for path in EXAMPLES]


def test_an_error_shows_file_line_and_caret(kleene: Kleene, good: Path, bad: Path) -> None:
    ended = kleene("check", good, bad)
    assert ended.code == 1
    assert ended.out == f"ok: {good}\n"
    assert ended.err.splitlines() == [
        "error[KL202]: unknown variable `c`",
        f"  --> {bad}:2:13",
        "   |",
        " 2 | WHERE a.x = c.x",
        "   |             ^",
        "  = hint: known here: `a`, `b`",
    ]


def test_a_syntax_error_names_the_file_too(kleene: Kleene, bad: Path) -> None:
    bad.write_text("PATTERN SEQ(A a, B b) WHERE AND")
    assert f"--> {bad}:1:29" in kleene("check", bad).err


def test_an_unreadable_file_ends_with_2_and_the_rest_is_checked(kleene: Kleene, good: Path, bad: Path) -> None:
    ended = kleene("check", "none.kleene", good, bad)
    assert ended.code == 2
    assert ended.out == f"ok: {good}\n"
    assert "KL501" in ended.err
    assert "KL202" in ended.err


def test_stdin(kleene: Kleene) -> None:
    assert kleene("check", "-", stdin=b"PATTERN A a").out == "ok: stdin\n"
    assert "--> stdin:1:" in kleene("check", "-", stdin=b"PATTERN A a WHERE").err


def test_parameters_may_stay_open_but_given_ones_are_typed(kleene: Kleene, good: Path) -> None:
    good.write_text("DECLARE TYPE A (x int)\nPATTERN A a WHERE a.x > :limit WITHIN :w hours\n")
    assert kleene("check", good).code == 0
    assert kleene("check", good, "--param", "limit=5").code == 0
    ended = kleene("check", good, "--param", "limit='five'")
    assert (ended.code, "KL301" in ended.err) == (1, True)


def test_the_schema_and_the_events_decide_about_names(kleene: Kleene, good: Path, tmp_path: Path) -> None:
    (tmp_path / "s.kleene").write_text("DECLARE TYPE A (x int)\nDECLARE TYPE B (x string)\n")
    ended = kleene("check", good, "--schema", "s.kleene")
    assert (ended.code, "KL301" in ended.err) == (1, True)
    (tmp_path / "e.csv").write_text("type,ts,x\nA,1,2\n")
    assert kleene("check", good, "-i", "e.csv").code == 0
    (tmp_path / "e.csv").write_text("type,ts,y\nA,1,2\n")
    ended = kleene("check", good, "-i", "e.csv")
    assert (ended.code, "KL203" in ended.err) == (1, True)


def test_a_wrong_schema_file_shows_its_place(kleene: Kleene, good: Path, tmp_path: Path) -> None:
    (tmp_path / "s.kleene").write_text("DECLARE TYPE A (x nonsense)\n")
    ended = kleene("check", good, "--schema", "s.kleene")
    assert ended.code == 1
    assert "KL209" in ended.err
    assert "--> s.kleene:1:" in ended.err


def test_a_schema_file_can_be_checked_itself(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "s.kleene").write_text("DECLARE TYPE A (x int)\n")
    assert kleene("check", "s.kleene").out == "ok: s.kleene\n"


def test_a_stream_that_another_query_makes_is_known(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "reader.kleene").write_text("PATTERN SEQ(Pair p, Pair q) WHERE p.x = q.x WITHIN 10\n")
    (tmp_path / "maker.kleene").write_text(
        "DECLARE TYPE A (x int)\nPATTERN SEQ(A a, A b) WITHIN 10 RETURN a.x AS x INTO Pair\n"
    )
    ended = kleene("check", "reader.kleene", "maker.kleene")
    assert (ended.code, ended.out) == (0, "ok: maker.kleene\nok: reader.kleene\n")


def test_warnings_are_shown_and_are_no_errors(kleene: Kleene, good: Path) -> None:
    good.write_text("PATTERN A a WHERE a.x = NULL")
    ended = kleene("check", good)
    assert (ended.code, ended.out) == (0, f"ok: {good}\n")
    assert "warning[KL901]" in ended.err


# format --------------------------------------------------------------------------------------------------------------


def test_format_prints_one_layout(kleene: Kleene) -> None:
    ended = kleene("format", "-", stdin=b"event a x ; b y where x.id==y.id within 2 hrs")
    assert ended.out == "PATTERN SEQ(a x, b y)\nWHERE x.id = y.id\nWITHIN 2 hours\n"


def test_format_writes_and_keeps_the_comments_above(kleene: Kleene, good: Path) -> None:
    good.write_text("-- pairs\n/* of a kind */\n\nevent a x;b y")
    assert kleene("format", "--write", good).out == f"formatted: {good}\n"
    assert good.read_text() == "-- pairs\n/* of a kind */\n\nPATTERN SEQ(a x, b y)\n"
    assert kleene("format", "--write", good).out == ""


def test_format_does_not_lose_a_comment(kleene: Kleene, good: Path) -> None:
    text = "event a x;b y\nwhere x.name = '-- no comment'\n  -- the same item\n  and x.id = y.id"
    good.write_text(text)
    ended = kleene("format", "--write", good)
    assert ended.code == 1
    assert f"{good}:3: this comment would be lost" in ended.err
    assert good.read_text() == text
    printed = kleene("format", good)
    assert printed.code == 0
    assert f"warning: {good}:3:" in printed.err


def test_format_of_a_schema_file_and_of_a_wrong_one(kleene: Kleene, good: Path, tmp_path: Path) -> None:
    good.write_text("declare type A(x int,y)")
    assert kleene("format", good).out == "DECLARE TYPE A (x int, y)\n"
    good.write_text("PATTERN SEQ(")
    ended = kleene("format", good)
    assert ended.code == 1
    assert f"--> {good}:1:" in ended.err
    assert kleene("format", "none.kleene").code == 2


# explain -------------------------------------------------------------------------------------------------------------


def test_explain_shows_what_was_bound(kleene: Kleene) -> None:
    query = ROOT / "examples" / "papers" / "sase-s23-misplaced-inventory.kleene"
    lines = kleene("explain", query).out.splitlines()
    assert lines[0].split() == ["query", "sase-s23-misplaced-inventory"]
    for line in (
        "partition  id",
        "  begin y                               y.id = x.id",
        "                                        x.shelf_id != y.shelf_id",
        "  no z after y within the window, with  z.id = x.id",
    ):
        assert line in lines


def test_explain_shows_edges_alternatives_and_warnings(kleene: Kleene) -> None:
    query = (
        "PATTERN SEQ(A a, B? b, C+ c[]) WHERE skip_till_any_match { a.x = b.x AND c[1].x > 5 "
        "AND c[i].x > avg(c[..i-1].x) AND c.LEN < :most } WITHIN 90 min RETURN a.x, c.LEN AS n"
    )
    ended = kleene("explain", query)
    lines = ended.out.splitlines()
    assert ended.code == 0, ended.err
    for line in (
        "window     end − start < 90 minutes",
        "returns    a.x AS a_x, count(c) AS n",
        "alternative 1 of 2: SEQ(A a, B b, C+ c[])",
        "alternative 2 of 2: SEQ(A a, C+ c[])",
        "  begin b         a.x = b.x",
        "  take c[i]       c[i].x > avg(c[..i-1].x)",
        "  proceed from c  count(c) < :most",
    ):
        assert line in lines, ended.out
    assert "warning[KL905]" in ended.out


def test_explain_ends_with_the_plan(kleene: Kleene) -> None:
    out = kleene("explain", "PATTERN SEQ(A a, B b) WHERE [x] AND a.y < b.y WITHIN 5").out
    bound, plan = out.split("\nplan\n")
    assert "begin b  b.x = a.x" in bound
    assert "  partition  by x: stacks of different keys never meet" in plan.splitlines()
    assert "  bind a     a.y < b.y" in plan.splitlines()


def test_explain_without_rules(kleene: Kleene) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 5"
    out = kleene("explain", query, "--without", "push_window", "--without", "push_equivalence").out
    assert "  switched off  push_equivalence, push_window" in out.splitlines()
    assert "tested on whole sequences" in out
    wrong = kleene("explain", query, "--without", "push_windows")
    assert (wrong.code, wrong.out) == (2, "")
    said = " ".join(wrong.err.split())
    assert "there is no rule `push_windows`; did you mean `push_window`?" in said
    assert "the rules are flatten, drop_impossible" in said


def test_explain_as_a_picture(kleene: Kleene) -> None:
    ended = kleene("explain", "PATTERN SEQ(A a, B b) WHERE a.x > 5", "--mermaid")
    assert ended.out.splitlines()[0] == "flowchart LR"
    assert '    p0_start -->|"a.x #62; 5"| p0_0' in ended.out.splitlines()
    assert "executor" not in ended.out


def test_explain_needs_no_values_of_parameters(kleene: Kleene) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.x > :low WITHIN 5"
    assert kleene("explain", query).out.endswith("  It cannot run yet: :low has no value.\n")
    assert "scan a     A where a.x > 3" in kleene("explain", query, "-p", "low=3").out


def test_explain_starts_light(tmp_path: Path) -> None:
    """A plan is made without what only running it needs."""
    code = (
        "import sys; from kleene.cli.running import run; run(['explain', 'PATTERN SEQ(A a, B b) WHERE [x]']);"
        "print(sorted({'pyarrow', 'pyspark', 'numba', 'pandas', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_explain_on_events(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("type,ts,x\nA,2024-01-01T10:00:00,2\n")
    out = kleene("explain", "PATTERN SEQ(A a, A b) WHERE [x] WITHIN 1 hour", "-i", "e.csv").out
    assert "end − start < 1 hour = 3,600,000,000 steps of 1 microsecond" in out
    assert "has type string, ts timestamp, x int" in out


def test_explain_runs_a_query_when_asked(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("type,ts,x\nA,1,2\nB,2,2\nB,3,1\n")
    out = kleene("explain", "PATTERN A a & B b WHERE a.x = b.x WITHIN 5", "-i", "e.csv", "--analyze").out
    assert "measured" in out
    assert "counted    a: 1 event, 1 kept" in out
    assert "  It ran: 1 match in 3 events.\n  It took " in out
    nothing = kleene("explain", "PATTERN A & B", "--analyze")
    assert (nothing.code, nothing.out) == (2, "")
    assert "there are no events to run it on: -i FILE" in " ".join(nothing.err.split())


@pytest.mark.slow
def test_every_example_can_be_explained(kleene: Kleene) -> None:
    for path in EXAMPLES:
        ended = kleene("explain", path)
        assert ended.code == 0, ended.err
        assert ended.out.splitlines()[0].split() == ["query", path.stem]


def test_explain_of_a_wrong_query(kleene: Kleene) -> None:
    ended = kleene("explain", "PATTERN SEQ(A a, B b) WHERE z.x = 1")
    assert (ended.code, "KL202" in ended.err) == (1, True)


def test_a_value_for_a_parameter_that_no_file_has(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "one.kleene").write_text("PATTERN A a WHERE a.x < :low")
    (tmp_path / "two.kleene").write_text("PATTERN A a WHERE a.x < :high")
    assert kleene("check", "one.kleene", "two.kleene", "-p", "low=1", "-p", "high=2").code == 0
    ended = kleene("check", "one.kleene", "two.kleene", "-p", "hihg=2")
    assert (ended.code, "none of the queries has a parameter `:hihg`" in ended.err) == (1, True)


def test_a_file_may_read_the_timeouts_of_another(kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "reader.kleene").write_text("PATTERN Late l ; A a WHERE [x] AND l.reached = 1")
    (tmp_path / "maker.kleene").write_text("PATTERN A a ; B b WHERE [x] WITHIN 10 TIMEOUTS INTO Late")
    assert kleene("check", "reader.kleene", "maker.kleene").code == 0
    (tmp_path / "reader.kleene").write_text("PATTERN Late l WHERE l.y = 1")
    ended = kleene("check", "reader.kleene", "maker.kleene")
    assert (ended.code, "KL203" in ended.err) == (1, True)

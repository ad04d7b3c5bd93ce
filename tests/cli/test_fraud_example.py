"""examples/fraud: its page is run, part by part, and each query finds exactly what was hidden in the day."""

from __future__ import annotations

import doctest
import shlex
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Kleene
from tests.docs.blocks import commands_of, comparable, session_of

from kleene.cli.running import run
from kleene.frames.card_payments import ANY_MATCH, NEXT_MATCH, QUERIES, SMALL_SMALL_LARGE, UNLESS_CLOSED, card_payments

ROOT = Path(__file__).parents[2]
FRAUD = ROOT / "examples" / "fraud"
PAGE = (FRAUD / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example, where the page says that it is."""
    there = tmp_path / "examples" / "fraud"
    shutil.copytree(FRAUD, there, ignore=shutil.ignore_patterns("demo-output"))
    return there


def test_the_sessions_of_the_page() -> None:
    examples = doctest.DocTestParser().get_doctest(session_of(PAGE), {"__name__": "example"}, "fraud", None, 0)
    assert len(examples.examples) == 11
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert report == []


def test_the_commands_of_the_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    commands = list(commands_of(PAGE))
    assert len(commands) == 2
    for command, expected in commands:
        capsys.readouterr()
        run(shlex.split(command)[1:])
        shown = capsys.readouterr()
        assert comparable(shown.out + shown.err) == comparable(expected)


def test_the_files_of_the_example_are_the_generated_ones(kleene: Kleene, tmp_path: Path) -> None:
    command = next(line for line in PAGE.splitlines() if line.startswith("    kleene generate payments"))
    ended = kleene(*shlex.split(command)[1:])
    counts = "22 small-small-large, 32 next-match, 42 any-match, 17 unless-closed"
    said = f"3,000 payments in payments.csv, 18 closed accounts in closed.csv; hidden in them: {counts}\n"
    assert (ended.code, ended.err) == (0, said)
    for name in ("payments.csv", "closed.csv"):
        assert (tmp_path / name).read_text() == (FRAUD / name).read_text()
    assert len((tmp_path / "truth.csv").read_text().splitlines()) == 1 + 22 + 32 + 42 + 17


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_finds_what_was_hidden_for_it(kleene: Kleene, tmp_path: Path, name: str) -> None:
    kleene("generate", "payments", "-n", "1500", "--seed", "5", "-o", "p.csv", "--closed", "c.csv")
    ended = kleene("match", "-i", "t=p.csv", "-i", "closed=c.csv", "-q", FRAUD / f"{name}.kleene", "-o", "m.parquet")
    assert ended.code == 0, ended.err
    table = pq.read_table(tmp_path / "m.parquet")
    truth = [row for row in card_payments(1500, 5).planted.to_pylist() if row["case"] == name]
    found = [(row["start"], row["end"]) for row in table.to_pylist()]
    assert sorted(found) == sorted((row["first"], row["last"]) for row in truth)
    assert found


def test_the_histories_tell_the_queries_apart() -> None:
    planted = card_payments(200, 3).planted.column("case").to_pylist()
    counts = [planted.count(name) for name in (UNLESS_CLOSED, SMALL_SMALL_LARGE, NEXT_MATCH, ANY_MATCH)]
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("name", ["pipeline.toml", "stream.toml"])
def test_the_page_shows_what_its_pipelines_print(spark: object, kleene: Kleene, folder: Path, name: str) -> None:
    ended = kleene("run", f"examples/fraud/{name}")
    assert ended.code == 0, ended.err
    shown = PAGE.split(f"$ kleene run examples/fraud/{name}\n")[1].split("\n```")[0].splitlines()
    printed = {line.rstrip() for line in f"{ended.out}{ended.err}".splitlines()}
    assert [line for line in shown if line != "…" and line not in printed] == []
    alerts = folder / "demo-output" / ("stream/alerts" if name == "stream.toml" else "alerts")
    assert pq.read_table(alerts).column("query").unique().to_pylist() == [SMALL_SMALL_LARGE]

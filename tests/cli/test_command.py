"""The command as a process: help, version, start-up, pipes, and the demo."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Kleene

import kleene as package
from kleene.cli.demo import QUERIES, query_text

ROOT = Path(__file__).parents[2]
COMMANDS = [
    ["match"],
    ["check"],
    ["format"],
    ["explain"],
    ["run"],
    ["demo"],
    ["archive"],
    ["doctor"],
    ["version"],
    ["generate", "supermarket"],
    ["generate", "payments"],
]


def command(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    code = "from kleene.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, input=stdin, capture_output=True, text=True
    )


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_has_an_example(kleene: Kleene, words: list[str]) -> None:
    ended = kleene(*words, "--help")
    assert ended.code == 0
    assert "Example:\n" in ended.out
    assert f"kleene {words[0]}" in ended.out.split("Example:")[1]


def test_the_overview_lists_every_command(kleene: Kleene) -> None:
    out = kleene("--help").out
    for words in COMMANDS:
        assert re.search(rf"^  {words[0]} ", out, re.MULTILINE)


def test_version(kleene: Kleene) -> None:
    assert kleene("version").out == kleene("--version").out == f"kleene {package.__version__}\n"


def test_doctor(kleene: Kleene) -> None:
    ended = kleene("doctor")
    assert ended.code in (0, 1)
    assert "pyarrow" in ended.out


def test_check_starts_light(tmp_path: Path) -> None:
    """Checking a query must not wait for what only running one needs."""
    (tmp_path / "q.kleene").write_text("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10")
    code = (
        "import sys; from kleene.cli.running import run; code = run(['check', 'q.kleene']);"
        "heavy = {'pyarrow', 'pyspark', 'numba', 'numpy', 'pandas', 'polars'} & set(sys.modules);"
        "print(code, sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "ok: q.kleene\n0 []\n", done.stderr


def test_match_needs_no_spark(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("type,ts,x\nA,1,5\nB,2,5\n")
    code = (
        "import sys; from kleene.cli.running import run;"
        "run(['match', '-q', 'PATTERN SEQ(A a, B b) WHERE [x]', '-i', 'e.csv', '-f', 'csv']);"
        "print(sorted({'pyspark', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_exit_codes_of_the_process(tmp_path: Path) -> None:
    assert command("check", "-", cwd=tmp_path, stdin="PATTERN A a").returncode == 0
    wrong = command("check", "-", cwd=tmp_path, stdin="PATTERN A a WHERE b.x = 1")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "error[KL202]" in wrong.stderr
    assert command("check", "none.kleene", cwd=tmp_path).returncode == 2
    assert command("frobnicate", cwd=tmp_path).returncode == 2


@pytest.mark.slow
def test_events_through_a_pipe_and_a_reader_that_leaves(tmp_path: Path) -> None:
    rows = "\n".join(f'{{"type": "A", "ts": {number}}}' for number in range(20_000))
    done = command("match", "-q", "PATTERN A a", "-i", "-", "-n", "2", cwd=tmp_path, stdin=rows)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    (tmp_path / "e.jsonl").write_text(rows)
    code = "from kleene.cli import main; main()"
    arguments = [sys.executable, "-c", code, "match", "-q", "PATTERN A a", "-i", "e.jsonl"]
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


# Examples and the demo -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
def test_the_examples_are_the_queries_of_the_demo(name: str) -> None:
    assert (ROOT / "examples" / "retail" / f"{name}.kleene").read_text(encoding="utf-8") == query_text(name)


def test_generate_writes_events_and_the_truth(kleene: Kleene, tmp_path: Path) -> None:
    ended = kleene("generate", "supermarket", "-n", "300", "--seed", "4", "-o", "day.parquet", "--planted", "truth.csv")
    assert ended.code == 0
    assert ended.err == "300 events in day.parquet; hidden in them: 2 overdose, 3 shoplifting, 1 misplaced\n"
    assert pq.read_table(tmp_path / "day.parquet").num_rows == 300
    assert len((tmp_path / "truth.csv").read_text().splitlines()) == 7


def test_the_demo_in_this_process(kleene: Kleene, tmp_path: Path) -> None:
    ended = kleene("demo", "--events", "200", "--on", "process", "--output", "out")
    assert ended.code == 0, ended.err
    found = re.findall(r"^(\d+) found, (\d+) hidden", ended.out, re.MULTILINE)
    assert found == [("3", "3"), ("1", "1"), ("2", "2")]
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == ["misplaced.parquet", "overdose.parquet", "shoplifting.parquet", "supermarket.parquet"]
    assert pq.read_table(tmp_path / "out" / "shoplifting.parquet").num_rows == 3


def test_the_demo_without_spark(kleene: Kleene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    ended = kleene("demo", "--events", "200", "--output", "out")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("PySpark is not installed, so this runs in this process")
    assert "pip install 'kleene[spark]'" in ended.out
    assert re.findall(r"^(\d+) found, (\d+) hidden", ended.out, re.MULTILINE) == [("3", "3"), ("1", "1"), ("2", "2")]


def test_the_demo_on_a_spark_that_is_not_there(kleene: Kleene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    ended = kleene("demo", "--events", "200", "--output", "out", "--on", "spark")
    assert ended.code == 1
    assert "error[KL506]: PySpark is not installed" in ended.err
    assert "pip install 'kleene[spark]'" in ended.err


def test_the_demo_on_spark(spark: object, kleene: Kleene, tmp_path: Path) -> None:
    ended = kleene("demo", "--events", "300", "--output", "out")
    assert ended.code == 0, ended.err
    found = re.findall(r"^(\d+) found, (\d+) hidden", ended.out, re.MULTILINE)
    assert found == [("3", "3"), ("1", "1"), ("2", "2")]

"""`kleene run` on a stream: what it prints, and how it stops."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from threading import Timer

import pyarrow.dataset as ds
import pytest
from rich.console import Console
from tests.cli.conftest import Kleene
from tests.spark.stream_pipelines import STREAM, batch, changed, event, put

from kleene.cli.streaming import StreamConsole, line, table
from kleene.pattern.clock import Clock, ClockKind
from kleene.spark.pipeline.reading import read_pipeline

LOCAL = '[spark]\nmaster = "local[2]"\n'
MAIN = "import sys; from kleene.cli.running import run; sys.exit(run(sys.argv[1:]))"


def test_a_dry_run_explains_and_writes_nothing(
    spark: object, kleene: Kleene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KLEENE_TEST_SECRET", "hunter22")
    topic = """
[[sinks]]
kind = "kafka"
bootstrap = "localhost:1"
topic = "found"
options = { "kafka.sasl.jaas.config" = "x required password='${KLEENE_TEST_SECRET}';" }
"""
    jars = '[spark.conf]\n"spark.jars" = "kafka.jar"\n'
    put(tmp_path / "in", 1, event("A", 1, 5))
    (tmp_path / "pipeline.toml").write_text(changed(added=topic + '[bad_rows]\npath = "bad"\n' + LOCAL + jars))
    before = sorted(tmp_path.rglob("*"))
    ended = kleene("run", "pipeline.toml", "--dry-run")
    assert ended.code == 0, ended.err
    assert sorted(tmp_path.rglob("*")) == before
    assert "hunter22" not in ended.out + ended.err
    assert ended.out.startswith("source readings: json in\n  columns type string, ts bigint, x bigint\n\nquery pairs\n")
    assert "\n  on Spark: buckets by hash of x\n" in ended.out
    assert ended.out.endswith(
        "sink matches of pairs → parquet out\nsink matches of pairs → kafka found\n"
        "  option kafka.sasl.jaas.config = ***\nsink bad rows → json bad\n"
        "stream checkpoint = state, delay = 5, available_now = True\nSpark local[2]\n  spark.jars = kafka.jar\n"
        "bad rows: kept in bad\nNothing was written: this was a dry run.\n"
    )


def test_the_page_shows_what_its_pipeline_prints(spark: object, kleene: Kleene, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "streaming.md").read_text(encoding="utf-8")

    def block(kind: str, begin: str) -> str:
        return str(re.findall(rf"^```{kind}\n({re.escape(begin)}.*?)\n```$", page, re.MULTILINE | re.DOTALL)[0])

    (tmp_path / "readings").mkdir()
    (tmp_path / "readings" / "first.json").write_text(block("json", "{") + "\n")
    (tmp_path / "pipeline.toml").write_text(f"{block('toml', '[[sources]]')}\n{LOCAL}")
    ended = kleene("run", "pipeline.toml")
    assert ended.code == 0
    shown = block("text", "$ kleene run pipeline.toml\n").split("\n", 1)[1]
    assert _timeless(ended.err.strip()) == _timeless(shown)


def _timeless(text: str) -> str:
    return re.sub(r"\d[\d,.]* (s\b|days|events/s|kB|bytes)", r"0 \1", text)


@pytest.mark.spark
@pytest.mark.soak  # `test_interruption` has it in a session that is there
def test_a_stream_that_is_told_to_stop_finishes_its_batch(tmp_path: Path) -> None:
    put(tmp_path / "in", 1, event("A", 1, 5), event("B", 2, 5), event("Z", 100, 0))
    put(tmp_path / "in", 2, event("Z", 100, 0))
    options = 'x = "long" }\noptions = { maxFilesPerTrigger = 1 }'
    pipeline = changed(("available_now = true", 'trigger = "100 ms"'), ('x = "long" }', options), added=LOCAL)
    (tmp_path / "pipeline.toml").write_text(pipeline)
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "run", "pipeline.toml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    patience = Timer(300, process.kill)
    patience.start()
    said = []
    for text in process.stderr:
        said.append(text)
        if text.startswith("batch") and " 1 match," in text:
            process.send_signal(signal.SIGTERM)
    assert process.wait() == 0, "".join(said)
    patience.cancel()
    # Before it Spark itself says something.
    end = next(place for place, text in enumerate(said) if text.startswith("read "))
    assert _timeless("".join(said[end:])) == (
        "read     4 rows\nbad      0 rows\nlate     0 events\nmatched  pairs: 1 match\n"
        "writes   matches of pairs → parquet out\ntook     0 s, 2 batches\n"
        "stopped; the next run goes on from here\n"
    )
    files = [str(file) for file in (tmp_path / "out").glob("batch=*/*.parquet")]
    assert ds.dataset(files).to_table().num_rows == 1


# What is told of a batch ---------------------------------------------------------------------------------------------


def test_a_line_and_a_table() -> None:
    one, totals = batch(Clock(ClockKind.TIMESTAMP, nanoseconds=Fraction(1000)))
    assert line(one, totals) == (
        "batch 7: 2,000 events/s, watermark 2026-03-02T12:00:05.250Z, 4.8 s behind, 3 runs, 2.5 MB of state, "
        "2 matches, 1 timeout, 4 late, 1 bad, in 0.5 s"
    )
    terminal = Console(width=120)
    with terminal.capture() as shown:
        terminal.print(table(one, totals))
    assert [re.sub(r" +", " ", row).strip() for row in shown.get().splitlines() if row.strip(" ─")] == [
        "query matches timeouts",
        "pairs 2 1",
        "batch 7: 2,000 events/s, watermark 2026-03-02T12:00:05.250Z, 4.8 s behind, in 0.5 s",
        "1,000 rows, 4 late, 1 bad, 3 runs, 2.5 MB of state",
    ]


def test_a_line_a_second_unless_something_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pipeline.toml").write_text(STREAM)
    console = StreamConsole(read_pipeline(tmp_path / "pipeline.toml"))
    ticks = Clock(ClockKind.TICKS)
    for _ in range(3):
        console.batch(*batch(ticks))
    assert len(capsys.readouterr().err.splitlines()) == 3
    for _ in range(3):
        console.batch(*batch(ticks, matches=0, late=0, bad_rows=0, timeouts=0))
    assert capsys.readouterr().err == ""

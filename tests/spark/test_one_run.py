"""One run at a time: of two that are started together one ends with a sentence, and readers see whole results."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest
from tests.soaking import SOAKING
from tests.spark.pipelines import RIGHT, written
from tests.spark.stream_pipelines import STREAM, event, lines, put

from kleene.errors import RunInProgress
from kleene.spark import run_lock
from kleene.spark.pipeline.targets import staging
from kleene.spark.run_lock import LockedPlace, handed_on, one_run

ROUNDS = 20
REAL_ROUNDS = 20 if SOAKING else 1
REFUSED = r"another run \(process \d+\) is writing to `(out|state)`"
LOCAL = '[spark]\nmaster = "local[1]"\nconf = { "spark.sql.shuffle.partitions" = 1 }\n'


def place(folder: Path) -> LockedPlace:
    return LockedPlace(f"file://{folder}", folder.name, folder)


def test_a_second_run_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    with one_run([place(tmp_path / "out")]):
        with pytest.raises(RunInProgress) as refused, one_run([place(tmp_path / "out")]):
            pytest.fail("two at a time")
        assert refused.value.message == f"another run (process {os.getpid()}) is writing to `out`"
        with one_run([place(tmp_path / "other")]):
            pass
        assert len(handed_on()) == 1
    with one_run([place(tmp_path / "out")]):
        pass
    assert handed_on() == ()
    assert not list(tmp_path.iterdir())


def test_a_run_that_failed_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), one_run([place(tmp_path / "a"), place(tmp_path / "b")]):
        raise KeyboardInterrupt
    with one_run([place(tmp_path / "b")]), pytest.raises(RunInProgress), one_run([place(tmp_path / n) for n in "ab"]):
        pytest.fail("two at a time")
    with one_run([place(tmp_path / "a"), place(tmp_path / "b")]):
        pass


def test_a_folder_is_one_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = place(tmp_path / "real" / "out"), place(tmp_path / "link" / "out")
    with one_run([real]), pytest.raises(RunInProgress), one_run([link]):
        pytest.fail("two at a time")


def test_elsewhere_runs_of_this_machine_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bucket = LockedPlace("s3a://bucket/out", "s3a://bucket/out")
    with one_run([bucket]):
        with pytest.raises(RunInProgress, match="writing to `s3a://bucket/out`"), one_run([bucket]):
            pytest.fail("two at a time")
        with one_run([LockedPlace("s3a://bucket/other", "s3a://bucket/other")]):
            pass


def test_without_locks_a_run_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_lock, "try_lock", lambda file: None)
    with caplog.at_level(logging.WARNING, "kleene"), one_run([place(tmp_path / "out")]):
        pass
    assert [record.getMessage() for record in caplog.records] == [
        "no lock can be kept for `out`: see that no other run writes to it"
    ]


# A kill --------------------------------------------------------------------------------------------------------------

HOLDING = """
import subprocess, sys, time
from pathlib import Path
from kleene.spark.run_lock import LockedPlace, handed_on, one_run

with one_run([LockedPlace("out", "out", Path(sys.argv[1]))]):
    child = subprocess.Popen(["sleep", sys.argv[2]], pass_fds=handed_on(), stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    time.sleep(60)
"""


@contextmanager
def holding(folder: Path, child_seconds: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that holds a lock, as does a child of it."""
    command = [sys.executable, "-c", HOLDING, str(folder), child_seconds]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            yield process, child
        finally:
            process.kill()


def test_a_killed_run_leaves_no_lock(tmp_path: Path) -> None:
    """But while its JVM ends it is waited for: here a child that ends within a second."""
    with holding(tmp_path / "out", "1") as (process, _):
        with pytest.raises(RunInProgress, match=rf"\(process {process.pid}\)"), one_run([place(tmp_path / "out")]):
            pytest.fail("two at a time")
        process.send_signal(signal.SIGKILL)
        process.wait()
        began = time.monotonic()
        with one_run([place(tmp_path / "out")]):
            assert time.monotonic() - began < 30
    assert not list(tmp_path.iterdir())


def test_what_outlives_a_killed_run_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "_PATIENCE_SECONDS", 0.3)
    with holding(tmp_path / "out", "60") as (process, child):
        process.kill()
        process.wait()
        try:
            with pytest.raises(RunInProgress), one_run([place(tmp_path / "out")]):
                pytest.fail("two at a time")
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_run_of_another_machine_is_not_waited_for(tmp_path: Path) -> None:
    with one_run([place(tmp_path / "out")]):
        (tmp_path / ".out.lock").write_text(json.dumps({"process": 2**22 + 1, "host": f"not-{socket.gethostname()}"}))
        with pytest.raises(RunInProgress, match=r"\(process 4194305 on not-"), one_run([place(tmp_path / "out")]):
            pytest.fail("two at a time")


# Two at a time -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_two_runs_started_together(kind: str, tmp_path: Path) -> None:
    """All but Spark, twenty times."""
    pytest.importorskip("pyspark")
    written(tmp_path, RIGHT if kind == "batch" else STREAM)
    command = [sys.executable, str(Path(__file__).with_name("contender.py")), str(tmp_path)]
    runs = [
        subprocess.Popen([*command, name, str(ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in ("one", "other")
    ]
    try:
        assert [answer(run) for run in runs] == ["ready", "ready"]
        with polling(tmp_path / "out" if kind == "batch" else None) as absences:
            for number in range(ROUNDS):
                for run in runs:
                    assert run.stdin is not None
                    run.stdin.write("go\n")
                    run.stdin.flush()
                said = [answer(run) for run in runs]
                winner = ("one", "other")[said.index("wrote")]
                said.remove("wrote")
                assert [text.partition(" (")[0] for text in said] == ["another run"]
                found = tmp_path / "out" if kind == "batch" else tmp_path / "out" / f"batch={number}"
                assert whole(found) == f"{winner} {number}"
                assert not staging(tmp_path / "out").exists()
        # The first swap puts something where nothing was.
        assert absences() <= ROUNDS - 1
    finally:
        for run in runs:
            run.kill()
            run.communicate()
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith("refused")}
    assert left == {"day.csv", "out", "pipeline.toml"}


def answer(run: subprocess.Popen[str]) -> str:
    assert run.stdout is not None
    return run.stdout.readline().strip()


def whole(folder: Path) -> str:
    """Who wrote a result, of which every part must be there."""
    rows = pq.read_table(folder).to_pylist()
    assert sorted(row["part"] for row in rows) == [0, 1, 2, 3]
    (text,) = {row["by"] for row in rows}
    return str(text)


@contextmanager
def polling(folder: Path | None) -> Iterator[Callable[[], int]]:
    """How often a folder was gone, after it was there first; while it is there it holds one result, whole."""
    ended, stretches, wrong = Event(), [], []

    def poll() -> None:
        was_there = False
        while folder is not None and not ended.is_set():
            there = folder.exists()
            if was_there and not there:
                stretches.append(time.monotonic())
            was_there = was_there or there
            while was_there and not folder.exists() and not ended.is_set():
                time.sleep(0.0002)
            names: list[str] = []
            with suppress(FileNotFoundError):  # it is being put in its place
                names = sorted(os.listdir(folder))
            if names and len(names) != 5 and folder.exists():
                wrong.append(names)
            time.sleep(0.0005)

    reader = Thread(target=poll)
    reader.start()
    try:
        yield lambda: len(stretches)
    finally:
        ended.set()
        reader.join()
    assert wrong == []


# `kleene run` itself -------------------------------------------------------------------------------------------------

MAIN = "from kleene.cli import main; main()"


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_two_commands_started_together(kind: str, tmp_path: Path) -> None:
    """With Spark: the second ends with one sentence before it starts one; what is there is the result of the first."""
    written(tmp_path, (RIGHT if kind == "batch" else STREAM.replace('"parquet"', '"json"')) + LOCAL)
    for number in range(REAL_ROUNDS):
        put(tmp_path / "in", number, event("A", 100 * number + 1, 5), event("B", 100 * number + 2, 5))
        with polling_rows(tmp_path / "out") as seen:
            runs = [
                subprocess.Popen(
                    [sys.executable, "-c", MAIN, "run", "pipeline.toml"],
                    cwd=tmp_path,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for _ in range(2)
            ]
            said = [run.communicate(timeout=300)[1] for run in runs]
        codes = [run.returncode for run in runs]
        assert sorted(codes) == [0, 1], said
        refusal = said[codes.index(1)]
        pid = runs[codes.index(0)].pid
        where = "out" if kind == "batch" else "out`|`state"
        assert refusal.startswith(f"error[KL712]: another run (process {pid}) is writing to `"), refusal
        assert refusal.splitlines()[0].rpartition("to ")[2] in [f"`{name}`" for name in where.split("`|`")]
        assert len(refusal.splitlines()) == 2
        assert kind == "stream" or seen() <= 1
        if kind == "batch":
            assert pq.read_table(tmp_path / "out").num_rows == 2
    if kind == "stream":
        put(tmp_path / "in", REAL_ROUNDS, event("Z", 100_000, 0))
        ended = subprocess.run([sys.executable, "-c", MAIN, "run", "pipeline.toml"], cwd=tmp_path, capture_output=True)
        assert ended.returncode == 0, ended.stderr
        assert sorted(row["start"] for row in lines(tmp_path / "out")) == [100 * n + 1 for n in range(REAL_ROUNDS)]
    assert not list(tmp_path.glob(".*"))


@contextmanager
def polling_rows(folder: Path) -> Iterator[Callable[[], int]]:
    """How often a folder of results was gone, after it was there first."""
    ended, gone = Event(), []

    def poll() -> None:
        was_there = folder.exists()
        while not ended.wait(0.005):
            there = folder.exists()
            if was_there and not there:
                gone.append(time.monotonic())
            was_there = there

    reader = Thread(target=poll)
    reader.start()
    try:
        yield lambda: len(gone)
    finally:
        ended.set()
        reader.join()

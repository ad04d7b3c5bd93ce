"""While kernels are not compiled yet: few events run uncompiled, one process compiles beside, and who waits is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kleene.kernels import locking

# The kernel that a query on three events needs first, and what a process says of itself.
PROGRAM = """
import json, logging, sys
logging.basicConfig(format="%(message)s", level=logging.INFO)
from kleene.engine import readiness, warming
{change}
import kleene
rows = [{{"type": "A", "ts": 1, "id": 7}}, {{"type": "B", "ts": 2, "id": 7}}, {{"type": "B", "ts": 3, "id": 8}}]
found = kleene.match(rows, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
print(json.dumps({{
    "found": [(match["match_id"], match["a"]["ts"], match["b"]["ts"]) for match in found],
    "folder": str(warming.folder()), "kept": warming.count_kept()[0], "under way": warming.is_under_way(),
}}))
"""
# Instead of the compiler: a minute of sleep, as long as nobody ends it.
ASLEEP = "warming._PROGRAM = 'import time; time.sleep(60)  # {0}'"


def start(cache: Path, change: str = "", **environment: str) -> subprocess.Popen[str]:
    usual = {name: value for name, value in os.environ.items() if name not in ("CI", "KLEENE_WARM")}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(change=change)],
        env={**usual, "NUMBA_CACHE_DIR": str(cache), "KLEENE_SHIPPED": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return {**json.loads(out.splitlines()[-1]), "log": err}


def asleep(cache: Path) -> list[int]:
    """The processes that stand for the compiler and belong to this cache."""
    marked = f"NUMBA_CACHE_DIR={cache}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command, variables = (path / "cmdline").read_bytes(), (path / "environ").read_bytes()
        except OSError:
            continue
        if b"time.sleep(60)  #" in command and b"json.dumps" not in command and marked in variables.split(b"\0"):
            found.append(int(path.name))
    return found


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for process in asleep(tmp_path):
        os.kill(process, signal.SIGKILL)


@pytest.mark.slow
def test_two_processes_at_once_answer_uncompiled_and_start_one_that_compiles(cache: Path) -> None:
    first, second = start(cache, ASLEEP), start(cache, ASLEEP)
    answers = [answer(first), answer(second)]
    assert answers[0]["found"] == answers[1]["found"]
    assert [match[1:] for match in answers[0]["found"]] == [[1, 2]]
    assert [one["kept"] for one in answers] == [0, 0], "nothing was compiled for it"
    assert [one["under way"] for one in answers] == [True, True]
    assert sum("in the background" in one["log"] for one in answers) == 1
    assert len(asleep(cache)) == 1

    # Killed, it leaves no lock behind: the next process starts another.
    (compiler,) = asleep(cache)
    lock = Path(answers[0]["folder"]) / "warm-up.lock"
    assert locking.is_taken(lock)
    os.kill(compiler, signal.SIGKILL)
    ends = time.monotonic() + 10
    while locking.is_taken(lock) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not locking.is_taken(lock)
    again = answer(start(cache, ASLEEP))
    assert again["found"] == answers[0]["found"]
    assert len(asleep(cache)) == 1
    assert asleep(cache) != [compiler]


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["KLEENE_WARM", "CI"])
def test_no_process_is_started_where_that_is_unwanted(cache: Path, variable: str) -> None:
    made = answer(start(cache, ASLEEP, **{variable: "0" if variable == "KLEENE_WARM" else "true"}))
    assert [match[1:] for match in made["found"]] == [[1, 2]]
    assert (made["kept"], made["under way"], asleep(cache)) == (0, False, [])


@pytest.mark.slow
def test_with_a_stamp_kernels_are_used_and_nothing_is_started(cache: Path) -> None:
    """The stamp of a folder without kernels: what is used is compiled. Only the first kernels are, to be quick."""
    stop = """
from kleene.kernels import kernel_cache
def refuse(name): raise SystemExit(f"compiles {name}")
kernel_cache.observers.append(refuse)
warming.stamp()
"""
    process = start(cache, f"{ASLEEP}\n{stop}")
    _, err = process.communicate(timeout=300)
    assert "compiles " in err
    assert asleep(cache) == []

"""A pipeline on a real cluster: a master and two workers, to which Kleene comes in an archive."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.comparing import random_events
from tests.users.places import briefly

import kleene

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYED = "PATTERN SEQ(A a, !(C c), B b) WHERE [id] and a.v <= b.v WITHIN 40"
SLICED = "PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 3"

PIPELINE = """
[[sources]]
name = "events"
kind = "parquet"
path = "events"

[[queries]]
name = "keyed"
text = "{keyed}"

[[queries]]
name = "sliced"
text = "{sliced}"

[[sinks]]
kind = "parquet"
path = "found/{{query}}"

[settings]
slice_width = 100

[spark]
master = "{master}"
archive = "kleene.tar.gz"

[spark.conf]
"spark.driver.host" = "127.0.0.1"
"spark.ui.enabled" = "false"
"spark.sql.shuffle.partitions" = 4
# Both workers are there before the first task is.
"spark.scheduler.minRegisteredResourcesRatio" = 1.0
"spark.scheduler.maxRegisteredResourcesWaitingTime" = "120s"
"""


def test_a_pipeline_on_two_workers_finds_what_this_process_finds(tmp_path: Path) -> None:
    from tests.spark.cluster import standalone

    from kleene.spark.shipping import FOLDER, make_archive

    events = random_events(seed=11, count=2_000)
    (tmp_path / "events").mkdir()
    for number in range(4):
        pq.write_table(events.slice(number * 500, 500), tmp_path / "events" / f"{number}.parquet")
    make_archive(tmp_path / "kleene.tar.gz")
    with standalone(tmp_path) as master:
        text = PIPELINE.format(master=master, keyed=KEYED, sliced=SLICED)
        (tmp_path / "pipeline.toml").write_text(text)
        run(tmp_path, "-c", "from kleene.cli import main; main()", "run", "pipeline.toml")
    for name, query in (("keyed", KEYED), ("sliced", SLICED)):
        found = pq.read_table(tmp_path / "found" / name).column("match_id").to_pylist()
        assert sorted(found) == sorted(kleene.match(events, query).column("match_id").to_pylist())
        assert len(found) > 50
    for worker in range(2):
        # Python leaves its own files where it imports from, and there are none in the archive.
        used = (tmp_path / f"worker-{worker}").rglob(f"{FOLDER}/kleene/spark/__pycache__/worker.*.pyc")
        assert list(used), f"worker {worker} did not use the archive"


def run(folder: Path, *arguments: str) -> None:
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **briefly()}, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_an_archive_holds_sources_grammar_and_kernels(tmp_path: Path) -> None:
    import tarfile

    from kleene.spark.shipping import make_archive

    kleene.match(pa.table({"type": ["A", "B"], "ts": [1, 2]}), "PATTERN SEQ(A a, B b) WITHIN 5")
    with tarfile.open(make_archive(tmp_path / "kleene.tar.gz")) as archive:
        names = archive.getnames()
    assert "kleene/lang/kleene.lark" in names
    assert "kleene/kernels/sequence.py" in names
    assert any(name.endswith(".nbi") for name in names)
    assert not any(name.endswith(".pyc") for name in names)

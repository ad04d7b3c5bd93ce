"""A pipeline on a real cluster: a master and two workers, to which Kleene comes in an archive."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.comparing import random_events

import kleene

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

QUERY = "PATTERN SEQ(A a, !(C c), B b) WHERE [id] and a.v <= b.v WITHIN 40"

# Runs in a process of its own, since this one has a local session.
DRIVER = """
import json, sys
import pyarrow as pa
import kleene
from pathlib import Path
from kleene.spark.session import cluster_session

master, archive, events, query = sys.argv[1:]
session = cluster_session(
    master,
    Path(archive),
    **{"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"},
)

def where(batches):
    import os, time
    import kleene
    for _ in batches:
        time.sleep(1)
        yield pa.RecordBatch.from_pydict({"path": [kleene.__file__], "executor": [os.getcwd()]})

places = session.range(4, numPartitions=4).mapInArrow(where, "path string, executor string").collect()
ids = sorted(row.match_id for row in kleene.match(session.read.parquet(events), query).select("match_id").collect())
paths, executors = [row.path for row in places], sorted({row.executor for row in places})
print(json.dumps({"ids": ids, "paths": paths, "executors": executors}))
session.stop()
"""


def test_two_workers_find_what_this_process_finds(tmp_path: Path) -> None:
    from tests.spark.cluster import standalone

    from kleene.spark.shipping import FOLDER, make_archive

    events = random_events(seed=11, count=2_000)
    (tmp_path / "events").mkdir()
    for number in range(4):
        pq.write_table(events.slice(number * 500, 500), tmp_path / "events" / f"{number}.parquet")
    archive = make_archive(tmp_path / "kleene.tar.gz")
    with standalone(tmp_path) as master:
        found = run(tmp_path, master, str(archive), str(tmp_path / "events"), QUERY)
    assert found["ids"] == sorted(kleene.match(events, QUERY).column("match_id").to_pylist())
    assert len(found["ids"]) > 100
    assert len(found["executors"]) == 2
    assert all(FOLDER in path for path in found["paths"])


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-c", DRIVER, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    made: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return made


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

"""A stream whose disk is full stops with one sentence; with room it goes on, and every row is there once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.stream_pipelines import lines
from tests.users.places import briefly

import kleene

# What is written before a disk is full, and what is not, `tests/chaos` shows in short.
pytestmark = [pytest.mark.spark, pytest.mark.soak]

FILES, PER_FILE = 5, 2_000
QUERY = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 100"
PIPELINE = f"""\
[[sources]]
name = "readings"
kind = "json"
path = "in"
schema = {{ type = "string", ts = "long", x = "long", text = "string" }}
options = {{ maxFilesPerTrigger = 1 }}

[[queries]]
name = "pairs"
text = "{QUERY}"

[[sinks]]
kind = "json"
path = "disk/out"

[stream]
checkpoint = "disk/state"
delay = 5
available_now = true

[spark]
master = "local[2]"
conf = {{ "spark.sql.shuffle.partitions" = 1 }}
"""
MAIN = "from kleene.cli import main; main()"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no disk of 8 MB can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_stops_a_stream_which_goes_on_with_room(disk: Path) -> None:
    folder = disk.parent
    events = written(folder / "in")
    (folder / "pipeline.toml").write_text(PIPELINE)
    stopped = run(folder)
    assert stopped.returncode == 1
    errors = [line for line in stopped.stderr.splitlines() if line.startswith("error")]
    # Whether a result or the state of the stream is what there is no room for.
    by_us, by_spark = "KL708]: `disk/out` cannot be written", "KL709]: Spark stopped"
    assert errors in ([f"error[{who}: No space left on device"] for who in (by_us, by_spark)), stopped.stderr
    assert stopped.stderr.endswith("= hint: make room, and run again: a stream goes on where it stopped\n")
    assert "Traceback" not in stopped.stderr
    assert "\tat " not in stopped.stderr
    before = len(lines(disk / "out"))
    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    ended = run(folder)
    assert ended.returncode == 0, ended.stderr
    expected = kleene.match(pa.Table.from_pylist(events), kleene.query(QUERY, name="pairs"))
    found = [row["match_id"] for row in lines(disk / "out")]
    assert 0 < before < len(found)
    assert sorted(found) == sorted(expected.column("match_id").to_pylist())


def written(folder: Path) -> list[dict[str, object]]:
    """Files of 1 MB that cannot be compressed; the last one only moves time on."""
    draw, events = random.Random(20261116), []
    folder.mkdir()
    for number in range(FILES + 1):
        last = number == FILES
        rows = [
            {"type": "Z", "ts": 10**6, "x": 0, "text": ""}
            if last
            else {
                "type": "AB"[place % 2],
                "ts": number * PER_FILE + place,
                "x": place // 2,
                "text": f"{draw.getrandbits(2400):0600x}",
            }
            for place in range(1 if last else PER_FILE)
        ]
        events += rows
        file = folder / f"{number:03}.json"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    return events


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, "run", "pipeline.toml"],
        cwd=folder,
        env={**os.environ, **briefly()},
        capture_output=True,
        text=True,
        timeout=300,
    )

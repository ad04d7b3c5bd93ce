"""A stream of 210,000 events whose driver is killed three times: every output holds each of its rows exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kleene

pytestmark = pytest.mark.spark

FILES, PER_FILE, DELAY = 10, 21_000, 200
QUERIES = {
    "pairs": "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 100",
    "alone": "PATTERN SEQ(A a, C c, !(B b)) WHERE [x] AND a.v < 20 WITHIN 300",
}
PIPELINE = """\
[[sources]]
name = "readings"
kind = "json"
path = "in"
schema = {{ type = "string", ts = "long", x = "long", v = "long" }}
options = {{ maxFilesPerTrigger = 1 }}

{queries}
[[sinks]]
kind = "parquet"
path = "out/{{query}}"

[[sinks]]
kind = "json"
path = "out/late"
output = "late"

[[sinks]]
kind = "json"
path = "out/bad"
output = "bad_rows"

[stream]
checkpoint = "state"
delay = {delay}
available_now = true
"""


def test_each_row_exactly_once(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    draw = random.Random(20261116)
    files, poison = made_files(draw)
    write_files(tmp_path, files, poison)
    queries = "".join(f'[[queries]]\nname = "{name}"\ntext = "{text}"\n\n' for name, text in QUERIES.items())
    (tmp_path / "pipeline.toml").write_text(PIPELINE.format(queries=queries, delay=DELAY))

    with running(tmp_path, between=draw.randrange(1, 3)) as said:
        wait_for(said, "between")
    for first in (3, 6):
        with running(tmp_path) as said:
            wait_for(said, f"done {draw.randrange(first, first + 2)}")
            sleep(draw.uniform(0, 1.5))
    with running(tmp_path) as said:
        wait_for(said, "finished")

    in_time, late = apart(files)
    counts = {}
    for name, text in QUERIES.items():
        expected = kleene.match(pa.Table.from_pylist(in_time), kleene.query(text, name=name))
        found = [row["match_id"] for row in rows_of(tmp_path / "out" / name)]
        counts[name] = len(found)
        assert len(found) > 1_000
        assert Counter(found) == Counter(expected.column("match_id").to_pylist())
    assert late
    assert Counter(map(repr, rows_of(tmp_path / "out/late"))) == Counter(map(repr, late))
    bad = [row["text"] for row in rows_of(tmp_path / "out/bad")]
    assert Counter(bad) == Counter(line for lines in poison for line in lines)
    said_of = ", ".join(f"{number:,} {name}" for name, number in counts.items())
    record_property("counted", f"killed three times: {said_of}, {len(late)} late, {len(bad)} bad, each exactly once")


# The stream ----------------------------------------------------------------------------------------------------------


Event = dict[str, Any]


def made_files(draw: random.Random) -> tuple[list[list[Event]], list[list[str]]]:
    """Events by file, some of them late, and lines that are none; the last file only moves time on."""
    files, poison = [], []
    for number in range(FILES):
        begin = number * PER_FILE // 10
        events = [
            event(draw, "ABCD"[draw.randrange(4)], begin + place // 10 + draw.randrange(DELAY // 2))
            for place in range(PER_FILE)
        ]
        events += [event(draw, "A", begin - draw.randrange(2_000, 3_000)) for _ in range(40) if number > 2]
        files.append(events)
        poison.append([f'{{"type": "A", "ts": "{number} o\\u2019clock {place}"}}' for place in range(7)])
    return [*files, [event(draw, "Z", 10 * FILES * PER_FILE)]], [*poison, []]


def event(draw: random.Random, kind: str, ts: int) -> Event:
    return {"type": kind, "ts": ts, "x": draw.randrange(500), "v": draw.randrange(100)}


def write_files(folder: Path, files: list[list[Event]], poison: list[list[str]]) -> None:
    (folder / "in").mkdir()
    for number, (events, lines) in enumerate(zip(files, poison, strict=True)):
        file = folder / "in" / f"{number:03}.json"
        file.write_text("".join(f"{line}\n" for line in [*map(json.dumps, events), *lines]))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def apart(files: list[list[Event]]) -> tuple[list[Event], list[Event]]:
    """The events that come in time and those that come late: one file is one batch."""
    in_time: list[Event] = []
    late: list[Event] = []
    latest = 0
    for events in files:
        watermark = latest - DELAY
        for one in events:
            (late if watermark > 0 and one["ts"] < watermark else in_time).append(one)
        latest = max(latest, *(one["ts"] for one in events))
    # An event that matters to no query is not missed.
    return in_time, [one for one in late if one["type"] in "ABC"]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """What a reader finds: a folder whose name begins with a dot is not there for it."""
    found: list[dict[str, Any]] = []
    for file in sorted(folder.glob("batch=*/part-*")):
        if file.suffix == ".parquet":
            found += pq.read_table(file).to_pylist()
        else:
            found += [json.loads(line) for line in file.read_text().splitlines()]
    return found


# The driver ----------------------------------------------------------------------------------------------------------


@contextmanager
def running(folder: Path, between: int | None = None) -> Iterator[Iterator[str]]:
    """What a driver says; it is killed, and its JVM with it, at the end."""
    script = str(Path(__file__).with_name("killed_run.py"))
    command = [sys.executable, script, str(folder / "pipeline.toml"), *([] if between is None else [str(between)])]
    with (folder / "stderr").open("a") as errors:
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        assert driver.stdout is not None
        try:
            yield iter(driver.stdout)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
            driver.stdout.close()


def wait_for(said: Iterator[str], beginning: str) -> None:
    heard: list[str] = []
    for line in said:
        heard.append(line)
        if line.startswith(beginning):
            return
    raise AssertionError(f"the driver ended before it said `{beginning}`: {heard}")

"""A pipeline from a topic to another: poison set aside, a broker that is restarted, each match there."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.spark.broker import Broker
from tests.spark.stream_pipelines import Watched, lines

import kleene
from kleene.errors import BadTarget, SparkFailed
from kleene.spark.pipeline.reading import read_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.sparks_own]

PIPELINE = """
[[sources]]
name = "readings"
kind = "kafka"
bootstrap = ["${{KLEENE_TEST_BROKER}}"]
topic = "{source}"
schema = {{ type = "string", ts = "long", x = "long" }}
columns = {{ seq = "offset" }}

[[queries]]
name = "pairs"
text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"

[[sinks]]
kind = "kafka"
bootstrap = "${{KLEENE_TEST_BROKER}}"
topic = "{sink}"

[bad_rows]
path = "bad"

[stream]
checkpoint = "state"
delay = 5
trigger = "500 ms"
"""
PAIRS, PARTS = 120, 6
Message = tuple[bytes | None, bytes | None]
POISON: dict[str, list[bytes | None]] = {
    "the message has no value": [None],
    "the message is no UTF-8": [b'{"type": "\xff", "ts": 1}'],
    "cannot be read as JSON": [b"", b"null", b"[1]", b'{"type": "A", "ts"', b'{"ts": "soon"}', b'{"ts": 1}\n{"ts": 2}'],
    "no time: `ts` is NULL": [b'{"type": "A", "x": 5}'],
}


def message(kind: str, ts: int, x: int) -> Message:
    return str(x).encode(), json.dumps({"type": kind, "ts": ts, "x": x}).encode()


def test_from_topic_to_topic(broker: Broker, spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    from kleene.spark.pipeline.stream_running import run_stream

    source, sink = f"in-{uuid4().hex}", f"out-{uuid4().hex}"
    broker.create_topic(source, partitions=2)
    broker.create_topic(sink)
    monkeypatch.setenv("KLEENE_TEST_BROKER", broker.bootstrap)
    (tmp_path / "pipeline.toml").write_text(PIPELINE.format(source=source, sink=sink))
    parts: list[list[Message]] = [
        [message("A", 1, 5), message("B", 2, 5), message("A", 3, 6), *_poison()],
        [message("Z", 100, 0)],
        [message("A", 101, 7), message("B", 102, 7), message("B", 4, 6)],
        [message("Z", 200, 0)],
    ]

    def next_part() -> None:
        matches = sum(batch["matches"]["pairs"] for batch in told.batches)
        if len(parts) == 2 and matches == 1:
            broker.kill()
            broker.start()
        if len(parts) in (3, 1) or (parts and matches == 1):
            broker.produce(source, parts.pop(0))
        elif matches == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    told = Watched(next_part)
    broker.produce(source, parts.pop(0))
    patience = Timer(400, os.kill, (os.getpid(), signal.SIGTERM))
    patience.start()
    try:
        summary = run_stream(read_pipeline(tmp_path / "pipeline.toml"), told, spark)
    finally:
        patience.cancel()
    assert summary.stopped
    assert (summary.totals.of("matches"), summary.totals.late) == ({"pairs": 2}, 1)

    values = [json.loads(value) for value in broker.consume(sink) if value is not None]
    found = {row["match_id"]: (row["a"], row["b"]) for row in values}
    good = [
        {"type": kind, "ts": ts, "x": x} for kind, ts, x in [("A", 1, 5), ("B", 2, 5), ("A", 101, 7), ("B", 102, 7)]
    ]
    assert {(a["ts"], b["ts"]) for a, b in found.values()} == {(1, 2), (101, 102)}
    assert {row["query"] for row in values} == {"pairs"}
    assert len(kleene.match(good, "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10")) == len(found)
    assert all(isinstance(a["seq"], int) for a, _ in found.values())

    bad = lines(tmp_path / "bad")
    texts = {reason: [_text(value) for value in values] for reason, values in POISON.items()}
    texts["no time: `ts` is NULL"] = [bad_text(bad, "no time: `ts` is NULL")]
    assert sorted((row["reason"], row["text"]) for row in bad) == sorted(
        (reason, text) for reason, listed in texts.items() for text in listed
    )
    assert all(row["place"].startswith(f"topic {source}, partition ") for row in bad)
    assert len({row["place"] for row in bad}) == len(bad)


@pytest.mark.soak
def test_a_broker_that_is_killed_under_a_stream(
    broker: Broker,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: Any,
    record_property: Callable[[str, object], None],
) -> None:
    """Killed twice while pairs come, are matched and are written; should the stream give up, it is started again."""
    from kleene.spark.pipeline.stream_running import run_stream

    source, sink = f"in-{uuid4().hex}", f"out-{uuid4().hex}"
    broker.create_topic(source, partitions=2)
    broker.create_topic(sink)
    monkeypatch.setenv("KLEENE_TEST_BROKER", broker.bootstrap)
    # A batch may get what one partition has of a part, and the next one the rest: that is not late. The next part is.
    pipeline = PIPELINE.format(source=source, sink=sink).replace("delay = 5", "delay = 5_000")
    (tmp_path / "pipeline.toml").write_text(pipeline)
    size = PAIRS // PARTS
    times = [10_000 * (number // size) + 10 * number for number in range(PAIRS)]
    pairs = [(message("A", at, number), message("B", at + 1, number)) for number, at in enumerate(times)]
    parts = [list(chain(*pairs[first : first + size])) for first in range(0, PAIRS, size)]
    parts.append([message("Z", times[-1] + 10_000, 0)])
    killed: list[Future[None]] = []

    def outage() -> None:
        # In the midst of the next batch, and not where the last one ended.
        time.sleep(0.3)
        broker.kill()
        time.sleep(1)
        broker.start()

    def next_part() -> None:
        for one in killed:
            one.result()
        # A batch that is given again is told of again.
        matches = sum({batch["batch"]: batch["matches"]["pairs"] for batch in told.batches}.values())
        if parts:
            broker.produce(source, parts.pop(0))
            if len(parts) in (PARTS - 1, PARTS - 3):
                killed.append(outages.submit(outage))
        elif matches >= PAIRS or ended.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    told, ended, running, starts = Watched(next_part), Event(), Event(), 0

    def give_up() -> None:
        ended.set()
        if running.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    broker.produce(source, parts.pop(0))
    patience = Timer(400, give_up)
    patience.start()
    # A broker ends with the thread that started it: this one lives until another broker takes its place.
    outages = ThreadPoolExecutor(1)
    try:
        stopped = False
        while not stopped and not ended.is_set() and starts < 8:
            starts += 1
            running.set()
            try:
                stopped = run_stream(read_pipeline(tmp_path / "pipeline.toml"), told, spark).stopped
            except (BadTarget, SparkFailed):
                wait(killed)
            finally:
                running.clear()
    finally:
        patience.cancel()
        wait(killed)
        broker.kill()
        broker.start()
        outages.shutdown()
    assert not ended.is_set(), "it was given up before all had been read"
    assert len(killed) == 2
    events = [json.loads(value) for pair in pairs for _, value in pair if value is not None]
    expected = kleene.match(events, kleene.query("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10", name="pairs"))
    written = [json.loads(value) for value in broker.consume(sink) if value is not None]
    # The offsets in the topic are among what a row shows, and events from a list have none: by their times.
    found = Counter((row["a"]["ts"], row["b"]["ts"]) for row in written)
    assert set(found) == {(row["start"], row["end"]) for row in expected}
    assert len({row["match_id"] for row in written}) == PAIRS
    twice = sum(found.values()) - PAIRS
    record_property("counted", f"a broker killed twice: {PAIRS} matches, 0 lost, {twice} twice, {starts} start(s)")


def _poison() -> list[Message]:
    return [(b"poison", value) for values in POISON.values() for value in values]


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode(errors="replace")


def bad_text(bad: list[dict[str, Any]], reason: str) -> str:
    """The text of the one bad row that could be read, in which its offset stands."""
    (row,) = [row for row in bad if row["reason"] == reason]
    assert '"type":"A"' in row["text"]
    return str(row["text"])


@pytest.mark.soak
def test_the_clock_speaks_when_a_topic_is_read(
    broker: Broker, spark: SparkSession, tmp_path: Path, monkeypatch: Any
) -> None:
    """With one message a batch, and events of an hour ago: none is late, and the last window closes by the clock."""
    from kleene.spark.pipeline.stream_running import run_stream

    source = f"in-{uuid4().hex}"
    broker.create_topic(source)
    monkeypatch.setenv("KLEENE_TEST_BROKER", broker.bootstrap)
    text = PIPELINE.format(source=source, sink="none")
    for old, new in (
        ('ts = "long"', 'ts = "timestamp"'),
        ('"offset" }', '"offset" }\noptions = { maxOffsetsPerTrigger = 1 }'),
        ("WITHIN 10", "WITHIN 10 minutes"),
        ('kind = "kafka"\nbootstrap = "${KLEENE_TEST_BROKER}"\ntopic = "none"', 'kind = "json"\npath = "out"'),
        ("delay = 5\n", 'delay = "5 seconds"\nidle = "10 seconds"\navailable_now = true\n'),
        ('trigger = "500 ms"\n', ""),
    ):
        assert old in text, old
        text = text.replace(old, new)
    (tmp_path / "pipeline.toml").write_text(text)
    began = datetime.now(tz=UTC) - timedelta(hours=1)
    for minute, kind in ((0, "A"), (5, "B"), (10, "A"), (15, "B")):
        event = {"type": kind, "ts": (began + timedelta(minutes=minute)).isoformat(), "x": minute // 10}
        broker.produce(source, [(b"0", json.dumps(event).encode())])
    summary = run_stream(read_pipeline(tmp_path / "pipeline.toml"), Watched(), spark)
    assert (summary.totals.rows, summary.totals.late, summary.totals.bad_rows) == (4, 0, 0)
    assert len(lines(tmp_path / "out")) == 2

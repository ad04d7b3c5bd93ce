"""A pipeline from a topic to another: poison set aside, a broker that is restarted, each match there."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.spark.broker import Broker
from tests.spark.stream_pipelines import Watched, lines

import kleene
from kleene.spark.pipeline.reading import read_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def _poison() -> list[Message]:
    return [(b"poison", value) for values in POISON.values() for value in values]


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode(errors="replace")


def bad_text(bad: list[dict[str, Any]], reason: str) -> str:
    """The text of the one bad row that could be read, in which its offset stands."""
    (row,) = [row for row in bad if row["reason"] == reason]
    assert '"type":"A"' in row["text"]
    return str(row["text"])
